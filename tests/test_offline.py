"""A command without data and without network: what `.ci/run` does twice must be refused what it says."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from tests import declared, not_run

offline = import_module("tests.offline.__main__")

TRIES = """
import os, socket, sys, urllib.request
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
server.close()
assert os.environ["DPFOREST_DATA"] == "" and os.listdir(os.environ["DPFOREST_CACHE"]) == []
for refused in (
    lambda: socket.create_connection(("192.0.2.1", 80), timeout=5),
    lambda: urllib.request.urlopen("https://archive.ics.uci.edu", timeout=5),
):
    try:
        refused()
    except TimeoutError:
        sys.exit("the network was not refused")
    except OSError as error:
        print(error)
    else:
        sys.exit("the network answered")
sys.exit(7)
"""


@pytest.mark.parametrize("apart", [True, False], ids=["network of its own", "refused in Python"])
def test_the_network_is_refused_and_loopback_is_not(apart: bool, capfd: pytest.CaptureFixture[str]) -> None:
    if apart and not offline.can_be_apart():
        pytest.skip(not_run.needs("a network namespace", "allow `unshare --map-root-user --net`"))
    assert offline.run([sys.executable, "-c", TRIES], apart=apart) == 7, capfd.readouterr()
    said = capfd.readouterr().out
    assert ("Network is unreachable" if apart else "the network is refused: 192.0.2.1") in said


def test_both_legs_are_run() -> None:
    """Without data: the book, shown from the record, and all tests.  With data: what reads data, as the scan says."""
    steps = (declared.ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    places = [
        next(at for at, line in enumerate(steps) if line.startswith(words))
        for words in ("make spark", "offline make book", "offline make test", "make book", "make recheck", "files=")
    ]
    assert places == sorted(places)
