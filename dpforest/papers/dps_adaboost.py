"""CART-DPsAdaBoost: boosted private trees (Jia, Qiu and Ma, 2021).

Each round grows a tree on records weighted by how badly the earlier trees do on them.  The chapter *Boosting* tells
where the published proof fails and why the repair holds.
"""

from __future__ import annotations

import math

import numpy as np

from dpforest import budgets, scores
from dpforest.bagging import n_candidates
from dpforest.boosted import SCALE, BoostedClassifier, BoostedForest
from dpforest.estimators import PrivateEstimator
from dpforest.privacy import ADD_REMOVE, REPLACE_ONE
from dpforest.tree import MAX_NODES, Forest, Growth, grow_chosen, random_cuts

__all__ = ["DPsAdaBoostClassifier"]

NOISE = {ADD_REMOVE: 1.0, REPLACE_ONE: 2.0}


class DPsAdaBoostClassifier(PrivateEstimator, BoostedClassifier):
    """Boosted private trees."""

    def __init__(
        self, *, epsilon=1.0, schema=None, n_estimators=10, max_depth=3, max_features=5, cuts_per_feature=4, n_bins=32,
        relation="add-remove", variant="proved", votes="real", weights="capped", learning_rate=1.0, alpha_max=2.0,
        smoothing=1.0, class_weight=None, selection="permute-and-flip", criterion="gini", leaf_share=0.5,
        stop="candidate", stop_margin=6.0, max_nodes=MAX_NODES, source="seeded", random_state=None, n_jobs=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.schema = schema
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_features = max_features
        self.cuts_per_feature = cuts_per_feature
        self.n_bins = n_bins
        self.relation = relation
        self.variant = variant
        self.votes = votes
        self.weights = weights
        self.learning_rate = learning_rate
        self.alpha_max = alpha_max
        self.smoothing = smoothing
        self.class_weight = class_weight
        self.selection = selection
        self.criterion = criterion
        self.leaf_share = leaf_share
        self.stop = stop
        self.stop_margin = stop_margin
        self.max_nodes = max_nodes
        self.source = source
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(self, curator, chance, schema, ledger, epsilon):
        shares = budgets.Shares("aligned-uniform", epsilon / self.n_estimators, self.max_depth + 1, self.leaf_share)
        ordered = np.array([name in schema.numeric for name in schema.columns])
        size = n_candidates(self.max_features, schema.n_features)
        rounds: list[Forest] = []
        for number in range(self.n_estimators):
            growth = Growth(1, schema.n_features, schema.n_classes, ledger, "sequential", self.max_nodes)

            def draw(frontier):
                return random_cuts(
                    chance, curator.cardinalities, ordered, len(frontier), size, self.cuts_per_feature
                )  # fmt: skip

            counted, noise = [], []

            def settle(leaves, share, growth=growth, counted=counted, noise=noise):
                counts = curator.count_classes(growth, leaves.nodes, leaves.scopes, share)
                counted.append((leaves, counts / curator.unit))
                noise.append(np.full(len(leaves), NOISE[self.relation] / share))

            grow_chosen(
                growth, curator, shares, draw, settle, score=scores.CLASSIFICATION[self.criterion],
                mechanism=self.selection, stop_margin=self.stop_margin if self.stop == "candidate" else None,
            )  # fmt: skip
            counts = np.concatenate([c for _, c in counted])
            votes = self._votes(counts, np.concatenate(noise))
            start = 0
            for leaves, c in counted:
                growth.settle(leaves, np.rint(votes[start : start + len(c)] * SCALE).astype(np.int64))
                start += len(c)
            rounds.append(growth.release())
            if number + 1 < self.n_estimators:
                curator.weigh(rounds[-1], BoostedForest(rounds[-1]).votes(), rule=self.weights)
        return BoostedForest(Forest.join(rounds))

    def _votes(self, counts, noise) -> np.ndarray:
        """What the leaves of a round say for each class, from their noisy weighted counts alone."""
        k = counts.shape[1]
        if self.votes == "real":
            prior = np.maximum(counts.sum(axis=0), 0) + 1e-9
            prior = prior / prior.sum()
            pseudo = self.smoothing * noise[:, None]
            share = (np.maximum(counts, 0) + pseudo * prior) / (
                np.maximum(counts, 0).sum(axis=1, keepdims=True) + pseudo
            )
            said = np.log(np.maximum(share, 1e-3))
            said -= said.mean(axis=1, keepdims=True)
            return self.learning_rate * np.clip(said, -self.alpha_max, self.alpha_max)
        best = counts.argmax(axis=1)
        total = np.maximum(counts, 0).sum()
        right = np.maximum(counts[np.arange(len(counts)), best], 0).sum()
        error = 1 - right / total if total > 0 else 1.0
        alpha = math.log((1 - error) / error) + math.log(k - 1) if 0 < error < 1 else (0.0 if error >= 1 else math.inf)
        alpha = min(max(alpha, 0.0), self.alpha_max)
        return self.learning_rate * alpha * np.eye(k)[best]
