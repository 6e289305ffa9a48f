"""Reconstruction: the training set that makes a released forest most probable, found by integer programming.

The attacker knows the mechanism and the public schema, and sees the leaves.  Under two-sided geometric noise the
logarithm of their probability is, up to a constant, minus the sum of the absolute differences between what the leaves
say and their counts, weighted by the rates; the counts are sums of the unknown number of records of each kind.  So the
most probable training set is an L1 regression over non-negative integers, a mixed integer program.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from dpforest.audit.attacks.integer_program import IntegerProgram
from dpforest.audit.attacks.observer import MAX_RECORDS, LeafNoise, Observer, check_prior, check_records
from dpforest.learners.parameters import check_count
from dpforest.messages import shown

__all__ = ["Reconstruction", "ReconstructionError", "marginal_draws", "medoid", "reconstruct", "reconstruction_error"]


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A reconstructed training set.

    Attributes
    ----------
    records : ndarray of uint8, shape (n, n_features + 1)
        Feature codes, then the class code.
    optimal : bool
        Whether no data set is more probable, given the leaves; if not, the search ended early with the best one found.
    gap : float
        How far from optimal it may be, relative to the objective.
    loss : float
        Minus the log-likelihood (or log-posterior) up to a constant: what was minimised.
    n_unknowns : int
        Integer unknowns of the program.
    """

    records: np.ndarray
    optimal: bool
    gap: float
    loss: float
    n_unknowns: int

    def __str__(self) -> str:
        how = "optimal" if self.optimal else f"not proved optimal, gap {self.gap:.2g}"
        return f"{len(self.records)} records reconstructed, {how}, {self.n_unknowns} unknowns"


def reconstruct(
    model,
    *,
    n_records: int | None = None,
    prior=None,
    noise: LeafNoise | None = None,
    time_limit: float = 30.0,
    node_limit: int | None = None,
    max_records: int = MAX_RECORDS,
    random_state=None,
) -> Reconstruction:
    """The training set that makes the leaves of a released forest most probable.

    Parameters
    ----------
    model : fitted estimator, or released forest
    n_records : int, optional
        Number of training records, if the attacker knows it.  Required where leaves say labels, which more records
        make ever more probable.
    prior : array-like of float, shape (n_possible,), optional
        What the attacker knows of the population: a probability for each record that the schema allows, in
        lexicographic order (feature codes, then the class code).  Then the *posterior* is maximised, of records drawn
        independently from the prior.
    noise : LeafNoise, optional
        Where the model does not carry its parameters.
    time_limit : float
        Seconds after which the best data set found so far is returned.
    node_limit : int, optional
        The same as a number of nodes of the branch-and-bound tree: unlike seconds, the same on every machine.
    max_records : int
        A schema that allows more kinds of records is refused.
    random_state : None, int or Generator
        Kinds of records that no leaf tells apart are equally probable: who of them is drawn.

    Returns
    -------
    Reconstruction

    Raises
    ------
    TypeError, ValueError
        Not a released forest; a schema too large; label leaves with more than two classes, or without ``n_records``;
        no data set of that size can have given these leaves.
    TimeoutError
        Nothing was found within the limits.

    Notes
    -----
    The attack uses leaves alone.  For random trees that is all there is; a structure that was learned says more.  Where
    each record belongs to one tree, the data set and the coins of its records are maximised together.

    Source
    ------
    The idea of a maximum-likelihood training set is of Ferry, Fukasawa, Pascal and Vidal (2024), and for noisy counts
    of Gorgé, Ferry, Gambs and Vidal (2025), who use constraint programming with one unknown per record and attribute;
    counts per kind of record make it a smaller, linear program.
    """
    seen = Observer.of(model, noise, max_records)
    if n_records is not None:
        check_count(n_records, "n_records")
    if seen.noise.leaf == "label":
        if seen.cardinalities[-1] != 2:
            raise ValueError(f"label leaves can be inverted for two classes, not for {seen.cardinalities[-1]}")
        if n_records is None:
            raise ValueError("leaves that say labels do not bound the number of records: pass n_records")
    program = IntegerProgram(seen, check_prior(prior, len(seen.records)), n_records)
    limits = {"time_limit": float(time_limit)} | ({} if node_limit is None else {"node_limit": int(node_limit)})
    found = program.solve(**limits)
    if found.x is None:
        if found.status == 1:
            raise TimeoutError("no data set was found within the limits: raise time_limit or node_limit")
        raise ValueError(
            f"no data set of {shown(n_records)} records can have given these leaves ({found.message}): "
            "check n_records, and that noise and prior are those of this forest"
        )
    rng = np.random.default_rng(random_state)
    numbers = np.rint(found.x[: len(program.kinds)]).astype(np.int64)
    drawn = [rng.choice(kinds, size=n) for kinds, n in zip(program.kinds, numbers, strict=True) if n]
    records = seen.records[np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *drawn]))]
    gap = float(found.mip_gap) if found.mip_gap is not None else 0.0
    return Reconstruction(records, found.status == 0, gap, float(found.fun), len(program.kinds))


@dataclass(frozen=True)
class ReconstructionError:
    """How far a reconstructed data set is from the true one.

    Attributes
    ----------
    hamming : float
        Share of attributes, the class among them, that are wrong under the best matching of the two sets of records.
        A record without a partner, where the sets differ in size, counts as wrong throughout.
    perfect : float
        Share of the true records that were recovered in every attribute, each used once.
    """

    hamming: float
    perfect: float


def reconstruction_error(truth, guess) -> ReconstructionError:
    """Compare a reconstruction with the truth.

    Parameters
    ----------
    truth, guess : ndarray of int, shapes (n, n_features + 1) and (m, n_features + 1)
        Records, in any order.
    """
    truth = check_records(truth, None, "truth")
    if not len(truth):
        raise ValueError("truth holds no record: there is nothing to reconstruct")
    guess = check_records(guess, truth.shape[1], "guess")
    wrong = (truth[:, None] != guess[None]).mean(axis=2)
    matched = wrong[linear_sum_assignment(wrong)].sum() + abs(len(truth) - len(guess))
    both = Counter(map(tuple, truth.tolist())) & Counter(map(tuple, guess.tolist()))
    return ReconstructionError(float(matched / max(len(truth), len(guess))), both.total() / len(truth))


def medoid(population) -> np.ndarray:
    """The record of ``population`` (n, n_features + 1) with the least mean Hamming distance to all, the first of them.

    Repeated, it is what an attacker can say who saw no release at all.
    """
    population = check_records(population, None, "population")
    if not len(population):
        raise ValueError("population holds no record")
    agree = sum(np.bincount(column)[column] for column in population.T)
    return population[np.argmax(agree)].astype(np.uint8)


def marginal_draws(population, n: int, random_state=None) -> np.ndarray:
    """``n`` records whose attributes are drawn independently, each from its shares in ``population``; uint8."""
    population = check_records(population, None, "population")
    if not len(population):
        raise ValueError("population holds no record")
    rng = np.random.default_rng(random_state)
    return np.stack([rng.choice(column, size=check_count(n, "n")) for column in population.T], axis=1).astype(np.uint8)
