"""Run a command as on a machine with neither data nor network: ``python -m tests.offline make book``.

``DPFOREST_DATA`` is empty, the cache is a new folder, and the network is refused.  Where Linux lets us, the command has
a network of its own, in which there is loopback alone (kernels, Dask and the browser need it); elsewhere, each Python
program refuses to connect to anything else (``sitecustomize.py``), and that is said first.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
_UNSHARE = ("unshare", "--map-root-user", "--net")
_INSIDE = "--inside"
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1


def environment(cache: str) -> dict[str, str]:
    """What the command finds in its environment."""
    return {
        **os.environ,
        "DPFOREST_DATA": "",
        "DPFOREST_CACHE": cache,
        "PIP_NO_INDEX": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def can_be_apart() -> bool:
    """Whether a process can have a network of its own here."""
    if shutil.which(_UNSHARE[0]) is None:
        return False
    return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0


def loopback_up() -> None:
    """Switch on the only interface of a new network."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sH14s", b"lo", 0, b"")
        name, flags, rest = struct.unpack("16sH14s", fcntl.ioctl(any_socket, _GET_FLAGS, asked))
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14s", name, flags | _UP, rest))


def run(command: Sequence[str], *, apart: bool) -> int:
    """Run the command; return its exit code."""
    with tempfile.TemporaryDirectory(prefix="dpforest-no-cache-") as cache:
        found = environment(cache)
        if apart:
            command = [*_UNSHARE, sys.executable, str(HERE / "__main__.py"), _INSIDE, *command]
        else:
            print("offline: no network of its own can be had here, so that Python programs alone are refused it")
            found["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
        return subprocess.run(command, env=found, check=False).returncode


if __name__ == "__main__":
    if sys.argv[1:2] == [_INSIDE]:
        loopback_up()
        os.execvp(sys.argv[2], sys.argv[2:])
    sys.exit(run(sys.argv[1:], apart=can_be_apart()))
