"""Everything audited, by every layer, in one table: what is claimed, what is lost, what was expected.

An alarm is an exact loss above the claim, a finding of the grey box, or a statistical bound that stays significant when
all tests of the table are taken together (Holm).  A row is a surprise if a layer raises an alarm where the claim is
proved, or if a layer that must raise one does not.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import platform
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy
import sklearn
from tqdm import tqdm

import dpforest
from dpforest.audit.exact.laws import answers
from dpforest.audit.exact.replay import ExactAudit
from dpforest.audit.grey.greybox import GreyBoxAudit, greybox
from dpforest.audit.plain import plain
from dpforest.audit.report.subjects import EXACT, GREY_BOX, LAYERS, SCALES, STATISTICAL, Scale, Subject
from dpforest.audit.sampling.bounds import check_confidence
from dpforest.audit.sampling.empirical import EmpiricalAudit, empirical
from dpforest.audit.search.traps import traps
from dpforest.learners.parameters import check_choice
from dpforest.models import storage

__all__ = ["HOLDS", "UNEXPECTED", "VIOLATED", "Report", "holm", "look", "plain", "run", "spell", "versions"]

HOLDS, VIOLATED, UNEXPECTED = VERDICTS = "holds", "violated as expected", "UNEXPECTED"

FORMAT = 1  # of the JSON

Audit = ExactAudit | GreyBoxAudit | EmpiricalAudit


@dataclass(frozen=True)
class Report:
    """The table, and how it was made.

    Attributes
    ----------
    rows : list of dict
        One for each subject; what a layer did not look at is None.  ``key``, ``name``, ``options``, ``kind``,
        ``variant``, ``relation``; ``claim`` (what is audited) and ``promise`` (of the library); ``exact``,
        ``unspent``, ``exact_violated``, ``exact_pair``, ``exact_output``, ``n_pairs``; ``greybox`` (kinds of findings),
        ``findings``, ``paid``, ``runs``; ``empirical`` (a lower bound), ``p_value``, ``p_holm``, ``event``, ``pair``,
        ``n``, ``hits``; ``alarms``, ``expected`` (layers), ``why``, ``verdict``.
    made : dict
        ``versions``, ``code`` (a digest of the library's syntax trees) and ``settings``, the seed among them.
    """

    rows: list[dict[str, Any]]
    made: dict[str, Any]

    @property
    def unexpected(self) -> list[dict[str, Any]]:
        """The surprises."""
        return [row for row in self.rows if row["verdict"] == UNEXPECTED]

    def counts(self) -> dict[str, int]:
        """How many rows have each verdict."""
        found = Counter(row["verdict"] for row in self.rows)
        return {verdict: found[verdict] for verdict in VERDICTS}

    def __str__(self) -> str:
        counts = self.counts()
        lines = [f"{len(self.rows)} audits: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}"]
        for row in self.unexpected:
            alarms, expected = (", ".join(row[word]) or "none" for word in ("alarms", "expected"))
            lines.append(f"  {row['key']}: alarms by {alarms}, expected by {expected}")
        return "\n".join(lines)

    def save(self, path) -> None:
        """Write it as JSON; the same report gives the same bytes."""
        _write(Path(path), {"format": FORMAT, **self.made, "counts": self.counts(), "rows": self.rows})

    @classmethod
    def load(cls, path) -> Report:
        """Read a finished report.

        Raises
        ------
        ValueError
            If the file is not one, or not finished.
        """
        try:
            found = storage.read_json(path)
            report = cls(
                [_read(row) for row in found["rows"]], {word: found[word] for word in ("versions", "code", "settings")}
            )
            if found["format"] != FORMAT or not all(row["verdict"] in VERDICTS for row in report.rows):
                raise KeyError("verdict")
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path} is not a finished report of dpforest's auditor") from None
        return report


def run(
    subjects: Iterable[Subject], *, scale: str | Scale = "small", layers: Sequence[str] = LAYERS,
    confidence: float = 0.95, random_state: int = 0, progress: bool = False, path=None,
) -> Report:  # fmt: skip
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
    if isinstance(scale, str):
        check_choice(scale, "scale", SCALES)
        scale = SCALES[scale]
    check_confidence(confidence)
    for layer in layers:
        check_choice(layer, "layers", LAYERS)
    if isinstance(random_state, bool) or not isinstance(random_state, int) or random_state < 0:
        raise ValueError(f"random_state must be a whole number, zero or more, so that a row can be made again; "
                         f"not {random_state!r}")  # fmt: skip
    if repeated := [key for key, times in Counter(subject.key for subject in subjects).items() if times > 1]:
        raise ValueError(f"two subjects are called {repeated[0]!r}")
    settings = {**asdict(scale), "layers": list(layers), "confidence": confidence, "random_state": random_state}
    settings = json.loads(json.dumps(settings))
    made = {"versions": versions(), "code": _digest(), "settings": settings}
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
                _write(Path(path), {"format": FORMAT, **made, "rows": rows})
    report = Report(_judged(rows, 1 - confidence), made)
    if path is not None:
        report.save(path)
    return report


def look(
    subject: Subject, layer: str, scale: Scale, confidence: float = 0.95, random_state: int = 0, progress: bool = False
) -> Audit:
    """Audit one subject by one layer, with a seed that is made from ``random_state``, the subject and the layer."""
    if (why := subject.refusal(layer)) is not None:
        raise ValueError(f"{subject.name} cannot be audited by the layer {layer!r}, for {why}")
    scale = subject.scaled(scale)
    rng = np.random.default_rng([random_state, zlib.crc32(f"{subject.key}/{layer}".encode())])
    if layer == EXACT:
        return subject.exact(scale, progress=progress)
    pairs = subject.pairs(scale)
    if layer == STATISTICAL:
        return empirical(
            subject.sample, pairs[: scale.most_pairs()], subject.claim, n=scale.n, confidence=confidence,
            random_state=rng, relation=subject.relation, law=subject.law, features=subject.features,
            events=scale.events, progress=progress,
        )  # fmt: skip
    estimator = subject.estimator
    assert estimator is not None  # else it was refused
    schema = estimator.declared_schema()
    cap = getattr(estimator, "n_max", math.inf)  # more records than the schema's owner promises are refused
    known = traps(schema.cardinalities(estimator.bins(schema)).tolist(), answers(schema), subject.relation)
    known = [pair for pair in known if max(len(pair.one), len(pair.other)) <= cap]
    few = known[:: max(1, math.ceil(len(known) / max(1, scale.traps)))] if scale.traps else []
    return greybox(estimator, pairs + few, runs=scale.runs, random_state=rng, progress=progress)


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

_NUMBERS = ("claim", "promise", "exact", "unspent", "paid", "empirical")  # those that may be infinite
_STATED = ("key", "name", "options", "kind", "variant", "relation", "claim", "promise", "why")
_MEASURED = (
    "exact", "unspent", "exact_violated", "exact_pair", "exact_output", "n_pairs", "greybox", "findings", "paid",
    "runs", "empirical", "p_value", "event", "pair", "n", "hits",
)  # fmt: skip


def _stated(subject: Subject) -> dict[str, Any]:
    said = {word: getattr(subject, word) for word in _STATED}
    return said | {"expected": [layer for layer in LAYERS if layer in subject.expected]}


def _measured(subject: Subject, layers, scale: Scale, confidence: float, random_state: int) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(_MEASURED)
    for layer in subject.layers:
        if layer not in layers:
            continue
        audit = look(subject, layer, scale, confidence, random_state)
        if isinstance(audit, ExactAudit):
            row |= {
                "exact": audit.epsilon, "unspent": audit.unspent, "exact_violated": audit.violated,
                "exact_pair": " | ".join(map(spell, audit.pair)), "exact_output": audit.shown or str(audit.output),
                "n_pairs": audit.n_pairs,
            }  # fmt: skip
        elif isinstance(audit, GreyBoxAudit):
            row |= {
                "greybox": ", ".join(audit.kinds) or "no finding", "findings": [str(found) for found in audit.findings],
                "paid": audit.paid, "runs": audit.n_runs,
            }  # fmt: skip
        else:
            row |= {
                "empirical": audit.epsilon_lower, "p_value": audit.p_value, "event": audit.event,
                "pair": str(audit.pair), "n": audit.n, "hits": list(audit.hits),
            }  # fmt: skip
    return row


def _judged(rows: list[dict[str, Any]], alpha: float) -> list[dict[str, Any]]:
    """The rows with the statistical tests taken together, the alarms, and the verdicts."""
    tested = [row for row in rows if row["p_value"] is not None]
    together = dict(zip((row["key"] for row in tested), holm([row["p_value"] for row in tested]), strict=True))
    judged = []
    for row in rows:
        p_holm = together.get(row["key"])
        raised = {
            EXACT: row["exact_violated"],
            GREY_BOX: None if row["findings"] is None else bool(row["findings"]),
            STATISTICAL: None if p_holm is None else p_holm < alpha,
        }
        due = [layer for layer in row["expected"] if raised[layer] is not None]
        alarms = [layer for layer in LAYERS if raised[layer]]
        surprise = set(due) - set(alarms) or (alarms and not row["expected"])
        verdict = UNEXPECTED if surprise else VIOLATED if alarms else HOLDS
        judged.append(row | {"p_holm": p_holm, "alarms": alarms, "verdict": verdict})
    return judged


# -- files ---------------------------------------------------------------------------------------------------------


def _resume(path, made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows that an earlier run of the same code with the same settings left behind."""
    if path is None or not Path(path).exists():
        return {}
    try:
        found = storage.read_json(path)
        same = found["format"] == FORMAT and all(found[word] == made[word] for word in made)
        rows = [_read(row) for row in found["rows"]] if same else []
        return {row["key"]: {word: row[word] for word in (*_STATED, "expected", *_MEASURED)} for row in rows}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path} exists and is no report of this auditor: give another file, or remove it") from None


def _write(path: Path, what: dict[str, Any]) -> None:
    """Write JSON, whole or not at all."""
    storage.write(path, json.dumps(plain(what), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _read(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it was before it became JSON."""
    return {**row, **{word: float(row[word]) for word in _NUMBERS if isinstance(row[word], str)}}


def versions() -> dict[str, str]:
    """Of Python, of this library, and of those it computes with."""
    packages = (dpforest, np, scipy, sklearn, numba)
    return {"python": platform.python_version(), **{package.__name__: package.__version__ for package in packages}}


def _digest() -> str:
    """Of every module of the library; comments and layout do not count."""
    root = Path(dpforest.__file__).parent
    trees = [
        f"{path.relative_to(root)} {ast.dump(ast.parse(path.read_bytes()))}" for path in sorted(root.rglob("*.py"))
    ]
    return hashlib.sha256("\n".join(trees).encode()).hexdigest()
