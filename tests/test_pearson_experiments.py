"""The patent's sentences about its trees: each judgement in both directions, on results that are made up or tiny."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from dpforest import PearsonTreeClassifier, datasets
from dpforest.study.pearson_experiments import cart, judge, same_from_blocks
from dpforest.study.statements import Statements
from dpforest.study.statements.rules import VERDICTS

REPRODUCED, NOT, OPPOSITE, UNREAD, UNRUN = VERDICTS


def rows(accuracy, nodes):
    seeds = np.arange(3)
    return pd.DataFrame({"seed": seeds, "accuracy": accuracy + 0.001 * seeds, "nodes": nodes + seeds})


def judged(published, trees, different=(0.0, 0.0)):
    blocks = None if different is None else {"different": np.array(different), "blocks": np.array([6])}
    found = judge(Statements("pearson_tree"), published, trees, blocks)
    return {name.removeprefix("exp-pearson-"): finding.verdict for name, finding in found.findings.items()}


@pytest.mark.claim("exp-pearson-small", "exp-pearson-generalises")
def test_size_and_accuracy_are_judged_beside_a_tree_without_privacy():
    small, large = {"a": rows(0.9, 10.0)}, {"a": rows(0.8, 30.0)}
    # seeds that move both alike leave no spread: one of the two is moved
    large["a"]["nodes"] += [0, 1, 0]
    large["a"]["accuracy"] += [0, 0.001, 0]
    found = judged(small, large)
    assert (found["small"], found["generalises"]) == (REPRODUCED, REPRODUCED)
    found = judged(large, small)
    assert (found["small"], found["generalises"]) == (OPPOSITE, OPPOSITE)
    found = judged({"a": small["a"], "b": large["a"]}, {"a": large["a"], "b": small["a"]})
    assert (found["small"], found["generalises"]) == (NOT, NOT)


@pytest.mark.claim("exp-pearson-memory")
def test_memory_is_no_limit_where_blocks_give_the_same_tree():
    one = {"a": rows(0.9, 10.0)}
    assert judged(one, one)["memory"] == REPRODUCED
    assert judged(one, one, (1.0, 1.0))["memory"] == OPPOSITE
    assert judged(one, one, (1.0, 0.0))["memory"] == NOT
    assert judged(one, one, None)["memory"] == UNRUN


@pytest.mark.claim("exp-pearson-time", "exp-pearson-parts-efficient")
def test_what_names_no_rival_cannot_be_read():
    found = judged({"a": rows(0.9, 10.0)}, {"a": rows(0.9, 10.0)})
    assert (found["time"], found["parts-efficient"]) == (UNREAD, UNREAD)


def test_a_file_read_in_blocks_gives_the_same_published_tree(tmp_path):
    data = datasets.load("breast-cancer")
    build = partial(PearsonTreeClassifier, variant="published", epsilon=1.0)
    found = same_from_blocks(build, data, range(2), tmp_path, 100)
    assert found["different"].tolist() == [0.0, 0.0]
    assert found["blocks"].tolist() == [6]
    seeds = iter(range(100))  # a build that takes another seed each time is seen
    found = same_from_blocks(
        lambda schema, random_state: build(schema=schema, random_state=next(seeds)), data, [0], tmp_path, 100
    )
    assert found["different"].tolist() == [1.0]


def test_the_tree_without_privacy_has_the_depth_that_is_asked_for():
    data = datasets.load("breast-cancer")
    found = cart(data, range(2), 1, 16)
    assert found["nodes"].tolist() == [3, 3]
    assert found["accuracy"].between(0.8, 1).all()
