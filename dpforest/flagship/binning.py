"""Bins of the tables: of each feature, which of its codes lie together, by public edges or by released histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpforest.privacy import claim
from dpforest.schema import Schema
from dpforest.schema.grid import edges

__all__ = ["Binning", "equal_weight_bins", "public_bins", "quantile_bins"]


@dataclass(frozen=True, eq=False)
class Binning:
    """The bin of each code of each feature.

    Attributes
    ----------
    bins : list of ndarray of int
        Of each feature the bin of each code: 0, 1, ... ; of a number they rise with the codes.
    masses : list of (ndarray of int64 or None)
        Released weight of each bin; None where no histogram was released.
    public : list of ndarray of int
        The bins that need no record.
    """

    bins: list[np.ndarray]
    masses: list[np.ndarray | None]
    public: list[np.ndarray]

    @property
    def sizes(self) -> np.ndarray:
        """How many bins each feature has, int64 of shape (n_features,)."""
        return np.array([int(found.max()) + 1 for found in self.bins], dtype=np.int64)


def public_bins(schema: Schema, n_bins: int) -> Binning:
    """The bins that need no record: each code one of its own, and on a fine grid the bins of the doubling one."""
    found = []
    for name, size in zip(schema.columns, schema.cardinalities(n_bins).tolist(), strict=True):
        codes = np.arange(size)
        if name in schema.numeric and schema.grid == "fine":
            fine, coarse = (edges(*schema.numeric[name], n_bins, kind) for kind in ("fine", "doubling"))
            # every coarse edge is a fine one; the code after the last, if there is one, is that of missing values
            codes = np.append(np.searchsorted(coarse[1:-1], fine[:-1], side="right"), len(coarse) - 1)[:size]
        found.append(codes)
    return Binning(found, [None] * len(found), found)


@claim("lem-children")
def quantile_bins(
    public: Binning,
    schema: Schema,
    histograms: Sequence[np.ndarray | None],
    n_records: float,
    noise: float,
    n_bins: int,
) -> Binning:
    """The bins of numbers by their released histograms; those of other features stay as they are.

    Parameters
    ----------
    public : Binning
    schema : Schema
    histograms : sequence of (ndarray of int64 or None)
        Noisy number of records of each code of each feature; None where none was released.
    n_records : float
        Released or declared.
    noise : float
        Standard deviation of the noise of each count: what does not stand out of it is taken for nothing.
    n_bins : int
        Bins of a number, at most.
    """
    bins, masses = list(public.bins), list(public.masses)
    for feature, counts in enumerate(histograms):
        if counts is None:
            continue
        kept = np.where(counts > noise, counts, 0)
        # a thousandth of the records is spread over all codes, so that no stretch of them is without any
        weight = kept * (1000 * len(counts)) + max(int(n_records), 1)
        ordered = len(counts) - (schema.missing == "bin")
        found = equal_weight_bins(weight[:ordered].tolist(), n_bins)
        bins[feature] = np.concatenate([found, np.arange(found[-1] + 1, found[-1] + 1 + len(counts) - ordered)])
        masses[feature] = heavy = np.zeros(int(bins[feature][-1]) + 1, dtype=np.int64)
        np.add.at(heavy, bins[feature], kept)
    return Binning(bins, masses, public.bins)


def equal_weight_bins(weights: Sequence[int], n_bins: int) -> np.ndarray:
    """The bin of each of some ordered codes: one is closed when it has its share of the weight that is left.

    A heavy code so has a bin of its own, and those after it share what is left among the bins that are left.

    Parameters
    ----------
    weights : sequence of int
        Positive.
    n_bins : int
        So many bins at most.

    Returns
    -------
    ndarray of int64, shape (n_codes,)
        0, 1, ... without gaps, ascending.
    """
    found, number, left, here, rest = [], 0, n_bins, 0, sum(weights)
    for weight in weights:
        # closed where half of the next code would be too much
        if here and left > 1 and (2 * here + weight) * left > 2 * rest:
            number, left, rest, here = number + 1, left - 1, rest - here, 0
        here += weight
        found.append(number)
    return np.array(found)
