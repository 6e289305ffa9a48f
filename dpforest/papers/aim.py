"""AIM: synthetic rows from the noisy marginals that a model of the table gets most wrong (McKenna et al., 2022).

The marginals are chosen one after the other, and a Markov random field is drawn near to all that were measured.  What
it says of the class, given the features, classifies; and any other learner may be fitted to rows that are drawn from
it.  The chapter *AIM* tells what of the published claim holds, and why the repair does.
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
#: Steps of the descent after each round, at most.
STEPS = 100
#: Standard deviations that a code's noisy mass is to have, to be kept apart: of a category, and of a number.
LEAST = (1.0, 3.0)
#: What noise of standard deviation 1 is on the average, without its sign.
MEAN_NOISE = math.sqrt(2 / math.pi)


@dataclass
class Annealing:
    """The shares of the budget: what a round has to choose and to measure, and what is left.

    They follow noisy answers, and never add up to more than 1.
    """

    rounds: int
    choose_share: float
    left: float = 1.0

    def __post_init__(self) -> None:
        self.round = 1 / self.rounds

    @property
    def choosing(self) -> float:
        return self.choose_share * self.round

    @property
    def measuring(self) -> float:
        return (1 - self.choose_share) * self.round

    def spend(self, share: float) -> None:
        self.left -= share

    @claim("alg-aim")
    def anneal(self, is_noise: bool) -> None:
        """Halve the noise if what was measured brought nothing new, and give what is left to a last round."""
        if is_noise:
            self.round *= 4
        if self.left <= 2 * self.round:
            self.round = self.left


def merged(masses: np.ndarray, least: float, ordered: bool) -> np.ndarray:
    """The group of each code, from 0 on: codes whose noisy mass is below ``least`` share one, neighbours if ordered."""
    groups = np.zeros(len(masses), dtype=np.int64)
    if not ordered:
        small = masses < least
        if small.sum() > 1:
            groups[~small] = 1 + np.arange(int((~small).sum()))
            return groups
        return np.arange(len(masses))
    at, mass = 0, 0.0
    for code, more in enumerate(masses.tolist()):
        groups[code], mass = at, mass + more
        if mass >= least:
            at, mass = at + 1, 0.0
    return np.minimum(groups, max(at - 1, 0))  # what remains at the end goes with the last that was full


class AIMClassifier(GaussianBoosted, BoostedClassifier):
    """A law of whole records, by the noisy marginals that it got most wrong: what it says of the class classifies.

    Attributes
    ----------
    boosted_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``variant="proved"``: ``(epsilon, delta)``-differential privacy of the released tables under ``relation``
    (:prf:ref:`thm-aim`), and of all rows that are drawn from them.  ``variant="published"``: under add-remove as much,
    and less than it says under replace-one (:prf:ref:`pub-aim`).

    Source
    ------
    McKenna, Mullins, Sheldon and Miklau, PVLDB 15(11), 2022, with its first author's program.

    Notes
    -----
    Released is the law: for each measured marginal a table of the logarithms of its factor, in the form of a tree.  The
    sum of what the tables say of a record and a class is the logarithm of their probability, up to a constant; so the
    softmax over the classes is what the law says of the class.  :func:`synthetic_rows` draws rows from the released
    tables, for any other learner.

    What ``variant="published"`` does: noise that is made for a record that is added or removed; 16 rounds for each
    column; every part of the workload's marginals is a candidate; codes are not merged.  The workload is that of the
    paper's *target*: all marginals of ``max_features`` features and the class.

    Numbers have bins that double from 0, where that is between their bounds.

    A fit to 30 features takes about ten seconds, most of them for the size that the model would have with each
    candidate, and the time grows fast with their number; ``max_features=1`` has few candidates.  A table that an engine
    reads is read twice in each round.

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
        "Cells of the junction tree at the end, at most; before, as much of them as was spent of the budget.",
    ] = "auto"
    choose_share: Annotated[float, Share(), "Share of the choice in the budget of a round."] = 0.1

    @claim("alg-aim", "pub-aim")
    def as_published(self, run: Run) -> BoostedForest:
        """Noise and choices for a record that is added or removed, under either relation; all parts of the workload."""
        replaced = HISTOGRAM_SENSITIVITY[run.relation]  # what they cost is so many times as much, and its square
        return self._release(run, *self._model(run, replaced, replaced**2, to_the_letter=True))

    @claim("thm-aim")
    def as_proved(self, run: Run) -> BoostedForest:
        """The repair: noise and choices for either relation; marginals with the class, of codes that noise can tell."""
        return self._release(run, *self._model(run, 1.0, 1.0))

    @claim("alg-aim", "thm-aim")
    def _model(
        self, run: Run, measure: float, choose: float, to_the_letter: bool = False
    ) -> tuple[MarkovField, list[np.ndarray]]:
        """The field, and the groups of codes; to measure and to choose costs so many times its share of the budget."""
        run.start_forest(1)
        used, n_classes = np.flatnonzero(run.sizes > 1), run.schema.n_classes
        label = len(used)
        shares = Annealing(self.option("rounds") * (label + 1), self.choose_share)

        def noise() -> float:
            """The standard deviation of the noise of the next measurement."""
            rate = shares.measuring * measure * run.budget / HISTOGRAM_SENSITIVITY[run.relation]
            return math.sqrt(1 / (2 * rate))

        # 1. each column by itself
        sigma, each = noise(), shares.measuring * measure * run.budget
        first = self._columns(run, used, each)
        shares.spend((label + 1) * shares.measuring)
        groups = [
            np.arange(len(masses)) if to_the_letter else self._merged(run, f, masses, sigma)
            for f, masses in zip(used.tolist(), first, strict=False)
        ]
        groups.append(np.arange(n_classes))
        field = MarkovField([int(group.max()) + 1 for group in groups])
        for a, (group, masses) in enumerate(zip(groups, first, strict=True)):
            field.measure((a,), Measurement(np.bincount(group, masses), np.bincount(group) * _variance(sigma)))
        field.fit(STEPS)

        # 2. the marginal that the model gets most wrong, until nothing is left
        parts = _parts_of_workload(label, min(self.max_features, label), to_the_letter)
        shares.anneal(False)
        while shares.left > 0:
            sigma, room = noise(), self.option("max_cells") * (1 - shares.left + shares.round)
            small = [of for of in parts if field.size_with(of) <= room]
            if not small:
                break  # what is left is not spent
            asked = _candidates(field, small, used, groups, parts, sigma)
            place = run.choose_marginal(
                asked, shares.choosing * choose * run.budget, Selection(mechanism="exponential")
            )
            of, before = small[place], field.marginal(small[place])
            by_class = label in of
            counts = run.count_table(asked.crossings[place], shares.measuring * measure * run.budget, by_class)
            values = counts.reshape(before.shape).astype(float)
            field.measure(of, Measurement(values, np.full(values.shape, _variance(sigma))))
            field.fit(STEPS)
            shares.spend(shares.round)
            moved = float(np.abs(field.marginal(of) - before).sum())
            shares.anneal(moved <= MEAN_NOISE * sigma * values.size)
        return field, groups

    def _columns(self, run: Run, used: np.ndarray, each: float) -> list[np.ndarray]:
        """The noisy marginal of each of these features, and that of the class."""
        asked = np.isin(np.arange(len(run.sizes)), used)[None]
        counts = np.zeros(int(run.sizes.sum()), dtype=np.int64)
        if len(used):
            counts = run.count_children(run.frontier, asked, len(used) * each, classes=False)[0, :, 0]
        columns = np.split(counts, np.cumsum(run.sizes)[:-1])
        return [*(columns[f] for f in used.tolist()), run.count_classes(run.frontier, each)[0]]

    def _merged(self, run: Run, feature: int, masses: np.ndarray, sigma: float) -> np.ndarray:
        """The groups of the codes of a feature; that of missing values is by itself, where the others have an order."""
        ordered = bool(run.ordered[feature])
        if not (ordered and run.schema.missing == "bin"):
            return merged(masses, LEAST[ordered] * sigma, ordered)
        groups = merged(masses[:-1], LEAST[ordered] * sigma, ordered)
        return np.append(groups, groups.max() + 1)

    def _release(self, run: Run, field: MarkovField, groups: list[np.ndarray]) -> BoostedForest:
        """The tables, each as a tree that is split by its features: the logarithms of the factors of the law."""
        used, label = np.flatnonzero(run.sizes > 1), len(groups) - 1
        run.start_forest(len(field.potentials))
        tables = list(field.potentials.items())
        for number in run.rounds(len(tables)):
            of, table = tables[number]
            features = [a for a in of if a != label]
            votes = (table - table.max())[np.ix_(*(groups[a] for a in of))]
            if of == tuple(features) and len(of) == 1:  # a group is shared evenly by its codes
                votes = votes - log(np.bincount(groups[of[0]])[groups[of[0]]].astype(float))
            said = votes.reshape(-1, len(groups[label]) if label in of else 1)
            nodes = run.frontier
            for feature in features:
                run.split_multiway(nodes, np.full(len(nodes), used[feature]))
                nodes = run.frontier
            whole = whole_votes(np.clip(said, -LOUDEST, LOUDEST))
            run.set_leaf_values(nodes, np.broadcast_to(whole, (len(nodes), len(groups[label]))))
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
        The columns of the schema.  A number is drawn uniformly from the bins that the law does not tell apart; what is
        missing is NaN or None.
    y : ndarray
        Labels.
    """
    schema, chance = model.schema_, Seeded(random_state)
    sizes = [*schema.cardinalities(model.n_bins_).tolist(), schema.n_classes]
    tables = [_table(model.boosted_.forest.tree(number), sizes) for number in range(model.boosted_.n_trees)]
    groups = [_alike(tables, feature, sizes[feature]) for feature in range(schema.n_features)]
    groups.append(np.arange(schema.n_classes))
    potentials: dict[Attributes, np.ndarray] = {}
    for a, group in enumerate(groups):  # codes of which the law says the same are drawn together, and then evenly
        potentials[(a,)] = log(np.bincount(group).astype(float))
    firsts = [np.unique(group, return_index=True)[1] for group in groups]
    for of, votes in tables:
        potentials[of] = potentials.get(of, 0) + votes[np.ix_(*(firsts[a] for a in of))]
    drawn = MarkovField([len(first) for first in firsts], potentials).sample(n_rows, chance)
    chosen = [
        _one_of(group, mine, _widths(schema, place, model.n_bins_, len(group)), chance)
        for place, (group, mine) in enumerate(zip(groups, drawn, strict=True))
    ]
    columns = {
        name: _values(schema, name, model.n_bins_, mine, chance)
        for name, mine in zip(schema.columns, chosen, strict=False)
    }
    return columns, schema.classes[chosen[-1]]


def _table(tree: Forest, sizes: Sequence[int]) -> tuple[Attributes, np.ndarray]:
    """The attributes of a released table, the class among them, and what it says."""
    features, node = [], 0
    while tree.feature[node] >= 0:
        features.append(int(tree.feature[node]))
        node = int(tree.first_child[node])
    of = (*features, len(sizes) - 1)
    return of, tree.values[node:].reshape([sizes[a] for a in of]) / SCALE


def _alike(tables: Sequence[tuple[Attributes, np.ndarray]], feature: int, size: int) -> np.ndarray:
    """The group of each code of a feature: codes of which all tables say the same are in one."""
    said = [np.moveaxis(votes, of.index(feature), 0).reshape(size, -1) for of, votes in tables if feature in of]
    return np.unique(np.hstack([np.zeros((size, 1)), *said]), axis=0, return_inverse=True)[1].ravel()


def _widths(schema: Schema, place: int, n_bins: int, size: int) -> np.ndarray:
    """How wide the bins of a numeric column are; all codes of another one, or the classes, count alike."""
    widths = np.ones(size)
    if place < schema.n_features and schema.columns[place] in schema.numeric:
        bins = np.diff(schema.edges(schema.columns[place], n_bins))
        widths[: len(bins)] = bins
    return widths


def _one_of(group: np.ndarray, drawn: np.ndarray, widths: np.ndarray, chance: Chance) -> np.ndarray:
    """A code of each group that was drawn, in proportion to its width."""
    chosen = np.zeros(len(drawn), dtype=np.int64)
    for number in np.unique(drawn).tolist():
        members, rows = np.flatnonzero(group == number), np.flatnonzero(drawn == number)
        chosen[rows] = members[chance.weighted(widths[members], len(rows))]
    return chosen


def _values(schema: Schema, name: str, n_bins: int, chosen: np.ndarray, chance: Chance) -> np.ndarray:
    """Values that have these codes of a column."""
    if name in schema.categorical:
        size = len(schema.categorical[name]) + (schema.missing == "bin")
        said = [(schema.values_of(name, code) or [schema.categorical[name][code]])[0] for code in range(size)]
        return np.array(said, dtype=object)[chosen]
    edges = schema.edges(name, n_bins)
    if schema.missing == "bin":
        edges = np.append(edges, np.nan)
    share = chance.integers(1 << 30, len(chosen)) / (1 << 30)
    return edges[chosen] + share * (edges[chosen + 1] - edges[chosen])


def _variance(sigma: float) -> float:
    """Of a measurement; without noise all have the same."""
    return sigma * sigma or 1.0


def _parts_of_workload(label: int, most: int, to_the_letter: bool) -> dict[Attributes, int]:
    """The candidates and their weights: how many attributes one shares with the marginals of the workload, about.

    The workload is all marginals of ``most`` features with the class.  To the letter a candidate is every part of one
    of them, else each part that has the class.
    """
    found = {}
    for number in range(most + 1):
        for some in itertools.combinations(range(label), number):
            found[(*some, label)] = most * number + max(label, 1)
            if to_the_letter and some:
                found[some] = most * number
    return found


def _candidates(
    field: MarkovField,
    small: Sequence[Attributes],
    used: np.ndarray,
    groups: Sequence[np.ndarray],
    weights: dict[Attributes, int],
    sigma: float,
) -> MarginalCandidates:
    """What the curator needs to know of the candidates, all of it public."""
    label = len(groups) - 1
    nothing = [(0, np.zeros(1, dtype=np.int64))]  # the class alone: one cell
    tables = [[(int(used[a]), groups[a]) for a in of if a != label] or nothing for of in small]
    # at the least budgets noise is larger than a score may be; what is cut off is public, as all of the model is
    most = MOST_MISFIT // (4 * max(weights[of] for of in small))
    masses = [field.marginal(of) * GRAIN for of in small]
    modelled = [np.rint(np.minimum(mass, most / mass.size)).astype(np.int64) for mass in masses]
    width = [len(groups[label]) if label in of else 1 for of in small]
    return MarginalCandidates(
        Crossings.of(tables),
        np.array([label in of for of in small]),
        tuple(table.reshape(-1, wide) for table, wide in zip(modelled, width, strict=True)),
        tuple(weights[of] for of in small),
        tuple(min(round(MEAN_NOISE * sigma * table.size * GRAIN), most) for table in modelled),
    )
