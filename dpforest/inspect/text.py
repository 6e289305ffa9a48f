"""A tree, or the terms of a linear model, as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpforest.inspect.view import View
from dpforest.messages import plain, shown

__all__ = ["check_depth", "export_text", "leaf_words", "lines"]


def export_text(model: Any, tree: int = 0, max_depth: int | None = None, decimals: int | None = None) -> str:
    """Text of one tree of a released model, or of the terms of a linear one.

    Parameters
    ----------
    model : estimator or released model
        Fitted, or read by ``dpforest.load``.
    tree : int
        Number of the tree, from 0; of a boosted model the round, where tree 0 of private boosting is the class totals
        or the mean.  A linear model has no trees, and shows all of its terms.
    max_depth : int or None
        Splits that are shown on a path; what is below is counted.
    decimals : int or None
        Digits after the point; None for six significant ones.

    Returns
    -------
    str
        One line for each node.  A condition speaks of the records that reach the node above it.  Thresholds are in the
        feature's own units.  A value outside the declared bounds counts as the nearest bound.  At a leaf: noisy counts
        of the classes and their shares, a vote, a score, or the mean of the target; of a boosted
        regression what it adds, the sum of all trees being how far the prediction is above the target's lower bound.

    Raises
    ------
    TypeError, ValueError
        It is no model of this library; no such tree, depth or number of decimals.

    Guarantee
    ---------
    Nothing is paid: the model alone is read (:prf:ref:`thm-post-processing`).
    """
    view = View(model, decimals)
    if view.kind == "linear":
        return _linear(view)
    shown = lines(view, view.root(tree), check_depth(max_depth))
    return "\n".join(f"{_indent(depth)}{': '.join(filter(None, (edge, said)))}" for depth, edge, said, _ in shown)


def check_depth(max_depth: Any) -> int | None:
    """``max_depth`` itself: a whole number from 0 on, or None."""
    if max_depth is not None and (type(max_depth) is not int or max_depth < 0):
        raise ValueError(f"max_depth must be a whole number from 0 on, or None, not {shown(max_depth)}")
    return max_depth


def lines(view: View, root: int, max_depth: int | None) -> list[tuple[int, str, str, int]]:
    """The nodes of a tree in the order of reading: depth, condition, what a leaf says, and which leaf, else -1."""
    found: list[tuple[int, str, str, int]] = []
    everything = {feature: np.ones(size, dtype=bool) for feature, size in enumerate(view.sizes)}
    todo: list[tuple[int, int, str, dict[int, np.ndarray]]] = [(root, 0, "", {})]
    while todo:
        node, depth, edge, seen = todo.pop()
        feature = int(view.forest.feature[node])
        if feature < 0:
            found.append((depth, edge, leaf_words(view, node), node))
        elif depth == max_depth:
            found.append((depth, edge, f"... {_leaves_below(view, node)} leaves below", -1))
        else:
            if edge:
                found.append((depth, edge, "", -1))
            among, below = seen.get(feature, everything[feature]), []
            for child, inside in view.children(node):
                said = view.words.condition(feature, inside & among, among)
                below.append((child, depth + 1, said, {**seen, feature: inside & among}))
            todo += reversed(below)
    return found


def leaf_words(view: View, node: int) -> str:
    """What a leaf says."""
    number, shown = view.words.number, view.shown(view.values[node])
    if view.schema.target is not None and view.kind == "forest":
        return f"mean {number(float(view.schema.decode_target(view.values[node, 0])))}"
    if view.schema.target is not None:
        return f"{_signed(number(shown[0]))}"
    if view.kind == "boosted":
        said = [f"{name} {_signed(number(value))}" for name, value in zip(view.outputs, shown, strict=True)]
        return ", ".join(one for one, value in zip(said, shown, strict=True) if value or len(said) == 1) or "nothing"
    best = np.argsort(-shown, kind="stable")
    if view.says_votes:
        return f"says {view.outputs[best[0]]}"
    positive = np.maximum(shown, 0)
    shares = positive / positive.sum() if positive.sum() > 0 else np.full(len(shown), 1 / len(shown))
    said = [f"{view.outputs[place]} {shares[place]:.3g}" for place in best]
    counts = "" if view.forest.shrinkage else f" (noisy counts {', '.join(number(shown[place]) for place in best)})"
    return f"{', '.join(said)}{counts}"


def _indent(depth: int) -> str:
    return "|   " * (depth - 1) + "|--- " if depth else ""


def _leaves_below(view: View, node: int) -> int:
    count, todo = 0, [node]
    while todo:
        at = todo.pop()
        if view.forest.feature[at] < 0:
            count += 1
        else:
            first = int(view.forest.first_child[at])
            todo += range(first, first + int(view.forest.arity[at]))
    return count


def _linear(view: View) -> str:
    """Every coefficient with its coordinate's name."""
    number, names = view.words.number, view.design.names
    low = "-1" if view.part.coding == "centred" else "0"
    head = {"identity": "the target, -1 at its lower bound and 1 at its upper", "logit": "logarithm of odds"}
    said = [
        f"score: {head[view.part.link]}",
        f"a numeric feature counts from {low} in its lowest bin to 1 in its highest",
    ]
    for name, start, row in zip(view.outputs, view.part.intercept, view.part.coefficients, strict=True):
        said.append(name)
        said.append(f"|--- {_signed(number(start))} for every record")
        said += [f"|--- {_signed(number(weight))} x {plain(label)}" for weight, label in zip(row, names, strict=True)]
    return "\n".join(said)


def _signed(number: str) -> str:
    return number if number.startswith("-") else f"+{number}"
