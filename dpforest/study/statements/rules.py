"""Rules of verdicts: a measured effect with its interval decides, one rule for all papers.

A statement is *reproduced* where the effect that it names is there, clearly; *the other way round* where the opposite
is; *not reproduced* where neither is clear.  Clearly: a Student interval over repeats lies on one side of zero, and the
effect is not so small that it is shown as zero.
Repeats are paired by seed, so that the luck of a split cancels.  A statement about several data sets is reproduced
where it is on every one of them on which it could be run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from dpforest.messages import shown

__all__ = [
    "VERDICTS",
    "Finding",
    "best",
    "cannot_read",
    "cannot_run",
    "everywhere",
    "more",
    "rises",
    "small",
    "throughout",
    "within",
]

VERDICTS = ("reproduced", "not reproduced", "the other way round", "cannot be read", "cannot be run here")
REPRODUCED, NOT, OPPOSITE, UNREAD, UNRUN = VERDICTS
#: Of each verdict, so that its colour is not alone.
SIGNS = dict(zip(VERDICTS, "✓–✗?○", strict=True))
UNREADABLE = "<abbr title='cannot be read in what we have of the paper'>?</abbr>"


_SHOWN = 0.05  # an effect that rounds to zero where it is shown is none, however sure its sign


@dataclass(frozen=True)
class Finding:
    """A verdict, and the numbers of this run that it rests on, as text."""

    verdict: str
    ours: str

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"a verdict is one of {', '.join(VERDICTS)}, not {shown(self.verdict)}")
        if not self.ours.strip():
            raise ValueError("a verdict without the numbers that it rests on: say them, or why there are none")

    @property
    def sign(self) -> int:
        """1 for reproduced, 0 for neither, -1 for the other way round."""
        return {REPRODUCED: 1, OPPOSITE: -1}.get(self.verdict, 0)

    def beside(self, name: str, other: Finding) -> Finding:
        """The same verdict, with the numbers of another run in addition to its own, those of a repair for instance."""
        return Finding(self.verdict, f"{self.ours}; {name}: {other.ours}")


def cannot_read(why: str) -> Finding:
    """The paper's statement or its number cannot be read in what is there of it."""
    return Finding(UNREAD, why)


def cannot_run(why: str) -> Finding:
    """The statement cannot be judged by this run: a data set is not there, or a thing is not built."""
    return Finding(UNRUN, why)


def interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """Mean of repeats, and the ends of its Student interval; not numbers where there are less than two repeats."""
    values = np.asarray(values, dtype=float).ravel()
    if len(values) < 2:
        return float(values.mean()) if len(values) else np.nan, np.nan, np.nan
    mean = values.mean()
    reach = stats.t.ppf((1 + confidence) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(mean), float(mean - reach), float(mean + reach)


def more(differences: ArrayLike, unit: str = "points", factor: float = 100.0, than: str = "") -> Finding:
    """Of two things the first measures more: `differences` by repeat, paired by seed.

    Parameters
    ----------
    differences : array of shape (n_repeats,)
        The first less the second.
    unit : str, default "points"
    factor : float, default 100
        What a difference is multiplied by to be shown in that unit.
    than : str
        Words that follow the unit.
    """
    return _signed(*interval(np.asarray(differences, dtype=float) * factor), unit, than)


def rises(
    values: ArrayLike, at: Sequence[float], unit: str = "points", factor: float = 100.0, ends: Sequence[str] = ()
) -> Finding:
    """A measure rises along a grid: the least-squares change from the grid's first place to its last, by repeat.

    Parameters
    ----------
    values : array of shape (n_repeats, n_places)
    at : sequence of n_places numbers
        The grid, a budget for instance, in rising order.
    unit, factor
        As in :func:`more`.
    ends : sequence of two str, optional
        What the first and the last place are called, if not by their numbers.
    """
    places = np.asarray(at, dtype=float)
    measured = np.atleast_2d(np.asarray(values, dtype=float))
    if len(places) < 2 or measured.shape[1] != len(places) or np.any(np.diff(places) <= 0):
        raise ValueError(f"at least two places in rising order, and a value at each; here are {len(places)} places")
    centred = places - places.mean()
    slope = (measured * centred).sum(axis=1) / (centred**2).sum()
    first, last = ends or (f"{places[0]:g}", f"{places[-1]:g}")
    return _signed(*interval(slope * (places[-1] - places[0]) * factor), unit, f"from {first} to {last}")


def best(values: Mapping, claimed, largest: bool = True, unit: str = "points", factor: float = 100.0) -> Finding:  # type: ignore[no-untyped-def]
    """One setting of several is the best: it against each other, paired by seed.

    Reproduced where it is clearly better than every other, the other way round where another is clearly better, with
    intervals that hold together (Bonferroni): the best of several by chance is no better one.

    Parameters
    ----------
    values : mapping of settings to arrays of shape (n_repeats,)
    claimed : the setting that the paper names
    largest : bool, default True
        Whether the largest measure is the best, or the smallest.
    """
    if claimed not in values or len(values) < 2:
        raise ValueError(f"{shown(claimed)} and at least one other setting are wanted")
    sign = 1 if largest else -1
    gaps = {name: sign * factor * (np.asarray(values[claimed]) - np.asarray(other)) for name, other in values.items()}
    found = {name: _signed(*interval(gap), unit, "") for name, gap in gaps.items() if name != claimed}
    means = {name: sign * float(np.mean(other)) for name, other in values.items()}
    first = max(means, key=lambda name: means[name])
    rival = max((name for name in means if name != claimed), key=lambda name: means[name])
    said = f"best at {first}; {claimed} against {rival}: {found[rival].ours}"
    if any(finding.verdict == UNRUN for finding in found.values()):
        return cannot_run(said)
    together = 1 - 0.05 / len(found)
    if any(interval(gap, together)[2] < 0 for name, gap in gaps.items() if name != claimed):
        return Finding(OPPOSITE, said)
    return Finding(REPRODUCED if all(finding.sign > 0 for finding in found.values()) else NOT, said)


def within(values: ArrayLike, low: float, high: float, unit: str = "%", factor: float = 100.0) -> Finding:
    """A measure lies in the paper's range, in the shown unit: its interval meets the range."""
    mean, least, most = interval(np.asarray(values, dtype=float) * factor)
    if np.isnan(least):
        return cannot_run(f"{mean:.1f} {unit} in one repeat: at least two are needed")
    return Finding(REPRODUCED if least <= high and most >= low else NOT, f"{mean:.1f} ±{most - mean:.1f} {unit}")


def small(differences: ArrayLike, most: float, unit: str = "points", factor: float = 100.0) -> Finding:
    """A difference is small: its interval lies within ``most`` of zero; the other way round where it lies outside.

    Parameters
    ----------
    differences : array of shape (n_repeats,)
    most : float
        In the shown unit; a paper that says "small" names no number, and the table says which was taken.
    unit, factor
        As in :func:`more`.
    """
    mean, low, high = interval(np.asarray(differences, dtype=float) * factor)
    if np.isnan(low):
        return cannot_run(f"{mean:+.1f} {unit} in one repeat: at least two are needed")
    said = f"{mean:+.1f} ±{high - mean:.1f} {unit}; small is {most:g}"
    if low > most or high < -most:
        return Finding(OPPOSITE, said)
    return Finding(REPRODUCED if -most <= low and high <= most else NOT, said)


def everywhere(findings: Mapping[str, Finding] | Iterable[tuple[str, Finding]]) -> Finding:
    """A statement about several data sets or settings: reproduced where it is on every one of them.

    The other way round where it is reproduced nowhere, and clearly the other way more often than chance would have it:
    of many data sets without an effect some look like one.  With one or two, once is enough; with 3 to 14 it takes two.
    Where it could not be run or read, it is not judged; the numbers say where.
    """
    found = dict(findings)
    if not found:
        return cannot_run("none of the data sets is here")
    said = "; ".join(f"{name}: {finding.ours}" for name, finding in found.items())
    signs = [finding.sign for finding in found.values() if finding.verdict not in (UNREAD, UNRUN)]
    if not signs:
        return cannot_run(said)
    if all(sign > 0 for sign in signs):
        return Finding(REPRODUCED, said)
    return Finding(OPPOSITE if max(signs) <= 0 and signs.count(-1) > _by_chance(len(signs)) else NOT, said)


def _by_chance(n: int) -> int:
    """Of n independent comparisons without an effect this many at most are clear on one side, in 19 of 20 runs."""
    return int(stats.binom.isf(0.05, n, 0.025))  # a 95 % interval misses zero on either side in 2.5 % of them


def _signed(mean: float, low: float, high: float, unit: str, than: str) -> Finding:
    said = " ".join(part for part in (unit, than) if part)
    if np.isnan(low):
        return cannot_run(f"{mean:+.1f} {said} in one repeat: at least two are needed")
    numbers = f"{mean:+.1f} ±{high - mean:.1f} {said}"
    if abs(mean) < _SHOWN:
        return Finding(NOT, numbers)
    return Finding(REPRODUCED if low > 0 else OPPOSITE if high < 0 else NOT, numbers)


def throughout(findings: Mapping[str, Finding] | Iterable[tuple[str, Finding]], name_at_most: int = 4) -> Finding:
    """A statement about many comparisons, given as counts: the verdict of :func:`everywhere`, in fewer words.

    Parameters
    ----------
    findings : mapping of names to Finding
    name_at_most : int, default 4
        How many of the comparisons that are clearly the other way are named; those that are not clear are named
        where there are no more of them.
    """
    found = dict(findings)
    if not found:
        return cannot_run("none of the data sets is here")
    unjudged = [name for name, finding in found.items() if finding.verdict in (UNREAD, UNRUN)]
    said = [f"clearly so in {sum(finding.sign > 0 for finding in found.values())} of {len(found)}"]
    for words, sign in (("clearly the other way in", -1), ("not clear in", 0)):
        names = [name for name, finding in found.items() if finding.sign == sign and name not in unjudged]
        rest = f" and {len(names) - name_at_most} more" if len(names) > name_at_most else ""
        shown_names = f" ({'; '.join(names[:name_at_most])}{rest})" if sign < 0 or not rest else ""
        said += [f"{words} {len(names)}{shown_names}"] if names else []
    said += [f"not judged: {'; '.join(unjudged)}"] if unjudged else []
    return Finding(everywhere(found).verdict, "; ".join(said))
