"""Persons with several rows: who is one person, and which of a person's rows are learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpforest.chance import Chance, keyed
from dpforest.learners.parameters import check_count
from dpforest.messages import shown
from dpforest.privacy import ADD_REMOVE, Ledger, check_epsilon, claim, epsilon_of, rho_of
from dpforest.schema.person_names import tell_apart

__all__ = ["People", "check_asked", "check_in_memory", "identify", "of_a_row", "own_rows", "together"]

_PUBLIC = (0, 0)  # key of the hash that makes one number of a person's name and of what a row says


@dataclass(frozen=True, eq=False)
class People:
    """Whose row each row is.

    Attributes
    ----------
    places : ndarray of int64, shape (n_rows,)
        From 0: the same for two rows if and only if they are of one person.
    names : ndarray of uint64, shape (n_people,)
        At each of these places a number that is a function of that person's name alone.  Two persons may have one
        number, so it says what their coins are, and not who they are.
    """

    places: np.ndarray
    names: np.ndarray

    def __len__(self) -> int:
        return len(self.places)


def check_asked(person: Any, max_rows: Any, relation: str) -> int | None:
    """The most rows of a person, None where the unit is one row; an error if no theorem covers what is asked."""
    if person is None:
        if max_rows is not None:
            raise TypeError("max_rows is of a person's rows: name the column that says whose they are, person='id'")
        return None
    if max_rows is None:
        raise TypeError(
            "person= needs max_rows=, how many rows of a person are learned from at most: a public number, not one "
            "that was read off the table"
        )
    most = check_count(max_rows, "max_rows", most=10**6)
    if relation != ADD_REMOVE and most > 1:
        raise ValueError(
            "under replace-one the number of rows is public, and a person of several rows changes it: fit with "
            "relation='add-remove', whose epsilon is at most 2 epsilon for a person who is replaced, or with max_rows=1"
        )
    return most


def check_in_memory(most: int | None) -> None:
    """Refuse persons of a table that an engine reads."""
    if most is not None:
        raise ValueError(
            "the rows of a person may lie in different blocks of this table: read it into memory for person=, "
            "or draw at most k rows of each person, by coins that are this person's own and are not released, and "
            "promise k times epsilon"
        )


@claim("thm-persons", "lem-concentrated-group")
def of_a_row(epsilon: float, delta: float, max_rows: int) -> float:
    """The epsilon for one row, at the same delta, with which a person of so many rows is promised ``epsilon``.

    Parameters
    ----------
    epsilon : float
        For a person; infinite for no noise.
    delta : float
        For a person; 0 or as :func:`~dpforest.privacy.check_delta` says.
    max_rows : int
        At least 1.

    Returns
    -------
    float
        ``epsilon / max_rows`` without a delta; with one, the epsilon of a rho that is that of the person over
        ``max_rows`` squared.

    Guarantee
    ---------
    So many steps of add-remove lead from the rows without a person to those with: :prf:ref:`thm-persons`.
    """
    if max_rows == 1 or np.isinf(epsilon):
        return epsilon
    each = epsilon_of(rho_of(epsilon, delta) / max_rows**2, delta) if delta else epsilon / max_rows
    try:
        return check_epsilon(each)
    except ValueError:
        instead = f": with delta=0 it leaves {epsilon / max_rows:g}" if delta else ""
        raise ValueError(
            f"epsilon={shown(epsilon)} leaves {each:g} for each of max_rows={max_rows} rows{instead}"
        ) from None


@claim("thm-persons", "lem-concentrated-group")
def together(ledger: Ledger, max_rows: int) -> float:
    """What a run spent on a person of whose rows so many were learned from, under the ledger's relation.

    The epsilon of the ledger's delta, where it has one: the rhos of one row times ``max_rows`` squared.
    """
    if max_rows == 1 or not ledger.delta or ledger.leaks:
        return max_rows * ledger.epsilon
    return epsilon_of(max_rows**2 * ledger.paid(ledger.relation), ledger.delta)


def identify(values: Any) -> People:
    """Who is who in a column of persons: as :func:`dpforest.schema.person_names.tell_apart` has it, which raises."""
    if isinstance(values, People):
        return values
    names, places = tell_apart(values)
    return People(places, keyed.identify(names))


@claim("lem-own-rows")
def own_rows(
    codes: np.ndarray, labels: np.ndarray, people: People, max_rows: int, chance: Chance, ids: np.ndarray | None = None
) -> np.ndarray:
    """The places of the rows that are kept: at most so many of each person, drawn by lots of that person's own.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_features, n_rows)
    labels : ndarray of uint8, shape (n_rows,)
    people : People
    max_rows : int
    chance : Chance
        Draws the lots.
    ids : ndarray of uint64, shape (n_rows,), or None
        The rows' own keys, which are part of what they say.

    Returns
    -------
    ndarray of int64, in increasing order

    Guarantee
    ---------
    Whatever the lots are, what is kept of a person is a function of that person's name and rows, in any order, and has
    at most ``max_rows`` of them; one row more, less or changed changes at most one that is kept.  Over the lots every
    choice of so many rows is as likely, whatever they say: :prf:ref:`lem-own-rows`.

    Notes
    -----
    A row is named by its person, by what it says, and by its number among the rows of this person that say the same.
    A seeded lot is a keyed hash of that, so that neither other persons nor the order of the table change it.
    """
    crowded = np.flatnonzero(np.bincount(people.places)[people.places] > max_rows)
    content = _packed_rows([*codes, labels], crowded) + ([] if ids is None else [ids[crowded]])
    order = np.lexsort((*content, people.places[crowded]))  # the last one comes first
    crowded, content = crowded[order], [word[order] for word in content]
    whose = people.places[crowded]
    names = keyed.siphash(_PUBLIC, people.names)[whose]
    for word in [*content, _number_repetitions([*content, whose]).astype(np.uint64)]:
        names = keyed.siphash(_PUBLIC, names ^ word)
    order = np.lexsort((chance.lots(names), whose))  # stable: rows with one lot stay in the order of what they say
    place = np.arange(len(whose)) - np.searchsorted(whose, whose)  # among the rows of the same person
    kept = np.ones(len(labels), dtype=bool)
    kept[crowded[order[place >= max_rows]]] = False
    return np.flatnonzero(kept)


def _packed_rows(columns: Sequence[np.ndarray], rows: np.ndarray) -> list[np.ndarray]:
    """The codes of these rows, one byte a column, packed: eight columns to a word of 64 bits."""
    packed = [np.zeros(len(rows), dtype=np.uint64) for _ in range(0, len(columns), 8)]
    for number, column in enumerate(columns):
        packed[number // 8] |= column[rows].astype(np.uint64) << np.uint64(8 * (number % 8))
    return packed


def _number_repetitions(sorted_words: Sequence[np.ndarray]) -> np.ndarray:
    """Number each row, from 0, among the rows that are equal to it; equal rows follow each other."""
    first = np.ones(len(sorted_words[0]), dtype=bool)
    first[1:] = np.any([word[1:] != word[:-1] for word in sorted_words], axis=0)
    at = np.arange(len(first))
    return at - np.maximum.accumulate(np.where(first, at, 0))
