"""DiffGen: a generalised table, published with noisy class counts (Mohammed, Chen, Fung and Yu, 2011).

Values are made special from the top of public taxonomies down, each step for all records that have the value.  What is
released is a table of groups, with noisy class counts, on which any classifier can be trained.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from dpforest.learners.audited import AuditSpec
from dpforest.learners.generalisation import Generalisation, PrivateTable, choose_by_table, specialise_values
from dpforest.learners.run import Run
from dpforest.models.forest import Forest
from dpforest.privacy import claim

__all__ = ["DiffGenClassifier"]


@claim("alg-diffgen", "pub-diffgen", "thm-diffgen")
class DiffGenClassifier(PrivateTable):
    """Private generalised table: groups of records that public taxonomies make alike, with noisy class counts.

    The groups are the leaves of one tree, in which all groups that have a value are divided alike.  It predicts by the
    counts of a record's group; its ``table()`` is what other classifiers learn from.

    Guarantee
    ---------
    ``epsilon``-differential privacy of the released table under ``relation``, of both variants
    (:prf:ref:`thm-diffgen`, :prf:ref:`pub-diffgen`).

    Raises
    ------
    ValueError
        On bad parameters; on a taxonomy that is no tree over the declared categories; on more specialisations than
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

    variant: Annotated[
        Literal["proved", "published"],
        """``"published"`` is the paper to the letter: cuts of numbers chosen in advance, scores of a value whatever the
        groups, exponents ``epsilon' / (2 sensitivity)``.""",
    ] = "proved"

    @claim("alg-diffgen", "pub-diffgen")
    def as_published(self, run: Run) -> Forest:
        """Algorithm 1."""
        run.start_forest(1, max_nodes=self.max_nodes)
        table, rounds = Generalisation(run, self.taxonomies), self._rounds(run.schema)  # lines 1 and 2
        numbers = int(run.ordered.sum())
        share = run.epsilon / (2 * max(1, numbers + 2 * rounds))  # line 3; nothing to divide asks nothing
        specialise_values(run, table, range(len(table.cuts)), rounds, share, self._selection())  # lines 4 to 9
        run.set_leaf_values(table.groups, run.count_classes(table.groups, run.epsilon / 2))  # line 12
        return run.release()

    @claim("thm-diffgen", "lem-common-choice")
    def as_proved(self, run: Run) -> Forest:
        """The repair: every cut of a number is a candidate, and the score is that of the table that a step leaves."""
        run.start_forest(1, max_nodes=self.max_nodes)
        root = run.frontier.scopes
        table, rounds = Generalisation(run, self.taxonomies), self._rounds(run.schema)
        counts = run.epsilon / 2 if rounds else run.epsilon
        for _ in range(rounds):
            if not (candidates := [one for one in table.all_candidates() if table.fits(one)]):
                break
            share = run.epsilon / (2 * rounds)
            table.specialise(choose_by_table(run, table, candidates, share, self._selection(), root))
        run.set_leaf_values(table.groups, run.count_classes(table.groups, counts))
        return run.release()

    # -- the audit -------------------------------------------------------------------------------------------

    AUDIT: ClassVar = AuditSpec(
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
        defaults={},
    )
