"""Compile ahead what is compiled on a first call otherwise: ``python -m dpforest.counting``.

Each compiled function, from reading a table to scoring what was counted, is called once with arguments of the types
that ship.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from dpforest import counting
from dpforest.arithmetic import gini_kernels
from dpforest.arithmetic.fixed import STEPS, below_best
from dpforest.chance import keyed
from dpforest.schema import Schema


def compile_ahead() -> None:
    """Read a table of each kind, ask every query once in each way that takes kernels of its own, and score."""
    schema = Schema(numeric={"x": (0, 1)}, categorical={"c": ["a", "b"], "k": [0, 1]}, classes=[0, 1])
    for kind in (float, np.float32, object):
        schema.encode(pd.DataFrame({"x": np.zeros(2, kind), "c": ["a", "b"], "k": np.zeros(2, kind)}), 4)
    keyed.coins((0, 0), np.zeros(1, dtype=np.uint64), 2)
    codes, labels = np.zeros((1, 64), dtype=np.uint8), np.zeros(64, dtype=np.uint8)
    splits = counting.Splits(
        np.array([0, -1, -1], dtype=np.int32),
        np.array([1, 0, 0], dtype=np.int32),
        np.array([2, 0, 0], dtype=np.int32),
        np.zeros(3, dtype=bool),
        np.ones((3, 4), dtype=np.uint64),
        np.zeros(1, dtype=np.int32),
    )
    slots = np.array([-1, 0, 1], dtype=np.int32)
    features, masks = np.zeros((2, 1), dtype=np.int32), np.full((2, 1, 4), 5, dtype=np.uint64)
    for kernel in ("rows", "bits"):
        counting.candidate_counts(codes, labels, 2, splits, slots, features, masks, kernel=kernel)
        counting.candidate_sums(codes, labels, np.array([[3, 1 << 20]]), splits, slots, features, masks, kernel=kernel)
    for kernel in ("rows", "bits", "cells"):
        counting.sum_values(codes, splits, np.zeros((3, 1)), kernel=kernel)
    counting.feature_histograms(codes, labels, 2, [1], splits, slots)
    counting.apply(codes, splits)
    whole = np.zeros((2, 4, 2), dtype=np.int64)
    for counts in (whole, whole[:, :2]):  # a part of an array is another type, but not of a single split
        gini_kernels.gini(counts, STEPS, np.empty((2, 2), dtype=np.int64))
    below_best(np.zeros((2, 1, 2), dtype=np.int64), np.ones((1, 2), dtype=bool))


if __name__ == "__main__":
    begin = time.process_time()
    compile_ahead()
    print(f"compiled the kernels in {time.process_time() - begin:.0f} seconds of processor time")
