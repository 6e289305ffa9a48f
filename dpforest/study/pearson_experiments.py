"""Experiments of the patent on MapReduce trees: its tree in both readings, the repair, and what its words say of them.

The patent prints no number.  Its words are judged by comparison with a tree without privacy, over the number of parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpforest.datasets import Dataset
from dpforest.models.forest import Forest
from dpforest.privacy import NON_PRIVATE
from dpforest.study.experiments import parts as divided
from dpforest.study.experiments import quiet, sweep
from dpforest.study.statements import Statements
from dpforest.study.statements.rules import Finding, cannot_run, everywhere, more, small
from dpforest.study.sweep_tables import short

__all__ = [
    "ARGMAX",
    "CODES",
    "COUNTS",
    "DRAWN",
    "PROVED",
    "STYLES",
    "TREES",
    "against_noise",
    "best_parts",
    "cart",
    "judge",
    "levels",
    "noisy",
    "ratios",
    "run",
    "same_from_blocks",
    "settings",
    "steps",
    "table",
    "work",
]

CODES = 256  # a part and a class share so many
NOISELESS = NON_PRIVATE
DRAWN, ARGMAX = "published, drawn", "published, arg max"
PROVED, COUNTS = "proved, correlation", "proved, Gini of counts"
#: The trees of the page.  As published in two readings: the attribute is drawn, as the patent's words say twice, or it
#: is the one of the largest probability.
TREES: dict[str, dict[str, Any]] = {
    DRAWN: {"variant": "published", "selection": "exponential"},
    ARGMAX: {"variant": "published", "selection": "argmax"},
    PROVED: {},
    COUNTS: {"criterion": "gini"},
}
FLOOR = "floor"
#: Of lines, in the order of the legend.
STYLES: dict[str, dict[str, Any]] = {
    DRAWN: {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    ARGMAX: {"color": "#D55E00", "marker": "s", "linestyle": "--"},
    PROVED: {"color": "#009E73", "marker": "^", "linestyle": "-."},
    COUNTS: {"color": "#CC79A7", "marker": "D", "linestyle": ":"},
    FLOOR: {"color": "#777777", "linestyle": "-"},
}


def settings(names: Sequence[str], **axes: Sequence) -> dict[str, dict[str, Any]]:
    """Every one of the named :data:`TREES` at every combination of the axes.

    >>> settings([COUNTS], epsilon=[0.5, 1.0])
    {'proved, Gini of counts @ 0.5': {'criterion': 'gini', 'epsilon': 0.5}, \
'proved, Gini of counts @ 1.0': {'criterion': 'gini', 'epsilon': 1.0}}
    """
    points: list[dict[str, Any]] = [{}]
    for axis, values in axes.items():
        points = [point | {axis: value} for point in points for value in values]
    return {
        f"{name} @ {', '.join(map(str, point.values()))}": {**TREES[name], **point}
        for name in names
        for point in points
    }


def run(
    build: Callable, sets: Mapping[str, Dataset], wanted: Mapping[str, Mapping], seeds: Mapping[str, int]
) -> pd.DataFrame:
    """Every setting of :func:`settings` that a set has codes for, fitted and measured; ``learner`` names the tree.

    Parameters
    ----------
    build : callable
    sets : mapping of names to data sets
    wanted : mapping of names to settings
    seeds : mapping of names of data sets to numbers of seeds

    Raises
    ------
    AssertionError
        A ledger that proves another loss than the one asked for, or any finite one of a published tree.
    """
    parts = []
    for name, data in sets.items():
        fits = {who: s for who, s in wanted.items() if s.get("n_parts", 1) * data.schema.n_classes <= CODES}
        parts.append(sweep(build, data, fits, range(seeds[name])).assign(data=name))
    rows = pd.concat(parts, ignore_index=True)
    rows["learner"] = rows["name"].str.split(" @ ").str[0]
    published = rows["learner"].isin([DRAWN, ARGMAX])
    asked = rows[~published & rows["epsilon"].ne(NOISELESS)]
    assert np.isinf(rows.loc[published, "loss"]).all()
    assert np.allclose(asked["loss"].astype(float), asked["epsilon"].astype(float))
    return rows


def noisy(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that have a budget, as a number."""
    kept = rows[rows["epsilon"].ne(NOISELESS)]
    return kept.assign(epsilon=kept["epsilon"].astype(float))


def levels(floors: Mapping[str, Mapping[str, float]], measure: str) -> dict[str, dict[str, float]]:
    """The lines of a figure: a measure of always saying the most frequent class, on every set."""
    return {name: {FLOOR: values[measure]} for name, values in floors.items()}


def table(rows: pd.DataFrame, axis: str, says: Callable[[Any], str], floors: Mapping | None = None) -> pd.DataFrame:
    """Mean accuracy: a row per data set and tree, a column per value of the axis."""
    means = rows.groupby(["data", "learner", axis], sort=False)["accuracy"].mean()
    out = []
    for name in dict.fromkeys(rows["data"]):
        here = rows[rows["data"] == name]
        places = list(dict.fromkeys(rows[axis]))
        for who in dict.fromkeys(here["learner"]):
            seen = {says(at): f"{means[name, who, at]:.3f}" for at in places if (name, who, at) in means.index}
            out.append({"data": short(name), "tree": who} | seen)
        if floors:
            out.append(
                {"data": short(name), "tree": FLOOR} | {says(at): f"{floors[name]['accuracy']:.3f}" for at in places}
            )
    return pd.DataFrame(out)


def against_noise(rows: pd.DataFrame, name: str, top: float) -> dict[str, Any]:
    """What the correlation costs against a score of counts, with and without noise, on one set at the largest budget.

    Returns
    -------
    dict
        ``drawn``, ``argmax``, ``correlation`` and ``gini``: mean accuracies; ``gap`` and ``free``: Gini less the
        correlation, with noise and without; ``noise``: whether most of the gap is the noise.
    """
    here = rows[rows["data"] == name].groupby(["learner", "epsilon"])["accuracy"].mean()
    out = {key: float(here[who, top]) for key, who in _KEYS.items()}
    gap, free = (float(here[COUNTS, at] - here[PROVED, at]) for at in (top, NOISELESS))
    return out | {"gap": gap, "free": free, "noise": gap > 0 and gap > 2 * free}


_KEYS = {"drawn": DRAWN, "argmax": ARGMAX, "correlation": PROVED, "gini": COUNTS}


def best_parts(rows: pd.DataFrame, name: str, who: str, epsilon: float) -> tuple[int, pd.Series]:
    """The number of parts of the largest mean accuracy, and the accuracies by their number."""
    here = rows[(rows["data"] == name) & (rows["learner"] == who) & (rows["epsilon"] == epsilon)]
    means = here.groupby("n_parts")["accuracy"].mean()
    return int(means.idxmax()), means


def steps(forest: Forest, codes: np.ndarray, sizes: np.ndarray, n_parts: int) -> dict[str, float]:
    """Steps of the published tree's map and reduce, counted: the same on every machine.

    At each inner node a record is read once for each attribute left, a correlation is computed for each cut in each
    part, and the mean of an attribute adds one number of each part.

    Parameters
    ----------
    forest : Forest
        The tree.
    codes : ndarray of int, shape (n_features, n_rows)
        The records that it was fitted to.
    sizes : ndarray of int, shape (n_features,)
        How many codes each feature has.
    n_parts : int

    Returns
    -------
    dict
        ``all``: the steps of all parts and of the reducer; ``longest``: those of one part, the average one, and of the
        reducer, for so long it takes where every part has a machine.
    """
    at = np.bincount(forest.leaves(np.ascontiguousarray(codes))[0], minlength=forest.n_nodes)
    cuts = np.asarray(sizes) - 1
    inner = np.flatnonzero(forest.feature >= 0)  # a child has a larger number than its parent
    children = {node: range(forest.first_child[node], forest.first_child[node] + forest.arity[node]) for node in inner}
    for node in inner[::-1]:
        at[node] = sum(at[child] for child in children[node])
    left = dict.fromkeys(np.asarray(forest.roots).tolist(), cuts > 0)
    reads = scores = means = 0
    for node in inner:
        here = left[node]
        reads, scores, means = reads + at[node] * here.sum(), scores + cuts[here].sum(), means + here.sum()
        left |= dict.fromkeys(children[node], here & (np.arange(len(cuts)) != forest.feature[node]))
    reduce = float(means * n_parts)
    return {"all": float(reads + scores * n_parts) + reduce, "longest": float(reads) / n_parts + float(scores) + reduce}


def work(
    build: Callable, data: Dataset, parts: Sequence[int], seeds: Sequence[int], repeats: int = 3, **setting: Any
) -> pd.DataFrame:
    """Steps and processor time of the published tree over the number of parts.

    Parameters
    ----------
    build : callable
    data : Dataset
    parts : sequence of int
        Those that the set's classes leave codes for are fitted.
    seeds : sequence of int
    repeats : int, default 3
        Fits of each, of which the fastest is timed.
    **setting
        Further parameters of the learner.

    Returns
    -------
    DataFrame
        Columns ``n_parts``, ``seed``, ``all`` and ``longest`` of :func:`steps`, and ``seconds`` of this machine.
    """
    n_bins, rows = build().n_bins, []
    sizes, codes = data.schema.cardinalities(n_bins), data.schema.encode(data.X, n_bins).codes
    for m in parts:
        if m * data.schema.n_classes > CODES:
            continue
        for seed in seeds:
            model = build(schema=data.schema, n_parts=m, random_state=seed, **setting)
            seconds = min(_seconds(model, data) for _ in range(repeats))
            rows.append({"n_parts": m, "seed": seed, **steps(model.forest_, codes, sizes, m), "seconds": seconds})
    return pd.DataFrame(rows)


def _seconds(model: Any, data: Dataset) -> float:
    with quiet():
        begin = time.process_time()
        model.fit(data.X, data.y)
        return time.process_time() - begin


def ratios(worked: pd.DataFrame, measure: str) -> pd.Series:
    """A measure of :func:`work` as a multiple of that of the fewest parts: the mean over seeds, by number of parts."""
    wide = worked.pivot(index="seed", columns="n_parts", values=measure)
    return (wide.div(wide.iloc[:, 0], axis=0)).mean()


def cart(data: Dataset, seeds: Iterable[int], max_depth: int, n_bins: int) -> pd.DataFrame:
    """A classification tree of scikit-learn on the same codes, without privacy: accuracy and nodes by seed.

    Parameters
    ----------
    data : Dataset
        With its official test part, or divided as :func:`dpforest.study.experiments.sweep` divides it.
    seeds : iterable of int
    max_depth : int
        That of the trees with which it is compared.
    n_bins : int
        Bins of a number.
    """
    from sklearn.tree import DecisionTreeClassifier

    rows = []
    for seed, part in divided(data, seeds):
        codes, test = (part.schema.encode(X, n_bins).codes.T for X in (part.X, part.X_test))
        tree = DecisionTreeClassifier(max_depth=max_depth, random_state=seed).fit(codes, part.y)
        hits = tree.predict(test) == np.asarray(part.y_test)
        rows.append({"data": data.name, "seed": seed, "accuracy": float(hits.mean()), "nodes": tree.tree_.node_count})
    return pd.DataFrame(rows)


def same_from_blocks(build: Any, data: Dataset, seeds: Iterable[int], folder: Any, rows: int) -> dict[str, np.ndarray]:
    """Whether a table that is read in blocks from files gives the tree that it gives in memory.

    Parameters
    ----------
    build : callable
        ``build(schema=..., random_state=seed)`` gives the estimator.
    data : Dataset
    seeds : iterable of int
    folder : path
        Where the files are written.
    rows : int
        Of a block; no more are in memory at once.

    Returns
    -------
    dict
        ``different``, by seed: 0.0 where both models are equal member by member, else 1.0; ``blocks``: how many.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = data.X.assign(**{"the class": np.asarray(data.y)})
    path = f"{folder}/table.parquet"
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=rows)
    different = []
    with quiet():
        for seed in seeds:
            one, other = (
                build(schema=data.schema, random_state=seed).fit(table, "the class").to_dict(seeded=True)
                for table in (frame, path)
            )
            different.append(float(one != other))
    return {"different": np.array(different), "blocks": np.array([-(-len(frame) // rows)])}


def judge(
    said: Statements,
    rows: pd.DataFrame,
    trees: Mapping[str, pd.DataFrame],
    worked: Mapping[str, pd.DataFrame],
    blocks: Mapping[str, np.ndarray] | None,
    example: Finding,
) -> Statements:
    """Judge every sentence of the patent about what its method achieves; the tree that draws decides.

    Parameters
    ----------
    said : Statements
        Of the chapter ``pearson_tree``.
    rows : DataFrame
        Of :func:`run`, with both readings as published; the rows of a seed are averaged.
    trees : mapping of data set to DataFrame
        Of :func:`cart`.
    worked : mapping of data set to DataFrame
        Of :func:`work`, in the reading that draws.
    blocks : mapping or None
        Of :func:`same_from_blocks`, where an engine could be asked.
    example : Finding
        Of :func:`dpforest.study.pearson_example.like_the_patents`.
    """
    said.judge("exp-pearson-example", example)
    said.judge("exp-pearson-small", _beside_cart(rows, trees, "nodes", -1.0, "nodes fewer than CART", 1.0))
    said.judge("exp-pearson-generalises", _beside_cart(rows, trees, "accuracy", 1.0, "points above CART", 100.0))
    said.judge("exp-pearson-time", _saved(worked, "longest", "steps saved where each part has a machine"))
    said.judge("exp-pearson-parts-efficient", _saved(worked, "all", "steps saved in all"))
    said.judge("exp-pearson-memory", _memory(blocks))
    return said


def _beside_cart(
    rows: pd.DataFrame, trees: Mapping[str, pd.DataFrame], measure: str, sign: float, unit: str, factor: float
) -> Finding:
    """The tree that draws, compared with a tree without privacy; in addition, the tree of the arg max."""
    found = {}
    for name, tree in trees.items():
        drawn, argmax = (
            more(sign * _gaps(rows[(rows["data"] == name) & (rows["learner"] == who)], tree, measure), unit, factor)
            for who in (DRAWN, ARGMAX)
        )
        found[short(name)] = drawn.beside("arg max", argmax)
    return everywhere(found)


def _gaps(one: pd.DataFrame, other: pd.DataFrame, measure: str) -> np.ndarray:
    """The first less the second, by seed."""
    means = [rows.groupby("seed")[measure].mean() for rows in (one, other)]
    return (means[0] - means[1]).dropna().to_numpy(dtype=float)


def _saved(worked: Mapping[str, pd.DataFrame], measure: str, unit: str) -> Finding:
    """Fewer steps by the largest number of parts than by one, in %."""
    found = {}
    for name, rows in worked.items():
        steps_of = rows.pivot(index="seed", columns="n_parts", values=measure)
        most = max(steps_of.columns)
        if 1 not in steps_of.columns or most == 1:
            found[short(name)] = cannot_run("one part and a larger number of parts are wanted")
            continue
        found[short(name)] = more(1 - steps_of[most] / steps_of[1], unit=f"% of the {unit}, m = {most}")
    return everywhere(found)


def _memory(blocks: Mapping[str, np.ndarray] | None) -> Finding:
    if blocks is None:
        return cannot_run("no engine is installed that reads blocks")
    found = small(blocks["different"], 0.5, unit="of the models differ", factor=1.0)
    return Finding(found.verdict, f"{found.ours}, read in {int(blocks['blocks'][0])} blocks against whole")
