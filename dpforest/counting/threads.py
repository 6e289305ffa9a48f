"""Sharing the rows among threads: the kernels release the GIL, and partial counts add up."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral

import numpy as np

_PIECE = 3 << 13  # rows: a whole number of blocks of either engine


def check_threads(n_jobs) -> int:
    """A number of threads; -1 stands for the number of cores."""
    if n_jobs == -1:
        return os.cpu_count() or 1
    if not isinstance(n_jobs, Integral) or n_jobs < 1:
        raise ValueError(f"n_jobs must be a positive number of threads, or -1 for all cores, not {n_jobs!r}")
    return int(n_jobs)


def pieces_of(n_rows: int, threads: int) -> list[tuple[int, int]]:
    """Ranges of rows, some four per thread, so that a thread that is held up has less to do."""
    size = min(-(-n_rows // (4 * threads * _PIECE)), 256) * _PIECE or _PIECE
    return [(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


def in_threads(work, pieces: list, threads: int) -> list:
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
