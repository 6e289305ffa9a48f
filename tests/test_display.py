"""What a notebook shows of results: what matters, escaped, without a seed."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from shared import MIXED, quietly, table

from dpforest import Budget, EDPRFClassifier, Guarantee, Ledger, RandomTreesRegressor, Schema
from dpforest.models.release import released
from dpforest.privacy import ADD_REMOVE, Leak, display

HOSTILE = "<script>alert('1')</script>&\"x"


class Read(HTMLParser):
    """The tags, the text and the attributes of a page; every tag that is opened is closed, in order."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.text, self.attributes = [], [], "", {}
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + " "


def shown(thing) -> Read:
    found = Read(thing._repr_html_())
    assert set(found.tags) <= {"div", "strong", "table", "tbody", "tr", "th", "td", "span"}
    assert set(found.attributes) <= {"style", "scope", "title", "role", "aria-label"}
    assert not re.search(r"(?<![-\w])color:(?!inherit)|background:(#fff|white)", " ".join(found.attributes["style"]))
    return found


def test_a_fitted_model_shows_what_is_promised_and_no_seed():
    X, y = table(100)
    model = EDPRFClassifier(epsilon=0.75, schema=MIXED, random_state=8191, n_estimators=1)
    assert model._repr_html_() is None
    found = shown(model.fit(X, y))
    for part in ("EDPRFClassifier", "0.75", ADD_REMOVE, "one row", "no, yes", "seeded: not for release", "not covered"):
        assert part in found.text
    assert found.attributes["title"] == ["spent by this run: 0.75"]
    assert "8191" not in str(model._repr_mimebundle_())
    back = shown(released(model.to_dict(seeded=True)))
    assert "seeded: not for release" in back.text
    assert "title" not in back.attributes  # what a run spent is in no file
    assert "Guarantee" in shown(model.guarantee_).text
    assert "seeded: not for release" in shown(model.ledger_).text


def test_what_may_be_released_has_no_caution():
    X, y = table(100)
    model = EDPRFClassifier(epsilon=1.0, schema=MIXED, source="secure", n_estimators=1)
    assert "not for release" not in shown(model.fit(X, y, person=[i // 2 for i in range(100)], max_rows=2)).text
    assert "a person of at most 2 rows" in shown(model).text
    assert "not for release" in shown(Guarantee(1.0, ADD_REMOVE)).text  # nobody knows where it came from


def test_a_published_variant_shows_its_leaks():
    X, y = table(100)
    model = quietly(EDPRFClassifier(schema=MIXED, variant="published", random_state=0, n_estimators=1), X, y)
    found = shown(model)
    assert "not private for any finite epsilon (the paper claims 1)" in found.text
    assert found.text.count("leak") == len(model.ledger_.leaks) > 0


def test_numbers_are_predicted_too():
    X, _ = table(100)
    schema = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, target=(0, 1))
    model = RandomTreesRegressor(schema=schema, random_state=0, n_estimators=1, max_depth=1)
    assert "a number" in shown(model.fit(X, X.x)).text


def test_an_account_shows_its_charges():
    budget = Budget(2.0)
    budget.charge(0.5, "one")
    budget.charge(0.25, "two")
    found = shown(budget)
    assert "spent 0.75, left 1.25" in found.text
    assert found.attributes["title"] == ["one: 0.5", "two: 0.25"]
    widths = re.findall(r"width:([\d.]+)%", " ".join(found.attributes["style"]))
    assert list(map(float, widths)) == [25.0, 12.5]


@pytest.mark.parametrize(
    "thing",
    [
        Guarantee(1.0, ADD_REMOVE, leaks=(Leak(HOSTILE, HOSTILE),), version=HOSTILE),
        Ledger(promise=Guarantee(1.0, ADD_REMOVE, source=HOSTILE)),
    ],
    ids=["guarantee", "ledger"],
)
def test_texts_are_escaped(thing):
    assert "alert" in shown(thing).text


def test_texts_of_a_model_and_of_an_account_are_escaped():
    budget = Budget(1.0)
    budget.charge(0.5, HOSTILE)
    found = shown(budget)
    assert HOSTILE in found.text
    assert found.attributes["title"] == [f"{HOSTILE}: 0.5"]
    X, y = table(40)
    schema = Schema(numeric={"x": (0, 1)}, categorical={"c": ["u", "v", "w"]}, classes=[HOSTILE, "yes"])
    model = EDPRFClassifier(schema=schema, random_state=0, n_estimators=1).fit(
        X, [HOSTILE if a == "no" else a for a in y]
    )
    assert HOSTILE in shown(model).text


def test_a_bar_stays_within_its_frame():
    assert "width:100%" in display.bar([("all", 3.0)], 2.0)
    assert "<span" not in display.bar([("none", 0.0)], 2.0)
