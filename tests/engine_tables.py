"""The table and the count with which the engines are tried: each must give the integers of memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpforest import Schema, counting
from dpforest.chance import keyed
from dpforest.engines import Reader

SCHEMA = Schema(
    numeric={"age": (0, 100), "hours": (0, 60)},
    categorical={"work": ["private", "state", "none"], "level": [1, 2, 3, 9]},
    classes=["poor", "rich"],
)
READER = Reader(SCHEMA, 8, "income")
KEYED = replace(READER, key="id")


def people(n: int = 997, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.uniform(0, 100, n), "hours": rng.integers(0, 61, n)})
    table["work"] = rng.choice(SCHEMA.categorical["work"], n)
    table["level"] = rng.choice(SCHEMA.categorical["level"], n)
    table["income"] = np.where(table.age + rng.normal(0, 20, n) > 50, "rich", "poor")
    table["id"] = rng.permutation(np.arange(n) * 7)
    table["unused"] = "x"
    return table


TABLE = people()


@dataclass(frozen=True)
class Count:
    """Class counts of the leaves of three trees, among which the records are shared out by their numbers."""

    splits: counting.Splits
    slots: np.ndarray
    name: str = "leaves"  # of the pass, in the log

    def __call__(self, block):
        assignment = keyed.coins((1, 2), block.ids, 3)
        found = counting.node_class_counts(block.codes, block.labels, 2, self.splits, self.slots, assignment=assignment)
        return found, np.array([len(block.labels)])


def forest(seed: int = 0) -> Count:
    rng = np.random.default_rng(seed)
    feature = np.tile(np.array([0, -1, -1], np.int32), 3)
    feature[::3] = rng.permutation(4)[:3]
    first = np.where(feature >= 0, np.arange(9) + 1, 0).astype(np.int32)
    arity = np.where(feature >= 0, 2, 0).astype(np.int32)
    mask = np.zeros((9, 4), np.uint64)
    mask[:, 0] = rng.integers(1, 8, 9)
    splits = counting.Splits(feature, first, arity, np.zeros(9, bool), mask, np.arange(0, 9, 3, dtype=np.int32))
    return Count(splits, np.where(feature >= 0, -1, np.arange(9)).astype(np.int32))


COUNT = forest()


def in_memory(table: pd.DataFrame = TABLE, reader: Reader = READER, task=COUNT) -> list:
    return [answer.tolist() for answer in task(reader.read(table, 0))]
