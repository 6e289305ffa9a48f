"""The flaws of private tree learners as mechanisms on records, and their sound look-alikes.

Each function is the one step of a learner in which the flaw sits, so that sampling is fast.  A record ends with its
class, 0 or 1; what stands before it is its value.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpforest import mechanisms
from zoo.animal import ADD_REMOVE, GRID, REPLACE_ONE, STATISTICAL, Animal, Dataset, geometric, laplace

__all__ = ["flaws"]


def votes(records: Dataset, n_classes: int = 2) -> np.ndarray:
    """How many records each class has."""
    return np.bincount([record[-1] for record in records], minlength=n_classes)


def noisy_votes(records, size, rng, rate) -> np.ndarray:
    """The sound histogram: one record moves one count."""
    return votes(records) + geometric(rng, rate, (size, 2))


def exact_weight(records, size, rng, rate) -> np.ndarray:
    """AdaBoost's one-leaf tree: the label by noisy votes, and its weight by the true error."""
    label = noisy_votes(records, size, rng, rate).argmax(axis=1)
    errors = len(records) - votes(records)
    with np.errstate(divide="ignore"):
        weight = 0.5 * np.log((len(records) - errors) / errors)
    return np.column_stack([label, weight[label]])


def noisy_weight(records, size, rng, rate) -> np.ndarray:
    """The same weight from the noisy votes: post-processing."""
    noisy = np.maximum(noisy_votes(records, size, rng, rate), 0) + 1.0
    return np.column_stack([noisy.argmax(axis=1), 0.5 * np.log(noisy.max(axis=1) / noisy.min(axis=1))])


def scaled_by_largest_weight(records, size, rng, rate) -> np.ndarray:
    """Counts the records of class 1; the noise is scaled by the largest weight, one over their number."""
    return votes(records)[1] + geometric(rng, rate * len(records), size)


def weighted_share(records, size, rng, rate) -> np.ndarray:
    """The weight of class 1 when the weights sum to one, and noise scaled by the largest of them."""
    n = len(records)
    share = GRID * round(votes(records)[1] / n / GRID)  # no low-order bits
    return share + laplace(rng, 1 / (n * rate), size)


def normalised_votes(records, size, rng, rate) -> np.ndarray:
    """Noisy votes of four records or more, each with the weight that makes all weights add up to 4: at most 1.

    Weights are whole steps of a fifteenth.
    """
    return votes(records) * (60 // len(records)) + geometric(rng, rate / 15, (size, 2))


def bootstrap_count(records, size, rng, rate) -> np.ndarray:
    """Draws as many records as there are, with replacement, then counts class 1."""
    n = len(records)
    return rng.binomial(n, votes(records)[1] / n, size) + geometric(rng, rate, size)


def copied_together(records, size, rng, rate) -> np.ndarray:
    """Noisy votes of a Poisson number of copies: one number for all records, as if they had one key."""
    copies = rng.poisson(1.0, (size, 1))
    return copies * votes(records) + geometric(rng, math.log1p(rate), (size, 2))


def boosted_bootstrap_count(records, size, rng, rate) -> np.ndarray:
    """The same with AdaBoost's weights: the records that the last tree got wrong make up half of all draws."""
    wrong = np.array([record[0] for record in records], dtype=float)
    weights = wrong / (2 * wrong.sum()) + (1 - wrong) / (2 * (1 - wrong).sum())
    share = min(1.0, weights @ [record[-1] for record in records])
    return rng.binomial(len(records), share, size) + geometric(rng, rate, size)


def smooth_label(records, size, rng, rate) -> np.ndarray:
    """Draws the label by the exponential mechanism; whoever has most votes scores 1, the other 0.

    For the sensitivity it takes S = exp(-rate j), j votes being the lead: the score cannot change before the lead is
    gone.  A smooth bound on the sensitivity needs noise of another kind, and S itself betrays the lead.
    """
    count = votes(records)
    lead = int(count.max() - count.min())
    return rng.choice(2, size, p=mechanisms.exponential_law(count == count.max(), rate * math.exp(rate * lead) / 2))


def cut_between_extremes(records, size, rng) -> np.ndarray:
    """A cut drawn between the smallest and the largest value in the data, then released."""
    values = [record[0] for record in records]
    return rng.integers(min(values), max(values) + 1, size)


def cut_in_public_range(records, size, rng, rate, top) -> np.ndarray:
    """A cut drawn from the public values 0 to top by the exponential mechanism; the score is how many it gets right."""
    values, labels = np.array([record[0] for record in records]), np.array([record[-1] for record in records])
    score = [(labels == (values > cut)).sum() for cut in range(top + 1)]
    return rng.choice(top + 1, size, p=mechanisms.exponential_law(score, rate))


def cut_at_mean(records, size, rng, rate) -> np.ndarray:
    """The mean of the values, released as the cut, and noisy votes."""
    mean = np.mean([record[0] for record in records])
    return np.column_stack([np.full(size, mean), noisy_votes(records, size, rng, rate)])


def most_correlated(records, size, rng, rate) -> np.ndarray:
    """The feature with the largest |correlation| to the class, which is the most probable one, and noisy votes."""
    *columns, labels = np.array(records, dtype=float).T
    centred = [column - column.mean() for column in columns]
    spread = [float(np.sqrt((c**2).sum() * ((labels - labels.mean()) ** 2).sum())) for c in centred]
    strength = [abs(float(c @ labels)) / s if s else 0.0 for c, s in zip(centred, spread, strict=True)]
    return np.column_stack([np.full(size, np.argmax(strength)), noisy_votes(records, size, rng, rate)])


def balanced_votes(records, size, rng, rate) -> np.ndarray:
    """Noisy votes after the larger class was thinned to the size of the smaller one."""
    return votes(records).min() + geometric(rng, rate, (size, 2))


def bins_from_data(records, size, rng, rate) -> list:
    """Noisy counts in the bins below and above the median of the values; the edge is released with them."""
    values = np.array([record[0] for record in records])
    edge = float(np.median(values))
    counts = np.array([(values <= edge).sum(), (values > edge).sum()])
    return np.column_stack([np.full(size, edge), counts + geometric(rng, rate, (size, 2))])


def drawn_until_positive(records, size, rng, rate) -> np.ndarray:
    """A noisy count of class 1, drawn again until it is not negative."""
    count = votes(records)[1]
    noisy = count + geometric(rng, rate, size)
    while (bad := noisy < 0).any():
        noisy[bad] = count + geometric(rng, rate, int(bad.sum()))
    return noisy


def clamped(records, size, rng, rate) -> np.ndarray:
    """A noisy count of class 1 that is set to zero if it is negative: post-processing."""
    return np.maximum(votes(records)[1] + geometric(rng, rate, size), 0)


def rounded(records, size, rng, rate) -> np.ndarray:
    """A count plus real noise, rounded to a whole number afterwards."""
    return np.round(votes(records)[1] + laplace(rng, 1 / rate, size)).astype(np.int64)


def classes_found(records, size, rng, rate) -> list:
    """The classes found in the data, which the model lists, and its noisy choice among them."""
    found = tuple(sorted({record[-1] for record in records}))
    law = mechanisms.permute_and_flip_law(votes(records)[list(found)], rate) if found else []
    return [(found, found[i]) for i in rng.choice(len(found), size, p=law)] if found else [((), None)] * size


def missing_exact(records, size, rng, rate) -> np.ndarray:
    """Noisy votes of the records with a value, and the number of those without."""
    there = [record for record in records if record[0] is not None]
    noisy = noisy_votes(there, size, rng, rate)
    return np.column_stack([noisy, np.full(size, len(records) - len(there))])


def missing_noisy(records, size, rng, rate) -> np.ndarray:
    """The same with *missing* as one more cell of the histogram."""
    there = [record for record in records if record[0] is not None]
    cells = np.array([*votes(there), len(records) - len(there)])
    return cells + geometric(rng, rate, (size, 3))


def empty_leaves_exact(records, size, rng, rate) -> np.ndarray:
    """The number of records in each of two leaves, with noise where there are any."""
    leaves = np.bincount([record[0] for record in records], minlength=2)
    return np.where(leaves > 0, leaves + geometric(rng, rate, (size, 2)), 0)


def empty_leaves_pruned(records, size, rng, rate) -> np.ndarray:
    """The number of records in each of two leaves, and zero where its noisy value says that there are few."""
    noisy = np.bincount([record[0] for record in records], minlength=2) + geometric(rng, rate, (size, 2))
    return np.where(noisy > 1, noisy, 0)


def shared_noise(records, size, rng, rate) -> np.ndarray:
    """Votes, both with the same noise."""
    return votes(records) + geometric(rng, rate, (size, 1))


def told_twice(records, size, rng, rate) -> np.ndarray:
    """Votes with noise of their own, and all of it said twice."""
    noisy = noisy_votes(records, size, rng, rate)
    return np.column_stack([noisy, noisy])


def flaws(epsilon: float) -> tuple[tuple[Animal, ...], tuple[Animal, ...]]:
    """The mechanisms with one flaw each, and their sound look-alikes, at a claim of ``epsilon``."""
    broken, sound = [], []
    e, a = math.exp(epsilon), math.exp(-epsilon)

    def data(*labels) -> Dataset:
        return tuple((label,) for label in labels)

    def add(name, flaw, classes, relation, one, other, function, true, why, **parameters):
        animal = Animal(
            name,
            flaw,
            tuple(classes.split()),
            epsilon,
            true,
            why,
            STATISTICAL,
            ((name, one, other),),
            partial(function, **parameters),
            relation,
            sound=true <= epsilon * (1 + 1e-12),
        )
        (sound if animal.sound else broken).append(animal)

    add(
        "exact weight of a tree",
        "the weight by the true error",
        "A1",
        REPLACE_ONE,
        data(1, 1, 1, 0),
        data(1, 1, 0, 0),
        exact_weight,
        math.inf,
        "the weight tells the number of errors",
        rate=epsilon / 2,
    )
    add(
        "weight of a tree from noisy votes",
        "a weight that is released",
        "A1",
        ADD_REMOVE,
        data(1, 1, 1),
        data(1, 1, 1, 1),
        noisy_weight,
        epsilon,
        "post-processing, which keeps the tail",
        rate=epsilon,
    )
    add(
        "noise scaled by the largest weight",
        "a weight of 1 / n, but a count that moves by 1",
        "A2",
        REPLACE_ONE,
        data(0, 0, 0, 0),
        data(0, 0, 0, 1),
        scaled_by_largest_weight,
        4 * epsilon,
        "n epsilon, with n = 4 records",
        rate=epsilon,
    )
    add(
        "noise scaled by the data",
        "weights that sum to one, so that every record changes the scale",
        "A2b",
        ADD_REMOVE,
        data(0),
        data(0, 0),
        weighted_share,
        math.inf,
        "the ratio of two scales, in the tail",
        rate=epsilon,
    )
    add(
        "weights that add up to four",
        "a record more takes weight from all the others",
        "A2",
        ADD_REMOVE,
        data(0, 0, 0, 0),
        data(0, 0, 0, 0, 1),
        normalised_votes,
        1.6 * epsilon,
        "twice the 4/5 that it gets, from four records on",
        rate=epsilon,
    )
    # K copies of the one record of class 1, K binomial with n draws: in the tail they count with the mean of
    # exp(epsilon K).  Uniform draws: (1 + (e - 1) / n)^n.  With half of the weight on the record: ((1 + e) / 2)^n.
    add(
        "bootstrap",
        "a record may be drawn several times",
        "A5",
        REPLACE_ONE,
        data(0, 0, 0, 0),
        data(0, 0, 0, 1),
        bootstrap_count,
        4 * math.log1p((e - 1) / 4),
        "n ln(1 + (exp(epsilon) - 1) / n), with n = 4",
        rate=epsilon,
    )
    add(
        "copies by key",
        "a Poisson number of copies, one for all records of a key",
        "A5",
        ADD_REMOVE,
        data(0, 0, 0, 0),
        data(0, 0, 0, 0, 1),
        copied_together,
        epsilon * (1 + epsilon) ** 4,
        "epsilon (1 + epsilon)^m for a record that joins m others of its key, with m = 4",
        rate=epsilon,
    )
    add(
        "bootstrap, boosted",
        "a record that is half of all draws",
        "A5",
        REPLACE_ONE,
        (*((0, 0),) * 9, (1, 0)),
        (*((0, 0),) * 9, (1, 1)),
        boosted_bootstrap_count,
        10 * math.log((1 + e) / 2),
        "n ln((1 + exp(epsilon)) / 2), with n = 10",
        rate=epsilon,
    )
    add(
        "bootstrap, charged",
        "a bootstrap",
        "A5",
        REPLACE_ONE,
        data(0, 0, 0, 0),
        data(0, 0, 0, 1),
        bootstrap_count,
        epsilon,
        "the rate solves the equation of the bootstrap",
        rate=math.log1p(4 * math.expm1(epsilon / 4)),
    )
    add(
        "cut between the extremes",
        "bounds found in the data",
        "B2",
        ADD_REMOVE,
        ((0, 0), (1, 0)),
        ((0, 0), (1, 0), (2, 1)),
        cut_between_extremes,
        math.inf,
        "no cut lies beyond the extremes",
    )
    add(
        "cut in a public range",
        "a cut that fits the data",
        "B2 C2 A4",
        ADD_REMOVE,
        ((0, 0), (1, 0)),
        ((0, 0), (1, 0), (2, 1)),
        cut_in_public_range,
        epsilon,
        "the exponential mechanism at range 1, in the limit",
        rate=epsilon,
        top=4,
    )
    add(
        "cut at the mean",
        "a cut computed from the records",
        "C2",
        ADD_REMOVE,
        ((0, 0), (4, 1)),
        ((0, 0), (4, 1), (3, 0)),
        cut_at_mean,
        math.inf,
        "the cut is a function of the data",
        rate=epsilon,
    )
    add(
        "the most correlated feature",
        "takes the mode of the exponential mechanism",
        "C1 A4",
        ADD_REMOVE,
        ((0, 1, 1), (1, 1, 0), (1, 1, 1)),
        ((0, 1, 1), (1, 1, 0), (1, 1, 1), (0, 0, 0)),
        most_correlated,
        math.inf,
        "the choice is a function of the data",
        rate=epsilon,
    )
    add(
        "balanced classes",
        "the larger class is thinned to the smaller",
        "D4",
        ADD_REMOVE,
        data(0, 0),
        data(0, 0, 1),
        balanced_votes,
        2 * epsilon,
        "one record moves both counts",
        rate=epsilon,
    )
    add(
        "bins from the data",
        "edges at quantiles of the data",
        "D4 C2",
        ADD_REMOVE,
        ((0, 0), (4, 1)),
        ((0, 0), (4, 1), (3, 0)),
        bins_from_data,
        math.inf,
        "the edge is a function of the data",
        rate=epsilon,
    )
    add(
        # From no record to one, at zero: exp(epsilon) for the noise, and the chance of an answer that suits grows by
        # 1 + a - a^2 with a = exp(-epsilon).
        "drawn until it suits",
        "a negative count is drawn again",
        "E7",
        ADD_REMOVE,
        data(0),
        data(0, 1),
        drawn_until_positive,
        epsilon + math.log1p(a - a * a),
        "epsilon + ln(1 + a - a^2) with a = exp(-epsilon)",
        rate=epsilon,
    )
    add(
        "clamped",
        "a negative count is not released",
        "E7",
        ADD_REMOVE,
        data(0),
        data(0, 1),
        clamped,
        epsilon,
        "post-processing, which keeps the upper tail",
        rate=epsilon,
    )
    add(
        "rounded",
        "real noise on a count",
        "G4",
        ADD_REMOVE,
        data(0),
        data(0, 1),
        rounded,
        epsilon,
        "post-processing, which keeps the tails",
        rate=epsilon,
    )
    add(
        "smooth sensitivity",
        "odds that grow with the lead",
        "F1",
        ADD_REMOVE,
        data(0),
        data(0, 0),
        smooth_label,
        math.inf,
        "from lead j to j + 1 the odds change by epsilon (exp(epsilon (j + 1)) - exp(epsilon j)) / 2",
        rate=epsilon,
    )
    add(
        "votes under replace-one",
        "a rate for one count that moves",
        "F2",
        REPLACE_ONE,
        data(0),
        data(1),
        noisy_votes,
        2 * epsilon,
        "a record that is replaced moves two counts",
        rate=epsilon,
    )
    add(
        "votes under replace-one, half rate",
        "votes under replace-one",
        "F2",
        REPLACE_ONE,
        data(0),
        data(1),
        noisy_votes,
        epsilon,
        "two counts move, each at half of epsilon",
        rate=epsilon / 2,
    )
    add(
        "classes found in the data",
        "the model lists the classes that it saw",
        "F3",
        ADD_REMOVE,
        data(0, 0),
        data(0, 0, 1),
        classes_found,
        math.inf,
        "the list is a function of the data",
        rate=epsilon,
    )
    add(
        "missing values, exact",
        "the noise skips what is missing",
        "G1",
        ADD_REMOVE,
        ((0, 0), (1, 1)),
        ((0, 0), (1, 1), (None, 1)),
        missing_exact,
        math.inf,
        "their number is told",
        rate=epsilon,
    )
    add(
        "missing values, noisy",
        "missing values",
        "G1",
        ADD_REMOVE,
        ((0, 0), (1, 1)),
        ((0, 0), (1, 1), (None, 1)),
        missing_noisy,
        epsilon,
        "a histogram with one cell more",
        rate=epsilon,
    )
    add(
        "empty leaves, exact",
        "an empty leaf gets no noise",
        "G2",
        ADD_REMOVE,
        ((0, 0),),
        ((0, 0), (1, 0)),
        empty_leaves_exact,
        math.inf,
        "anything but zero proves a record",
        rate=epsilon,
    )
    add(
        "small leaves, pruned",
        "leaves that say zero",
        "G2 A6",
        ADD_REMOVE,
        ((0, 0),),
        ((0, 0), (1, 0)),
        empty_leaves_pruned,
        epsilon,
        "post-processing, which keeps the tail",
        rate=epsilon,
    )
    add(
        "shared noise",
        "two counts with one noise",
        "G3",
        ADD_REMOVE,
        data(0),
        data(0, 1),
        shared_noise,
        math.inf,
        "the difference of the two has no noise",
        rate=epsilon,
    )
    add(
        "told twice",
        "two answers with one noise",
        "G3",
        ADD_REMOVE,
        data(0),
        data(0, 1),
        told_twice,
        epsilon,
        "post-processing",
        rate=epsilon,
    )
    return tuple(broken), tuple(sound)
