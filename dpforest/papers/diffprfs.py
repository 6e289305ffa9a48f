"""DiffPRFs: a private random forest that cuts numeric features where it pays (Mu, Ding, Song and Lu, 2016).

At each node the exponential mechanism chooses a cut for every numeric feature of a random subset, intervals weighted by
length, and then a feature among the subset, each numeric one with its chosen cut.  On the public grid of a schema all
intervals are equally long.  The chapter *Rivals* has the claims.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpforest import budgets, scores
from dpforest.curator import CALIBRATIONS, STOP
from dpforest.learners.audited import HALF_STOP, Audited, refuted
from dpforest.learners.base import PrivateForestClassifier, check_covered
from dpforest.learners.cart import Cuts
from dpforest.learners.growth import MAX_NODES, Growth, one_vote, pure
from dpforest.learners.parameters import MARGIN, check_choice, check_count, check_letter
from dpforest.learners.sharing import SAMPLINGS, n_candidates, random_features, share_out
from dpforest.mechanisms import SELECTIONS
from dpforest.models.forest import cut_masks
from dpforest.models.release import MAX_DEPTH
from dpforest.privacy import claim

__all__ = ["DiffPRFsClassifier"]

VOTES = ("counts", "majority")
HEAD_START = 6.0  # of *stop*, as in eDPRF
#: What the letter of the paper fixes; a vote is read off the noisy counts, and either may be released.
LETTER = ("sampling", "two_stage", "selection", "budget", "calibration", "stop")
PURITY = "which nodes hold a single class", "DiffPRFs, the condition that ends a branch"
CRITERIA = tuple(name for name, score in scores.CLASSIFICATION.items() if not score.needs_cap)


@claim("alg-diffprfs", "thm-diffprfs", "pub-diffprfs")
class DiffPRFsClassifier(PrivateForestClassifier):
    """Private random forest with chosen cuts of numeric features.

    A numeric feature is cut in two on a public bin edge inside the node's range, and may be cut again below; a
    categorical one is split into one child per category, once on a path.

    Parameters
    ----------
    epsilon : float
        Privacy budget of the whole forest, positive; ``"non-private"`` turns the noise off.
    schema : Schema
        What is public: bounds, categories, classes.  Required.
    n_estimators : int
    max_depth : int
        Splits on the longest path; 0 makes every tree a single leaf.
    max_features : int, "sqrt" or "all"
        Size of the random subset of features that a node chooses from.
    n_bins : int
        Public bins of each numeric feature, equally wide over its bounds; cuts fall on their edges.
    relation : {"add-remove", "replace-one"}
        Which data sets are neighbours.
    variant : {"proved", "published"}
        ``"published"`` is the paper to the letter: bootstraps, the purity test, equal shares per level, half of each
        for a noisy record count that nothing uses and half, in as many parts as there are numeric features and one
        more, for the selections, exponents ``epsilon / (2 sensitivity)``, majority vote.  It warns, for its proof
        fails.
    sampling : {"auto", "all", "assignment", "poisson", "bootstrap"}
        As in :class:`~dpforest.papers.diffprf.DiffPRFClassifier`.
    two_stage : {"auto", True, False}
        True (auto as published): a cut for each numeric feature first, then a feature, each selection with an equal
        part of the node's share.  False (auto if proved): one selection among all cuts of all features, with the whole
        share.
    selection : {"auto", "exponential", "permute-and-flip"}
        Mechanism of cuts and features; auto is exponential as published, permute-and-flip if proved.
    criterion : {"gini", "gini-gain", "majority", "normalised-gini"}
    budget, calibration, vote
        As in :class:`~dpforest.papers.diffprf.DiffPRFClassifier`.
    stop : {"auto", "candidate", "never", "purity"}
        What may end a branch early.  ``"candidate"`` (auto if proved): *stop* stands among the candidates of the last
        selection.  ``"purity"`` (published only): the node's records share one class, read without paying.
    stop_margin : float
        Head start of the *stop* candidate, in units of the selection's noise.
    max_nodes : int
        The forest does not grow beyond this; branches that would are leaves.
    source, random_state, n_jobs
        As in :class:`~dpforest.papers.edprf.EDPRFClassifier`.

    Attributes
    ----------
    forest_, ledger_, guarantee_, classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``variant="proved"``: ``epsilon``-differential privacy of the released forest under ``relation``
    (:prf:ref:`thm-diffprfs`).  ``variant="published"``: none for any finite epsilon (:prf:ref:`pub-diffprfs`).

    Source
    ------
    Journal on Communications 37(9), 2016, read through its abstract and the papers that compare with it.

    Examples
    --------
    >>> from dpforest import Schema
    >>> from dpforest.papers.diffprfs import DiffPRFsClassifier
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DiffPRFsClassifier(epsilon=4.0, schema=schema, n_estimators=1, max_depth=1, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    _AUTO: ClassVar = {
        "published": {
            "sampling": "bootstrap", "two_stage": True, "selection": "exponential", "budget": "uniform",
            "calibration": "sensitivity", "vote": "majority", "stop": "purity",
        },
        "proved": {
            "sampling": "all", "two_stage": False, "selection": "permute-and-flip", "budget": "aligned-uniform",
            "calibration": "range", "vote": "counts", "stop": "candidate",
        },
    }  # fmt: skip

    def __init__(
        self, *, epsilon=1.0, schema=None, n_estimators=10, max_depth=5, max_features="sqrt", n_bins=32,
        relation="add-remove", variant="proved", sampling="auto", two_stage="auto", selection="auto", criterion="gini",
        budget="auto", calibration="auto", vote="auto", stop="auto", stop_margin=HEAD_START, max_nodes=MAX_NODES,
        source="seeded", random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_features = max_features
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.sampling = sampling
        self.two_stage = two_stage
        self.selection = selection
        self.criterion = criterion
        self.budget = budget
        self.calibration = calibration
        self.vote = vote
        self.stop = stop
        self.stop_margin = stop_margin
        self.max_nodes = max_nodes
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(self, curator, chance, schema, ledger, epsilon):
        published, stop = self.variant == "published", self.option("stop")
        each, sharing = share_out(self.option("sampling"), curator, epsilon, self.n_estimators, self.relation)
        growth = Growth(
            self.n_estimators, schema.n_features, schema.n_classes, ledger, sharing, self.max_nodes
        )  # fmt: skip
        shares = budgets.Shares(self.option("budget"), each, self.max_depth + 1)
        ordered = np.array([name in schema.numeric for name in schema.columns])
        splits = Splits(curator.cardinalities, ordered, self.n_estimators)
        size = n_candidates(self.max_features, schema.n_features)
        half = 2 if published else 1  # the published count takes the other half
        for level in range(1, shares.depth + 1):
            frontier = growth.frontier
            columns = splits.within(frontier.unused)
            usable = splits.owners(columns)
            splittable = usable.any(axis=1) & (level < shares.depth)
            if stop == "purity":
                what, where = PURITY
                splittable &= ~pure(curator.peek(growth, frontier.nodes, what=what, where=where))
            if published:
                curator.count_records(growth, frontier.nodes, frontier.scopes, shares.branch(level) / half)
            self._settle(growth, curator, frontier[~splittable], shares.leaf(level, stopped=False) / half)
            inner = frontier[splittable]
            if not len(inner):
                break
            columns = columns[splittable]
            columns &= random_features(chance, usable[splittable], size)[:, splits.owner]
            choice = self._choose(curator, growth, inner, columns, splits, shares.branch(level) / half)
            arities = splits.arity[choice]
            grows = (choice != STOP) & growth.room(np.where(choice == STOP, 0, arities))
            self._settle(growth, curator, inner[~grows], shares.leaf(level, stopped=True))
            splits.split(np.flatnonzero(splittable)[grows], choice[grows])
            growth.branch(
                inner[grows], splits.owner[choice[grows]], arities[grows], masks=splits.mask[choice[grows]],
                binary=splits.cut[choice[grows]], reuse=splits.cut[choice[grows]],
            )  # fmt: skip
        return growth.release()

    def _choose(self, curator, growth, inner, columns, splits, epsilon):
        """The split of each node, a column of :class:`Splits`, or ``STOP``."""
        options = {
            "score": scores.CLASSIFICATION[self.criterion], "mechanism": self.option("selection"),
            "calibration": self.option("calibration"),
        }  # fmt: skip
        if self.option("two_stage"):
            numeric = splits.owners(columns) & splits.ordered
            # as published a part for every numeric feature there is; proved, for those that the node considers
            n_cuts = splits.ordered.sum() if self.variant == "published" else numeric.sum(axis=1)
            epsilon = np.broadcast_to(epsilon / (n_cuts + 1), len(inner))
            for feature in np.flatnonzero(numeric.any(axis=0)):
                some = np.flatnonzero(numeric[:, feature])
                mine = columns[some] & (splits.owner == feature)
                nodes = inner[some]
                cut = curator.choose_cut(growth, nodes.nodes, nodes.scopes, mine, epsilon[some], **options)
                columns[some] &= ~mine
                columns[some, cut] = True
        margin = self.stop_margin if self.option("stop") == "candidate" else None
        return curator.choose_cut(growth, inner.nodes, inner.scopes, columns, epsilon, stop_margin=margin, **options)

    def _settle(self, growth, curator, leaves, epsilon) -> None:
        if not len(leaves):
            return
        counts = curator.count_classes(growth, leaves.nodes, leaves.scopes, epsilon)
        if self.option("vote") == "majority":
            counts = one_vote(counts)
        growth.settle(leaves, counts)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.n_estimators, "n_estimators")
        check_count(self.max_depth, "max_depth", least=0, most=MAX_DEPTH)
        check_count(self.max_nodes, "max_nodes", least=self.n_estimators)
        n_candidates(self.max_features, 1)
        check_choice(self.sampling, "sampling", ("auto", *SAMPLINGS))
        check_choice(self.two_stage, "two_stage", ("auto", True, False))
        check_choice(self.selection, "selection", ("auto", *SELECTIONS))
        check_choice(self.criterion, "criterion", CRITERIA)
        check_choice(self.budget, "budget", ("auto", *budgets.PLANS))
        check_choice(self.calibration, "calibration", ("auto", *CALIBRATIONS))
        check_choice(self.vote, "vote", ("auto", *VOTES))
        check_choice(self.stop, "stop", ("auto", "candidate", "never", "purity"))
        MARGIN.check(self.stop_margin, "stop_margin")
        if self.variant == "published":
            asked = {name: getattr(self, name) for name in LETTER if getattr(self, name) != "auto"}
            if self.criterion != "gini":
                asked["criterion"] = self.criterion
            check_letter(asked)
            return
        check_covered(
            scores.CLASSIFICATION[self.criterion], self.relation, stop=self.option("stop"),
            sampling=self.option("sampling"),
        )  # fmt: skip

    def says_labels(self) -> bool:
        return self.option("vote") == "majority"

    AUDIT: ClassVar = Audited(
        "diffprfs",
        (
            (HALF_STOP | {"n_bins": 3}, 1, 1),
            (HALF_STOP | {"two_stage": True, "n_bins": 3, "vote": "majority"}, 1, 1),
            (HALF_STOP | {"sampling": "assignment", "n_estimators": 2}, 1, 1),
            (HALF_STOP | {"sampling": "poisson"}, 2, 1),
            ({"variant": "published", "n_bins": 3}, 1, 1),
        ),
        refuted("the published code reads, unpaid, whether the records of a node share one class (pub-diffprfs)"),
        numeric=True, usual={"n_estimators": 1, "n_bins": 2},
    )  # fmt: skip


class Splits(Cuts):
    """The splits that a schema knows: cuts of numeric features, and categorical ones with one child per code.

    Parameters
    ----------
    sizes, ordered, n_nodes
        As in :class:`~dpforest.learners.cart.Cuts`.

    Attributes
    ----------
    ordered, owner, code, ranges
        As there.
    cut : ndarray of bool, shape (n_columns,)
        Which columns are cuts; the others have one child per code.
    arity : ndarray of int, shape (n_columns,)
    mask : ndarray of uint64, shape (n_columns, 4)
        Which codes go to the second child of a cut.
    """

    def __init__(self, sizes: np.ndarray, ordered: np.ndarray, n_nodes: int = 1):
        super().__init__(sizes, ordered, n_nodes)
        self.ordered = ordered
        numeric, size = ordered[self.owner], sizes[self.owner]
        last = self.code == size - 1
        self.cut = numeric & ~last
        self.arity = np.where(self.cut, 2, size)
        self.mask = cut_masks(self.code, size)
        self._whole = ~numeric & last & (size > 1)

    def within(self, unused: np.ndarray) -> np.ndarray:
        """The splits of each node, bool (n_nodes, n_columns): cuts inside its ranges, and features not yet used up."""
        return self.columns(np.arange(len(unused))) | (self._whole & unused[:, self.owner])

    def split(self, nodes, columns: np.ndarray) -> None:
        """Go on to the children, in order, of these nodes, each split by its column."""
        ends = np.where(self.cut[columns], self.code[columns], -1)
        self.divide(nodes, self.owner[columns], ends, self.arity[columns])
