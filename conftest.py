"""What every test run shares: where data lies, which notebooks cannot run without it, how outputs are compared.

``pytest --nbval``, in whatever folder and with whatever files, finds here all that it needs.
"""

from __future__ import annotations

import gc
import math
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nbval.plugin import IPyNbCell

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent / "notebooks"))
import compare
import render
from hypothesis import HealthCheck, settings

from tests import declared, forked_kernel, not_run, slow
from tests.declared import pytest_runtest_call, pytest_runtest_setup  # noqa: F401 - hooks
from tests.not_run import pytest_sessionstart, pytest_terminal_summary  # noqa: F401 - hooks
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parent
pytest_plugins = ["tests.passed"]

# Two workers share the cores: none of their libraries starts threads of its own.
for word in (*render.ONE_THREAD, "NUMBA_NUM_THREADS"):
    os.environ.setdefault(word, "1")

# Kernels and other processes inherit these, and start in other folders; the library need not be installed.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
os.environ.pop("MPLBACKEND", None)  # kernels show figures only with their own back end
if folder := os.environ.get("DPFOREST_DATA"):
    os.environ["DPFOREST_DATA"] = str(Path(folder).resolve())

# A machine that does much else is no reason for a test to fail: examples may take as long as they need.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

#: Full-size renderings, runs that were broken off, and what `make paper` fills in: no test of these runs.
collect_ignore_glob = [
    "notebooks/record*",
    "notebooks/rendered*",
    "tools/paper_templates*",
    "_build*",
    "*/.ipynb_checkpoints*",
    "*.part.ipynb",
    "*.failed.ipynb",
]

#: What takes longest is handed out first, so that the workers end together (`make test` prints what takes long).
LONGEST = (
    "comparison.ipynb",
    "report.ipynb",
    "test_book.py",
    "test_run_here.py",
    "test_walks.py",
    "diffpets_experiments.ipynb",
    "test_same_everywhere.py",
    "test_render.py",
    "test_engine_spark.py",
    "test_engine_dask.py",
    "test_scattered.py",
    "test_contract.py",
    "likelihood_ratios.ipynb",
    "test_plain_commands.py",
    "boosting_experiments.ipynb",
    "concentrated.ipynb",
    "test_evaluation.py",
    "test_formal.py",
    "boosting.ipynb",
    "dp_ebm.ipynb",
    "test_zoo.py",
    "test_private_boosting.py",
    "test_audit_greybox.py",
    "test_counting.py",
    "attacks.ipynb",
    "test_engine_parquet.py",
    "test_wheel.py",
    "test_audit_report.py",
    "test_audit_empirical.py",
    "zoo.ipynb",
    "pearson_experiments.ipynb",
    "test_scaling_claims.py",
    "test_bits.py",
    "test_audit_foreign.py",
    "test_scores.py",
    "auditing.ipynb",
    "pearson_tree.ipynb",
    "bytes_to_file.ipynb",
    "scaling.ipynb",
    "audit.ipynb",
    "test_dp_tr.py",
    "test_s_bdt.py",
    "test_aim.py",
    "test_dp_ebm.py",
    "test_diprime.py",
    "test_edprf.py",
    "test_doors.py",
    "test_audit_delta.py",
    "test_bench.py",
    "test_interactive.py",
    "test_pictures.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """Keep files in one process; give ``--nbval`` its sanitizer and kernels, unless the command line names others."""
    option = config.option
    if getattr(option, "dist", "") == "load":  # as `-n` has it: a notebook's cells would be given to several kernels
        option.dist, option.loadscopereorder = "loadfile", False
    if not (option.nbval or option.nbval_lax):
        return
    option.nbval_sanitize_with = option.nbval_sanitize_with or str(ROOT / "tests" / "nbval-sanitize.cfg")
    option.nbval_kernel_startup_timeout = max(option.nbval_kernel_startup_timeout, 600)  # a busy machine takes long
    if option.nbval_kernel_name or option.nbval_current_env:
        return
    if forked_kernel.PLACE not in os.environ:  # workers, and runs that a test starts, have it from the run above them
        folder = Path(tempfile.mkdtemp(prefix="dpforest-kernels-"))
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        # a fit that is long on a busy machine would write its progress among the outputs
        forked_kernel.install(folder, {"TQDM_DISABLE": "1"})
        os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, (str(folder), os.environ.get("JUPYTER_PATH"))))
        os.environ[forked_kernel.PLACE] = str(folder / "door")
        if forked_kernel.POSSIBLE:
            command = [sys.executable, forked_kernel.__file__, "--serve", str(folder / "door"), str(os.getpid())]
            quiet = {**os.environ, "TQDM_DISABLE": "1"}  # read where tqdm is imported
            server = subprocess.Popen(command, env=quiet, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            config.add_cleanup(server.wait)  # the last one is called first
            config.add_cleanup(server.terminate)
    option.nbval_kernel_name = forked_kernel.NAME


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One more than there are processors: some tests wait for engines, browsers and processes of their own."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else 1 + (os.cpu_count() or 1)


@cache
def missing_data(notebook: Path) -> str:
    """Name the first data set that a notebook needs and that cannot be had here ('' where there is none)."""
    return next((name for name in declared.data_of(notebook) if not declared.available(name)), "")


def compared_as_numbers(cell: IPyNbCell) -> Callable[[list, list], bool]:
    """Return what nbval asks whether a cell's outputs are those stored; its own comparison is byte for byte."""

    def same(found: list, stored: list) -> bool:
        cell.comparison_traceback = compare.differences(stored, found)
        return not cell.comparison_traceback

    return same


@pytest.fixture(scope="session", autouse=True)
def quiet() -> None:
    """On a busy machine, or before anything is compiled, every fit is long: a test that wants its progress says so."""
    from dpforest.learners import progress

    progress.SECONDS = math.inf


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium; where none is installed the test is skipped, but not in CI."""
    pdf = SimpleNamespace(**runpy.run_path(str(ROOT / "book" / "pdf.py")))
    try:
        driver = pdf.browser(tmp_path_factory.mktemp("chromium"), minutes=PATIENCE // 60, log=True)
    except pdf.PdfError:
        if "CI" in os.environ:
            pytest.fail("CI needs chromium and chromedriver on its PATH")
        pytest.skip(not_run.BROWSER)
    yield driver
    driver.quit()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Collecting the tests makes millions of objects that all stay: garbage is looked for later, and not among them.

    And less often: small arrays come and go by the million, hardly any of them in a cycle.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, compare notebooks as numbers, skip those without their data, and begin with what is long."""
    for item in items:
        if slow.name(item.nodeid) in slow.listed():
            item.add_marker(pytest.mark.slow)
        if isinstance(item, IPyNbCell):
            item.compare_outputs = compared_as_numbers(item)
        if item.path.suffix == ".ipynb" and (name := missing_data(item.path)):
            item.add_marker(pytest.mark.skip(reason=not_run.data(name)))
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))
