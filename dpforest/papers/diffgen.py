"""DiffGen: a generalised table, published with noisy class counts (Mohammed, Chen, Fung and Yu, 2011).

Values are made special from the top of public taxonomies down, each step for all records that have the value.  What is
released is a table of groups, with noisy class counts, on which any classifier can be trained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np

from dpforest import scores
from dpforest.learners.audited import Audited
from dpforest.learners.base import PrivateEstimator
from dpforest.learners.generalisation import (
    Generalisation,
    Specialisation,
    asked,
    most_specialisations,
    sizes_of_numbers,
)
from dpforest.learners.parameters import CAP, Auto, Choice, Either, Letter, Whole
from dpforest.learners.run import Run, Selection
from dpforest.mechanisms import SELECTIONS
from dpforest.models.forest import Forest
from dpforest.models.generalised import GeneralisingClassifier
from dpforest.privacy import claim
from dpforest.schema import Schema, taxonomies

__all__ = ["DiffGenClassifier"]

#: Specialisations that "auto" stands for, where the schema has so many.
SPECIALISATIONS = 10
MECHANISMS = Choice("auto", *SELECTIONS)
CRITERIA = {score.name: score for score in (scores.majority, scores.gini, scores.information_gain)}


@claim("alg-diffgen", "pub-diffgen", "thm-diffgen")
class DiffGenClassifier(PrivateEstimator, GeneralisingClassifier):
    """Private generalised table: groups of records that public taxonomies make alike, with noisy class counts.

    The groups are the leaves of one tree, in which all groups that have a value are divided alike.  It predicts by the
    counts of a record's group; its ``table()`` is what other classifiers learn from.

    Attributes
    ----------
    forest_ : Forest
        The released tree.
    ledger_ : Ledger
        Every charge; ``ledger_.leaks`` is empty iff nothing was read unpaid.
    guarantee_ : Guarantee
    classes_, n_features_in_, feature_names_in_, schema_, n_bins_

    Guarantee
    ---------
    ``epsilon``-differential privacy of the released table under ``relation``, of both variants
    (:prf:ref:`thm-diffgen`, :prf:ref:`pub-diffgen`).

    Raises
    ------
    ValueError
        Besides bad parameters: a taxonomy that is no tree over the declared categories; more specialisations than
        there are.

    Source
    ------
    KDD 2011, algorithm 1.

    Examples
    --------
    >>> from dpforest import DiffGenClassifier, Schema
    >>> schema = Schema(numeric={"x": (0, 1)}, classes=["no", "yes"])
    >>> X = [[i / 200] for i in range(200)]
    >>> y = ["no"] * 100 + ["yes"] * 100
    >>> model = DiffGenClassifier(epsilon=4.0, schema=schema, specialisations=1, random_state=0).fit(X, y)
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    specialisations: Annotated[
        int | str, Either("auto", rule=Whole(0)),
        "Values that are made special, one after the other; auto is 10, or as many as there are.",
    ] = "auto"  # fmt: skip
    taxonomies: Annotated[
        Mapping | None,
        """By categorical column, its public taxonomy: a mapping from the name of each value to what is below it, a
        mapping again or a list of categories.  A column that is not named has all of its categories below the root.""",
    ] = None
    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is the paper to the letter: cuts of numbers chosen in advance, scores of a value whatever the
        groups, exponents ``epsilon' / (2 sensitivity)``.""",
    ] = "proved"
    selection: Annotated[
        str, MECHANISMS, Auto(published="exponential", proved="permute-and-flip"), Letter(),
        "Mechanism of the specialisations.",
    ] = "auto"  # fmt: skip
    criterion: Annotated[
        str, Choice(CRITERIA), Letter(),
        """Score of a specialisation: ``"majority"`` is the paper's *Max*; information gain, here the paper's times the
        number of records, needs ``n_max``.""",
    ] = "majority"  # fmt: skip
    calibration: Annotated[
        Literal["auto", "range", "sensitivity"], Auto(published="sensitivity", proved="range"), Letter(),
        "Rate ``epsilon / R`` or, as in the paper, ``epsilon / (2 sensitivity)``.",
    ] = "auto"  # fmt: skip
    n_max: Annotated[float, CAP, Letter(), "Public cap on the number of records, for information gain."] = math.inf
    max_nodes: Annotated[int, Whole(), "A specialisation that would make the tree larger is no candidate."] = 1 << 13

    @claim("alg-diffgen", "pub-diffgen")
    def as_published(self, run: Run) -> Forest:
        """Algorithm 1."""
        run.plant(1, max_nodes=self.max_nodes)
        every, whole = run.frontier, run.tree(0)
        table, rounds = Generalisation(run, self.taxonomies), self._rounds(run.schema)  # lines 1 and 2
        numbers = np.flatnonzero(run.ordered).tolist()
        share = run.epsilon / (2 * max(1, len(numbers) + 2 * rounds))  # line 3; nothing to divide asks nothing
        known: dict[tuple[int, int], Specialisation] = {}  # what may be chosen, by feature and place

        def choose(candidates: list[Specialisation], scopes: np.ndarray) -> Specialisation:
            found = run.choose_division(every, *asked(candidates, -1), share, self._selection(), scopes, whole)
            return candidates[found]

        def know(feature: int, places: list[int], scopes: np.ndarray) -> None:
            for at, place in enumerate(places):
                if candidates := table.candidates(feature, place):
                    chosen = choose(candidates, scopes[at : at + 1]) if run.ordered[feature] else candidates[0]
                    known[feature, place] = chosen

        for feature in range(len(table.cuts)):
            know(feature, [0], every.scopes)  # line 4: a number's cut
        for _ in range(rounds):
            if not (candidates := [one for one in known.values() if table.fits(one)]):
                break
            chosen = choose(candidates, every.scopes)  # lines 5 to 7
            places = table.specialise(known.pop(chosen[:2]))  # line 8
            know(chosen.feature, places, run.parts("cut a number", len(places)))  # line 9: in parts of the records
        run.say(table.groups, run.count_classes(table.groups, run.epsilon / 2))  # line 12
        return run.release()

    @claim("thm-diffgen", "lem-common-choice")
    def as_proved(self, run: Run) -> Forest:
        """The repair: every cut of a number is a candidate, and the score is that of the table that a step leaves."""
        run.plant(1, max_nodes=self.max_nodes)
        root = run.frontier.scopes
        table, rounds = Generalisation(run, self.taxonomies), self._rounds(run.schema)
        counts = run.epsilon / 2 if rounds else run.epsilon
        for _ in range(rounds):
            if not (candidates := [one for one in table.all_candidates() if table.fits(one)]):
                break
            share = run.epsilon / (2 * rounds)
            found = run.choose_division(table.groups, *asked(candidates, 0), share, self._selection(), root)
            table.specialise(candidates[found])
        run.say(table.groups, run.count_classes(table.groups, counts))
        return run.release()

    def _rounds(self, schema: Schema) -> int:
        most = most_specialisations(
            taxonomies(schema, self.taxonomies), sizes_of_numbers(schema, self.bins(schema))
        )  # fmt: skip
        asked_for = min(SPECIALISATIONS, most) if self.specialisations == "auto" else int(self.specialisations)
        if asked_for > most:
            raise ValueError(f"specialisations={asked_for}: the schema and its taxonomies allow {most}")
        return asked_for

    def _selection(self) -> Selection:
        return Selection(
            CRITERIA[self.criterion], self.option("selection"), self.option("calibration"), n_max=float(self.n_max)
        )

    def check_parameters(self) -> None:
        super().check_parameters()
        CRITERIA[self.criterion].range(self.relation, float(self.n_max))  # refuses a missing cap
        self._rounds(self.declared_schema())

    # -- the audit -------------------------------------------------------------------------------------------

    AUDIT: ClassVar = Audited(
        "diffgen",
        (
            ({"specialisations": 1}, 2, None),
            ({}, 2, None),
            ({"criterion": "gini", "selection": "exponential"}, 2, None),
            ({"criterion": "information-gain", "n_max": 16}, 1, None),
            ({"calibration": "sensitivity"}, 2, None),
            ({"variant": "published"}, 2, None),
            ({"variant": "published", "specialisations": 1}, 2, None),
        ),
        usual={},
    )
