"""The table and the count with which the engines are tried: each must give the integers of memory."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd

from dpforest import Schema, counting
from dpforest.chance import keyed
from dpforest.curator.reader import SchemaReader
from tests.patience import PATIENCE

SCHEMA = Schema(
    numeric={"age": (0, 100), "hours": (0, 60)},
    categorical={"work": ["private", "state", "none"], "level": [1, 2, 3, 9]},
    classes=["poor", "rich"],
)
READER = SchemaReader(SCHEMA, 8, "income")
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


def in_memory(table: pd.DataFrame = TABLE, reader: SchemaReader = READER, task=COUNT) -> list:
    return [answer.tolist() for answer in task(reader.read(table, 0))]


# -- what workers of Dask run: they import this module, and not the tests


def itself(piece):
    return piece


def until(met) -> None:
    end = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < end
        time.sleep(0.02)


def with_process(frame):
    return frame.assign(id=os.getpid())


def identify(block):
    return (np.array([block.ids.sum(dtype=np.int64)]),)


@dataclass(frozen=True)
class Traced:
    """A task that leaves a file wherever it is unpacked."""

    folder: str

    def __call__(self, block):
        return (np.array([len(block.labels)]),)

    def __reduce__(self):
        return unpack, (self.folder,)


def unpack(folder):
    (Path(folder) / f"{os.getpid()}-{uuid4().hex}").touch()
    return Traced(folder)


@dataclass(frozen=True)
class Large:
    ballast: np.ndarray

    def __call__(self, block):
        return (np.array([len(block.labels)]),)


def read_again(source):
    return pd.read_parquet(source)


def stumble(frame):
    if len(frame) == 397:
        raise ZeroDivisionError("the reason")
    return frame


def ages(frame):
    return np.where(frame["age"] > 50, "old", "young")


def shares(frame):
    return np.column_stack([frame["age"] / 100, 1 - frame["age"] / 100])


def wait_here(frame, folder, most):
    """Note that a partition has been begun; after so many of them, wait until somebody has been killed."""
    folder = Path(folder)
    (folder / f"{os.getpid()}-{uuid4().hex}.begun").touch()
    if begun(folder) > most:
        (folder / f"{os.getpid()}.waits").touch()
        until((folder / "killed").exists)
    return frame


def begun(folder: Path) -> int:
    return len(list(folder.glob("*.begun")))


def die(frame):
    if len(frame) == 497:
        os.kill(os.getpid(), signal.SIGKILL)
    return frame
