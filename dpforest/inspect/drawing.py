"""Pictures of a released model.  Matplotlib is imported when one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dpforest.inspect.effects import Effect, effects
from dpforest.inspect.influence import importances
from dpforest.inspect.text import check_depth, lines
from dpforest.inspect.view import View
from dpforest.messages import plain, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpforest.inspect.explanation import Explanation

__all__ = ["MORE", "WIDTH", "draw_explanation", "on_white", "plot_effect", "plot_importances", "plot_tree"]

#: Okabe and Ito's colours, which colour-blind readers tell apart; one for what adds, one for what takes away.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MORE, LESS = "#0072B2", "#D55E00"
#: A white card with black words, whatever the style of the session: it reads on a dark page, too.
LOOK: Any = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "axes.facecolor": "white",
    "text.color": "black",
    "axes.labelcolor": "black",
    "axes.edgecolor": "black",
    "axes.titlecolor": "black",
    "xtick.color": "black",
    "ytick.color": "black",
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "axes.grid": False,
    "legend.facecolor": "white",
    "legend.labelcolor": "black",
}
WIDTH = 4.8  # inches
_ROWS = 80  # of a tree that are drawn
_FEATURES = 20  # of a chart


Draw = TypeVar("Draw", bound=Callable[..., Any])


def on_white(draw: Draw) -> Draw:
    """Let what draws on axes of its own draw black on white."""

    @wraps(draw)
    def drawn(*args: Any, **more: Any) -> Any:
        import matplotlib as mpl

        given = signature(draw).bind(*args, **more).arguments.get("ax")
        with mpl.rc_context(LOOK if given is None else {}):
            return draw(*args, **more)

    return drawn  # type: ignore[return-value]


@on_white
def plot_tree(model: Any, tree: int = 0, max_depth: int | None = 4, ax: Axes | None = None) -> Axes:
    """Draw one tree: a row for each node under its parent, and what each leaf says as a bar.

    Parameters
    ----------
    model, tree
        As of :func:`~dpforest.inspect.export_text`.
    max_depth : int or None
        Splits that are drawn on a path.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own if None.

    Returns
    -------
    matplotlib.axes.Axes
        Bars are shares of the noisy counts (next to them the most likely class, and the total of the noisy counts), a
        vote, or what is added to the score.  A pale leaf has fewer noisy counts than two standard deviations of
        the noise of their sum, by the ledger of a fitted estimator: what it says is noise.  A loaded model has no
        ledger, and no pale leaf.  Long conditions are cut, and of a large tree the first rows are drawn:
        :func:`~dpforest.inspect.export_text` has them all.

    Guarantee
    ---------
    Nothing is paid: the model alone is read (:prf:ref:`thm-post-processing`).
    """
    view = View(model)
    rows = lines(view, view.root(tree), check_depth(max_depth))
    more = len(rows) - _ROWS
    rows = rows[:_ROWS] if more > 0 else rows
    start = 0 if rows[0][0] == 0 else 1
    ax = _axes(ax, 0.7 + 0.23 * (len(rows) + (more > 0)), wide=1.25)
    places: list[int] = []
    for row, (depth, edge, said, leaf) in enumerate(rows):
        left = 0.035 * (depth - start)
        del places[depth - start :]
        if places:
            ax.plot(
                [left - 0.02, left - 0.02, left - 0.004],
                [places[-1] + 0.45, row, row],
                color="#888888",
                lw=0.8,
                ls="-",
                marker="",
            )
        places.append(row)
        words = _cut(edge if leaf >= 0 else ": ".join(filter(None, (edge, said))), 42 - 2 * (depth - start))
        ax.text(left, row, words or "all records", va="center", size=8, parse_math=False)
    if more > 0:
        ax.text(0, len(rows), f"... {more} more lines: export_text has them", va="center", size=8)
    _bars(view, ax, [(row, leaf) for row, (_, _, _, leaf) in enumerate(rows) if leaf >= 0])
    ax.set(xlim=(-0.02, 1.05), ylim=(len(rows) + (more > 0) - 0.3, -1.2))
    ax.set_axis_off()
    ax.set_title(f"tree {tree} of {view.forest.n_trees}, leaves in {view.unit}", loc="left", size=10)
    return ax


@on_white
def plot_importances(model: Any, X: Any = None, ax: Axes | None = None) -> Axes:
    """Draw :func:`~dpforest.inspect.importances`, the twenty largest; returns the Axes."""
    found = importances(model, X).iloc[:_FEATURES]
    ax = _axes(ax, 0.9 + 0.26 * len(found))
    ax.barh(range(len(found)), found.to_numpy(), color=MORE)
    _names(ax, [str(name) for name in found.index])
    ax.set_xlabel(f"mean {found.name}" + (" (units of the target)" if "prediction" in str(found.name) else ""))
    return ax


@on_white
def plot_effect(
    model: Any,
    features: str | Sequence[str],
    *,
    output: Any = None,
    records: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what one feature, or two together, add to the score of an additive model.

    Parameters
    ----------
    model : estimator or released model
    features : str or pair of str
        Columns of the schema.
    output : class label, optional
        With more than two classes, the one to draw.  Default: of one feature all of them, of two the one that
        spreads most.
    records : float, optional
        Draw a band about 0: two standard deviations of the noise in a cell of so many records.  A public number, or a
        guess; default for a learner with a declared ``n_rows``: as many as there would be if they spread evenly.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
        Steps over the bins of a numeric feature, bars for categories, a heat map of two features.

    Raises
    ------
    ValueError
        The model is not additive or has no such effect; ``records`` is asked for where the noise is not known.

    Notes
    -----
    *The band.*  The size of the noise is stated in the ledger, which the fitted estimator has and a file does not.  So
    there is a band for a fitted private boosting of classes alone.  It is the noise of the noisy sums of the rounds
    that were added, carried to the score of a cell whose records weigh a half each, as where the odds are even; where
    the model is sure, records weigh less and noise more.  The learner shrinks its votes, which makes noise smaller
    than the band; it is a size to compare with, not a confidence interval.  Of a loaded model and of other
    learners no band is drawn, for what they hold does not say it; nor of two features.

    Guarantee
    ---------
    Nothing is paid: the model and its ledger alone are read (:prf:ref:`thm-post-processing`).
    """
    view, found = View(model), effects(model)
    wanted = (features,) if isinstance(features, str) else tuple(features)
    asked = tuple(sorted(wanted, key=view.feature))
    if asked not in found:
        known = [" x ".join(names) for names in found if names]
        raise ValueError(f"the model has no effect of {' x '.join(wanted)}; it has {known}")
    if not 1 <= len(asked) <= 2:
        raise ValueError("an effect of one feature or of two can be drawn; of three see effects(...)[...].to_frame()")
    effect = found[asked]
    places = _outputs(view, effect, output)
    deviation = _deviation(view, effect, records)
    if len(asked) == 2:
        return _heat(effect, places[0], ax)
    feature = view.feature(asked[0])
    draw = _categories if view.words.edges(feature) is None else _steps
    ax = draw(view, effect, feature, places, deviation, ax)
    ax.set_title(_tex(_cut(view.words.names[feature], 48)), loc="left")
    return ax


@on_white
def draw_explanation(found: Explanation, record: int, ax: Axes | None) -> Axes:
    """The largest terms of one record as bars."""
    output = found.output(record)
    chosen, rest = found.largest(record, output)
    values = found.shown[record, chosen, output].tolist()
    names = [found.conditions[record][term] for term in chosen]
    if rest:
        values.append(float(found.shown[record, rest, output].sum()))
        names.append(f"{len(rest)} more terms")
    ax = _axes(ax, 1.1 + 0.28 * len(names), wide=1.25)
    ax.barh(range(len(names)), values, color=[MORE if value >= 0 else LESS for value in values])
    ax.axvline(0, color="black", lw=0.8)
    _names(ax, names, 44)
    about = f" for {found.outputs[output]}" if found.classes is not None else ""
    ax.set_xlabel(_tex(_cut(f"{found.unit}{about}", 48)))
    ax.set_title(_tex(_cut(found.said(record), 48)), loc="right")
    return ax


# -- parts -----------------------------------------------------------------------------------------------------------


def _axes(ax: Axes | None, height: float, wide: float = 1.0) -> Axes:
    """The axes that are given, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(WIDTH * wide, height))[1]


def _cut(text: str, length: int) -> str:
    text = plain(text)
    return text if len(text) <= length else f"{text[: max(length - 1, 1)]}…"


def _tex(text: str) -> str:
    """A text in which no dollar begins a formula."""
    return text.replace("$", r"\$")


def _names(ax: Axes, names: list[str], length: int = 34) -> None:
    """Names next to horizontal bars, the first on top."""
    ax.set_yticks(range(len(names)), labels=[_tex(_cut(name, length)) for name in names], size=8)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def _bars(view: View, ax: Axes, leaves: list[tuple[int, int]]) -> None:
    """What leaves say, in the right part of the picture."""
    low, wide = 0.62, 0.2
    shown = np.array([view.shown(view.values[leaf]) for _, leaf in leaves]).reshape(len(leaves), len(view.outputs))
    if view.kind == "forest" and view.schema.classes is not None:
        positive = np.maximum(shown, 0)
        sizes = dict(zip((row for row, _ in leaves), shown.sum(axis=1).tolist(), strict=True))
        noise = -np.inf if view.count_deviation is None else 2 * view.count_deviation * shown.shape[1] ** 0.5
        pale = {row for row, size in sizes.items() if size < noise}
        total = positive.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, positive / np.where(total > 0, total, 1), 1 / shown.shape[1])
        for (row, _), share in zip(leaves, shares, strict=True):
            start, faint = low, 0.25 if row in pale else 1.0
            for place, part in enumerate(share.tolist()):
                ax.barh(row, part * wide, left=start, height=0.7, color=COLOURS[place % len(COLOURS)], alpha=faint)
                start += part * wide
            best = int(share.argmax())
            said = f" {share[best]:.2f}" if not view.says_votes else ""
            said += f" of {view.words.number(sizes[row])}" if view.unit == "noisy counts" else ""
            ax.text(
                low + wide + 0.01, row, f"{_cut(view.outputs[best], 12)}{said}", va="center", size=7, parse_math=False
            )
        for place, name in enumerate(view.outputs[:4]):
            side = low + place * 0.19
            ax.text(side, -1, f"\u25a0 {_cut(name, 12)}", color=COLOURS[place], va="center", size=7, parse_math=False)
        return
    output = int(np.abs(shown).max(axis=0).argmax()) if len(shown) else 0
    values = shown[:, output] * (view.part.n_trees if view.kind == "forest" else 1)
    if view.kind == "forest":
        values = values + view.start
    far = float(np.abs(values).max(initial=0)) or 1.0
    centre, half = (low, wide) if (values >= 0).all() else (low + wide / 2, wide / 2)
    for (row, _), value in zip(leaves, values.tolist(), strict=True):
        ax.barh(row, value / far * half, left=centre, height=0.7, color=MORE if value >= 0 else LESS)
        ax.text(low + wide + 0.01, row, f"{value:{'' if view.kind == 'forest' else '+'}.3g}", va="center", size=8)
    if len(view.outputs) > 1:
        ax.text(low, -0.9, _cut(f"for {view.outputs[output]}", 20), va="center", size=8, parse_math=False)


def _outputs(view: View, effect: Effect, output: Any) -> list[int]:
    """Which outputs to draw, the one that spreads most first."""
    flat = effect.table.reshape(-1, len(effect.outputs))
    order = np.argsort(-np.ptp(flat, axis=0), kind="stable").tolist()
    if output is None:
        return order
    labels = [] if view.schema.classes is None or len(effect.outputs) == 1 else view.schema.classes.tolist()
    if output not in labels:
        raise ValueError(f"output must be one of {labels or 'None, for there is one alone'}, not {shown(output)}")
    return [labels.index(output)]


def _deviation(view: View, effect: Effect, records: float | None) -> float | None:
    """Standard deviation of the noise in a cell of so many records, where it is known."""
    variances = getattr(view.model, "gap_variances", None)
    if variances is None or view.schema.classes is None or not hasattr(view.model, "ledger_"):
        if records is not None:
            raise ValueError(
                "how large the noise is, is known for a fitted PrivateBoostingClassifier alone: a saved model and "
                "other learners do not hold it, so leave out records"
            )
        return None
    declared = getattr(view.model, "n_rows", None)
    if records is None:
        if declared is None:
            return None
        records = declared / int(np.prod(effect.table.shape[:-1]))
    if isinstance(records, bool) or not isinstance(records, (int, float, np.number)) or not 0 < records < np.inf:
        raise ValueError(f"records must be a positive number, not {shown(records)}")
    # each record of a cell weighs about a half, and a score that is off by 1 moves the gap by half of their weight
    return float(np.sqrt(sum(variances()[tree - 1] for tree in effect.trees)) / (float(records) / 4))


def _band(ax: Axes, deviation: float | None, side: str) -> None:
    if deviation is not None:
        span = ax.axhspan if side == "y" else ax.axvspan
        span(-2 * deviation, 2 * deviation, color="#bbbbbb", alpha=0.5, lw=0, label="±2 sd of noise", zorder=0)


def _steps(
    view: View, effect: Effect, feature: int, places: list[int], deviation: float | None, ax: Axes | None
) -> Axes:
    ax, edges = _axes(ax, 3.0), view.words.edges(feature)
    assert edges is not None
    _band(ax, deviation, "y")
    n_bins = len(edges) - 1
    for number, place in enumerate(sorted(places)):
        values, colour = effect.table[:, place], COLOURS[number % len(COLOURS)]
        dash = ("-", "--", "-.", ":")[number % 4]
        ax.stairs(
            values[:n_bins], edges, baseline=None, color=colour, ls=dash, lw=1.8, label=_tex(effect.outputs[place])
        )
        if len(values) > n_bins:
            ax.plot(edges[-1], values[-1], marker="D", color=colour, clip_on=False, ls="")
            ax.annotate(
                "missing", (edges[-1], values[-1]), xytext=(-4, 5), textcoords="offset points", ha="right", size=8
            )
    if (np.diff(edges) < 0.4 * np.diff(edges).max()).any():  # narrow bins for small numbers, and a large bound
        far = float(np.abs(edges).max())
        ax.set_xscale("symlog", linthresh=far / 300, linscale=0.5)
    ax.axhline(0, color="black", lw=0.8)
    ax.set_ylabel(f"adds to the score\n({effect.unit})")
    if len(places) > 1 or deviation is not None:
        ax.legend(fontsize=8)
    return ax


def _categories(
    view: View, effect: Effect, feature: int, places: list[int], deviation: float | None, ax: Axes | None
) -> Axes:
    labels, n = [label.removeprefix("= ") for label in effect.labels[0]], len(places)
    ax = _axes(ax, 1.0 + 0.26 * len(labels) * (1 + 0.5 * (n - 1)))
    _band(ax, deviation, "x")
    for number, place in enumerate(sorted(places)):
        at = np.arange(len(labels)) + (number - (n - 1) / 2) * 0.8 / n
        colour = COLOURS[number % len(COLOURS)]
        ax.barh(at, effect.table[:, place], height=0.8 / n, color=colour, label=_tex(effect.outputs[place]))
    ax.axvline(0, color="black", lw=0.8)
    _names(ax, labels)
    ax.set_xlabel(f"adds to the score ({effect.unit})")
    if n > 1 or deviation is not None:
        ax.legend(fontsize=8)
    return ax


def _heat(effect: Effect, place: int, ax: Axes | None) -> Axes:
    table = effect.table[..., place]
    ax = _axes(ax, max(1.6 + 0.22 * len(table), 2.8))
    far = float(np.abs(table).max()) or 1.0
    image = ax.imshow(table, cmap="RdBu", vmin=-far, vmax=far, aspect="auto")
    first, second = ([_tex(_cut(label.removeprefix("= "), 20)) for label in labels] for labels in effect.labels)
    ax.set_yticks(range(len(first)), labels=first, size=8)
    ax.set_xticks(range(len(second)), labels=second, size=8, rotation=60, ha="right", rotation_mode="anchor")
    names = [_tex(_cut(name, 30)) for name in effect.features]
    ax.set_ylabel(names[0])
    ax.set_xlabel(names[1])
    figure = ax.figure
    figure.colorbar(image, ax=ax, label=f"adds to the score\n({_tex(_cut(effect.outputs[place], 20))})")
    return ax
