"""Audit the peers in their own environment: fit them many times on neighbouring data, count, and write what came out.

Usage (`make audit-peers` builds the environment and calls this)::

    python tests/peers/audit_peers.py                 # every case; writes notebooks/record/peers.json
    python tests/peers/audit_peers.py --quick         # a twentieth of the fits; writes _build/peers-quick.json
    python tests/peers/audit_peers.py --only ID ...   # some cases, whose fits are kept for the next full run

The fits of a finished case are kept in _build/peers/ and not made again, unless its data, its settings, the seed or a
version changed, or --fresh is given.  The same seed gives the same counts, whatever the number of processes.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import math
import os
import platform
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np

# Not as a package `tests`: diffprivlib installs one of that name.  And dpforest comes from this checkout.
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import peer_learners as learners
from peer_cases import CASES, Case

from dpforest.audit.sampling.bounds import clopper_pearson, epsilon_lower, p_value

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RECORD = ROOT / "notebooks" / "record" / "peers.json"
BUILD = ROOT / "_build"
KEPT = BUILD / "peers"
CONFIDENCE = 0.95
SEED = 20261121
CHUNK = 25  # fits of one task


# --- statistics -------------------------------------------------------------------------------------------------------
def lower_bound(hits, n, other_hits, other_n, delta=0.0, confidence=CONFIDENCE) -> float:
    """Lower bound on epsilon, at a given delta: ``ln((p - delta) / q)`` with either end at half of the error."""
    if delta == 0:
        return epsilon_lower(hits, n, other_hits, other_n, confidence)
    end = 1 - (1 - confidence) / 2
    low, high = clopper_pearson(hits, n, end)[0], clopper_pearson(other_hits, other_n, end)[1]
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def p_of(hits, n, other_hits, other_n, claim, delta=0.0) -> float:
    """The smallest error at which :func:`lower_bound` exceeds the claim, one if there is none."""
    if delta == 0:
        return p_value(hits, n, other_hits, other_n, claim)
    low, high = math.log(1e-15), math.log1p(-1e-9)  # below, 1 - error / 2 is no longer a number below one
    if lower_bound(hits, n, other_hits, other_n, delta, 1 - math.exp(high)) <= claim:
        return 1.0
    while high - low > 1e-6:  # the bound grows with the error that is allowed
        middle = (low + high) / 2
        exceeds = lower_bound(hits, n, other_hits, other_n, delta, 1 - math.exp(middle)) > claim
        low, high = (low, middle) if exceeds else (middle, high)
    return math.exp(high)


def holm(p_values) -> list[float]:
    """Adjusted p-values: the alarms among them are jointly valid at the level they are compared with (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    adjusted, running = [0.0] * len(order), 0.0
    for rank, at in enumerate(order):
        running = max(running, min(1.0, (len(order) - rank) * p_values[at]))
        adjusted[at] = running
    return adjusted


# --- fits -------------------------------------------------------------------------------------------------------------
def fit_many(case: Case, side: str, seeds: list[int]) -> np.ndarray:
    """Rows of what is seen of fits, one for each seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a fit warns of is asked once, by the probe
        rows = [case.learner(getattr(case, side), seed, **case.settings) for seed in seeds]
    return np.array(rows, dtype=float)


def fit_named(id: str, side: str, seeds: list[int]) -> np.ndarray:
    """The same, of a case by name: functions of one event each do not travel between processes."""
    return fit_many(CASES[id], side, seeds)


def fit_pair(case: Case, n: int, seed: int, pool=None, tick=lambda made: None) -> dict[str, np.ndarray]:
    """Rows of ``n`` fits on either side of the pair, every fit with a seed of its own."""
    stream, rows = np.random.default_rng([seed, *case.id.encode()]), {}
    for side in ("one", "other"):
        seeds = stream.integers(2**31 - 1, size=n).tolist()
        parts, made = [seeds[at : at + CHUNK] for at in range(0, n, CHUNK)], []
        if pool is None:
            results = (fit_many(case, side, part) for part in parts)
        else:
            results = pool.map(fit_named, [case.id] * len(parts), [side] * len(parts), parts)
        for part in results:
            made.append(part)
            tick(len(part))
        rows[side] = np.concatenate(made)
    return rows


def count(case: Case, rows: dict[str, np.ndarray], seed: int) -> dict:
    """Counts of the event that was declared and, where wanted, of one that the auditor chooses on half of the fits."""
    one, other = case.happens(rows["one"]), case.happens(rows["other"])
    declared = {"event": case.event, "hits": [int(one.sum()), int(other.sum())], "n": [len(one), len(other)]}
    return {"declared": declared, "chosen": choose(case, rows, seed) if case.chosen else None}


def choose(case: Case, rows: dict[str, np.ndarray], seed: int) -> dict:
    """Let the auditor choose an event on some of the fits and test it on the others.

    The event that was declared is counted in all of them: what it is was not chosen from any.
    """
    from dpforest.audit.sampling.empirical import empirical

    half = len(rows["one"]) // 2
    served = {"one": 0, "other": 0}

    def sample(dataset, size, rng):
        """The fits that were made: the first half is chosen on, the other half tests."""
        side = "one" if tuple(dataset) == case.one else "other"
        if size < half:  # a look at whether the draws vary
            return case.view(rows[side][rng.integers(half, size=size)])
        start, served[side] = served[side], served[side] + size
        return case.view(rows[side][start : start + size])

    found = empirical(
        sample,
        (case.id, case.one, case.other),
        case.epsilon,
        n=half,
        confidence=CONFIDENCE,
        random_state=seed,
        relation=case.relation,
    )
    if set(served.values()) != {2 * half}:
        raise RuntimeError(f"{case.id}: every fit is to be used once, by halves; used: {served}")
    hits = list(found.hits if found.direction == "first" else found.hits[::-1])  # the likelier side first
    return {"event": found.event, "likelier": found.direction, "hits": hits, "n": [found.n] * 2}


# --- what is kept -----------------------------------------------------------------------------------------------------
def readable(value):
    """Settings as JSON knows them."""
    if isinstance(value, dict):
        return {key: readable(part) for key, part in value.items() if key != "probes"}
    return [readable(part) for part in value] if isinstance(value, tuple | list) else value


def described(case: Case) -> dict:
    return {
        "id": case.id,
        "title": case.title,
        "library": case.library,
        "learner": case.learner_name,
        "relation": case.relation,
        "settings": readable(case.settings),
        "claim": {"epsilon": case.epsilon, "delta": case.delta},
        "records": [len(case.one), len(case.other)],
        "pair": case.pair,
    }


def digest(*parts) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def keys_of(case: Case, n: int, seed: int, versions: dict) -> tuple[str, str]:
    """One changes with all that the fits depend on, the other also with all that the counts do."""
    fits = [case.id, case.learner.__name__, repr(case.one), repr(case.other), repr(case.settings), n, seed, versions]
    fits.append((HERE / "peer_learners.py").read_text(encoding="utf-8"))
    auditor = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "dpforest" / "audit").glob("*.py"))]
    counts = [(HERE / name).read_text(encoding="utf-8") for name in ("peer_cases.py", "audit_peers.py")]
    return digest(fits), digest(fits, counts, auditor if case.chosen else None)


def audit(
    case: Case, n: int, seed: int, versions: dict, fresh: bool = False, pool=None, tick=lambda made: None
) -> dict:
    """Fit, or take the fits that were kept; count, or take the counts that were kept."""
    fits_key, counts_key = keys_of(case, n, seed, versions)
    fits, counts = KEPT / f"{case.id}-{fits_key}.npz", KEPT / f"{case.id}-{counts_key}.json"
    if fresh or not fits.exists():
        rows = fit_pair(case, n, seed, pool, tick)
        known = json.dumps({"date": datetime.date.today().isoformat(), **learners.probe(case)})
        KEPT.mkdir(parents=True, exist_ok=True)
        part = fits.with_name(fits.name + ".part")
        with part.open("wb") as file:
            np.savez_compressed(file, known=np.array(known), **rows)
        part.replace(fits)
        counts.unlink(missing_ok=True)
    else:
        tick(2 * n)
    if not counts.exists():
        with np.load(fits) as kept:
            rows = {side: kept[side] for side in ("one", "other")}
            write(counts, {**described(case), **json.loads(str(kept["known"])), **count(case, rows, seed)})
    return json.loads(counts.read_text(encoding="utf-8"))


def judged(counts: dict, claim: dict) -> dict:
    """Counts with the bound they give, and how strongly they speak against the claim."""
    (hits, other_hits), (n, other_n) = counts["hits"], counts["n"]
    four = hits, n, other_hits, other_n
    bound = lower_bound(*four, claim["delta"])
    return {**counts, "bound": bound, "p_value": p_of(*four, claim["epsilon"], claim["delta"])}


def gathered(found: list[dict], versions: dict, seed: int) -> dict:
    """The record: all cases, with p-values adjusted for the number of events that were tested."""
    cases = [
        {**case, **{kind: case[kind] and judged(case[kind], case["claim"]) for kind in ("declared", "chosen")}}
        for case in found
    ]
    date = max(case.pop("date") for case in cases)
    tested = [case[kind] for case in cases for kind in ("declared", "chosen") if case[kind]]
    for event, value in zip(tested, holm([event["p_value"] for event in tested]), strict=True):
        event["holm"] = value
    return {
        "what": "audits of differentially private learners by sampling; see notebooks/peers.ipynb",
        "command": "make audit-peers",
        "date": date,
        "seed": seed,
        "confidence": CONFIDENCE,
        "python": platform.python_version(),
        "versions": versions,
        "cases": cases,
    }


def write(path: Path, content) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)


def checksum(path: Path) -> str:
    """What the notebook names the record by, so that its rendering is made again when the record changes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def asked(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Audit differentially private learners of other libraries.")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the fits; the record is not touched")
    parser.add_argument("--fresh", action="store_true", help="run finished cases again")
    parser.add_argument("--only", nargs="+", choices=list(CASES), metavar="ID", help="run these cases alone")
    parser.add_argument(
        "--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes; 0 for none; default: two"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="another seed than that of the record")
    parser.add_argument("--output", type=Path, help="where to write instead")
    return parser.parse_args(arguments)


def main(arguments=None) -> int:
    from tqdm import tqdm

    options = asked(arguments)
    versions = learners.versions()
    if missing := [name for name, version in versions.items() if version == "missing"]:
        print(f"not installed here: {', '.join(missing)}; run `make audit-peers`", file=sys.stderr)
        return 1
    wanted = [CASES[id] for id in CASES if id in (options.only or CASES)]
    sizes = {case.id: max(100, case.n // 20) if options.quick else case.n for case in wanted}
    found = []
    with (
        ProcessPoolExecutor(max_workers=options.workers) if options.workers else nullcontext() as pool,
        tqdm(total=2 * sum(sizes.values()), unit="fit") as bar,
    ):
        for case in wanted:
            bar.set_description(case.id)
            found.append(audit(case, sizes[case.id], options.seed, versions, options.fresh, pool, bar.update))
    content = gathered(found, versions, options.seed)
    report(content)
    if len(found) == len(CASES):
        output = options.output or (BUILD / "peers-quick.json" if options.quick else RECORD)
        write(output, content)
        print(f"written: {output.name}")
    return 0


def report(content: dict) -> None:
    """One line for each case."""
    for case in content["cases"]:
        events = [case[kind] for kind in ("declared", "chosen") if case[kind]]
        said = ["; ".join(f"{h} in {n}" for h, n in zip(e["hits"], e["n"], strict=True)) for e in events]
        bounds = [f"eps >= {e['bound']:.3f} (p {e['holm']:.1g}, {text})" for e, text in zip(events, said, strict=True)]
        print(f"{case['id']:34} claim {case['claim']['epsilon']:g}: {'  or, chosen, '.join(bounds)}")


if __name__ == "__main__":
    sys.exit(main())
