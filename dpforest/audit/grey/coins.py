"""Coins that give records to trees, drawn again for a neighbour: the records that both data sets hold keep theirs."""

from __future__ import annotations

import numpy as np

from dpforest.chance import Chance

__all__ = ["once", "resample", "share_out"]

Coins = tuple[str, tuple[int, ...], np.ndarray]  # the verb of chance, its arguments, what it drew


def share_out(source: Chance, asked: tuple, before: Coins, match: np.ndarray, n_before: int) -> np.ndarray | None:
    """Each record belongs to one tree: a record that both data sets hold keeps its coin, or as nearly as can be.

    A random order of the records cannot be kept when one record is added.  The new record takes a random place, and
    the record that had this place goes to the end, as in the proof of thm-equal-split: only one of the others moves.

    Parameters
    ----------
    source : Chance
        Draws the coin of a record that is new.
    asked : tuple
        The verb, and its arguments.
    before : Coins
        The verb, its arguments and the coins at the same point of the frozen run.
    match : ndarray of int
        For each record its place in the frozen run's file, -1 for a new one.
    n_before : int
        Records of the frozen run.

    Returns
    -------
    ndarray, or None where other coins are asked for than before
    """
    verb, *args = asked
    new = match < 0
    per_record = verb == before[0] and (before[1][-1], args[-1]) == (n_before, len(match))
    if per_record and verb == "coins" and args[0] == before[1][0]:
        coins = source.integers(*args)
        coins[~new] = before[2][match[~new]]
        return coins
    if per_record and verb == "permutation":
        place = {old: here for here, old in enumerate(match.tolist())}  # in the frozen file -> in this one
        order = [place.get(old, -1) for old in before[2].tolist()]
        if len(order) > len(new):  # the last one takes the place of the record that left
            gone, last = order.index(-1), order.pop()
            if gone < len(order):
                order[gone] = last
        elif len(order) < len(new):
            order.append(int(np.flatnonzero(new)[0]))
            here = int(source.integers(len(order), 1)[0])
            order[here], order[-1] = order[-1], order[here]
        return np.array(order, dtype=np.int64)
    return before[2].copy() if before[:2] == (verb, tuple(args)) else None


def once(source: Chance, verb: str, drawn: np.ndarray, record: int, n_records: int) -> np.ndarray:
    """The coins of a bootstrap, changed so that one record comes once to each tree."""
    if verb == "copies":  # (n_trees, n_records)
        drawn[:, record] = 1
        return drawn
    trees = drawn.reshape(-1, n_records)
    for draws in trees:
        others = source.integers(max(1, n_records - 1), n_records)
        draws[:] = np.where(draws == record, others + (others >= record), draws)
        draws[source.integers(n_records, 1)] = record
    return trees.ravel()


def resample(source: Chance, asked: tuple, before: Coins, match: np.ndarray, n_before: int) -> np.ndarray | None:
    """A bootstrap: a record that both data sets hold comes to each tree as often as it did, a new one once.

    Parameters and the answer as in :func:`share_out`.
    """
    (verb, *args), now = asked, len(match)
    if verb != before[0]:
        return None
    if verb == "copies":  # (n_trees, n_records)
        if args != [before[1][0], now]:
            return None
        copies = np.ones((args[0], now), dtype=np.int64)
        copies[:, match >= 0] = before[2][:, match[match >= 0]]
        return copies
    trees = before[1][-1] // n_before if n_before else args[-1] // now
    if args != [now, trees * now]:
        return None
    place = {there: here for here, there in enumerate(match.tolist())}  # in the frozen file -> in this one
    new = np.flatnonzero(match < 0).tolist()
    old = before[2].reshape(trees, n_before).tolist()
    drawn = [[place[there] for there in row if there in place] + new for row in old]
    return np.array(drawn, dtype=np.int64).ravel()
