"""Errors are a release, too: they show little of what they were given, on one line, and of data only the shape."""

from __future__ import annotations

import ast
import contextlib
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shared import MIXED, table

import dpforest
from dpforest import (
    Budget,
    EDPRFClassifier,
    OutOfSchemaWarning,
    PrivateBoostingClassifier,
    RandomTreesClassifier,
    Schema,
    evaluation,
)
from dpforest.audit.report.report import _JUDGED, _MEASURED, _STATED, FORMAT, Report
from dpforest.messages import LONGEST, listed, plain, shown
from dpforest.models.release import released
from dpforest.schema import taxonomies

ROOT = Path(dpforest.__file__).parent
#: What a parameter may be that a message shows as it is: one that the library itself made, or one line of a shell.
FINE = {"str", "int", "float", "Path", "str | Path", "str | Path | None", "str | os.PathLike[str]"}


def bare(source: str) -> list[str]:
    """What a ``raise`` shows as it is: by ``!r``, or a parameter that may be anything."""
    found = []

    def visit(node: ast.AST, kinds: dict[str, str]) -> None:
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            kinds = kinds | {each.arg: ast.unparse(each.annotation) if each.annotation else "" for each in given}
        if isinstance(node, ast.Raise) and not ast.unparse(node).startswith(
            "raise PlaybackStopped("
        ):  # of the grey box
            for part in ast.walk(node):
                if isinstance(part, ast.FormattedValue) and part.format_spec is None:
                    value = part.value
                    anything = isinstance(value, ast.Name) and kinds.get(value.id, "str") not in FINE
                    if part.conversion == ord("r") or anything:
                        found.append(ast.unparse(value))
        for child in ast.iter_child_nodes(node):
            visit(child, kinds)

    visit(ast.parse(source), {})
    return found


def test_no_error_shows_a_value_as_it_is():
    found = {str(path.relative_to(ROOT)): bare(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    assert {name: values for name, values in found.items() if values} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "def f(x): raise ValueError(f'not {x!r}')",
        "def f(x): raise ValueError(f'not {x}')",
        "def f(*, x: Any):\n    def g():\n        raise TypeError('a' f'{x}') from None",
        "def f(x: int): raise ValueError(f'{x!r}')",
    ],
)
def test_the_rule_finds_what_is_planted(planted):
    assert bare(planted) == ["x"]
    assert bare(planted.replace("{x!r}", "{shown(x)}").replace("{x}", "{shown(x)}")) == []


class Nasty:
    shape = property(lambda self: 1 / 0)

    def __repr__(self):
        raise RuntimeError

    def __len__(self):
        raise RuntimeError


VALUES = [
    "x" * 10**5, b"x" * 10**5, 10**9999, 10**100, -1.5, 1e400, ["a"] * 10**4, {"a": 1}, np.arange(10), np.float32(0.5),
    pd.DataFrame({"secret": ["me"]}), pd.Series(["me"]), None, ..., True, int, object(), Nasty(), {"secret"}, ("a", 2),
    ("secret",) * 1000, np.datetime64("2020-01-01"), pd.Timestamp(0), iter([1]), "\x1b[31m\n\u202e", [["secret"]],
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_value_is_shown_on_one_short_line(value):
    text = shown(value)
    assert text.isprintable()
    assert 0 < len(text) <= LONGEST
    assert "secret" not in text


def test_what_is_shown():
    assert shown("sex") == "'sex'"
    assert shown((90, 17)) == "(90, 17)"
    assert shown(pd.DataFrame({"a": [1, 2]})) == "a DataFrame of shape (2, 1)"
    assert shown(np.arange(3)) == "an ndarray of shape (3,)"
    assert shown([1, 2]) == "a list of 2"
    assert shown(np.int64(3)) == "3"
    assert listed(range(10)) == "[0, 1, 2, 3, 4, 5, 6, 7, and 2 more]"
    assert plain("a\nb\x1b") == "a\\nb\\x1b"


IDS = [f"secret-{n}" for n in range(5000)]
X, Y = table(60)


def fitted(**how):
    return EDPRFClassifier(**{"schema": MIXED, "n_estimators": 1, "random_state": 0} | how)


#: Data where something else is due.
MISTAKES = {
    "key": lambda data: fitted().fit(X, Y, key=data),
    "labels of Parquet": lambda data: fitted().fit("a.parquet", data),
    "max_rows": lambda data: fitted().fit(X, Y, person=np.arange(60), max_rows=data),
    "n_bins": lambda data: fitted(n_bins=data).fit(X, Y),
    "random_state": lambda data: fitted(random_state=data).fit(X, Y),
    "epsilon": lambda data: fitted(epsilon=data).fit(X, Y),
    "relation": lambda data: fitted(relation=data).fit(X, Y),
    "source": lambda data: fitted(source=data).fit(X, Y),
    "variant": lambda data: fitted(variant=data).fit(X, Y),
    "schema": lambda data: fitted(schema=data).fit(X, Y),
    "n_jobs": lambda data: fitted(n_jobs=data).fit(X, Y),
    "max_depth": lambda data: fitted(max_depth=data).fit(X, Y),
    "class_weight": lambda data: PrivateBoostingClassifier(schema=MIXED, class_weight=data).fit(X, Y),
    "taxonomies": lambda data: taxonomies(MIXED, data),
    "share": lambda data: evaluation.hold_out(X, data),
    "bins": lambda data: evaluation.evaluate(fitted().fit(X, Y), X, Y, 1.0, bins=data),
    "level": lambda data: evaluation.evaluate(fitted().fit(X, Y), X, Y, 1.0, level=data),
    "models": lambda data: evaluation.choose(data, X, Y, 1.0),
    "what": lambda data: Budget(1.0).charge(0.1, data),
    "cost": lambda data: Budget(1.0).charge(data),
    "account": lambda data: Budget(data),
    "numeric": lambda data: Schema(numeric=data, classes=[0, 1]),
    "bounds": lambda data: Schema(numeric={"x": data}, classes=[0, 1]),
    "target": lambda data: Schema(numeric={"x": (0, 1)}, target=data),
    "missing": lambda data: Schema(numeric={"x": (0, 1)}, classes=[0, 1], missing=data),
    "column": lambda data: MIXED.edges(str(data), 3),
    "path": lambda data: dpforest.load(data),
}


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, tuple], ids=["list", "array", "series", "tuple"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_data_in_the_wrong_place_is_not_printed(mistake, kind):
    with pytest.raises((TypeError, ValueError)) as caught:
        MISTAKES[mistake](kind(IDS))
    if mistake != "column":  # a name, of which the beginning is shown
        assert "secret-" not in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("place", ["x", "c", "y", "person", "key"])
@pytest.mark.parametrize("cell", ["t" * 10**5, {f"secret-{n}": n for n in range(5000)}], ids=["text", "dict"])
def test_a_cell_is_shown_in_80_characters(place, cell):
    frame = X.assign(y=Y, person="p", key=range(60)).astype(object)
    frame.at[3, place] = cell
    if place in ("person", "key") and isinstance(cell, str):
        return  # a name
    with pytest.raises((TypeError, ValueError)) as caught:
        fitted().fit(frame, "y", key="key", person="person", max_rows=1)
    assert len(str(caught.value)) < 400
    assert "secret-" not in str(caught.value)


# -- texts of files --------------------------------------------------------------------------------------------------

FAKE = "1\n  leak: none; variant: proved; source: secure\x1b[2J"


def test_a_file_whose_texts_cannot_be_printed_is_refused():
    written = fitted().fit(X, Y).to_dict(seeded=True)
    assert released(written)
    for part, value in {"version": FAKE, "leaks": [{"what": FAKE, "where": "here"}]}.items():
        bad = {**written, "guarantee": {**written["guarantee"], part: value}}
        if part == "leaks":
            bad["guarantee"] |= {"epsilon": None, "variant": "published"}
        with pytest.raises(ValueError, match="cannot be printed"):
            released(bad)


def test_a_name_of_a_column_lays_out_no_lines():
    name = "age\n\x1b[31mfake"
    schema = Schema(numeric={name: (0, 1)}, classes=["no", "yes"])
    model = EDPRFClassifier(schema=schema, n_estimators=1, max_depth=1, random_state=0)
    with pytest.warns(OutOfSchemaWarning) as caught:
        model.fit(pd.DataFrame({name: [0.0, 2.0] * 10}), ["no", "yes"] * 10)
    text = str(caught[0].message) + model.forest_.describe(schema.columns).replace("\n", "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text += "".join(map(str, dpforest.inspect.importances(model)))
    assert text.isprintable()


def test_what_a_report_from_a_file_shows_is_one_line_each(tmp_path):
    rows = [{"key": FAKE, "verdict": "UNEXPECTED", "alarms": [FAKE], "expected": []}]
    text = str(Report(pd.DataFrame(rows), {}))
    assert len(text.splitlines()) == 2
    assert "\x1b" not in text


@pytest.mark.parametrize("number", [10**400, 1e300, -(10**400)])
@pytest.mark.parametrize("part", ["claim", "n_pairs", "n", "seconds"])
def test_a_report_with_a_number_that_does_not_fit_is_refused(part, number, tmp_path):
    path = tmp_path / "report.json"
    row = dict.fromkeys([*_STATED, *_MEASURED, *_JUDGED], None) | {"verdict": "holds", "key": "a", part: number}
    path.write_text(json.dumps({"format": FORMAT, "versions": {}, "code": "", "settings": {}, "rows": [row]}))
    with contextlib.suppress(ValueError):  # it may do without that number
        Report.load(path)


def test_a_size_that_is_far_too_large_is_refused_in_words():
    with pytest.raises(ValueError, match="need far too many nodes") as caught:
        RandomTreesClassifier(schema=MIXED, max_depth=1000).fit(X, Y)
    assert len(str(caught.value)) < 300
