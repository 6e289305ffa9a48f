"""Sharing the rows among threads: the kernels release the GIL, and partial counts add up."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import TypeVar

import numpy as np

from dpforest.counting.bits import BLOCK
from dpforest.messages import shown

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_LEAST = 1 << 12  # rows that are worth a thread


def check_threads(n_jobs: object) -> int:
    """A number of threads; -1 means the number of cores."""
    if not isinstance(n_jobs, Integral) or (int(n_jobs) < 1 and int(n_jobs) != -1):
        raise ValueError(f"n_jobs must be a positive number of threads, or -1 for all cores, not {shown(n_jobs)}")
    return int(n_jobs) if int(n_jobs) > 0 else os.cpu_count() or 1


def pieces_of(n_rows: int, threads: int) -> list[tuple[int, int]]:
    """Ranges of rows, as equal as can be; for a large table some four per thread, so that a late one has less to do."""
    n_blocks = -(-n_rows // BLOCK)  # of the bit kernel, which works best on whole ones
    if n_rows >= threads * _LEAST:
        n_blocks += -n_blocks % threads
    block = -(-n_rows // max(n_blocks, 1) // 64) * 64
    size = block * min(max(1, n_blocks // (4 * threads)), 256)
    return [(first, min(first + size, n_rows)) for first in range(0, n_rows, size)] if n_rows else []


def in_threads(work: Callable[[Iterator[Piece]], Result], pieces: list[Piece], threads: int) -> list[Result]:
    """Result of ``work`` in each thread, called with one iterator from which all of them draw their pieces."""
    threads = max(1, min(threads, len(pieces)))
    shared = iter(pieces)
    if threads == 1:
        return [work(shared)]
    with ThreadPoolExecutor(threads) as pool:
        return [future.result() for future in [pool.submit(work, shared) for _ in range(threads)]]


def total_of(partials: list) -> tuple[np.ndarray, ...]:
    """Sum of the threads' counts, array by array."""
    total, *others = partials
    for other in others:
        for mine, more in zip(total, other, strict=True):
            mine += more
    return total
