"""The figures with knobs: their controls, and the numbers that a page without JavaScript shows.

``make pictures`` writes each as ``book/_static/interactive/NAME.html``, which a chapter includes; the drawing and the
numbers at other places of the knobs are the work of ``book/_static/interactive.js``.  The sentence and the table are
made here from what the library computes, at any place of the knobs, so that a test can hold the two side by side.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpforest import budgets, mechanisms

FOLDER = Path(__file__).resolve().parents[1] / "book" / "_static" / "interactive"
Said = tuple[list[list[str]], str]


@dataclass(frozen=True)
class Slider:
    """A number to be chosen."""

    label: str
    low: float
    high: float
    step: float
    value: float

    def html(self, knob: str, at: str) -> str:
        shown = num(self.value, 1 if self.step < 1 else 0)
        return (
            f'<label for="{at}">{self.label}</label>\n'
            f'<input type="range" id="{at}" data-knob="{knob}" min="{self.low:g}" max="{self.high:g}" '
            f'step="{self.step:g}" value="{self.value:g}">\n'
            f'<output for="{at}" aria-live="off">{shown}</output>'
        )


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    label: str
    words: dict[Any, str]
    value: Any

    def html(self, knob: str, at: str) -> str:
        rows = [
            f'<label><input type="radio" name="{at}" data-knob="{knob}" value="{value}"'
            f"{' checked' if value == self.value else ''}> {words}</label>"
            for value, words in self.words.items()
        ]
        return "\n".join(["<fieldset>", f"<legend>{self.label}</legend>", *rows, "</fieldset>"])


@dataclass(frozen=True)
class Figure:
    """A figure: what can be turned, and what stands in its sentence and table for given places of the knobs."""

    title: str
    knobs: dict[str, Slider | Choice]
    columns: tuple[str, ...]
    say: Callable[..., Said]
    height: int
    drawn: str
    caption: str

    def html(self, name: str) -> str:
        rows, said = self.say(**{knob: control.value for knob, control in self.knobs.items()})
        head = "".join(f'<th scope="col">{column}</th>' for column in self.columns)
        body = "\n".join(
            f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
        )
        controls = "\n".join(control.html(knob, f"{name}-{knob}") for knob, control in self.knobs.items())
        return f"""\
<figure class="knobs" data-figure="{name}" role="group" aria-labelledby="{name}-title">
<p class="title" id="{name}-title">{self.title}</p>
<div class="controls" hidden>
{controls}
</div>
<div class="drawing" hidden>
<svg class="picture" viewBox="0 0 360 {self.height}" role="img" aria-label="{html.escape(self.drawn)}"></svg>
</div>
<p class="said" aria-live="polite">{said}</p>
<details open>
<summary>The numbers</summary>
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</details>
<figcaption>{self.caption}</figcaption>
</figure>
"""


def num(x: float, digits: int = 3) -> str:
    """A number as JavaScript's ``toFixed`` writes it: exactly rounded, and ties up."""
    return str(Decimal(float(x)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def percent(x: float) -> str:
    return f"{num(100 * x, 1)} %"


# --- what they say ---------------------------------------------------------------------------------------------------
def neighbours(eps: float, relation: str, noise: int) -> Said:
    """The lead of *yes* over *no* with geometric noise, for five *yes* and three *no*, and for a neighbour."""
    moved = 2 if relation == "replace-one" else 1
    outputs = np.arange(-1, 8)
    before, after = (mechanisms.two_sided_geometric_law(outputs - lead, eps / noise) for lead in (2, 2 + moved))
    ratios = after / before
    verdict = {
        1: "The promise is kept, and reached.",
        2: "The promise is broken: the loss is 2ε.",
        0.5: "The promise is kept, but half of ε is not used: the noise is larger than it need be.",
    }[round(math.log(max(ratios)) / eps, 6)]
    rows = [
        [str(o).replace("-", "−"), num(p), num(q), num(r)]
        for o, p, q, r in zip(outputs, before, after, ratios, strict=True)
    ]
    return rows, f"Largest ratio: {num(max(ratios), 2)}, where the promise allows {num(math.exp(eps), 2)}. {verdict}"


def selection(a: int, b: int, c: int, d: int, eps: float) -> Said:
    """Four scores of range 1, so that the rate is epsilon."""
    scores = np.array([a, b, c, d])
    accept = np.exp(eps * (scores - scores.max()))
    laws = [law(scores, eps) for law in (mechanisms.exponential_law, mechanisms.permute_and_flip_law)]
    rows = [["ABCD"[r], str(scores[r]), *(num(law[r]) for law in (accept, *laws))] for r in range(4)]
    chosen = [percent(law[scores == scores.max()].sum()) for law in laws]
    lost = [num(law @ (scores.max() - scores), 2) for law in laws]
    return rows, (
        f"A best candidate is chosen with probability {chosen[0]} by the exponential mechanism and {chosen[1]} by "
        f"permute-and-flip. The score lost is {lost[0]} and {lost[1]} on average."
    )


def odds(prior: float, eps: float) -> Said:
    """What a ratio between exp(-eps) and exp(eps) makes of the odds of a bit."""
    before = prior / (100 - prior)
    chances = [ratio * before / (1 + ratio * before) for ratio in (math.exp(-eps), 1, math.exp(eps))]
    rows = [
        [word, percent(q), num(q / (1 - q), 3 if q < 0.9 else 1)]
        for word, q in zip(("at least", "before", "at most"), chances, strict=True)
    ]
    low, middle, high = map(percent, chances)
    return rows, (
        f"An observer who thought it {middle} likely that your record was used will, after any output, think it "
        f"between {low} and {high} likely."
    )


def budget(eps: float, depth: int) -> Said:
    """What each level of a tree gets, and a leaf there."""
    harmonic, uniform = budgets.harmonic(eps, depth), budgets.uniform(eps, depth)
    leaf = [budgets.aligned_leaf(eps, depth, level) for level in range(1, depth + 1)]
    rows = [[str(k + 1), num(harmonic[k]), num(leaf[k]), num(uniform[k])] for k in range(depth)]
    return rows, (
        f"The last level gets {num(harmonic[-1])} of {num(eps, 1)} where the uniform split gives {num(uniform[0])}, "
        f"and the root {num(harmonic[0])}. A path that ends at the root spends {num(leaf[0])} with formula (10), and "
        f"{num(uniform[0])} under the uniform split."
    )


FIGURES = {
    "neighbours": Figure(
        title="Two neighbours, two laws",
        knobs={
            "eps": Slider("ε", 0.1, 2, 0.1, 1),
            "relation": Choice(
                "D′ is D with",
                {"add-remove": "one <em>yes</em> more", "replace-one": "a <em>no</em> replaced by a <em>yes</em>"},
                "add-remove",
            ),
            "noise": Choice("Noise for a lead that moves by", {1: "1", 2: "2"}, 1),
        },
        columns=("output", "from D", "from D′", "ratio"),
        say=neighbours,
        height=265,
        drawn="Bars of the two laws, output by output, and below them the logarithm of their ratio between two lines.",
        caption="Five <em>yes</em> and three <em>no</em>: released is the lead of <em>yes</em>, here 2, with geometric "
        "noise at rate ε over what the lead moves by. Above, how likely each output is; below, the ratio of the two "
        "bars, in logarithms. Turn to replace-one, leave the noise as it is, and the ratio leaves the dashed lines.",
    ),
    "selection": Figure(
        title="Two ways to choose, at one rate",
        knobs={
            "a": Slider("score of A", 0, 10, 1, 8),
            "b": Slider("score of B", 0, 10, 1, 7),
            "c": Slider("score of C", 0, 10, 1, 5),
            "d": Slider("score of D", 0, 10, 1, 2),
            "eps": Slider("ε", 0.1, 2, 0.1, 0.5),
        },
        columns=("", "score", "p", "exponential", "permute-and-flip"),
        say=selection,
        height=250,
        drawn="Left, for each candidate the chance that its noisy score exceeds a threshold, falling from its score "
        "on; right, bars of the two laws.",
        caption="Scores of range 1, so the rate is ε. Left, the chance that a score with exponential noise exceeds a "
        "place on the axis; its height at the threshold, the best score, is <em>p</em>, the chance of heads. Right, "
        "both laws. Make A and B alike, or all four: permute-and-flip is never the worse, and where all are alike the "
        "two agree.",
    ),
    "odds": Figure(
        title="What ε means for one person's odds",
        knobs={
            "prior": Slider("before, in %", 1, 99, 1, 10),
            "eps": Slider("ε", 0, 5, 0.1, 1),
        },
        columns=("", "probability", "odds"),
        say=odds,
        height=262,
        drawn="The probability after against the probability before: a band around the diagonal, and the reach at one "
        "prior.",
        caption="All that an output can do to an observer's belief that your record was used, whatever the observer "
        "knows besides. The dashed line is <em>nothing learnt</em>. At ε = 0.1 the band is thin; at 5 it is nearly "
        "the whole square.",
    ),
    "budget": Figure(
        title="The budget of a path",
        knobs={
            "eps": Slider("ε", 0.1, 3, 0.1, 1),
            "depth": Slider("levels", 1, 8, 1, 4),
        },
        columns=("level", "branch, (9)", "leaf, (10)", "uniform"),
        say=budget,
        height=240,
        drawn="One column for each level that a leaf may be on: the shares of the branches above it, and its own on "
        "top, harmonic on the left and uniform on the right.",
        caption="A column is a path that ends in a leaf on that level. Left, each column reaches ε: the leaf takes "
        "what the branches above it have left. Right, a path that ends early leaves part of ε unspent. On the last "
        "level there are leaves only, and the two formulas give them the same.",
    ),
}


def fragments() -> dict[Path, Callable[[], str]]:
    """Every file, and what writes it."""
    return {FOLDER / f"{name}.html": partial(figure.html, name) for name, figure in FIGURES.items()}
