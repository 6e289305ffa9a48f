"""The tree on one page: its laws are the library's, its losses are those that its proof says, and slips show."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpforest import mechanisms, scores

PAGE = Path(__file__).resolve().parents[1] / "examples" / "one_page.py"
spec = importlib.util.spec_from_file_location("one_page", PAGE)
assert spec is not None
one_page = importlib.util.module_from_spec(spec)
sys.modules["one_page"] = one_page  # a dataclass looks its module up
spec.loader.exec_module(one_page)  # type: ignore[union-attr]


def test_it_is_one_page_and_needs_numpy_alone():
    text = PAGE.read_text()
    assert len(text.splitlines()) <= 150
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported - set(sys.stdlib_module_names) == {"numpy"}


@pytest.mark.parametrize("utilities", [[0.0], [0.0, -1.0], [-3.0, 2.0, 2.0, -1.0, 0.5]])
def test_its_selection_has_the_librarys_law(utilities):
    law = one_page.permute_and_flip(tuple(utilities), 0.7)
    np.testing.assert_allclose(law, mechanisms.permute_and_flip_law(utilities, 0.7), atol=1e-12)


def test_its_noise_is_two_sided_geometric_and_clipped():
    law, epsilon = one_page.noisy_count(3, 0.4, 9), 0.4
    noise = stats.dlaplace(epsilon)
    np.testing.assert_allclose(law[1:-1], noise.pmf(np.arange(1, 9) - 3), atol=1e-12)
    np.testing.assert_allclose([law[0], law[-1]], [noise.cdf(-3), noise.sf(5)], atol=1e-12)


def test_its_score_and_range_are_those_of_the_chapter():
    counts = np.array([[3, 1], [0, 4], [0, 0]])
    assert one_page.gini(counts) == pytest.approx(float(scores.gini(counts)))
    assert scores.gini.range("add-remove") == 2
    assert scores.gini.monotone


def test_a_fit_spends_epsilon_and_no_more():
    rng = np.random.default_rng(0)
    records = [tuple(row) for row in rng.integers(2, size=(40, 3)).tolist()]
    curator = one_page.Curator(records, (2, 2, 2), 1.0, lambda law: int(rng.choice(len(law), p=law / law.sum())))
    tree = one_page.grow(curator, 2, 40)
    assert sum(paid for _, paid in curator.ledger) == pytest.approx(1)
    assert len(tree) == 4
    with pytest.raises(ValueError, match="no budget is left"):
        curator.count_classes([()], 0.01, 40)


def test_the_worst_loss_is_what_the_parts_cost():
    """One feature is chosen without a rival: what is left is the leaves' half, and a record changes one count."""
    assert one_page.worst_loss((2, 2), 1.0, 1) == pytest.approx(0.5, abs=1e-9)
    assert one_page.worst_loss((2, 2), 1.0, 0) == pytest.approx(1, abs=1e-9)
    assert 0.8 < one_page.worst_loss((2, 2, 2), 1.0, 1) <= 1


def test_the_law_adds_up_to_one_and_has_every_tree():
    law = one_page.law_of(lambda draw: one_page.grow(one_page.Curator([(0, 1)], (2, 2), 1.0, draw), 1, 1))
    assert sum(law.values()) == pytest.approx(1)
    assert len(law) == 2**4


@pytest.mark.parametrize("slip", ["rate", "noise", "account"])
def test_a_slip_shows_in_the_audit(monkeypatch, slip):
    """Each of the three hypotheses, broken by itself, loses more than epsilon."""
    sizes, depth = (2, 2), 0
    if slip == "rate":  # as if the score's range were 1
        whole = one_page.permute_and_flip
        monkeypatch.setattr(one_page, "permute_and_flip", lambda utilities, rate: whole(utilities, 2 * rate))
        sizes, depth = (2, 2, 2), 1
    elif slip == "noise":
        law = one_page.noisy_count
        monkeypatch.setattr(one_page, "noisy_count", lambda count, epsilon, most: law(count, 2 * epsilon, most))
    else:
        count = one_page.Curator.count_classes
        twice = lambda self, nodes, epsilon, most: count(self, nodes, 2 * epsilon, most)  # noqa: E731
        monkeypatch.setattr(one_page.Curator, "count_classes", twice)
        monkeypatch.setattr(one_page.Curator, "_charge", lambda self, question, epsilon: None)
    assert one_page.worst_loss(sizes, 1.0, depth, n=1 + depth) > 1.1


def test_what_the_exercises_say_of_smaller_and_larger_slips(monkeypatch):
    """A rate of epsilon / 1.5 stays below epsilon on two records; leaves that have all of it besides do not."""
    whole, count = one_page.permute_and_flip, one_page.Curator.count_classes
    with monkeypatch.context() as patch:
        patch.setattr(one_page, "permute_and_flip", lambda utilities, rate: whole(utilities, rate / 0.75))
        assert one_page.worst_loss((2, 2, 2), 1.0, 1) < 1
    monkeypatch.setattr(one_page.Curator, "_charge", lambda self, question, epsilon: None)
    monkeypatch.setattr(one_page.Curator, "count_classes", lambda self, nodes, _, most: count(self, nodes, 1.0, most))
    assert one_page.worst_loss((2, 2, 2), 1.0, 1, n=1) > 1


@pytest.mark.slow
def test_it_runs():
    done = subprocess.run([sys.executable, PAGE], capture_output=True, text=True, check=True)
    assert "of 1 for which feature splits a node" in done.stdout
    assert "worst loss on small tables: 0.8" in done.stdout
