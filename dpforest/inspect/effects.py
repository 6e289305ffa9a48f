"""The terms of an additive model: what each feature, and each few features together, add to the score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpforest.inspect.view import MOST_FEATURES, View
from dpforest.models.forest import Forest

__all__ = ["Effect", "additive", "effects", "groups_of", "trees_of"]

_MOST_CELLS = 1 << 20  # of one table


@dataclass(frozen=True, eq=False)
class Effect:
    """What a few features together add to the score.

    Attributes
    ----------
    features : tuple of str
        Their names; none for what every record gets.
    table : ndarray of float64, shape (n_groups, ..., n_outputs)
        What is added in each cell, in ``unit``; one axis for each feature, whose groups are codes that the model
        treats alike (of a single feature every code is a group).
    groups : list of ndarray of bool, each of shape (n_groups, n_codes)
        Which codes of each feature are in which group.
    labels : list of list of str
        The groups in words.
    outputs : list of str
        What the numbers speak of: the second of two classes, each class, or the target.
    unit : str
    trees : tuple of int
        The trees that were summed; empty for a linear model.
    """

    features: tuple[str, ...]
    table: np.ndarray
    groups: list[np.ndarray]
    labels: list[list[str]]
    outputs: list[str]
    unit: str
    trees: tuple[int, ...]

    @property
    def spread(self) -> float:
        """Mean absolute distance from the mean, every code being as frequent as any other; the largest output's."""
        weights: np.ndarray = np.ones(())
        for groups in self.groups:
            weights = np.multiply.outer(weights, groups.sum(axis=1) / groups.shape[1])
        flat, weights = self.table.reshape(-1, self.table.shape[-1]), weights.ravel()
        return float((weights @ np.abs(flat - weights @ flat)).max())

    def to_frame(self) -> Any:
        """A pandas DataFrame: one row for each cell, in words, then what it adds."""
        import pandas as pd

        index = pd.MultiIndex.from_product(self.labels, names=self.features) if self.features else None
        return pd.DataFrame(self.table.reshape(-1, len(self.outputs)), index=index, columns=self.outputs)


def effects(model: Any) -> dict[tuple[str, ...], Effect]:
    """The terms of an additive model, summed over its rounds.

    Additive are linear models, and boosted ones each of whose trees splits on at most three features: private boosting,
    and boosted stumps.

    Parameters
    ----------
    model : estimator or released model

    Returns
    -------
    dict of tuple of str to Effect
        Under ``()`` what every record gets.  Then by the names of the features, in the schema's order, the one that
        spreads most first.  The score of a record is the sum of the cells that it is in.  Nothing is centred, and a
        table of two features holds all that its rounds said, main effects of the two among it.

    Raises
    ------
    ValueError
        The model is not additive: :func:`~dpforest.inspect.explain` and
        :func:`~dpforest.inspect.partial_dependence` are for any model.

    Notes
    -----
    Votes are noisy.  What a released file holds does not say how noisy: see :func:`~dpforest.inspect.plot_effect`.

    Guarantee
    ---------
    Nothing is paid: the model alone is read (:prf:ref:`thm-post-processing`).
    """
    view = additive(View(model))
    found = [_constant(view), *(_linear_effects(view) if view.kind == "linear" else _boosted_effects(view))]
    return {
        effect.features: effect for effect in sorted(found, key=lambda effect: (bool(effect.features), -effect.spread))
    }


def additive(view: View) -> View:
    """The view itself, if its model is additive."""
    if not view.is_additive:
        raise ValueError(
            f"a {view.model._name()} has no effects: only linear models and boosted ones whose trees split on at most "
            f"{MOST_FEATURES} features are sums of them; use partial_dependence, importances or explain"
        )
    return view


def trees_of(view: View) -> dict[tuple[int, ...], list[int]]:
    """The trees of a boosted model by the features that they split on."""
    found: dict[tuple[int, ...], list[int]] = {}
    for tree, used in enumerate(view.used):
        found.setdefault(tuple(used), []).append(tree)
    return found


def groups_of(view: View, forest: Forest, feature: int) -> np.ndarray:
    """Which codes of a feature these trees treat alike: bool, shape (n_groups, n_codes), in the order of the codes."""
    size = view.sizes[feature]
    nodes = np.flatnonzero(forest.feature == feature)
    if forest.multiway[nodes].any():
        return np.eye(size, dtype=bool)
    bits = np.unpackbits(np.ascontiguousarray(forest.mask[nodes]).view(np.uint8), axis=1, bitorder="little")[:, :size]
    _, first, group = np.unique(bits, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    return order[group.ravel()] == np.arange(len(first))[:, None]


def _constant(view: View) -> Effect:
    trees = () if view.kind == "linear" else tuple(trees_of(view).get((), []))
    if view.kind == "linear":
        table = view.shown(view.part.intercept)
    else:
        table = view.shown(view.values[view.forest.roots[list(trees)]].sum(axis=0))
    return Effect((), table + view.start, [], [], view.outputs, view.unit, trees)


def _linear_effects(view: View) -> list[Effect]:
    found = []
    for feature, table in enumerate(view.tables):
        groups = np.eye(len(table), dtype=bool)
        found.append(_effect(view, (feature,), view.shown(table), [groups], ()))
    return found


def _boosted_effects(view: View) -> list[Effect]:
    found = []
    for features, trees in trees_of(view).items():
        if not features:
            continue
        forest = Forest.join(view.forest.tree(tree) for tree in trees)
        groups = [
            np.eye(view.sizes[features[0]], dtype=bool) if len(features) == 1 else groups_of(view, forest, feature)
            for feature in features
        ]
        shape = tuple(map(len, groups))
        if np.prod(shape, dtype=float) > _MOST_CELLS:
            raise ValueError(
                f"the table of {[view.names[feature] for feature in features]} has too many cells: {shape}"
            )
        place = np.unravel_index(np.arange(int(np.prod(shape))), shape)
        codes = np.zeros((len(view.sizes), len(place[0])), dtype=np.uint8)
        for feature, members, at in zip(features, groups, place, strict=True):
            codes[feature] = members.argmax(axis=1)[at]
        votes = replace(view.part, forest=forest).scores(codes)
        found.append(_effect(view, features, view.shown(votes).reshape(*shape, -1), groups, tuple(trees)))
    return found


def _effect(view: View, features: tuple[int, ...], table: np.ndarray, groups: list, trees: tuple[int, ...]) -> Effect:
    labels = [
        [view.words.values(feature, members) for members in each]
        for feature, each in zip(features, groups, strict=True)
    ]
    names = tuple(view.names[feature] for feature in features)
    return Effect(names, table, groups, labels, view.outputs, view.unit, trees)
