"""What the patent on MapReduce trees says that its method achieves, judged by runs: it prints no number."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpforest.datasets import Dataset
from dpforest.privacy import OutOfSchemaWarning, UnprovenPrivacyWarning
from dpforest.study.statements import Statements
from dpforest.study.statements.rules import Finding, cannot_read, cannot_run, everywhere, more, small

__all__ = ["cart", "judge", "same_from_blocks"]


def cart(data: Dataset, seeds: Iterable[int], max_depth: int, n_bins: int) -> pd.DataFrame:
    """A classification tree of scikit-learn on the same codes, without privacy: accuracy and nodes by seed.

    Parameters
    ----------
    data : Dataset
        With its official test part, or divided as :func:`dpforest.study.experiments.sweep` divides it.
    seeds : iterable of int
    max_depth : int
        That of the trees beside which it stands.
    n_bins : int
        Bins of a number.
    """
    from sklearn.tree import DecisionTreeClassifier

    rows = []
    for seed in seeds:
        part = data if data.X_test is not None else data.split(test_size=0.3, random_state=seed)
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovenPrivacyWarning)  # the caller chose the variant
        warnings.simplefilter("ignore", OutOfSchemaWarning)
        for seed in seeds:
            one, other = (
                build(schema=data.schema, random_state=seed).fit(table, "the class").to_dict(seeded=True)
                for table in (frame, path)
            )
            different.append(float(one != other))
    return {"different": np.array(different), "blocks": np.array([-(-len(frame) // rows)])}


def judge(
    said: Statements, published: Mapping[str, pd.DataFrame], trees: Mapping[str, pd.DataFrame],
    blocks: Mapping[str, np.ndarray] | None,
) -> Statements:  # fmt: skip
    """Judge every sentence of the patent about what its method achieves.

    Parameters
    ----------
    said : Statements
        Of the chapter ``pearson_tree``.
    published, trees : mapping of data set to DataFrame
        As published, and of :func:`cart`: columns seed, accuracy, nodes; several rows of a seed are averaged.
    blocks : mapping or None
        Of :func:`same_from_blocks`, where an engine could be asked.
    """
    gaps = {name: _gaps(published[name], trees[name]) for name in published}
    smaller = {name: more(-gap["nodes"], unit="nodes fewer than CART", factor=1.0) for name, gap in gaps.items()}
    better = {name: more(gap["accuracy"], than="above CART") for name, gap in gaps.items()}
    said.judge("exp-pearson-small", everywhere(smaller))
    said.judge("exp-pearson-generalises", everywhere(better))
    said.judge("exp-pearson-memory", _memory(blocks))
    said.judge("exp-pearson-time", cannot_read("what it is faster than is not said, and no time is printed"))
    said.judge(
        "exp-pearson-parts-efficient",
        cannot_read("one machine reads all parts, one after the other: the same records, and one sum for each part"),
    )
    return said


def _gaps(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The first less the second, by seed."""
    means = [rows.groupby("seed")[["accuracy", "nodes"]].mean() for rows in (one, other)]
    return (means[0] - means[1]).dropna()


def _memory(blocks: Mapping[str, np.ndarray] | None) -> Finding:
    if blocks is None:
        return cannot_run("no engine is installed that reads blocks")
    found = small(blocks["different"], 0.5, unit="of the models differ", factor=1.0)
    return Finding(found.verdict, f"{found.ours}, read in {int(blocks['blocks'][0])} blocks against whole")
