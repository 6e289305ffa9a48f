"""AIM: synthetic rows from the noisy marginals that a model of the table gets most wrong (McKenna et al., 2022).

The marginals are chosen one after the other, and a Markov random field is fitted to all that were measured.  A record
is classified by the law of the class given its features in that field; any other learner may be fitted to rows that are
drawn from it.  The chapter *AIM* shows which part of the published claim holds, and why the repair holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from dpforest.arithmetic import log
from dpforest.chance import Chance, Seeded
from dpforest.curator.selections import MarginalCandidates, Selection
from dpforest.learners.audited import EXACT, GREY_BOX, AuditSpec, Broken
from dpforest.learners.boosting import LOUDEST, boosted, whole_votes
from dpforest.learners.facts import Facts
from dpforest.learners.gaussian_boosting import GaussianBoosted
from dpforest.learners.markov import Attributes, MarkovField, Measurement
from dpforest.learners.parameters import AsPublished, Auto, Delta, Either, Integer, Share
from dpforest.learners.run import Run
from dpforest.models.boosted import SCALE, BoostedClassifier, BoostedForest
from dpforest.models.forest import Forest
from dpforest.privacy import HISTOGRAM_SENSITIVITY, REPLACE_ONE, claim
from dpforest.schema import Schema
from dpforest.scores import GRAIN, MOST_MISFIT
from dpforest.structure.crossings import Crossings

__all__ = ["AIMClassifier", "Annealing", "merged", "synthetic_rows"]

BROKEN = Broken("the published noise is half of what replace-one needs (pub-aim)", (GREY_BOX,))
#: Steps of the mirror descent after each measurement, at most.
STEPS = 100
#: A code keeps a group of its own from so many standard deviations of noisy records on: of a category, of a number.
LEAST = (1.0, 3.0)
#: Expected absolute value of Gaussian noise of standard deviation 1.
MEAN_NOISE = math.sqrt(2 / math.pi)


@dataclass
class Annealing:
    """Budget annealing: how much of the budget a round has, which follows from noisy answers, and what is left.

    Everything is a share of the whole budget, and all rounds together never have more than 1.

    Attributes
    ----------
    rounds : int
        Rounds, if none is annealed.
    choose_share : float
        Part of a round that is for the choice of its marginal; the rest is for the measurement.
    left : float
        What no round has spent.
    """

    rounds: int
    choose_share: float
    left: float = 1.0

    def __post_init__(self) -> None:
        #: What the next round has.
        self.round = 1 / self.rounds

    @property
    def choosing(self) -> float:
        """What the next round has for its choice."""
        return self.choose_share * self.round

    @property
    def measuring(self) -> float:
        """What the next round has for its measurement."""
        return (1 - self.choose_share) * self.round

    def spend(self, share: float) -> None:
        """Subtract what was spent."""
        self.left -= share

    @claim("alg-aim")
    def anneal(self, is_noise: bool) -> None:
        """Set what the next round has: four times as much, for half the noise, if the last one measured only noise.

        Where less than two such rounds are left, one round has all that is left.
        """
        if is_noise:
            self.round *= 4
        if self.left <= 2 * self.round:
            self.round = self.left


def merged(masses: np.ndarray, least: float, ordered: bool) -> np.ndarray:
    """Merge the codes of a feature that have few records: the group of each code, numbered from 0.

    Parameters
    ----------
    masses : ndarray of int, shape (n_codes,)
        Noisy number of records of each code.
    least : float
        Number of records that a code or a group must have.
    ordered : bool
        True: a group is closed as soon as it has ``least`` records, and holds neighbouring codes.  False: all codes
        below ``least`` share group 0.

    Returns
    -------
    ndarray of int64, shape (n_codes,)
    """
    groups = np.zeros(len(masses), dtype=np.int64)
    if not ordered:
        small = masses < least
        if small.sum() > 1:
            groups[~small] = 1 + np.arange(int((~small).sum()))
            return groups
        return np.arange(len(masses))
    group, mass = 0, 0.0
    for code, records in enumerate(masses.tolist()):
        groups[code], mass = group, mass + records
        if mass >= least:
            group, mass = group + 1, 0.0
    return np.minimum(groups, max(group - 1, 0))  # codes after the last closed group join it


class AIMClassifier(GaussianBoosted, BoostedClassifier):
    """Classification by a law of whole records that is fitted to noisy marginals, chosen where it is most wrong.

    Attributes
    ----------
    boosted_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``variant="proved"``: ``(epsilon, delta)``-differential privacy of the released tables under ``relation``
    (:prf:ref:`thm-aim`), and of all rows that are drawn from them.  ``variant="published"``: the same under
    add-remove, and a larger loss than ``epsilon`` and ``delta`` allow under replace-one (:prf:ref:`pub-aim`).

    Source
    ------
    McKenna, Mullins, Sheldon and Miklau, PVLDB 15(11), 2022, with its first author's program.

    Notes
    -----
    The law is released: for each measured marginal a table of the logarithms of its factor, in the form of a tree.  The
    sum of the tables' entries for a record and a class is the logarithm of their joint probability, up to a constant;
    so the softmax over the classes is the probability of each class given the record.  :func:`synthetic_rows` draws
    rows from the released tables, for any other learner.

    ``variant="published"`` differs in four points: its noise is calibrated for a record that is added or removed; it
    has 16 rounds for each column; every subset of a marginal of the workload is a candidate; codes are not merged.  The
    workload is that of the paper's *target*: all marginals of ``max_features`` features and the class.

    Bins of a number double in width away from 0, if 0 is between its bounds.

    A fit to 30 features takes about ten seconds, most of them for the size that the model would have with each
    candidate, and the time grows fast with their number; ``max_features=1`` has few candidates.  A table that an engine
    reads is read once in a round, and not at all where the candidates of the round were candidates before.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.aim import AIMClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = AIMClassifier(epsilon=4.0, schema=schema, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    delta: Annotated[float, Delta(), "Positive: the noise is Gaussian.  Well below one over the number of records."] = (
        1e-5
    )
    max_features: Annotated[int, Integer(1, 2), "Features of a marginal of the workload, next to the class."] = 2
    rounds: Annotated[
        int | str,
        Either("auto", rule=Integer(1, 1000)),
        Auto(published=16, proved=4),
        AsPublished("auto"),
        "Rounds for each column, if none is annealed.",
    ] = "auto"
    max_cells: Annotated[
        int | str,
        Either("auto", rule=Integer(1, 1 << 30)),
        Auto(published=10 << 20, proved=1 << 17),
        AsPublished("auto"),
        "Cells of the junction tree, at most; before the last round, the share of them that is spent of the budget.",
    ] = "auto"
    choose_share: Annotated[float, Share(), "Share of the choice in the budget of a round."] = 0.1

    @claim("alg-aim", "pub-aim")
    def as_published(self, run: Run) -> BoostedForest:
        """Noise and choices for a record that is added or removed, under either relation; all subsets as candidates."""
        # what noise for an added record costs: under replace-one twice its share, a choice four times
        sensitivity = HISTOGRAM_SENSITIVITY[run.relation]
        return self._release(run, *self._fit_field(run, sensitivity, sensitivity**2, to_the_letter=True))

    @claim("thm-aim")
    def as_proved(self, run: Run) -> BoostedForest:
        """The repair: noise and choices for the relation; marginals that have the class, on merged codes."""
        return self._release(run, *self._fit_field(run, 1.0, 1.0))

    @claim("alg-aim", "thm-aim")
    def _fit_field(
        self, run: Run, measure_cost: float, choose_cost: float, to_the_letter: bool = False
    ) -> tuple[MarkovField, list[np.ndarray]]:
        """Fit the field to marginals that are chosen one after the other.

        Parameters
        ----------
        run : Run
        measure_cost, choose_cost : float
            What a measurement and a choice cost, as a multiple of their share of the budget: 1 as proved.
        to_the_letter : bool
            Every subset of a marginal of the workload is a candidate, and codes are not merged.

        Returns
        -------
        field : MarkovField
            Its attributes are the features of more than one code, and last the class; their codes are groups.
        groups : list of ndarray of int64
            Of each attribute, the group of each code.
        """
        run.start_forest(1)
        used = np.flatnonzero(run.sizes > 1)
        label = len(used)  # the class is the last attribute
        shares = Annealing(self.option("rounds") * (label + 1), self.choose_share)  # step 1
        field, groups = self._measure_columns(run, used, shares.measuring * measure_cost * run.budget, to_the_letter)
        shares.spend((label + 1) * shares.measuring)
        weights = _workload_weights(label, min(self.max_features, label), to_the_letter)
        shares.anneal(False)
        while shares.left > 0:
            max_cells = self.option("max_cells") * (1 - shares.left + shares.round)
            marginals = [marginal for marginal in weights if field.size_with(marginal) <= max_cells]  # step 3.1
            if not marginals:
                break  # what is left is not spent
            budget = shares.measuring * measure_cost * run.budget
            candidates = _candidates(field, marginals, used, groups, weights, _noise_deviation(run, budget))
            how = Selection(mechanism="exponential")
            place = run.choose_marginal(candidates, shares.choosing * choose_cost * run.budget, how)  # step 3.2
            is_noise = self._measure_marginal(run, field, marginals[place], candidates.crossings[place], budget)
            shares.spend(shares.round)
            shares.anneal(is_noise)  # step 3.4
        return field, groups

    def _measure_columns(
        self, run: Run, used: np.ndarray, budget: float, to_the_letter: bool
    ) -> tuple[MarkovField, list[np.ndarray]]:
        """Step 2: count each column by itself, merge its codes, and fit the field to these counts.

        The columns are the ``used`` features and the class; each costs ``budget``.
        """
        sigma = _noise_deviation(run, budget)
        columns = self._count_columns(run, used, budget)
        groups = [
            np.arange(len(masses)) if to_the_letter else self._merge_codes(run, f, masses, sigma)
            for f, masses in zip(used.tolist(), columns, strict=False)  # the class, which is last, is not merged
        ]
        groups.append(np.arange(run.schema.n_classes))
        field = MarkovField([int(group.max()) + 1 for group in groups])
        for a, (group, masses) in enumerate(zip(groups, columns, strict=True)):
            field.measure((a,), Measurement(np.bincount(group, masses), np.bincount(group) * _variance(sigma)))
        field.fit(STEPS)
        return field, groups

    def _measure_marginal(
        self, run: Run, field: MarkovField, marginal: Attributes, crossing: Crossings, budget: float
    ) -> bool:
        """Step 3.3: count the chosen marginal, the table ``crossing``, and fit the field to all counts so far.

        Returns whether that moved the field's own counts of the marginal by no more than noise amounts to.
        """
        sigma, before = _noise_deviation(run, budget), field.marginal(marginal)
        label = len(field.sizes) - 1
        counts = run.count_table(crossing, budget, by_class=label in marginal)
        values = counts.reshape(before.shape).astype(float)
        field.measure(marginal, Measurement(values, np.full(values.shape, _variance(sigma))))
        field.fit(STEPS)
        moved = float(np.abs(field.marginal(marginal) - before).sum())
        return moved <= MEAN_NOISE * sigma * values.size

    def _count_columns(self, run: Run, used: np.ndarray, budget: float) -> list[np.ndarray]:
        """Noisy records of each code of each ``used`` feature, and last of each class; each column costs ``budget``."""
        allowed = np.isin(np.arange(len(run.sizes)), used)[None]
        counts = np.zeros(int(run.sizes.sum()), dtype=np.int64)
        if len(used):
            counts = run.count_children(run.frontier, allowed, len(used) * budget, classes=False)[0, :, 0]
        columns = np.split(counts, np.cumsum(run.sizes)[:-1])
        return [*(columns[f] for f in used.tolist()), run.count_classes(run.frontier, budget)[0]]

    def _merge_codes(self, run: Run, feature: int, masses: np.ndarray, sigma: float) -> np.ndarray:
        """The group of each code of a feature, by :func:`merged`; missing values of a number keep one of their own."""
        ordered = bool(run.ordered[feature])
        if not (ordered and run.schema.missing == "bin"):
            return merged(masses, LEAST[ordered] * sigma, ordered)
        groups = merged(masses[:-1], LEAST[ordered] * sigma, ordered)  # the last code is that of missing values
        return np.append(groups, groups.max() + 1)

    def _release(self, run: Run, field: MarkovField, groups: list[np.ndarray]) -> BoostedForest:
        """The potentials of the field, each as a tree that is split by its features and votes for the classes."""
        used, label = np.flatnonzero(run.sizes > 1), len(groups) - 1
        run.start_forest(len(field.potentials))
        tables = list(field.potentials.items())
        for number in run.rounds(len(tables)):
            attributes, potential = tables[number]
            features = [a for a in attributes if a != label]
            logs = (potential - potential.max())[np.ix_(*(groups[a] for a in attributes))]
            if attributes == tuple(features) and len(attributes) == 1:  # the codes of a group have equal parts of it
                [feature] = features
                logs = logs - log(np.bincount(groups[feature])[groups[feature]].astype(float))
            nodes = run.frontier
            for feature in features:
                run.split_multiway(nodes, np.full(len(nodes), used[feature]))
                nodes = run.frontier
            # without the class, a leaf has the same vote for every class
            votes = whole_votes(np.clip(logs, -LOUDEST, LOUDEST)).reshape(
                -1, len(groups[label]) if label in attributes else 1
            )
            run.set_leaf_values(nodes, np.broadcast_to(votes, (len(nodes), len(groups[label]))))
        return boosted(run, "softmax")

    def declared_schema(self) -> Schema:
        return super().declared_schema().with_grid("doubling")

    def lacking(self) -> dict[str, str]:
        return {EXACT: "noisy marginals decide what is chosen next, so that replay cannot visit them"}

    TITLE, DELTA = "AIM", "1e-5 is usual"
    FACTS = Facts()
    AUDIT: ClassVar = AuditSpec(
        "aim",
        (({"rounds": 1}, 2, None), ({"rounds": 1, "max_features": 2}, 2, None), ({"variant": "published"}, 2, None)),
        {REPLACE_ONE: BROKEN},
        defaults={"max_features": 1},
        answers=True,
    )


def synthetic_rows(
    model: Any, n_rows: int, random_state: int | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rows drawn from the released law of AIM, for any other learner; they cost no privacy.

    Parameters
    ----------
    model : AIMClassifier or ReleasedForest
        Fitted, or loaded from a file.
    n_rows : int
    random_state : int or None
        Seed.  It is no secret.

    Returns
    -------
    X : dict of str to ndarray
        The columns of the schema.  A number is drawn uniformly from all bins that the law does not distinguish; a
        missing value is NaN or None.
    y : ndarray
        Labels.
    """
    schema, chance = model.schema_, Seeded(random_state)
    sizes = [*schema.cardinalities(model.n_bins_).tolist(), schema.n_classes]
    tables = [_table_of_tree(model.boosted_.forest.tree(number), sizes) for number in range(model.boosted_.n_trees)]
    # groups of codes are drawn, and then codes within them: so the field is as small as in the fit
    groups = [_group_equal_codes(tables, feature, sizes[feature]) for feature in range(schema.n_features)]
    groups.append(np.arange(schema.n_classes))
    # the tables have a value for one code: a group of k codes is k times as probable
    potentials: dict[Attributes, np.ndarray] = {
        (a,): log(np.bincount(group).astype(float)) for a, group in enumerate(groups)
    }
    firsts = [np.unique(group, return_index=True)[1] for group in groups]  # the first code of each group
    for attributes, logs in tables:
        potentials[attributes] = potentials.get(attributes, 0) + logs[np.ix_(*(firsts[a] for a in attributes))]
    drawn = MarkovField([len(first) for first in firsts], potentials).sample(n_rows, chance)
    chosen = [
        _draw_codes(group, own, _widths(schema, place, model.n_bins_, len(group)), chance)
        for place, (group, own) in enumerate(zip(groups, drawn, strict=True))
    ]
    columns = {
        name: _draw_values(schema, name, model.n_bins_, own, chance)
        for name, own in zip(schema.columns, chosen, strict=False)
    }
    return columns, schema.classes[chosen[-1]]


def _table_of_tree(tree: Forest, sizes: Sequence[int]) -> tuple[Attributes, np.ndarray]:
    """The attributes of a released tree, the class last, and its logarithms: an axis for each attribute."""
    features, node = [], 0
    while tree.feature[node] >= 0:
        features.append(int(tree.feature[node]))
        node = int(tree.first_child[node])
    attributes = (*features, len(sizes) - 1)
    return attributes, tree.values[node:].reshape([sizes[a] for a in attributes]) / SCALE


def _group_equal_codes(tables: Sequence[tuple[Attributes, np.ndarray]], feature: int, size: int) -> np.ndarray:
    """The group of each code of a feature: codes for which every table has equal values are one group."""
    values = [np.moveaxis(logs, of.index(feature), 0).reshape(size, -1) for of, logs in tables if feature in of]
    return np.unique(np.hstack([np.zeros((size, 1)), *values]), axis=0, return_inverse=True)[1].ravel()


def _widths(schema: Schema, place: int, n_bins: int, size: int) -> np.ndarray:
    """Width of the bin of each code of a column; 1 for codes that are no bins: categories, classes, missing values."""
    widths = np.ones(size)
    if place < schema.n_features and schema.columns[place] in schema.numeric:
        bins = np.diff(schema.edges(schema.columns[place], n_bins))
        widths[: len(bins)] = bins
    return widths


def _draw_codes(group: np.ndarray, drawn: np.ndarray, widths: np.ndarray, chance: Chance) -> np.ndarray:
    """A random code of each group that was drawn, with probability in proportion to its width: int64, (n_rows,)."""
    chosen = np.zeros(len(drawn), dtype=np.int64)
    for number in np.unique(drawn).tolist():
        members, rows = np.flatnonzero(group == number), np.flatnonzero(drawn == number)
        chosen[rows] = members[chance.weighted(widths[members], len(rows))]
    return chosen


def _draw_values(schema: Schema, name: str, n_bins: int, chosen: np.ndarray, chance: Chance) -> np.ndarray:
    """Values of a column that have the ``chosen`` codes: of a category its first, of a bin a uniform one."""
    if name in schema.categorical:
        size = len(schema.categorical[name]) + (schema.missing == "bin")
        values = [(schema.values_of(name, code) or [schema.categorical[name][code]])[0] for code in range(size)]
        return np.array(values, dtype=object)[chosen]
    edges = schema.edges(name, n_bins)
    if schema.missing == "bin":
        edges = np.append(edges, np.nan)
    share = chance.integers(1 << 30, len(chosen)) / (1 << 30)
    return edges[chosen] + share * (edges[chosen + 1] - edges[chosen])


def _noise_deviation(run: Run, budget: float) -> float:
    """Standard deviation of the noise of a marginal that is counted at ``budget``, in records."""
    return math.sqrt(1 / (2 * (budget / HISTOGRAM_SENSITIVITY[run.relation])))


def _variance(sigma: float) -> float:
    """Variance of each cell of a measurement; 1 without noise, where only its ratio to the others matters."""
    return sigma * sigma or 1.0


def _workload_weights(label: int, max_features: int, to_the_letter: bool) -> dict[Attributes, int]:
    """The candidates and their weights: about how many attributes one shares with the marginals of the workload.

    The workload is all marginals of ``max_features`` features with the class, attribute ``label``.  To the letter a
    candidate is every subset of one of them, else every subset that has the class.
    """
    weights = {}
    for number in range(max_features + 1):
        for features in itertools.combinations(range(label), number):
            weights[(*features, label)] = max_features * number + max(label, 1)
            if to_the_letter and features:
                weights[features] = max_features * number
    return weights


def _candidates(
    field: MarkovField,
    marginals: Sequence[Attributes],
    used: np.ndarray,
    groups: Sequence[np.ndarray],
    weights: dict[Attributes, int],
    sigma: float,
) -> MarginalCandidates:
    """These marginals as candidates of a selection, with all that the curator needs to score them; all of it is public.

    ``used`` are the features of the attributes, ``groups`` the groups of their codes, and ``sigma`` is the standard
    deviation of the noise that a measurement would have.
    """
    label = len(groups) - 1
    one_cell = [(0, np.zeros(1, dtype=np.int64))]  # of the features, where the marginal is that of the class alone
    tables = [[(int(used[a]), groups[a]) for a in of if a != label] or one_cell for of in marginals]
    # scores are bounded, and at the smallest budgets noise exceeds the bound: so public numbers are cut off at it
    most = MOST_MISFIT // (4 * max(weights[of] for of in marginals))
    masses = [field.marginal(of) * GRAIN for of in marginals]
    modelled = [np.rint(np.minimum(mass, most / mass.size)).astype(np.int64) for mass in masses]
    widths = [len(groups[label]) if label in of else 1 for of in marginals]
    return MarginalCandidates(
        Crossings.of(tables),
        np.array([label in of for of in marginals]),
        tuple(table.reshape(-1, width) for table, width in zip(modelled, widths, strict=True)),
        tuple(weights[of] for of in marginals),
        tuple(min(round(MEAN_NOISE * sigma * table.size * GRAIN), most) for table in modelled),
    )
