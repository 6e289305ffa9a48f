"""Kernels that are forked for the notebooks' tests end with the run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from tests import forked_kernel, not_run
from tests.patience import PATIENCE

pytestmark = pytest.mark.skipif(not forked_kernel.POSSIBLE, reason=not_run.FORK)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_no_kernel_outlives_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the run ends before the kernel of its last notebook: one process of 300 MB would stay for each."""
    door = tmp_path / "door"
    forked_kernel.install(tmp_path, {})
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv(forked_kernel.PLACE, str(door))
    command = [sys.executable, forked_kernel.__file__, "--serve", str(door), str(os.getpid())]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    manager = KernelManager(kernel_name=forked_kernel.NAME)
    try:
        manager.start_kernel(cwd=str(tmp_path))
        client = manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE)
        said: list[dict] = []
        client.execute_interactive("import os; print(os.getpid())", timeout=PATIENCE, output_hook=said.append)
        [kernel] = [int(each["content"]["text"]) for each in said if each["msg_type"] == "stream"]
        client.stop_channels()
        assert alive(kernel)
        server.terminate()
        assert server.wait(PATIENCE) == 0
        assert not alive(kernel)
    finally:
        server.terminate()  # ends the kernels that it forked
        manager.shutdown_kernel(now=True)
        try:
            server.wait(PATIENCE)
        finally:
            server.kill()
    last = time.monotonic() + PATIENCE
    while manager.is_alive():  # the command that stood for it, too
        assert time.monotonic() < last
        time.sleep(0.05)
