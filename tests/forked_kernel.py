"""Kernels for the notebooks' tests that start in a tenth of a second: each is forked from one process.

What every notebook imports takes a kernel of its own two seconds of a processor, forty-five times.  Here one process
imports it (``serve``), and waits.  The command that Jupyter starts as a kernel (``ask``) sends it the connection file,
the environment, the folder and its own standard streams, and stands for the kernel that is forked: it ends with it, is
interrupted for it, and where it is killed, the kernel is.  Notebooks that users and ``render.py`` run have kernels of
the usual kind.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module
from itertools import chain
from pathlib import Path

NAME = "forked"  # of the kernel, to Jupyter
POSSIBLE = hasattr(os, "fork")
PLACE = "DPFOREST_TEST_KERNELS"  # the socket, in the environment
_SOME = 1 << 16  # bytes that are read at a time
_PATIENCE = 900.0  # seconds: the imports take two, on a busy machine longer; `tests.patience` is not imported here


def install(folder: Path, environment: dict[str, str]) -> None:
    """Write the specification of the kernel ``NAME``, an ordinary one without fork, into a folder of Jupyter's path."""
    place = folder / "kernels" / NAME
    place.mkdir(parents=True)
    start = ["-S", "-E", str(Path(__file__).resolve())] if POSSIBLE else ["-m", "ipykernel_launcher", "-f"]
    said = {"argv": [sys.executable, *start, "{connection_file}"], "env": environment}
    (place / "kernel.json").write_text(json.dumps(said | {"display_name": NAME, "language": "python"}))


# -- the command -----------------------------------------------------------------------------------------------------


def ask(connection_file: str) -> int:
    """Ask for a kernel, and stand for it; returns its exit code."""
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(_PATIENCE)
        last = time.monotonic() + _PATIENCE
        while door.connect_ex(os.environ[PLACE]):  # it may be asked as soon as it is started
            if time.monotonic() > last:
                sys.exit(f"the process that forks kernels did not open {os.environ[PLACE]}")
            time.sleep(0.05)
        asked = {"file": connection_file, "folder": os.getcwd(), "environment": dict(os.environ)}
        socket.send_fds(door, [json.dumps(asked).encode() + b"\n"], [0, 1, 2])
        answers = door.makefile()
        kernel = int(answers.readline())
        door.settimeout(None)
        signal.signal(signal.SIGINT, lambda *_: os.kill(kernel, signal.SIGINT))
        return int(answers.readline() or 1)  # 1 where the process that forks is gone


# -- the process that is forked --------------------------------------------------------------------------------------


def serve(place: str, above: int) -> None:
    """Import what notebooks import, and fork a kernel for whoever asks, as long as the process ``above`` is there.

    No kernel is left behind: not where that process ends or ends this one.
    """
    door = socket.socket(socket.AF_UNIX)
    door.bind(place)
    door.listen()  # who asks now waits for the imports
    _get_ready()
    door.settimeout(0.1)
    running: dict[int, socket.socket] = {}
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    while os.getppid() == above and not told:
        try:
            caller, _ = door.accept()
        except TimeoutError:
            caller = None
        if caller is not None:
            _fork(door, caller, running)
        _tend(running)
    for kernel in running:
        os.kill(kernel, signal.SIGKILL)
        os.waitpid(kernel, 0)


def _get_ready() -> None:
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # as a kernel has it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in ("ipykernel.kernelapp", "matplotlib.pyplot", "pandas", "dpforest.audit"):
            import_module(module)
        import_module("pandas").set_option("display.max_columns", 20)  # which it sets where it is imported in a kernel
        for learner in chain.from_iterable(import_module("dpforest.registry").PAPERS.values()):
            getattr(import_module("dpforest"), learner)
        import_module("dpforest.counting.__main__").compile_ahead()  # what is compiled already is loaded
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)  # as in the tests: small arrays come and go by the million, hardly any of them in a cycle


def _fork(door: socket.socket, caller: socket.socket, running: dict[int, socket.socket]) -> None:
    caller.settimeout(_PATIENCE)
    said, streams, *_ = socket.recv_fds(caller, _SOME, 3)
    asked = json.loads(said + caller.makefile("rb").readline() if not said.endswith(b"\n") else said)
    kernel = os.fork()
    if kernel:
        for stream in streams:
            os.close(stream)
        caller.sendall(f"{kernel}\n".encode())
        running[kernel] = caller
        return
    door.close()
    for other in (caller, *running.values()):
        other.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    _become(asked)
    sys.exit()  # as a process of its own would: what was registered for the end is done


def _become(asked: dict) -> None:
    """Run a kernel in this process, as ``python -m ipykernel_launcher`` does."""
    os.setsid()
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"], MPLBACKEND="module://matplotlib_inline.backend_inline")
    os.environ.pop("JPY_PARENT_PID", None)  # the kernel's parent is not the process that Jupyter started
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.path[0] = ""
    sys.argv = ["ipykernel_launcher.py", "-f", asked["file"]]
    from ipykernel import kernelapp

    kernelapp.launch_new_instance()


def _tend(running: dict[int, socket.socket]) -> None:
    """Tell the callers of kernels that ended; end the kernels of callers that are gone."""
    for kernel, caller in list(running.items()):
        ended, status = os.waitpid(kernel, os.WNOHANG)
        if ended:
            with suppress(OSError):  # nobody asks any more
                caller.sendall(f"{os.waitstatus_to_exitcode(status) & 255}\n".encode())
            caller.close()
            del running[kernel]
            continue
        caller.setblocking(False)
        try:
            gone = not caller.recv(1)
        except BlockingIOError:
            gone = False
        except OSError:
            gone = True
        if gone:
            os.kill(kernel, signal.SIGKILL)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(ask(sys.argv[1]))
