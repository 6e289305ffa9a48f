"""Table 1 of the CART-DPsAdaBoost paper: nine systems in its words, with what a fit of each spends and loses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

import dpforest
from dpforest.datasets import Dataset
from dpforest.privacy import Ledger
from dpforest.registry import PAPERS
from dpforest.study.boosting_experiments import NOISELESS, calls_a_split, fitted
from dpforest.study.experiments import parts, quiet
from dpforest.study.sweep_tables import listed, short

__all__ = ["OWN", "TABLE_1", "TableLine", "access", "nine", "spending", "table_1"]

LEAF, BY_FEATURE = "count the classes of a leaf", "of each child by each feature"


@dataclass(frozen=True)
class TableLine:
    """A line of the paper's table 1, in English.

    Attributes
    ----------
    key : str
        Of the system in the registry.
    mechanism, noise, framework, data : str
        Its columns: typical mechanism, noise, framework, data types.
    remark : str
        Its last column, in short.
    """

    key: str
    mechanism: str
    noise: str
    framework: str
    data: str
    remark: str


_L, _LE, _BOTH = "Laplace", "Laplace, exponential", "discrete, continuous"
TABLE_1: dict[str, TableLine] = {
    "SuLQ-ID3": TableLine("sulq_id3", _L, "high", "interface", "discrete", "much noise, less usable data"),
    "PINQ-ID3": TableLine("pinq_id3", _L, "high", "interface", "discrete", "uses the budget better, no less noise"),
    "DiffP-ID3": TableLine("diffp_id3", _LE, "low", "interface", "discrete", "a split is charged once, less noise"),
    "DiffP-C4.5": TableLine("diffp_c45", _LE, "low", "interface", _BOTH, "two exponential mechanisms, too much budget"),
    "DiffGen": TableLine(
        "diffgen", _LE, "low", "full access", _BOTH, "protects privacy well where there are few kinds of attributes"
    ),
    "DT-Diff": TableLine("dt_diff", _LE, "low", "full access", _BOTH, "uses the whole budget, more accurate"),
    "DiffPRF": TableLine(
        "diffprf", _LE, "low", "interface", "discrete", "many features; numbers are made discrete before"
    ),
    "DiffPRFs": TableLine("diffprfs", _LE, "low", "interface", _BOTH, "no need to make numbers discrete before"),
    "DP-AdaBoost": TableLine(
        "dp_adaboost", _L, "low", "full access", "discrete", "simple, no noise at splits, accurate"
    ),
}
#: The paper's own, which the table leaves out.
OWN = {"CART-DPsAdaBoost": TableLine("dps_adaboost", _LE, "", "full access", _BOTH, "")}


def spending(ledger: Ledger) -> dict[str, float]:
    """What a fit was charged for its splits, and how wide the noise of its leaves is.

    Returns
    -------
    dict
        ``splits``: the share of all charges, on the most expensive path, that selections and counts by which splits
        are chosen would cost by themselves.  ``leaf``: the scale of the noise of a leaf's class counts, in records,
        under add-remove, where least is charged.  Not a number where there is no such charge.
    """
    charges = ledger._charges
    chosen = [c for c in charges if "geometric" not in c.mechanism or BY_FEATURE in c.query]
    whole, part = (replace(ledger, _charges=some).paid("add-remove") for some in (charges, chosen))
    least = min((float(c.costs["add-remove"].min()) for c in charges if c.query == LEAF and c.scopes.size), default=0.0)
    return {"splits": part / whole if whole else np.nan, "leaf": 1 / least if least else np.nan}


def nine(data: Dataset, seeds: int, depth: int, rounds: int, epsilon: float, name: str = "") -> pd.DataFrame:
    """Fit each system as published, with noise and without, on one data set.

    Parameters
    ----------
    data : Dataset
        With a test part, or else split anew for each seed.
    seeds : int
        How many.
    depth : int
        Of a tree; DP-AdaBoost has stumps, and DiffGen and DT-Diff as many divisions as they have by default.
    rounds : int
        Trees of a forest, rounds of boosting.
    epsilon : float

    Returns
    -------
    DataFrame
        Columns data, system, noise (the paper's word), seed, accuracy, cost (the accuracy without noise less that),
        calls (selections for each split), leaks (kinds of reads that are not charged), those of :func:`spending`, and
        ``error`` where there is no algorithm.
    """
    rows = []
    for seed, part in parts(data, range(seeds)):
        for system, described in {**TABLE_1, **OWN}.items():
            measured = _measured(getattr(dpforest, PAPERS[described.key][0]), part, seed, depth, rounds, epsilon)
            rows.append(
                {"data": name or data.name, "system": system, "noise": described.noise, "seed": seed, **measured}
            )
    return pd.DataFrame(rows)


def _measured(build: Callable, data: Dataset, seed: int, depth: int, rounds: int, epsilon: float) -> dict[str, Any]:
    has = build().get_params()
    sizes = {name: size for name, size in (("max_depth", depth), ("n_estimators", rounds)) if name in has}
    found: dict[Any, Any] = {}
    for budget in (epsilon, NOISELESS):
        problem, model = fitted(build, data, seed, {"variant": "published", "epsilon": budget, **sizes})
        if model is None:
            return problem
        with quiet():
            found[budget] = model, float((model.predict(data.X_test) == np.asarray(data.y_test)).mean())
    (model, accuracy), (_, bare) = found[epsilon], found[NOISELESS]
    spent = {"calls": calls_a_split(model), "leaks": len(model.ledger_.leaks), **spending(model.ledger_)}
    return {"accuracy": accuracy, "cost": bare - accuracy, **spent, "error": ""}


def table_1(rows: pd.DataFrame) -> list[dict[str, str]]:
    """The paper's table 1 with the means of :func:`nine`, a row for each system, as text."""
    systems = {**TABLE_1, **OWN}
    return [
        _line(str(data), str(name), systems[str(name)], found)
        for (data, name), found in rows.groupby(["data", "system"], sort=False)
    ]


def _line(data: str, name: str, system: TableLine, found: pd.DataFrame) -> dict[str, str]:
    words = {
        "system": name,
        "mechanism": system.mechanism,
        "noise": system.noise,
        "framework": system.framework,
        "data types": system.data,
        "remark": system.remark,
        "measured on": short(data),
    }
    if (found["error"] != "").any():
        return words | {"accuracy": "no budget"}
    mean = found[["accuracy", "cost", "splits", "calls", "leaf", "leaks"]].astype(float).mean()
    return words | {
        "accuracy": f"{mean['accuracy']:.3f}",
        "lost to noise, points": f"{100 * mean['cost']:+.1f}",
        "charged for splits": _known(mean["splits"], ".0%"),
        "selections a split": _known(mean["calls"], ".1f"),
        "noise of a leaf, records": _known(mean["leaf"], ".3g"),
        "reads not charged": f"{mean['leaks']:.0f}",
    }


def _known(value: float, form: str) -> str:
    return "–" if np.isnan(value) else f"{value:{form}}"


def access(rows: pd.DataFrame) -> str:
    """Which systems read records without a charge, in words: an interface would not let them."""
    rows = rows[rows["error"] == ""]
    leaks = rows.groupby("system", sort=False)["leaks"].max()
    reading = [name for name in leaks.index if leaks[name]]
    interface = [name for name in reading if name in TABLE_1 and TABLE_1[name].framework == "interface"]
    able = [n for n in leaks.index if not leaks[n] and n in TABLE_1 and TABLE_1[n].framework == "full access"]
    return (
        f"Reads that are not charged, which no interface would answer: {listed(reading)}; of these the paper says "
        f"*interface* of {listed(interface)}. It says *full access* of {listed(able)}, whose every read is a query "
        "that is charged, and which an interface could answer."
    )
