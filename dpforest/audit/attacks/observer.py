"""What an observer reads off a released forest: which leaf a record reaches, and what that leaf says about its counts.

The observer knows the algorithm, its parameters and the public schema, as one always has to assume, and sees the
released forest.  Whatever else an attack knows, such as the other records, is an argument of the attack.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from dpforest import scores
from dpforest.arithmetic import log
from dpforest.budgets import Shares
from dpforest.mechanisms import exponential_law, permute_and_flip_law
from dpforest.messages import shown
from dpforest.models.forest import Forest
from dpforest.papers.diffpets import DiffPETsClassifier
from dpforest.papers.diffprf import DiffPRFClassifier
from dpforest.papers.diffprfs import DiffPRFsClassifier
from dpforest.papers.edprf import EDPRFClassifier
from dpforest.papers.random_trees import RandomTreesClassifier
from dpforest.privacy import ADD_REMOVE, HISTOGRAM_SENSITIVITY, check_epsilon
from dpforest.schema import Schema

__all__ = ["LeafNoise", "Observer", "as_records", "leaf_noise", "leaf_of"]

MAX_RECORDS = 1 << 14
LAWS = {"exponential": exponential_law, "permute-and-flip": permute_and_flip_law}
CERTAIN = 1e6  # a rate at which one wrong count decides; it replaces infinity, as infinities have no difference
_LEDGERED = (DiffPETsClassifier, DiffPRFClassifier, DiffPRFsClassifier)
_LEAVES = {"count the classes of a leaf": "counts", "choose the label of a leaf": "label"}  # the curator's queries
_FIRST_NODE = 2  # scopes of a ledger: the model, the forest, then one for each node
IMPOSSIBLE = 1e-300  # a label's probability where it underflows


@dataclass(frozen=True, eq=False)
class LeafNoise:
    """How the leaves of a forest were made noisy: public, like the rest of the mechanism.

    Attributes
    ----------
    leaf : {"counts", "label"}
        A leaf says its class counts with two-sided geometric noise, or one label.
    rate : float, or ndarray of shape (n_nodes,)
        Rate of the noise, or of the selection of the label, at each leaf; infinite where there is none.
    shared : bool
        Whether every tree reads every record.  If not, each record belongs to one tree, by a fair coin of its own.
    mechanism : {"permute-and-flip", "exponential"}
        What selected the label.
    """

    leaf: str
    rate: float | np.ndarray
    shared: bool = True
    mechanism: str = "permute-and-flip"

    def __post_init__(self):
        if self.leaf not in ("counts", "label"):
            raise ValueError(f"leaf must be 'counts' or 'label', not {shown(self.leaf)}")
        if self.mechanism not in LAWS:
            raise ValueError(f"mechanism must be one of {sorted(LAWS)}, not {shown(self.mechanism)}")
        if not (np.asarray(self.rate, dtype=float) > 0).all():
            raise ValueError(f"the rate of the leaves must be positive, infinite for no noise, not {shown(self.rate)}")

    def log_likelihood(self, values, counts, rate) -> np.ndarray:
        """Logarithm of the probability of what leaves say, up to a constant, if their counts are ``counts``.

        Parameters
        ----------
        values, counts : ndarray of int, shape (..., n_classes)
        rate : float or ndarray broadcastable to ``values.shape[:-1]``

        Returns
        -------
        ndarray of float, shape (...)
        """
        if self.leaf == "counts":
            return -np.minimum(rate, CERTAIN) * np.abs(np.asarray(values) - counts).sum(axis=-1)
        law = LAWS[self.mechanism](np.broadcast_to(counts, np.broadcast_shapes(counts.shape, values.shape)), rate)
        said = np.broadcast_to(np.argmax(values, axis=-1)[..., None], (*law.shape[:-1], 1))
        return log(np.maximum(np.take_along_axis(law, said, axis=-1)[..., 0], IMPOSSIBLE))


@dataclass(frozen=True, eq=False)
class Observer:
    """A released forest, its leaf noise, and every record that the schema allows.

    Attributes
    ----------
    forest : Forest
    noise : LeafNoise
    records : ndarray of uint8, shape (n_records, n_features + 1)
        Feature codes, then the class code, in lexicographic order.
    leaf : ndarray of int, shape (n_records, n_trees)
        The leaf that each record reaches in each tree.
    cardinalities : tuple of int
        Codes of each feature, then the number of classes.
    """

    forest: Forest
    noise: LeafNoise
    records: np.ndarray
    leaf: np.ndarray
    cardinalities: tuple[int, ...]

    @classmethod
    def of(cls, model, noise: LeafNoise | None = None, max_records: int = MAX_RECORDS) -> Observer:
        """The observer of a fitted model.

        Parameters
        ----------
        model : fitted estimator, or released forest read from JSON
        noise : LeafNoise, optional
            Required for a model that does not carry its parameters.
        max_records : int
            A schema that allows more records is refused.

        Raises
        ------
        TypeError, ValueError
            Not a released forest; unknown noise; a schema too large to enumerate.
        """
        forest, schema = _released(model)
        noise = leaf_noise(model) if noise is None else noise
        if np.ndim(noise.rate) and np.shape(noise.rate) != (forest.n_nodes,):
            raise ValueError(f"the noise has {np.size(noise.rate)} rates for the {forest.n_nodes} nodes of the forest")
        sizes = (*schema.cardinalities(model.n_bins_).tolist(), schema.n_classes)
        if (n := math.prod(sizes)) > max_records:
            raise ValueError(
                f"the schema allows {n} records, more than max_records = {max_records}: an attack that weighs every "
                "one of them needs fewer features, fewer bins, or a larger max_records"
            )
        records = np.array(list(product(*map(range, sizes))), dtype=np.uint8)
        return cls(forest, noise, records, leaf_of(forest, records[:, :-1]), sizes)

    @property
    def rate(self) -> np.ndarray:
        """Rate of each node's noise, shape (n_nodes,)."""
        return np.broadcast_to(np.asarray(self.noise.rate, dtype=float), self.forest.n_nodes)

    def index(self, table, name: str) -> np.ndarray:
        """Position of each row of ``table`` among the records; refuses what the schema does not allow."""
        table = check_records(table, len(self.cardinalities), name)
        if (table >= np.array(self.cardinalities)).any():
            raise ValueError(f"{name} holds a code outside the schema, whose columns have {self.cardinalities} codes")
        return np.ravel_multi_index(tuple(table.T.astype(np.int64)), self.cardinalities)

    def counts(self, table, name: str) -> np.ndarray:
        """Exact class counts of every node's own records, int64, shape (n_nodes, n_classes), if all trees read all."""
        at = self.index(table, name)
        counts = np.zeros((self.forest.n_nodes, self.cardinalities[-1]), dtype=np.int64)
        np.add.at(counts, (self.leaf[at], self.records[at, -1][:, None]), 1)
        return counts


def as_records(model, X, y) -> np.ndarray:
    """A table as records: feature codes, then the class code; uint8, shape (n_rows, n_features + 1).

    Parameters
    ----------
    model : estimator, fitted or not, or released forest
        Its schema and its bins encode the table.
    X, y
        As in ``fit``.
    """
    schema = getattr(model, "schema_", None) or getattr(model, "schema", None)
    if not isinstance(schema, Schema):
        raise TypeError(f"records are encoded by a schema, and {type(model).__name__} has none")
    n_bins = model.n_bins_ if hasattr(model, "n_bins_") else model.bins(schema)
    codes = schema.encode(X, n_bins).codes
    labels = schema.encode_labels(y)
    if len(labels) != codes.shape[1]:
        raise ValueError(f"X has {codes.shape[1]} rows, y has {len(labels)}")
    return np.column_stack([codes.T, labels])


def check_records(table, width: int | None, name: str) -> np.ndarray:
    """``table`` as an array of codes, one row per record; else an error that says what is wrong with it."""
    array = np.asarray(table)
    if array.ndim == 1 and not array.size:
        array = array.reshape(0, width or 1)
    if array.ndim != 2 or (width is not None and array.shape[1] != width):
        wanted = "(n, n_features + 1)" if width is None else f"(n, {width})"
        raise ValueError(f"{name} must have shape {wanted}, feature codes and then the class code, not {array.shape}")
    if array.size and (array.dtype.kind not in "iu" or array.min() < 0):
        raise ValueError(f"{name} must hold codes, whole numbers from 0 on: see as_records")
    return array.astype(np.int64)


def check_prior(prior, n: int) -> np.ndarray | None:
    """The logarithms of ``n`` probabilities, one for each record that the schema allows, or None."""
    if prior is None:
        return None
    prior = np.asarray(prior, dtype=float)
    if prior.shape != (n,) or not (prior >= 0).all() or not abs(prior.sum() - 1) < 1e-6:
        raise ValueError(
            f"prior must be {n} probabilities that add up to 1, one for each record that the schema allows, not an "
            f"array of shape {prior.shape}"
        )
    return log(prior)


def leaf_of(forest: Forest, codes) -> np.ndarray:
    """The leaf that each record reaches in each tree, int64, shape (n_rows, n_trees).

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_rows, n_features)
    """
    tree, _ = _walk(forest)
    said = np.zeros((forest.n_nodes, forest.n_trees), dtype=np.int64)
    said[np.arange(forest.n_nodes), tree] = np.arange(forest.n_nodes)  # a forest whose leaves say who they are
    columns = np.ascontiguousarray(np.asarray(codes, dtype=np.uint8).T)
    return replace(forest, values=said).sum_leaves(columns).astype(np.int64)


def leaf_noise(model) -> LeafNoise:
    """How the leaves of a fitted model were made noisy, from its public parameters.

    Parameters
    ----------
    model : fitted RandomTreesClassifier or EDPRFClassifier; or DiffPETsClassifier, DiffPRFClassifier or
        DiffPRFsClassifier, as long as they are proved and keep their ledger

    Raises
    ------
    TypeError
        For any other model: say what its leaves are with a :class:`LeafNoise`.
    ValueError
        If the records come to a tree several times, or a leaf says the largest of its noisy counts alone.
    """
    forest, schema = _released(model)
    if isinstance(model, RandomTreesClassifier):
        sensitivity = HISTOGRAM_SENSITIVITY[model.relation]
        return LeafNoise("counts", check_epsilon(model.epsilon) / model.n_estimators / sensitivity)
    if isinstance(model, _LEDGERED) and model.variant == "proved":
        return _as_charged(model, forest)
    if not isinstance(model, EDPRFClassifier):
        raise TypeError(
            f"how {type(model).__name__} makes its leaves noisy is not known here, but that of random trees, eDPRF, "
            "and proved DiffPETs, DiffPRF and DiffPRFs: pass noise=LeafNoise('counts' or 'label', rate, shared=...)"
        )
    shares = Shares(model.budget, check_epsilon(model.epsilon), model.max_depth + 1)
    _, level = _walk(forest)
    # a leaf above the last level that had a feature left has paid for the selection that stopped it; a purity test
    # pays nothing
    stopped = (level < shares.depth) & (level <= schema.n_features) & (model.variant != "published")
    budget = {(at, by): shares.leaf(at, by) for at, by in set(zip(level.tolist(), stopped.tolist(), strict=True))}
    epsilon = np.array([budget[pair] for pair in zip(level.tolist(), stopped.tolist(), strict=True)])
    unit: float = HISTOGRAM_SENSITIVITY[model.relation]
    if model.option("leaf") == "label" and model.option("calibration") == "sensitivity":
        unit = 2 * scores.majority.sensitivity(model.relation)
    return LeafNoise(model.option("leaf"), epsilon / unit, shared=model.n_estimators == 1, mechanism=model.selection)


def _as_charged(model, forest: Forest) -> LeafNoise:
    """The noise that the leaves were charged for: budgets and structure are public, and so are these charges."""
    if model.sampling == "poisson":
        raise ValueError("a Poisson bootstrap brings a record to a tree several times, which no attack here weighs")
    if getattr(model, "vote", "counts") == "majority":
        raise ValueError("a leaf that votes for the largest of its noisy counts is no selection: use vote='counts'")
    leaf, mechanism = "counts", "permute-and-flip"
    rate = np.full(forest.n_nodes, np.inf)
    for charge in model.ledger_._charges:
        if charge.query in _LEAVES:  # of both, the rate is what adding or removing a record costs
            leaf = _LEAVES[charge.query]
            rate[charge.scopes - _FIRST_NODE] = charge.costs[ADD_REMOVE]
            mechanism = charge.mechanism if leaf == "label" else mechanism
    return LeafNoise(leaf, rate, shared=model.sampling != "assignment" or model.n_estimators == 1, mechanism=mechanism)


def _walk(forest: Forest) -> tuple[np.ndarray, np.ndarray]:
    """Tree and level (from 1) of each node."""
    tree = np.zeros(forest.n_nodes, dtype=np.int64)
    level = np.ones(forest.n_nodes, dtype=np.int64)
    nodes = forest.roots.astype(np.int64)
    tree[nodes] = np.arange(forest.n_trees)
    while nodes.size:
        inner = nodes[forest.feature[nodes] >= 0]
        arity = forest.arity[inner].astype(np.int64)
        first = np.cumsum(arity) - arity
        nodes = np.arange(arity.sum()) + np.repeat(forest.first_child[inner] - first, arity)
        tree[nodes], level[nodes] = np.repeat(tree[inner], arity), np.repeat(level[inner] + 1, arity)
    return tree, level


def _released(model) -> tuple[Forest, Schema]:
    forest, schema = getattr(model, "forest_", None), getattr(model, "schema_", None)
    if hasattr(model, "boosted_"):
        raise TypeError(
            f"the leaves of {type(model).__name__} hold votes, and these attacks weigh class counts: audit boosted "
            "trees with greybox or empirical"
        )
    if not isinstance(forest, Forest) or not isinstance(schema, Schema):
        raise TypeError(
            f"{type(model).__name__} is not a released forest: pass a fitted estimator, or what dpforest.load reads"
        )
    if schema.classes is None:
        raise TypeError(
            f"the leaves of {type(model).__name__} hold masses of a target, and these attacks weigh class counts: they "
            "are for classifiers"
        )
    if schema.n_classes != forest.values.shape[1] or (forest.feature >= schema.n_features).any():
        raise ValueError("the forest and the schema disagree: its leaves or its splits are of another table")
    return forest, schema
