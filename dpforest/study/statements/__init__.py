"""Experimental claims: what a paper says that its experiments show, and the verdict of a run of its own protocol.

There is one file of statements for each chapter, ``edprf.toml`` for instance.  A notebook measures, a rule of
:mod:`dpforest.study.statements.rules` judges, and :class:`Statements` shows both next to the paper's own words: a
verdict is never typed.
"""

from __future__ import annotations

import html
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dpforest.messages import shown
from dpforest.study.statements.rules import SIGNS, UNREADABLE, VERDICTS, Finding

__all__ = ["Statement", "Statements", "Verdicts", "papers", "style"]

_FOLDER = Path(__file__).parent
_HEADS = ("paper", "here", "verdict")
_FIELDS = ("place", "says", "english", "protocol", "paper")


@dataclass(frozen=True)
class Statement:
    """One sentence, number or figure of a paper that says what an experiment showed.

    Attributes
    ----------
    id : str
        ``exp-`` and words.
    place : str
        Page, section, figure or table of the paper.
    says : str
        The sentence in the paper's language, or what a figure or a table shows.
    english : str
        The same in English.
    protocol : str
        Data, split, grid, repeats and metric: those of the paper, and where ours differ.
    paper : str
        The paper's number, as printed; ``"?"`` where it cannot be read.
    """

    id: str
    place: str
    says: str
    english: str
    protocol: str
    paper: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"exp-[a-z0-9]+(-[a-z0-9]+)*", self.id):
            raise ValueError(f"an experimental claim is named exp- and words, not {shown(self.id)}")
        for name in _FIELDS:
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise ValueError(f"{self.id}: {name} is missing; where it cannot be read it is '?'")


def papers() -> list[str]:
    """The chapters whose papers have statements, by name."""
    return sorted(file.name.removesuffix(".toml") for file in _FOLDER.iterdir() if file.name.endswith(".toml"))


class Statements:
    """The experimental claims of one paper, and what a run finds about each.

    Parameters
    ----------
    paper : str
        The name of the paper's chapter, see :func:`papers`.

    Examples
    --------
    >>> said = Statements("edprf")
    >>> said.statements["exp-edprf-table-2"].place
    'p. 2941, table 2'
    """

    def __init__(self, paper: str) -> None:
        if paper not in papers():
            raise ValueError(f"there are no statements of {shown(paper)}; there are those of {', '.join(papers())}")
        self.paper = paper
        entries = tomllib.loads((_FOLDER / f"{paper}.toml").read_text(encoding="utf-8"))
        self.statements = {name: Statement(name, **entry) for name, entry in entries.items()}
        self.findings: dict[str, Finding] = {}

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.statements.values())

    def judge(self, name: str, finding: Finding) -> Finding:
        """Note what a rule found about a statement, once.

        Raises
        ------
        ValueError
            The paper has no such statement, or it was judged before.
        """
        if name not in self.statements:
            raise ValueError(f"{self.paper}.toml has no {shown(name)}: write the statement there first")
        if name in self.findings:
            raise ValueError(f"{name} has been judged already")
        self.findings[name] = finding
        return finding

    def table(self) -> Verdicts:
        """All statements with their findings, in the order of the file.

        Raises
        ------
        ValueError
            A statement was not judged; where nothing can be run, say so by :func:`.rules.cannot_run`.
        """
        if missing := [name for name in self.statements if name not in self.findings]:
            raise ValueError(f"not judged: {', '.join(missing)}; what cannot be run here is judged by cannot_run(why)")
        return Verdicts(self.paper, [(said, self.findings[said.id]) for said in self])


@dataclass(frozen=True)
class Verdicts:
    """The table of a paper: what it says, its number, ours, and the verdict; in a notebook and in the book."""

    paper: str
    rows: list[tuple[Statement, Finding]]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many statements have each verdict that occurs."""
        found = [finding.verdict for _, finding in self.rows]
        return {verdict: found.count(verdict) for verdict in VERDICTS if verdict in found}

    def __str__(self) -> str:
        return ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())

    def _repr_html_(self) -> str:
        heads = "".join(f'<th scope="col">{head}</th>' for head in ("the paper says", *_HEADS))
        rows = "\n".join(_row(said, finding) for said, finding in self.rows)
        return (
            f'<table class="statements" data-paper="{html.escape(self.paper)}">\n<caption>{html.escape(str(self))}'
            f"</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
        )


def style(verdict: str) -> str:
    """The classes of CSS of a verdict's square."""
    return f"verdict {verdict.replace(' ', '-')}"


def _row(said: Statement, found: Finding) -> str:
    """One statement; the id is in the row, so that a link leads there."""
    text = {name: html.escape(getattr(said, name)) for name in _FIELDS}
    original = f'<q lang="zh">{text["says"]}</q> ' if said.says != said.english else ""
    numbers = UNREADABLE if said.paper == "?" else text["paper"]
    verdict = f'<span class="{style(found.verdict)}">{SIGNS[found.verdict]}</span> {found.verdict}'
    cells = zip(_HEADS, (numbers, html.escape(found.ours), verdict), strict=True)
    return (
        f'<tr id="{said.id}" data-verdict="{found.verdict}"><td><b>{text["place"]}</b> {original}{text["english"]}'
        f"<details><summary><code>{said.id}</code></summary>{text['protocol']}</details></td>"
        + "".join(f'<td data-head="{head}">{cell}</td>' for head, cell in cells)
        + "</tr>"
    )
