"""Progress of a long fit: a bar after some seconds, on a terminal or in a notebook."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["shown"]

SECONDS = 2.0  # a fit that is over before shows nothing; of infinitely many, no fit ever does

Item = TypeVar("Item")


def shown(items: Iterable[Item], total: int, unit: str) -> Iterator[Item]:
    """Go through the items, and show how many are done once that takes long.

    Parameters
    ----------
    items : iterable
    total : int
        How many there are at most.
    unit : str
        What one is called.

    Notes
    -----
    The bar shows the number of rounds or levels, which is public, and the time that they took, which is only for the
    person who runs the fit.  It is written to standard error, on a terminal and in a notebook; ``TQDM_DISABLE=1`` in
    the environment turns it off.
    """
    if not _watched() or math.isinf(SECONDS):
        yield from items
        return
    bar, began, lock = None, time.monotonic(), threading.Lock()

    def show() -> None:
        from tqdm import tqdm

        nonlocal bar
        with lock:
            if bar is None:
                bar = tqdm(total=total, initial=done, unit=f" {unit}", leave=False)

    done = 0
    clock = threading.Timer(max(SECONDS, 0), show)  # for a first item that takes longer than that
    clock.daemon = True
    clock.start()
    try:
        for done, item in enumerate(items):
            if bar is not None:
                bar.update(done - bar.n)
            elif time.monotonic() - began > SECONDS:
                show()
            yield item
    finally:
        clock.cancel()
        clock.join()
        if bar is not None:
            bar.close()


def _watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
