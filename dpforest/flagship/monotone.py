"""Released votes that must not fall, or must not rise, with a feature: what the cells say is projected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from dpforest.messages import shown
from dpforest.privacy import claim
from dpforest.schema import Schema

__all__ = ["Directions", "directions_of", "isotonic", "monotone"]


@dataclass(frozen=True)
class Directions:
    """A mapping from features to 1 or -1, or None."""

    words = "mapping or None"

    def check(self, value: Any, name: str) -> None:
        if value is None:
            return
        if not isinstance(value, Mapping) or not all(_is_direction(sign) for sign in value.values()):
            raise ValueError(
                f"{name} must be None or map features to 1, where what is predicted must not fall, or to -1, where it "
                f"must not rise, such as {{'age': 1}}; got {value!r:.60}"
            )


def _is_direction(sign: Any) -> bool:
    return isinstance(sign, Integral) and not isinstance(sign, bool) and sign in (1, -1)


def directions_of(wanted: Mapping[Any, int] | None, schema: Schema) -> np.ndarray:
    """The direction of each feature of a schema, 1 or -1, 0 where there is none: int64, shape (n_features,)."""
    found = np.zeros(schema.n_features, dtype=np.int64)
    for name, sign in (wanted or {}).items():
        if name not in schema.numeric:
            raise ValueError(
                f"monotonic_cst names {shown(name)}, which is no numeric feature of the schema: those are "
                f"{list(schema.numeric)!r:.200}"
            )
        found[list(schema.columns).index(name)] = sign
    if found.any() and schema.n_classes > 2:
        raise ValueError(f"monotonic_cst is for numbers and for two classes; the schema has {schema.n_classes} classes")
    return found


@claim("lem-monotone")
def monotone(votes: np.ndarray, shape: Sequence[int], signs: Sequence[int]) -> np.ndarray:
    """The votes of the cells of a table, projected until none of them breaks a direction.

    Parameters
    ----------
    votes : ndarray of int64, shape (n_cells,)
        The first feature counts most.
    shape : sequence of int
        Groups of each feature.
    signs : sequence of int
        Direction of each feature: 1, -1, or 0 for none.

    Returns
    -------
    ndarray of int64, shape (n_cells,)

    Notes
    -----
    One feature after the other; a later projection keeps what an earlier one has made, for it never changes the order
    of two lines one of which lies above the other.
    """
    cells = votes.reshape(tuple(shape))
    for axis, sign in enumerate(signs):
        if sign:
            cells = np.moveaxis(sign * isotonic(sign * np.moveaxis(cells, axis, -1)), -1, axis)
    return cells.reshape(-1)


def isotonic(lines: np.ndarray) -> np.ndarray:
    """Isotonic regression along the last axis: the nearest non-decreasing lines by least squares, rounded.

    Parameters
    ----------
    lines : ndarray of int64, shape (..., n)

    Returns
    -------
    ndarray of int64, shape (..., n)

    Notes
    -----
    The max-min formula: the value at i is the maximum over s <= i of the minimum over t >= i of the mean of the entries
    s to t.  The sums are exact, and division and rounding keep order, so the answer is monotone to the last bit.
    """
    n = lines.shape[-1]
    best = np.full(lines.shape, -np.inf)
    for first in range(n):
        means = np.cumsum(lines[..., first:], axis=-1) / np.arange(1, n - first + 1)
        least = np.minimum.accumulate(means[..., ::-1], axis=-1)[..., ::-1]
        best[..., first:] = np.maximum(best[..., first:], least)
    return np.rint(best).astype(np.int64)
