"""Everything audited, by every layer, in one table: what is claimed, what is lost, what was expected.

An alarm is an exact loss above the claim, a finding of the grey box, or a statistical bound that stays significant when
all tests of the table are taken together (Holm).  A row is a surprise if a layer raises an alarm where the claim is
proved, or if a layer that must raise one does not.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
import scipy
import sklearn
from tqdm import tqdm

import dpforest
from dpforest import messages, storage
from dpforest.audit.exact.enumeration import ExactAudit
from dpforest.audit.grey.greybox import GreyBoxAudit, greybox
from dpforest.audit.plain import plain
from dpforest.audit.report.subjects import EXACT, GREY_BOX, LAYERS, SCALES, STATISTICAL, Scale, Subject
from dpforest.audit.sampling.bounds import check_confidence
from dpforest.audit.sampling.empirical import EmpiricalAudit, empirical
from dpforest.learners.parameters import check_choice
from dpforest.messages import shown
from dpforest.privacy import epsilon_of

__all__ = ["HOLDS", "UNEXPECTED", "VIOLATED", "Report", "holm", "look", "plain", "run", "spell", "versions"]

HOLDS, VIOLATED, UNEXPECTED = VERDICTS = "holds", "violated as expected", "UNEXPECTED"

FORMAT = 1  # of the JSON

Audit = ExactAudit | GreyBoxAudit | EmpiricalAudit


#: The columns of the table, and their types; what a layer did not look at is missing.
_STATED = {
    **dict.fromkeys(("key", "name", "options", "kind", "variant", "relation"), "object"),
    "claim": "float",
    "promise": "float",
    "why": "object",
    "expected": "object",
}
_MEASURED = {
    "exact": "float",
    "unspent": "float",
    "exact_violated": "boolean",
    "exact_pair": "object",
    "exact_output": "object",
    "n_pairs": "Int64",
    "greybox": "object",
    "findings": "object",
    "paid": "float",
    "runs": "Int64",
    "empirical": "float",
    "p_value": "float",
    "event": "object",
    "pair": "object",
    "n": "Int64",
    "hits": "object",
}
_JUDGED = {"p_holm": "float", "alarms": "object", "verdict": "object"}


@dataclass(frozen=True, eq=False)
class Report:
    """The table, and how it was made.

    Attributes
    ----------
    rows : DataFrame
        One row for each subject; what a layer did not look at is missing.  ``key``, ``name``, ``options``, ``kind``,
        ``variant``, ``relation``; ``claim`` (what is audited) and ``promise`` (of the library); ``why`` and
        ``expected`` (layers); ``exact``, ``unspent``, ``exact_violated``, ``exact_pair``, ``exact_output``,
        ``n_pairs``; ``greybox`` (kinds of findings), ``findings``, ``paid``, ``runs``; ``empirical`` (a lower bound),
        ``p_value``, ``event``, ``pair``, ``n``, ``hits``; ``p_holm``, ``alarms``, ``verdict``.
    made : dict
        ``versions``, ``code`` (a digest of the library's syntax trees) and ``settings``, the seed among them.
    """

    rows: pd.DataFrame
    made: dict[str, Any]

    def records(self) -> list[dict[str, Any]]:
        """The rows one by one, as JSON has them; what is missing is None."""
        return _records(self.rows)

    @property
    def unexpected(self) -> list[dict[str, Any]]:
        """The surprises."""
        return _records(self.rows[self.rows["verdict"] == UNEXPECTED])

    def counts(self) -> dict[str, int]:
        """How many rows have each verdict."""
        return {verdict: int((self.rows["verdict"] == verdict).sum()) for verdict in VERDICTS}

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {verdict}" for verdict, n in self.counts().items())
        lines = [f"{len(self.rows)} audits: {counts}"]
        for row in self.unexpected:
            alarms, expected = (", ".join(row[word]) or "none" for word in ("alarms", "expected"))
            lines.append(messages.plain(f"  {row['key']}: alarms by {alarms}, expected by {expected}"))
        return "\n".join(lines)

    def save(self, path) -> None:
        """Write it as JSON; the same report gives the same bytes."""
        _write(path, {**self.made, "counts": self.counts(), "rows": self.records()})

    @classmethod
    def load(cls, path: str | Path) -> Report:
        """Read a finished report.

        Raises
        ------
        ValueError
            If the file is not one, or not finished.
        """
        try:
            made, rows = _read(path, _STATED | _MEASURED | _JUDGED)
            if not rows["verdict"].isin(VERDICTS).all():
                raise ValueError
        except _NO_REPORT:
            raise ValueError(f"{path} is not a finished report of dpforest's auditor") from None
        return cls(rows, made)


def run(
    subjects: Iterable[Subject],
    *,
    scale: str | Scale = "small",
    layers: Sequence[str] = LAYERS,
    confidence: float = 0.95,
    random_state: int = 0,
    progress: bool = False,
    path=None,
) -> Report:
    """Audit every subject by every layer.

    Parameters
    ----------
    subjects : iterable of Subject
        Such as :func:`dpforest.audit.report.catalogue.subjects` lists.
    scale : {"small", "full"} or Scale
    layers : sequence of str
        Of ``"exact"``, ``"greybox"``, ``"statistical"``.
    confidence : float
        Of each statistical bound by itself, and of all statistical alarms together.
    random_state : int
        Zero or more.  Each row has a seed of its own, made from this one and its key: the same row comes out whatever
        else is audited.
    progress : bool
        Show a progress bar.
    path : path, optional
        Where to write the report as JSON, after each row.  Rows that an earlier run of the same code and settings
        left there are not computed again.

    Returns
    -------
    Report
    """
    subjects = list(subjects)
    if repeated := [key for key, times in Counter(subject.key for subject in subjects).items() if times > 1]:
        raise ValueError(f"two subjects are called {shown(repeated[0])}")
    if isinstance(scale, str):
        check_choice(scale, "scale", SCALES)
        scale = SCALES[scale]
    made = {"versions": versions(), "code": _digest(), "settings": _settings(scale, layers, confidence, random_state)}
    done = _resume(path, made)
    rows = []
    with tqdm(subjects, disable=not progress, unit="audit") as bar:
        for subject in bar:
            bar.set_postfix_str(subject.key)
            stated = _stated(subject)
            row = done.get(subject.key)
            if row is None or any(row[word] != stated[word] for word in stated):
                row = stated | _measured(subject, layers, scale, confidence, random_state)
            rows.append(row)
            if path is not None:
                _write(path, {**made, "rows": rows})
    report = Report(_judged(_table(rows, _STATED | _MEASURED), 1 - confidence), made)
    if path is not None:
        report.save(path)
    return report


def _settings(scale: Scale, layers: Sequence[str], confidence: float, random_state: int) -> dict[str, Any]:
    """What a report was asked for, checked, as JSON has it."""
    check_confidence(confidence)
    for layer in layers:
        check_choice(layer, "layers", LAYERS)
    if isinstance(random_state, bool) or not isinstance(random_state, int) or random_state < 0:
        raise ValueError(
            f"random_state must be a whole number, zero or more, so that a row can be made again; "
            f"not {shown(random_state)}"
        )
    return plain({**asdict(scale), "layers": layers, "confidence": confidence, "random_state": random_state})


def look(
    subject: Subject, layer: str, scale: Scale, confidence: float = 0.95, random_state: int = 0, progress: bool = False
) -> Audit:
    """Audit one subject by one layer, with a seed that is made from ``random_state``, the subject and the layer."""
    if (why := subject.refusal(layer)) is not None:
        raise ValueError(f"{subject.name} cannot be audited by the layer {shown(layer)}, for {why}")
    scale = subject.scaled(scale)
    rng = np.random.default_rng([random_state, zlib.crc32(f"{subject.key}/{layer}".encode())])
    target = subject.target
    if layer == EXACT:
        return target.exact(scale, progress=progress)
    pairs = target.pairs(scale)
    if layer == GREY_BOX:
        assert subject.estimator is not None  # else it was refused
        return greybox(
            subject.estimator, pairs + target.traps(scale), runs=scale.runs, random_state=rng, progress=progress
        )
    return empirical(
        target.sample,
        pairs[: scale.most_pairs()],
        subject.claim,
        n=scale.n,
        confidence=confidence,
        random_state=rng,
        relation=subject.relation,
        law=target.law,
        features=target.features,
        events=scale.events,
        delta=subject.delta,
        progress=progress,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: rejecting those below alpha errs in any of them with probability at most alpha.

    Source
    ------
    Holm (1979).
    """
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, (len(p_values) - rank) * p_values[at])
        adjusted[at] = min(1.0, largest)
    return adjusted


def spell(dataset: Sequence[Sequence[int]]) -> str:
    """A data set in words: each record with its number of times, where there are several."""
    times = Counter(tuple(int(code) for code in record) for record in dataset)
    said = [(f"{n} x " if n > 1 else "") + f"({', '.join(map(str, record))})" for record, n in sorted(times.items())]
    return " + ".join(said) or "no record"


# -- rows ----------------------------------------------------------------------------------------------------------


def _stated(subject: Subject) -> dict[str, Any]:
    return {word: getattr(subject, word) for word in _STATED} | {"expected": list(subject.expected)}


def _measured(subject: Subject, layers: Sequence[str], scale: Scale, confidence: float, seed: int) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(_MEASURED)
    for layer in subject.layers:
        if layer in layers:
            row |= _found(look(subject, layer, scale, confidence, seed))
    return row


def _found(audit: Audit) -> dict[str, Any]:
    """The columns that one layer fills."""
    if isinstance(audit, ExactAudit):
        return {
            "exact": audit.epsilon,
            "unspent": audit.unspent,
            "exact_violated": audit.violated,
            "exact_pair": " | ".join(map(spell, audit.pair)),
            "exact_output": audit.shown or str(audit.output),
            "n_pairs": audit.n_pairs,
        }
    if isinstance(audit, GreyBoxAudit):
        return {
            "greybox": ", ".join(audit.kinds) or "no finding",
            "findings": [str(found) for found in audit.findings],
            "paid": epsilon_of(audit.paid, audit.delta) if audit.delta else audit.paid,
            "runs": audit.n_runs,
        }
    return {
        "empirical": audit.epsilon_lower,
        "p_value": audit.p_value,
        "event": audit.event,
        "pair": str(audit.pair),
        "n": audit.n,
        "hits": list(audit.hits),
    }


def _judged(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """The rows with the statistical tests taken together, the alarms, and the verdicts."""
    tested = rows["p_value"].dropna()
    rows = rows.assign(p_holm=pd.Series(holm(tested.tolist()), tested.index, dtype=float))
    raised = [_raised(row, alpha) for row in _records(rows)]
    verdicts = [_verdict(*both) for both in zip(raised, rows["expected"], strict=True)]
    return rows.assign(alarms=[[layer for layer in found if found[layer]] for found in raised], verdict=verdicts)


def _raised(row: dict[str, Any], alpha: float) -> dict[str, bool]:
    """For each layer that looked, whether it raises an alarm."""
    significant = None if row["p_holm"] is None else row["p_holm"] < alpha
    found = {EXACT: row["exact_violated"], GREY_BOX: row["findings"], STATISTICAL: significant}
    return {layer: bool(found[layer]) for layer in LAYERS if found[layer] is not None}


def _verdict(raised: dict[str, bool], expected: Sequence[str]) -> str:
    alarm = any(raised.values())
    if (alarm and not expected) or not all(raised.get(layer, True) for layer in expected):
        return UNEXPECTED
    return VIOLATED if alarm else HOLDS


def _table(rows: list[dict[str, Any]], columns: dict[str, str]) -> pd.DataFrame:
    cells = [[row[word] for word in columns] for row in rows]
    return pd.DataFrame(cells, columns=[*columns], dtype=object).astype(columns)


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


# -- files ---------------------------------------------------------------------------------------------------------

_NO_REPORT = (ValueError, KeyError, TypeError, AttributeError, OverflowError)  # what reading another file may raise


def _resume(path: str | Path | None, made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows that an earlier run of the same code with the same settings left behind."""
    if path is None or not Path(path).exists():
        return {}
    try:
        found, rows = _read(path, _STATED | _MEASURED)
    except _NO_REPORT:
        raise ValueError(f"{path} exists and is no report of this auditor: give another file, or remove it") from None
    return {row["key"]: row for row in _records(rows)} if found == made else {}


def _read(path, columns: dict[str, str]) -> tuple[dict[str, Any], pd.DataFrame]:
    """How a report was made, and these columns of its rows."""
    found = storage.read_json(path)
    if found["format"] != FORMAT:
        raise ValueError
    return {word: found[word] for word in ("versions", "code", "settings")}, _table(found["rows"], columns)


def _write(path, what: dict[str, Any]) -> None:
    """Write JSON, whole or not at all."""
    text = json.dumps(plain({"format": FORMAT, **what}), indent=1, ensure_ascii=False, allow_nan=False)
    storage.write(path, text + "\n")


def versions() -> dict[str, str]:
    """Of Python, of this library, and of those it computes with."""
    packages = (dpforest, np, scipy, sklearn, numba)
    return {"python": platform.python_version(), **{package.__name__: package.__version__ for package in packages}}


@cache
def _digest() -> str:
    """A hash of all modules of the library as they were at the first call."""
    root = Path(dpforest.__file__).parent
    trees = [f"{path.relative_to(root)} {_syntax(path.read_bytes())}" for path in sorted(root.rglob("*.py"))]
    return hashlib.sha256("\n".join(trees).encode()).hexdigest()


def _syntax(source: str | bytes) -> str:
    """What a module does; its comments, layout and docstrings do not count."""
    tree, documented = ast.parse(source), ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)
