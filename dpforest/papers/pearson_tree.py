"""The MapReduce tree by Pearson correlation (patent application of Guangxi Normal University, filed 2020).

The records are dealt out to parts, one for each mapper; a split is good if the index of the child correlates with the
class code in every part.  The chapter *MapReduce trees* tells where the published algorithm fails and why the repair
holds.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpforest import budgets, mechanisms, scores
from dpforest.curator import CALIBRATIONS, STOP
from dpforest.learners.audited import HALF_STOP, Audited, refuted
from dpforest.learners.base import PrivateEstimator, check_covered
from dpforest.learners.cart import Cuts
from dpforest.learners.growth import MAX_NODES, Growth, pure
from dpforest.learners.parameters import MARGIN, check_choice, check_count, check_letter, check_share
from dpforest.mechanisms import SELECTIONS
from dpforest.models.forest import cut_masks
from dpforest.models.release import MAX_DEPTH, ForestClassifier
from dpforest.privacy import HISTOGRAM_SENSITIVITY, RELATIONS, claim

__all__ = ["PearsonTreeClassifier"]

CODES = 256  # a record's part and class stand in one code of so many
CELLS = 1 << 22  # of histograms by part that are read at a time: 32 MB
PUBLISHED_PARTS = 4  # where ``n_parts`` is "auto"; the patent gives no number
#: Utilities of a cut, by name: those of one table of class counts for each part.
CRITERIA = {
    "pearson": scores.absolute_pearson, "signed-pearson": scores.pearson,
    **{name: score for name, score in scores.CLASSIFICATION.items() if not score.needs_cap},
}  # fmt: skip
CORRELATIONS = ("pearson", "signed-pearson")
#: What the letter of the patent fixes; besides, it draws the feature or takes the most probable one.
LETTER = ("budget", "calibration", "stop", "reuse")
PURITY = "which nodes hold a single class", "Pearson tree patent, step 6"
CUT = "the best cut of each part, and their mean", "Pearson tree patent, steps 3 and 4"
ARGMAX = "the feature with the largest mean correlation", "Pearson tree patent, step 5"


@claim("alg-pearson-tree", "thm-pearson-tree", "pub-pearson-tree")
class PearsonTreeClassifier(PrivateEstimator, ForestClassifier):
    """Private decision tree whose cuts are judged in many parts of the records, and averaged.

    Each record belongs to one part, by a coin of its own.  A node chooses one among all public cuts of all features by
    a private selection; the score of a cut is its mean over the parts, and one record moves one part only.  Categories
    are cut by the order of their codes, as in the patent.  Leaves vote by noisy class counts.

    Parameters
    ----------
    epsilon : float
        Privacy budget of the tree, positive; ``"non-private"`` turns the noise off.
    schema : Schema
        What is public: bounds, categories, classes.  Required.  Correlations take the classes for numbers, in their
        order.
    max_depth : int
        Splits on the longest path; 0 makes the tree a single leaf.
    n_parts : int or "auto"
        Parts of the records, at most ``256 // n_classes``.  ``"auto"``: 4 as published; if proved, that many for
        correlations, and 1 for scores of counts, which lose by parts.
    n_bins : int
        Public bins of each numeric feature, equally wide over its bounds; cuts fall on their edges.
    criterion : {"gini", "gini-gain", "majority", "normalised-gini", "pearson", "signed-pearson"}
        Score of a cut in a part: ``"pearson"`` is the absolute value of the correlation.  As published one of the
        correlations.
    relation : {"add-remove", "replace-one"}
        Which data sets are neighbours.
    variant : {"proved", "published"}
        ``"published"`` is the patent to the letter; see Notes.  It warns, for it is not private.
    selection : {"auto", "argmax", "exponential", "permute-and-flip"}
        Mechanism of the splits; auto is permute-and-flip if proved.  Published only: ``"argmax"`` (auto), the feature
        of the largest probability, or ``"exponential"``, which draws it.
    budget : {"auto", "aligned", "aligned-uniform", "harmonic", "uniform"}
        How the share of the splits is divided over the levels, and whether a leaf also gets what is left below it; auto
        is aligned-uniform if proved.  As published each level has all of it.
    leaf_share : float
        Share of the budget that is kept for the leaves, between 0 and 1; as published, epsilon_2 over epsilon.
    calibration : {"auto", "range", "sensitivity"}
        Whether a selection's rate comes from the score's range (auto if proved) or from twice its sensitivity.
    stop : {"auto", "candidate", "never", "purity"}
        What may end a branch early: nothing (auto if proved), or ``"candidate"``: *stop* is one of the candidates.
        ``"purity"`` (published only): the node's records share one class, read without paying.
    stop_margin : float
        Head start of the *stop* candidate, in units of the selection's noise.
    reuse : {"auto", True, False}
        Whether a feature may be cut again below (auto if proved).
    max_nodes : int
        The tree does not grow beyond this; branches that would are leaves.
    source, random_state, n_jobs
        As in :class:`~dpforest.papers.edprf.EDPRFClassifier`.

    Attributes
    ----------
    forest_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released tree under ``relation``
    (:prf:ref:`thm-pearson-tree`).  ``variant="published"``: none for any finite epsilon (:prf:ref:`pub-pearson-tree`).

    Raises
    ------
    ValueError
        Besides bad parameters: when ``n_parts`` times the number of classes is more than 256.

    Source
    ------
    Patent application of Guangxi Normal University: Wang Jinyan, Yan Qi, Li Xianxian, filed on 15 January 2020, read
    through its published text, which lacks the formulas.

    Notes
    -----
    What ``variant="published"`` does, and how it reads the patent where it can be read in several ways.  Records are
    dealt out to the parts once, by coins, and stay in them.  In each part and for each feature the cut of the largest
    correlation is found among the codes of the public grid, the first in a tie; a correlation of 0/0 is 0.  The
    feature's cut is the mean of these codes, rounded down, over the parts in which some cut correlates at all; its
    quality is the mean of these correlations over all parts.  Correlations are absolute values, for the patent calls
    larger ones stronger; ``criterion="signed-pearson"`` is its formula as it stands.  The feature of the largest
    quality splits the node (*the attribute with the largest output probability*), and is not used again on the path:
    the patent takes it from one set that all nodes share, so that the order of the nodes would matter.  With
    ``selection="exponential"`` it is drawn with weights ``exp(epsilon_1 q / (2 Delta))``, Delta being the sensitivity
    of the quality, ``1 / n_parts`` for absolute values, which the patent names and does not give.  Every level has all
    of epsilon_1, and the leaves have epsilon_2, so that a path costs ``max_depth epsilon_1 + epsilon_2``
    (:prf:ref:`cex-level-budget`); an argmax costs nothing and is a leak.  Pure nodes are leaves, empty ones too.  Class
    counts have two-sided geometric noise in place of Laplace noise, of scale ``1 / epsilon_2`` under both relations.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.pearson_tree import PearsonTreeClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = PearsonTreeClassifier(epsilon=4.0, schema=schema, max_depth=1, n_parts=8, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    _AUTO: ClassVar = {
        "published": {"selection": "argmax", "stop": "purity", "reuse": False},
        "proved": {
            "selection": "permute-and-flip", "budget": "aligned-uniform", "calibration": "range", "stop": "never",
            "reuse": True,
        },
    }  # fmt: skip

    def __init__(
        self, *, epsilon=1.0, schema=None, max_depth=5, n_parts="auto", n_bins=16, criterion="pearson",
        relation="add-remove", variant="proved", selection="auto", budget="auto", leaf_share=0.4, calibration="auto",
        stop="auto", stop_margin=1.0, reuse="auto", max_nodes=MAX_NODES, source="seeded", random_state=None,
        n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.max_depth = max_depth
        self.n_parts = n_parts
        self.n_bins = n_bins
        self.criterion = criterion
        self.relation = relation
        self.variant = variant
        self.selection = selection
        self.budget = budget
        self.leaf_share = leaf_share
        self.calibration = calibration
        self.stop = stop
        self.stop_margin = stop_margin
        self.reuse = reuse
        self.max_nodes = max_nodes
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(self, curator, chance, schema, ledger, epsilon):
        parts = self._parts(schema)
        if self.max_depth:
            curator.divide(parts)
        growth = Growth(1, schema.n_features, schema.n_classes, ledger, "sequential", self.max_nodes)
        score = CRITERIA[self.criterion]
        if self.variant == "published":
            self._grow_letter(growth, curator, chance, ledger, scores.averaged(score, parts), epsilon)
        else:
            score = scores.for_classes(score, schema.n_classes)
            self._grow_proved(growth, curator, scores.averaged(score, parts), epsilon)
        return growth.release()

    def _grow_proved(self, growth, curator, score, epsilon) -> None:
        cuts = Cuts(curator.cardinalities, np.full(len(curator.cardinalities), True))
        shares = budgets.Shares(self.option("budget"), epsilon, self.max_depth + 1, self.leaf_share)
        margin = self.stop_margin if self.option("stop") == "candidate" else None
        for level in range(1, shares.depth + 1):
            frontier = growth.frontier
            columns = cuts.columns(np.arange(len(frontier))) & frontier.unused[:, cuts.owner]
            splittable = columns.any(axis=1) & (level < shares.depth)
            self._settle(growth, curator, frontier[~splittable], shares.leaf(level, stopped=False))
            inner = frontier[splittable]
            if not len(inner):
                break
            choice = curator.choose_cut(
                growth, inner.nodes, inner.scopes, columns[splittable], shares.branch(level), score=score,
                mechanism=self.option("selection"), calibration=self.option("calibration"), stop_margin=margin,
            )  # fmt: skip
            grows = (choice != STOP) & growth.room(np.where(choice == STOP, 0, 2))
            self._settle(growth, curator, inner[~grows], shares.leaf(level, stopped=True))
            feature, end = cuts.owner[choice[grows]], cuts.code[choice[grows]]
            cuts.divide(np.flatnonzero(splittable)[grows], feature, end)
            growth.branch(
                inner[grows], feature, np.full(len(feature), 2), masks=cut_masks(end, curator.cardinalities[feature]),
                reuse=self.option("reuse"),
            )  # fmt: skip

    def _grow_letter(self, growth, curator, chance, ledger, score, epsilon) -> None:
        first, second = (1 - self.leaf_share) * epsilon, self.leaf_share * epsilon
        second *= HISTOGRAM_SENSITIVITY[self.relation]  # the curator would divide by it, and the patent does not
        divisible = curator.cardinalities > 1
        for level in range(self.max_depth + 1):
            frontier = growth.frontier
            inner = (frontier.unused & divisible).any(axis=1) & (level < self.max_depth)
            if inner.any():
                counts = curator.peek(growth, frontier.nodes[inner], what=PURITY[0], where=PURITY[1])
                inner[inner] = ~pure(counts)
            inner[inner] = growth.room(np.full(inner.sum(), 2))
            self._settle(growth, curator, frontier[~inner], second)
            if not inner.any():
                break
            parents = frontier[inner]
            quality, ends = self._map_and_reduce(growth, curator, parents, parents.unused & divisible)
            if self.option("selection") == "argmax":
                ledger.leak(*ARGMAX)
                feature = quality.argmax(axis=1)
            else:
                feature = self._draw(chance, ledger, parents.scopes, quality, score, first)
            end = ends[np.arange(len(parents)), feature]
            growth.branch(
                parents, feature, np.full(len(parents), 2), masks=cut_masks(end, curator.cardinalities[feature])
            )  # fmt: skip

    def _map_and_reduce(self, growth, curator, parents, allowed) -> tuple[np.ndarray, np.ndarray]:
        """:func:`best_of_parts` of the nodes, some at a time."""
        cells = int(curator.cardinalities.sum()) * curator.n_parts * curator.n_classes
        found = []
        for at in range(0, len(parents), step := max(1, CELLS // cells)):
            few = slice(at, at + step)
            histograms = curator.peek_histograms(
                growth, parents.nodes[few], allowed[few], parts=True, what=CUT[0], where=CUT[1]
            )  # fmt: skip
            found.append(
                best_of_parts(histograms, allowed[few], curator.cardinalities, CRITERIA[self.criterion])
            )  # fmt: skip
        quality, ends = map(np.concatenate, zip(*found, strict=True))
        return quality, ends

    @claim("cex-level-budget")
    def _draw(self, chance, ledger, scopes, quality, score, epsilon) -> np.ndarray:
        """The patent's exponential mechanism over the features, with all of epsilon_1 at every node."""
        rate = np.full(len(quality), epsilon / (2 * score.sensitivity(self.relation)))
        feature = mechanisms.select("exponential", quality, rate, chance)
        add_remove, replace_one = (rate * score.range(relation) for relation in RELATIONS)
        ledger.charge(scopes, add_remove, replace_one, "choose a feature by its best cuts", "exponential")
        return feature

    def _settle(self, growth, curator, leaves, epsilon) -> None:
        if len(leaves):
            growth.settle(leaves, curator.count_classes(growth, leaves.nodes, leaves.scopes, epsilon))

    def _parts(self, schema) -> int:
        """``n_parts``, with what ``"auto"`` stands for."""
        most = CODES // schema.n_classes
        if self.n_parts == "auto":
            if self.criterion not in CORRELATIONS:
                return 1
            return most if self.variant == "proved" else min(PUBLISHED_PARTS, most)
        if self.n_parts > most:
            raise ValueError(
                f"n_parts={self.n_parts} parts of {schema.n_classes} classes need {self.n_parts * schema.n_classes} "
                f"codes, and a record's part and class have {CODES}: use n_parts={most} or fewer"
            )
        return int(self.n_parts)

    def declared_schema(self, *table):
        schema = super().declared_schema(*table)
        self._parts(schema)  # refuses more than there are codes for
        return schema

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.max_depth, "max_depth", least=0, most=MAX_DEPTH)
        check_count(self.max_nodes, "max_nodes")
        if not (isinstance(self.n_parts, str) and self.n_parts == "auto"):
            check_count(self.n_parts, "n_parts", most=CODES)
        check_choice(self.criterion, "criterion", CRITERIA)
        check_choice(self.selection, "selection", ("auto", "argmax", *SELECTIONS))
        check_choice(self.budget, "budget", ("auto", *budgets.PLANS))
        check_choice(self.calibration, "calibration", ("auto", *CALIBRATIONS))
        check_choice(self.stop, "stop", ("auto", "candidate", "never", "purity"))
        check_choice(self.reuse, "reuse", ("auto", True, False))
        MARGIN.check(self.stop_margin, "stop_margin")
        check_share(self.leaf_share, "leaf_share")
        if self.variant == "published":
            self._check_letter()
        elif self.selection == "argmax" or self.stop == "purity":
            raise ValueError(
                "selection='argmax' and stop='purity' read the data unpaid, so no proof covers them; use "
                "variant='published'"
            )
        else:
            check_covered(CRITERIA[self.criterion], self.relation, stop=self.option("stop"))

    def _check_letter(self) -> None:
        asked = {name: getattr(self, name) for name in LETTER if getattr(self, name) != "auto"}
        if self.criterion not in CORRELATIONS:
            asked["criterion"] = self.criterion
        if self.selection == "permute-and-flip":
            asked["selection"] = self.selection
        check_letter(asked, "patent")

    AUDIT: ClassVar = Audited(
        "pearson-tree",
        (
            (HALF_STOP | {"stop": "candidate", "n_parts": 2}, 2, 1),
            ({}, 2, 1),
            ({"n_parts": 2, "criterion": "majority", "reuse": False}, 1, 2),
            (HALF_STOP | {"stop": "candidate", "criterion": "signed-pearson", "selection": "exponential"}, 2, 1),
            ({"criterion": "normalised-gini", "calibration": "sensitivity", "n_bins": 3}, 1, 1),
            ({"criterion": "gini", "budget": "uniform"}, 2, 1),
            ({"criterion": "gini-gain", "budget": "harmonic"}, 1, 1),
            ({"variant": "published", "n_bins": 3}, 1, 1),
            ({"variant": "published", "selection": "exponential", "n_parts": 2}, 2, 1),
        ),
        refuted(
            "the published code reads, unpaid, whether a node is pure, the best cuts and the largest correlation "
            "(pub-pearson-tree)"
        ),
        numeric=True, usual={"n_parts": 1, "n_bins": 2},
    )  # fmt: skip


@claim("cex-pearson-argmax")
def best_of_parts(histograms, features, sizes, score) -> tuple[np.ndarray, np.ndarray]:
    """What the patent's mappers find in their parts, and the means that its reducer makes of it.

    Parameters
    ----------
    histograms : ndarray of int, shape (n_nodes, sum of the sizes, n_parts, n_classes)
        Exact class counts of each code of each feature.
    features : ndarray of bool, shape (n_nodes, n_features)
        Which ones each node considers.
    sizes : ndarray of int, shape (n_features,)
    score : Score
        Of the two children of a cut.

    Returns
    -------
    quality : ndarray of float, shape (n_nodes, n_features)
        Mean over all parts of the largest score; -inf where a feature is not considered.
    ends : ndarray of int, shape (n_nodes, n_features)
        Mean of the best cuts' codes over the parts in which a cut has a score other than 0, rounded down.
    """
    starts = np.cumsum(sizes) - sizes
    quality, ends = np.full(features.shape, -np.inf), np.zeros(features.shape, dtype=np.int64)
    for feature in np.flatnonzero(features.any(axis=0)):
        rows = np.flatnonzero(features[:, feature])
        counts = histograms[rows, starts[feature] : starts[feature] + sizes[feature]]
        below = counts.cumsum(axis=1)
        children = np.stack([below, below[:, -1:] - below], axis=-2)[:, :-1]
        found = np.round(score(children), 12)  # (node, cut, part); equal ones shall tie
        quality[rows, feature] = np.round(found.max(axis=1).mean(axis=1), 12)
        says = (found != 0).any(axis=1)
        ends[rows, feature] = (found.argmax(axis=1) * says).sum(axis=1) // np.maximum(says.sum(axis=1), 1)
    return quality, ends
