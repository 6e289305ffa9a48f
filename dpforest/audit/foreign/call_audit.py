"""Replay on a neighbour: what the calls of two recordings lose, and what is wrong with them."""

from __future__ import annotations

import copy
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpforest.audit.foreign.calls import UNJUDGED, CallFinding, NoiseCall, NoiseSource, named
from dpforest.audit.foreign.recording import Recording, record_calls
from dpforest.audit.foreign.tracing import plain
from dpforest.messages import shown
from dpforest.privacy import check_delta, check_epsilon, claim, epsilon_of
from dpforest.privacy.gaussian import gaussian_epsilon

__all__ = ["CallAudit", "audit_calls"]

_SLACK = 1e-9  # relative, of a comparison of sums of doubles
_ROUNDING = 4 * 2.0**-53  # relative, of a value that was computed by a few operations


@dataclass(frozen=True)
class CallAudit:
    """The outcome of an audit of foreign code by record and replay.

    Attributes
    ----------
    claim, delta : float
        What the code promises.
    epsilon : float
        What the calls lose together on this pair: the sum of the losses of Laplace and geometric noise and of choices;
        with Gaussian noise, the exact epsilon of all of it at ``delta`` is added, infinite where ``delta`` is 0.  With
        a ``delta`` the epsilon of all rhos, where that is less: a loss c has a rho of half its square.
    rho : float
        The sum of the rhos of Gaussian calls.
    calls : list of (NoiseCall, float)
        The calls of the run with the largest epsilon, and the loss of each; a rho for a Gaussian one.
    findings : list of CallFinding
        Each kind at each place once.
    n_runs : int
        Runs that were replayed.
    """

    claim: float
    delta: float
    epsilon: float
    rho: float
    calls: list[tuple[NoiseCall, float]]
    findings: list[CallFinding]
    n_runs: int

    @property
    def violated(self) -> bool:
        """Whether something was found; what could not be judged does not count."""
        return any(finding.kind not in UNJUDGED for finding in self.findings)

    @property
    def complete(self) -> bool:
        """Whether all that was drawn could be judged."""
        return not any(finding.kind in UNJUDGED for finding in self.findings)

    def __str__(self) -> str:
        most = f"{self.epsilon:.6g}{f' at delta = {self.delta:g}' if self.delta else ''}"
        lines = [f"{len(self.calls)} calls, epsilon = {most}, claim {self.claim:g}, in {self.n_runs} runs"]
        lines += [f"{call}: {call.law}, loss {loss:.6g}" for call, loss in self.calls if loss]
        return "\n".join([*lines, *(map(str, self.findings) if self.findings else ["no findings"])])


def audit_calls(
    run: Callable[[Any], Any],
    one: Any,
    other: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    sources: Sequence[NoiseSource] = (),
    released: Callable[[Any], Any] | None = None,
    random_state: int = 0,
    n_runs: int = 1,
) -> CallAudit:
    """Record and replay: run foreign code on a table, replay its answers on a neighbour, and compare the calls.

    Parameters
    ----------
    run : callable
        From a table to a result: it fits another library's learner, or asks its mechanisms.
    one, other : objects
        Two tables, neighbours under the relation of the claim.
    epsilon, delta : float
        The claim.
    sources : sequence of NoiseSource
        See :func:`record_calls`.
    released : callable or None
        From a result to what is released of it, in numbers, text, lists, mappings and arrays; None: the result.
    random_state : int
        Seed; the same on both tables.
    n_runs : int
        How many runs, each with draws of its own, for other answers lead down other paths.

    Returns
    -------
    CallAudit
        Each call's loss, their sum against the claim, and all findings with file and line.

    Notes
    -----
    A finding is an error of a program; it need not be a violation of privacy, for what a call answers may not be
    released.  No finding is no proof: one pair and a few paths were looked at.  The recorder does not see

    * draws that are made outside NumPy and ``random`` unless they are named, or by compiled code;
    * generators that were made before the run, unless made by :meth:`Recording.generator`;
    * what noise was added to once it was converted, rounded, or put into another array: a finding ``"unseen"`` says so;
    * other threads' and processes' order of calls, or what they draw;
    * whether the draws follow the law they are named by, and floating-point effects;
    * parallel composition: the losses of all calls on one pair are added up, which is right, since in a part that the
      differing record does not reach no value changes.

    Examples
    --------
    >>> import numpy as np
    >>> from dpforest.audit import audit_calls
    >>> def total(rows):  # of numbers up to 10, with noise for numbers up to 1
    ...     return sum(rows) + np.random.default_rng().laplace(0, 1.0)
    >>> audit = audit_calls(total, [3, 10], [3], epsilon=1.0)
    >>> audit.epsilon, audit.violated
    (10.0, True)
    """
    check_epsilon(epsilon), check_delta(delta)
    if n_runs < 1:
        raise ValueError(f"n_runs must be at least 1, not {shown(n_runs)}")
    findings: dict[tuple[str, str], CallFinding] = {}
    worst: tuple[float, float, list[tuple[NoiseCall, float]]] = (-1.0, 0.0, [])
    for seed in range(random_state, random_state + n_runs):
        outcomes: list[tuple[Any, str, str]] = []
        recordings: list[Recording] = []
        for table in (one, other):
            with record_calls(sources, random_state=seed, frozen=recordings[0] if recordings else None) as recording:
                recordings.append(recording)
                outcomes.append(_outcome(run, table, released))
        if outcomes[0][1] and outcomes[0][1:] == outcomes[1][1:]:
            raise RuntimeError(f"both runs end with {outcomes[0][1]} at {outcomes[0][2]}: there is nothing to compare")
        found, losses = _compared(*recordings)
        quiet = any(each.kind in UNJUDGED | {"control-flow"} for each in found)
        found += _of_outcomes(outcomes[0], outcomes[1], quiet, run)
        rho = math.fsum(loss for call, loss in losses if call.law == "gaussian")
        total = _together([loss for call, loss in losses if call.law != "gaussian"], rho, delta)
        if total > epsilon * (1 + _SLACK):
            largest = max(losses, key=lambda each: each[1])[0]
            found.append(CallFinding("loss", largest.where, f"the calls lose {total:.6g}, and {epsilon:g} is claimed"))
        if total > worst[0]:
            worst = total, rho, losses
        for each in found:
            findings.setdefault((each.kind, each.where), each)
    return CallAudit(epsilon, delta, worst[0], worst[1], worst[2], [*findings.values()], n_runs)


def _outcome(run: Callable[[Any], Any], table: Any, released: Callable[[Any], Any] | None) -> tuple[Any, str, str]:
    """What a run returns, or the error with which it ends and the place of it."""
    try:
        result = run(table)
        return copy.deepcopy(released(result) if released else result), "", ""
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return None, type(error).__name__, named(last.filename, last.lineno or 0)


def _of_outcomes(one: tuple[Any, str, str], other: tuple[Any, str, str], quiet: bool, run: Any) -> list[CallFinding]:
    if one[1] != other[1]:
        failed = one if one[1] else other
        against = other[1] or "none" if one[1] else "none"
        return [CallFinding("error", failed[2], f"{failed[1]} on one side, {against} on the other")]
    if quiet:
        return []
    code = getattr(run, "__code__", None)
    where = named(code.co_filename, code.co_firstlineno) if code else "the run"
    path = _difference(one[0], other[0], "the result")
    return [CallFinding("output", where, f"{path}, although all answers were the same")] if path else []


def _difference(one: Any, other: Any, path: str) -> str:
    """Where two results differ, '' where they do not."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if [*one] != [*other]:
            return f"{path} has other members"
        return next(filter(None, (_difference(one[key], other[key], f"{path}[{key!r}]") for key in one)), "")
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        if len(one) != len(other):
            return f"{path} has another length: {len(one)} and {len(other)}"
        pairs = enumerate(zip(one, other, strict=True))
        return next(filter(None, (_difference(a, b, f"{path}[{at}]") for at, (a, b) in pairs)), "")
    first, second = np.asarray(plain(one)), np.asarray(plain(other))
    if first.shape != second.shape:
        return f"{path} has another shape: {first.shape} and {second.shape}"
    numbers = first.dtype.kind in "fc" and second.dtype.kind in "fc"
    if np.array_equal(first, second, equal_nan=numbers):
        return ""
    said = f": {first[()]} and {second[()]}" if first.ndim == 0 and first.dtype.kind in "biuf" else ""
    return f"{path} differs{said}"


def _compared(one: Recording, other: Recording) -> tuple[list[CallFinding], list[tuple[NoiseCall, float]]]:
    """Findings of two recordings, and each call's loss."""
    found, losses = [], []
    if other.diverged:
        found.append(other.diverged)
    elif len(other.calls) < len(one.calls):
        left = one.calls[len(other.calls)]
        found.append(CallFinding("control-flow", left.where, f"{left.name} is called here, and not on the other side"))
    for first, second in zip(one.calls, other.calls, strict=False):
        if (first.name, first.where) != (second.name, second.where):
            break
        if first.law != second.law or not _used_alike(first, second):
            if not other.diverged:
                text = f"noise of {first.name} is added here otherwise than on the other side"
                found.append(CallFinding("control-flow", first.where, text))
            break
        if first.law == "coin":
            if first.arguments != second.arguments:
                text = f"{first.name} took ({first.arguments}) on one side and ({second.arguments}) on the other"
                found.append(CallFinding("coin", first.where, text))
            continue
        if first.shape != second.shape:
            break
        if first.unseen or second.unseen:
            found.append(
                CallFinding("unseen", first.where, f"what the noise of {first.name} was added to is not known")
            )
            continue
        loss, more = _loss(first, second)
        found += more
        losses.append((second, loss))
    return found, losses


def _used_alike(one: NoiseCall, other: NoiseCall) -> bool:
    """Whether the same draws were added, in the same order."""
    pairs = zip(one.uses, other.uses, strict=False)
    return len(one.uses) == len(other.uses) and all(np.array_equal(a.index, b.index) for a, b in pairs)


def _loss(one: NoiseCall, other: NoiseCall) -> tuple[float, list[CallFinding]]:
    """What one call loses, a rho for a Gaussian one, and what is wrong with it."""
    found: list[CallFinding] = []
    if one.law == "choice":
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.abs(np.log(one.value) - np.log(other.value))
        return float(np.nan_to_num(ratios, nan=0.0, posinf=np.inf).max(initial=0.0)), found
    changes, reused = _changes(one, other)
    if reused:
        found.append(CallFinding("reuse", one.where, f"noise of {one.name} was added to several values"))
        return math.inf, found
    factors = [(first.factor, second.factor) for first, second in zip(one.uses, other.uses, strict=True)]
    if not all(np.array_equal(first, second) for first, second in factors):
        text = f"noise of {one.name} is multiplied by other numbers than on the other side"
        return math.inf, [CallFinding("scale", one.where, text)]
    if not np.array_equal(one.scale, other.scale):
        text = f"the scale of {one.name} is {_short(one.scale)} on one side and {_short(other.scale)} on the other"
        found.append(CallFinding("scale", one.where, text))
        return math.inf, found
    size = float(np.sqrt(np.sum(changes**2)) if one.law == "gaussian" else np.sum(np.abs(changes)))
    if one.sensitivity is not None and size > one.sensitivity * (1 + _SLACK):
        text = f"the value of {one.name} changed by {size:.6g}, and {one.sensitivity:.6g} is declared"
        found.append(CallFinding("sensitivity", one.where, text))
    if size == 0:
        return 0.0, found
    if one.law.endswith("one-sided"):
        return math.inf, found
    with np.errstate(divide="ignore"):
        ratios = np.where(changes == 0, 0.0, np.abs(changes) / np.broadcast_to(one.scale, changes.shape))
    return float(np.sum(ratios**2) / 2 if one.law == "gaussian" else np.sum(ratios)), found


def _changes(one: NoiseCall, other: NoiseCall) -> tuple[np.ndarray, bool]:
    """By how much the value under each draw changes; whether one draw is added to values that change differently."""
    changes = np.asarray(one.value, float) - np.asarray(other.value, float)
    if not one.uses:
        return changes, False
    flat = changes.reshape(-1).copy()
    seen: dict[int, tuple[float, float]] = {}  # the change, and what rounding may have made of it
    for first, second in zip(one.uses, other.uses, strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            differs = np.where(first.value == second.value, 0.0, (first.value - second.value) / first.factor)
            error = _ROUNDING * np.maximum(np.abs(first.value), np.abs(second.value)) / np.abs(first.factor)
        rows = (each.reshape(-1).tolist() for each in (first.index, differs, error))
        for at, change, rounding in zip(*rows, strict=True):
            before, most = seen.setdefault(at, (change, rounding))
            if change != before and not abs(change - before) <= rounding + most:
                return changes, True
            if abs(change) > abs(before):
                seen[at] = change, rounding
    for at, (change, _) in seen.items():
        flat[at] += change
    return flat.reshape(changes.shape), False


def _short(scale: Any) -> str:
    return f"{float(scale):.6g}" if np.ndim(scale) == 0 else "an array"


@claim("lem-range-concentrated")
def _together(losses: list[float], rho: float, delta: float) -> float:
    """The epsilon at delta of calls with these losses, and of Gaussian ones whose rhos add up to ``rho``, at most.

    Many small losses add up to less at a delta than their sum, as the accountants of other libraries know.
    """
    added = math.fsum(losses) + gaussian_epsilon(math.sqrt(2 * rho), delta)
    rhos = rho + math.fsum(loss * loss / 2 for loss in losses)
    return min(added, epsilon_of(rhos, delta)) if delta else added
