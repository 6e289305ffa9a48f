"""The data of a figure: all that is drawn stands in it, it follows the data and stays small."""

from __future__ import annotations

import logging

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.font_manager import FontProperties, findfont

from dpforest.study import figures, plots

mpl.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def panel():
    made, panel = plt.subplots()
    yield panel
    plt.close(made)


def test_words_lines_and_limits(panel) -> None:
    panel.plot([1, 2, 4], [0.5, 0.25, 1 / 3], label="loss")
    panel.set(title="A title", xlabel="ε", ylabel="loss", xscale="log", xlim=(1, 4), ylim=(0, 1))
    panel.set_xticks([1, 4], labels=["one", "four"])
    panel.legend()
    panel.text(1, 0.5, "here")
    assert figures.describe(panel.figure).splitlines() == [
        "figure: -",
        "panel 1: A title",
        "x: ε; log from 1 4",
        "x ticks: one | four at 1 4",
        "y: loss; linear from 0 1",
        "words: loss | here",
        "line loss: 3 points",
        "  mean size 2.33333333333: 1 2 4",
        "  mean size 0.361111111111: 0.5 0.25 0.333333333333",
    ]


DRAWN = {
    "line": lambda panel, y: panel.plot([0, 1], y),
    "points": lambda panel, y: panel.scatter([0, 1], y),
    "colours": lambda panel, y: panel.scatter([0, 1], [0, 1], c=y),
    "bars": lambda panel, y: panel.bar([0, 1], y),
    "histogram": lambda panel, y: panel.hist(y, bins=[0, 1, 2.2, 4], histtype="step"),
    "reach": lambda panel, y: panel.errorbar([0, 1], [0, 1], yerr=y),
    "area": lambda panel, y: panel.fill_between([0, 1], y),
    "image": lambda panel, y: panel.imshow([y]),
    "mesh": lambda panel, y: panel.pcolormesh([y]),
    "words": lambda panel, y: panel.annotate(str(y), (0, 0)),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_follows_what_is_drawn(panel, draw) -> None:
    texts = []
    for y in ([1, 2], [1, 2], [1, 2.5]):
        panel.clear()
        draw(panel, y)
        panel.set(xlim=(0, 5), ylim=(0, 5))
        texts.append(figures.describe(panel.figure))
    assert texts[0] == texts[1] != texts[2]


def test_small_and_sensitive_to_every_point(panel) -> None:
    many = np.random.default_rng(0).normal(size=(100_000, 2))
    for k in range(30):
        panel.plot(*many[k::30].T, label=f"line {k}")
    panel.set(xlim=(-5, 5), ylim=(-5, 5))
    before = figures.describe(panel.figure)
    assert len(before.encode()) < 15_000
    y = panel.lines[3].get_ydata()
    y[1] += 0.01
    panel.lines[3].set_ydata(y)
    assert figures.describe(panel.figure) != before


def test_missing_values(panel) -> None:
    panel.plot([0, 1, 2], [1, np.nan, 3])
    assert "  mean size 2: 1 nan 3" in figures.describe(panel.figure)


def test_shown_with_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    display = pytest.importorskip("IPython.display")
    shown: list[tuple[dict, dict]] = []
    monkeypatch.setattr(display, "display", lambda bundle, metadata, raw: shown.append((bundle, metadata)))
    made, panel = plots.figure()
    panel.plot([1, 2], [3, 4])
    plots.show(made, "A line from 3 to 4.")
    ((bundle, metadata),) = shown
    assert metadata[figures.KEY].splitlines()[-1] == "  mean size 3.5: 3 4"
    assert bundle["text/plain"] == "A line from 3 to 4."
    assert bundle["image/png"].startswith("iVBOR")


def test_which_fonts_a_machine_has_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """Else the first figure of a notebook would have an output where its machine looks for fonts, or lacks one."""
    log = logging.getLogger("matplotlib.font_manager")
    told = []
    for look, family in ((lambda: log.setLevel(logging.NOTSET), "no such family"), (plots.use, "nor this one")):
        caplog.clear()
        with mpl.rc_context():
            look()
            mpl.rcParams["font.family"] = family
            findfont(FontProperties())
        told.append([record for record in caplog.records if record.name == log.name])
    assert told[0]
    assert not told[1]
