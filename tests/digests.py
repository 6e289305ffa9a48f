"""Digests of seeded fits, of what is saved of them, and of exact audits: what must be the same bits on every machine.

    python -m tests.digests             print them as JSON
    python -m tests.digests --store     and keep them in digests.json; say in CHANGELOG.md why they changed

``CODE_PATHS`` says how a machine is made to compute like another one; ``python -m tests.digests --under NAME COMMAND``
runs a command like that (``make test-elsewhere`` runs all tests under each).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

STORED = Path(__file__).with_name("digests.json")

#: Processors that this one can be made to look like, by the environment of a process: how many threads, what NumPy may
#: use, what Numba compiles for, whose kernels OpenBLAS takes, and which variants the C library picks.
CODE_PATHS: dict[str, dict[str, str]] = {
    "here": {"threads": "1"},
    "threads": {"threads": "2"},
    "old": {
        "threads": "1",
        "numpy": "X86_V2",
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_DISABLE_INTEL_SVML": "1",
        "OPENBLAS_CORETYPE": "Prescott",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-FMA,-FMA4,-AVX,-SSE4_1,-SSE4_2",
    },
    "avx2": {
        "threads": "1",
        "numpy": "X86_V3",
        "NUMBA_CPU_NAME": "haswell",
        "OPENBLAS_CORETYPE": "Haswell",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-FMA",
    },
}
#: What a processor must have to take a code path, by NumPy's name.
NEEDS = {"avx2": "AVX2"}


def can_take(name: str) -> bool:
    """Whether this processor has what the code path needs."""
    return name not in NEEDS or bool(__cpu_features__.get(NEEDS[name]))


def environment(name: str) -> dict[str, str]:
    """The environment of a process on that code path."""
    variables = dict(CODE_PATHS[name])
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), variables.pop("threads")
    )
    if level := variables.pop("numpy", None):
        # NumPy refuses names that it does not know, or that the processor does not have
        found = [feature for feature in __cpu_dispatch__ if __cpu_features__.get(feature)]
        disabled = [feature for feature in found if feature > level or not feature.startswith("X86_V")]
        variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(disabled)
    return {**os.environ, **threads, **variables}


def digest(*parts) -> str:
    """Sixteen hexadecimal digits of text, arrays and what JSON can say."""
    import numpy as np

    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype} {part.shape}".encode())
            found.update(part.tobytes() if part.dtype != object else repr(part.tolist()).encode())
        else:
            found.update((part if isinstance(part, str) else json.dumps(part)).encode())
    return found.hexdigest()[:16]


# -- the fits --------------------------------------------------------------------------------------------------------

RELATIONS = ("add-remove", "replace-one")


def each(**values) -> list[dict]:
    """Options varied one at a time."""
    return [{option: value} for option, several in values.items() for value in several]


def apart(*options, **others) -> list[dict]:
    """Options that need others beside them."""
    return [{"criterion": criterion, **others} for criterion in options]


TREES = {"n_estimators": 3, "max_depth": 3}
WITH_DELTA = {"selection": "exponential", "delta": 1e-4}
#: Learner, options of all its fits, what is varied in the proved variant, and what in the published one; None where
#: there is none.
LEARNERS: list[tuple[str, dict, list[dict], list[dict] | None]] = [
    ("EDPRFClassifier", TREES, [
        *each(
            selection=["exponential"], criterion=["gini-gain", "majority"], calibration=["sensitivity"],
            budget=["aligned-uniform", "harmonic", "uniform"], leaf=["label"], stop=["never"],
        ),
        *apart("normalised-gini", stop="never"), *apart("information-gain", stop="never", n_max=1000), WITH_DELTA,
    ], []),
    ("DiffPETsClassifier", TREES, [
        *each(
            sampling=["assignment", "poisson"], selection=["exponential"], leaf=["label"], stop=["never"],
            criterion=["majority"], shrinkage=[0.0],
        ),
        WITH_DELTA,
    ], []),
    ("DiffPETsRegressor", {**TREES, "n_bins": 16}, [
        *each(
            sampling=["assignment", "poisson"], selection=["exponential"], criterion=["sse", "mass-gap"],
            stop=["never"], shrinkage=[0.0],
        ),
        *apart("variance", "weighted-variance", stop="never"), WITH_DELTA,
    ], []),
    ("DiffPRFClassifier", TREES, [
        *each(
            sampling=["assignment", "poisson"], selection=["exponential"], criterion=["majority"], budget=["harmonic"],
            calibration=["sensitivity"], vote=["majority"], stop=["never", "count"],
        ),
        *apart("information-gain", stop="never", n_max=1000),
    ], each(criterion=["gini"])),
    ("DiffPRFsClassifier", {**TREES, "n_bins": 16}, each(
        sampling=["assignment", "poisson"], two_stage=[True], selection=["exponential"], criterion=["majority"],
        budget=["harmonic"], calibration=["sensitivity"], vote=["majority"], stop=["never"],
    ), []),
    ("PearsonTreeClassifier", {"max_depth": 3}, each(
        n_parts=[2], criterion=["signed-pearson", "gini"], selection=["exponential"], budget=["harmonic"],
        calibration=["sensitivity"], reuse=[False],
    ), []),
    ("RandomTreesClassifier", {"n_estimators": 3}, each(split=["multiway"], max_depth=[4], delta=[1e-4]), []),
    ("RandomTreesRegressor", {"n_estimators": 3}, each(split=["multiway"], max_depth=[4], delta=[1e-4]), []),
    ("DPAdaBoostClassifier", {"n_estimators": 3}, each(
        votes=["discrete"], weights=["logistic"], sampling=["assignment"], selection=["exponential"],
        criterion=["majority"], smoothing=[0.0], class_weight=[{"yes": 3}],
    ), []),
    ("DPsAdaBoostClassifier", {**TREES, "max_depth": 2, "max_features": 3}, each(
        votes=["discrete"], weights=["logistic"], sampling=["assignment"], selection=["exponential"],
        criterion=["gini"], stop=["candidate"],
    ), []),
    ("FunctionalMechanismRegressor", {}, each(
        fit_intercept=[False], repair=["ridge", "spectral", "none"], ridge=[0.0], clip=[False],
    ), each(fit_intercept=[True], repair=["shrink"])),
    ("FunctionalMechanismClassifier", {}, each(
        fit_intercept=[False], repair=["ridge", "spectral", "none"], ridge=[0.0],
    ), each(fit_intercept=[True], repair=["shrink"])),
    ("DiffLRRegressor", {}, each(
        split=["proportional"], fit_intercept=[False], repair=["ridge", "spectral", "none"], ridge=[0.0],
    ), each(fit_intercept=[True])),
    ("SulqID3Classifier", {"max_depth": 2, "n_bins": 3}, each(max_depth=[0]), []),
    ("PinqID3Classifier", {"max_depth": 2, "n_bins": 3}, [], each(composition=["sequential"])),
    ("DiffPID3Classifier", {"max_depth": 2, "n_bins": 3}, [
        *each(criterion=["majority"], selection=["exponential"]), *apart("information-gain", n_max=1000),
    ], each(criterion=["gini"])),
    ("DiffPC45Classifier", {"max_depth": 3}, each(
        criterion=["majority"], selection=["exponential"], prune=[False], confidence=[0.05],
    ), each(prune=[False])),
    ("DiffGenClassifier", {"n_bins": 8}, each(criterion=["majority"], selection=["exponential"]), []),
    ("DTDiffClassifier", {"n_bins": 8}, each(model_size=[1], selection=["exponential"]), []),
    ("SmoothForestClassifier", {"n_estimators": 3}, each(selection=["exponential"], max_depth=[2]), []),
    ("PrivaTreeClassifier", {}, each(max_depth=[2], leaf_share=[0.3], leaf_error=[0.2]), []),
    ("DiPriMeClassifier", {"n_estimators": 3}, each(max_depth=[2], median_share=[0.2], sampling=["all"]), []),
    ("DiPriMeRegressor", {"n_estimators": 3}, each(max_depth=[2], sampling=["all"]), []),
    ("SBDTClassifier", {"n_estimators": 4}, each(extra_estimators=[3], hessian_share=[0.5], init_share=[0.0]), []),
    ("AIMClassifier", {"n_bins": 8}, each(
        max_features=[1], rounds=[2], max_cells=[100], choose_share=[0.3], delta=[1e-4],
    ), []),
    ("DPEBMClassifier", {"n_estimators": 3}, each(max_leaves=[1], learning_rate=[1.0], max_bins=[8], delta=[1e-4]), []),
    ("DPEBMRegressor", {"n_estimators": 3}, each(max_leaves=[1], learning_rate=[1.0]), []),
    ("DPTRClassifier", {"n_estimators": 4}, [
        *each(update=["gradient", "averaging"], batch_size=[2], max_depth=[2], learning_rate=[1.0], delta=[1e-4]),
        {"candidates": "iterative-hessian", "candidate_rounds": 2}, {"candidates": "iterative-hessian", "cyclic": True},
    ], []),
    ("PrivateBoostingRegressor", {}, each(n_estimators=[12], interactions=[0], n_rows=[1000], delta=[1e-4]), None),
    ("PrivateBoostingClassifier", {}, each(
        n_estimators=[12], selection=["exponential"], interactions=[0], grid=["even"], n_rows=[1000], delta=[1e-4],
    ), None),
]  # fmt: skip
#: Fits on other tables and at other budgets.
OTHERS: list[tuple[str, dict]] = [
    (
        "FunctionalMechanismRegressor",
        {"variant": "published", "repair": "redraw", "epsilon": 1000.0, "table": "narrow"},
    ),
    ("FunctionalMechanismClassifier", {"table": "three"}),
    ("FunctionalMechanismClassifier", {"table": "three", "variant": "published"}),
    ("FunctionalMechanismRegressor", {"table": "wide", "epsilon": 10.0}),
    ("DiffLRRegressor", {"table": "wide", "epsilon": 10.0}),
    ("EDPRFClassifier", {"table": "three", **TREES}),
    ("EDPRFClassifier", {"epsilon": "non-private", **TREES}),
    ("DPAdaBoostClassifier", {"table": "three", "n_estimators": 3}),
    ("DPAdaBoostClassifier", WITH_DELTA | {"n_estimators": 3}),
    ("DPsAdaBoostClassifier", WITH_DELTA | {"n_estimators": 3}),
    ("DPsAdaBoostClassifier", {"epsilon": "non-private", "n_estimators": 3}),
    ("PrivateBoostingClassifier", {"table": "three"}),
    ("PrivateBoostingClassifier", {"epsilon": "non-private"}),
    ("FunctionalMechanismRegressor", {"epsilon": "non-private"}),
]


def fits() -> Iterator[tuple[str, str, dict]]:
    """Every fit: its name, its learner, and its options."""
    for learner, usual, *variants in LEARNERS:
        for variant, varied in zip(("proved", "published"), variants, strict=True):
            for options in [] if varied is None else [*each(relation=RELATIONS), *varied]:
                options = {"variant": variant, **options}
                yield named(learner, options), learner, {**usual, **options}
    for learner, options in OTHERS:
        yield named(learner, options), learner, options


def named(learner: str, options: dict) -> str:
    return " ".join([learner, *(f"{option}={value}" for option, value in options.items())])


def mixed(n: int, seed: int):
    """Whole numbers from 0 to 2^31 - 1 in six columns, by a generator that is written out here."""
    import numpy as np

    state = np.arange(6 * n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return (state >> np.uint64(33)).astype(np.int64).reshape(6, n)


@cache
def table(kind: str, regression: bool):
    """A schema, a table of 300 records, and its labels or targets."""
    import numpy as np
    import pandas as pd

    from dpforest import Schema

    raw = mixed(300, 12)
    X = pd.DataFrame({"x": raw[0] % 1001 / 1000, "z": raw[1] % 61 - 20, "c": np.array(list("uvw"))[raw[2] % 3]})
    numeric, categorical = {"x": (0, 1), "z": (-20, 40)}, {"c": list("uvw")}
    if kind == "wide":  # as many coordinates as a census has
        values = [f"v{i}" for i in range(20)]
        for i in range(4):
            X[f"w{i}"] = np.array(values)[raw[2 + i] // 7 % 20]
            categorical[f"w{i}"] = values
    elif kind == "narrow":
        X, numeric, categorical = X[["x"]], {"x": (0, 1)}, {}
    height = 3 * (raw[0] % 1001) + 40 * (raw[1] % 61) + 1500 * (raw[2] % 3 == 1) + raw[3] % 900  # 0 to 7800
    if regression:
        return Schema(numeric=numeric, categorical=categorical, target=(0, 8)), X, height / 1000
    classes = ["a", "b", "z"] if kind == "three" else ["no", "yes"]
    labels = np.array(classes)[np.minimum(height * len(classes) // 7800, len(classes) - 1)]
    return Schema(numeric=numeric, categorical=categorical, classes=classes), X, labels


#: Ledgers and files have other words now; digests are of the old ones, so that they change with what is released alone.
REWORDED = {
    "no leaks: every read of the records was charged": "no leaks: nothing was read unpaid",
    "the most frequent class of each leaf": "the commonest class of each leaf",
}


def in_old_words(text: str) -> str:
    """The text of a ledger or a file, as it was first worded."""
    for now, then in REWORDED.items():
        text = text.replace(now, then)
    return text


def fit(learner: str, options: dict, n_jobs: int) -> str:
    """The digest of a fit: the released file, the ledger, and what the model and the file's model predict."""
    import dpforest

    options = {"epsilon": 4.0, **options}
    schema, X, y = table(options.pop("table", "mixed"), learner.endswith("Regressor"))
    model = getattr(dpforest, learner)(schema=schema, random_state=7, n_jobs=n_jobs, **options).fit(X, y)
    ledger = model.ledger_
    said = [str(model.linear_ if hasattr(model, "linear_") else learner), in_old_words(str(ledger))]
    said += [repr(ledger.paid(relation)) for relation in RELATIONS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path, seeded=True)
        saved = json.loads(path.read_text())
        saved["guarantee"].pop("version")  # a new version that fits the same models has the same digests
        released = json.dumps(saved)
        back = dpforest.load(path)
    answers = [which(X) for one in (model, back) for which in answering(one)]
    return digest(in_old_words(released), *said, *answers)


def answering(model) -> list[Callable]:
    names = ("predict", "predict_proba", "decision_function")
    return [getattr(model, name) for name in names if hasattr(model, name)]


# -- the audits ------------------------------------------------------------------------------------------------------


def audits() -> Iterator[tuple[str, Callable[[], str]]]:
    """Exact audits and laws, one of each kind."""
    import numpy as np

    from dpforest import (
        DiffPETsRegressor,
        EDPRFClassifier,
        FunctionalMechanismRegressor,
        RandomTreesClassifier,
        Schema,
        mechanisms,
    )
    from dpforest.audit import exact_audit, path_audit

    pair = Schema(categorical={"a": [0, 1], "b": [0, 1]}, classes=[0, 1])
    line = Schema(numeric={"x": (0, 1)}, target=(0, 1))
    small = {"n_estimators": 1, "schema": pair, "epsilon": 0.9}

    def exact(model, **how):
        audit = exact_audit(model, **how)
        return digest(repr(audit.epsilon), repr(audit.pair), repr(audit.output), repr(audit.probabilities))

    def path(model, **how):
        audit = path_audit(model, **how)
        return digest(repr(audit.epsilon), repr(audit.pair), repr(audit.output), repr(audit.probabilities))

    for relation in RELATIONS:
        one = EDPRFClassifier(max_depth=1, leaf="label", relation=relation, **small)
        yield f"audit of labels {relation}", lambda one=one: exact(one, n_max=2)
        counts = EDPRFClassifier(max_depth=1, selection="exponential", relation=relation, **small)
        yield f"audit of counts {relation}", lambda counts=counts: exact(counts, n_max=2)
        yield f"audit by paths {relation}", lambda one=one: path(one, n_max=5)
    trees = RandomTreesClassifier(max_depth=1, **small)
    yield "audit of random trees", lambda: exact(trees, n_max=2)
    between = DiffPETsRegressor(schema=line, n_estimators=1, max_depth=1, n_bins=2, max_features="all", epsilon=0.9)
    yield "audit of a regression tree", lambda: exact(between, n_max=2)
    sums = FunctionalMechanismRegressor(schema=line, n_bins=2, epsilon=0.9)
    yield "audit of sums", lambda: exact(sums, n_max=2)
    scores = (mixed(50, 5) % 1001).T / 37
    for mechanism in ("exponential", "permute_and_flip"):
        law = getattr(mechanisms, f"{mechanism}_law")
        yield f"law {mechanism}", lambda law=law: digest(*(law(scores, rate) for rate in (0.01, 0.3, 2.0)))
    k = np.arange(-40, 41)
    yield "law two-sided geometric", lambda: digest(*(mechanisms.two_sided_geometric_law(k, r) for r in (0.01, 0.7)))
    uniform = (mixed(500, 6)[0] + 0.5) / 2**31
    yield "textbook Laplace", lambda: digest(mechanisms.laplace_textbook(np.arange(500) % 9, 0.7, uniform))


def privacy() -> str:
    """Compositions over a range of budgets."""
    from dpforest import privacy

    found = []
    for step in range(1, 400):
        epsilon = step / 37
        found += [privacy.equal_split(epsilon, 3), *(privacy.poisson_bootstrap(epsilon, r) for r in RELATIONS)]
        found += [float(privacy.bootstrap(epsilon, 2 * epsilon, r)) for r in RELATIONS]
    return digest(repr([float(loss) for loss in found]))


# -- the program -----------------------------------------------------------------------------------------------------


def digests(n_jobs: int = 1) -> dict[str, str]:
    """The digest of each fit and audit, by name."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, learner, options in fits():
            found[name] = fit(learner, options, n_jobs)
        for name, audit in audits():
            found[name] = audit()
        found["compositions"] = privacy()
    return found


def witness() -> dict[str, str]:
    """Digests of what may differ between code paths: by these a test sees that a child took another one."""
    import numpy as np

    x = mixed(5000, 3) / 2**31
    return {
        "np.exp": digest(np.exp(-20 * x)),
        "np.log": digest(np.log(x + 1e-9)),
        "BLAS": digest(x @ x.T),
        "math": digest(repr([f(v) for v in x[0].tolist() for f in (math.exp, math.sin, math.tan, math.atan)])),
    }


def run(name: str, what: str = "digests") -> dict[str, str]:
    """What a child process on that code path finds: the ``"digests"``, or the ``"witness"``."""
    command = [sys.executable, "-m", "tests.digests", "--print", what, "--n-jobs", CODE_PATHS[name]["threads"]]
    done = subprocess.run(
        command, env=environment(name), cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the fits fail on the code path {name!r}:\n{done.stderr}")
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--print", choices=["digests", "witness"], default="digests")
    parser.add_argument("--store", action="store_true", help=f"keep the digests in {STORED.name}")
    parser.add_argument(
        "--under", nargs=argparse.REMAINDER, metavar="NAME COMMAND", help="run a command on a code path"
    )
    given = parser.parse_args()
    if given.under:
        name, *command = given.under
        return subprocess.run(command, env=environment(name), check=False).returncode
    found = json.dumps(witness() if given.print == "witness" else digests(given.n_jobs), indent=0)
    if given.store:
        STORED.write_text(found + "\n")
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
