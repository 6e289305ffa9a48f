"""Headless Firefox by WebDriver BiDi, which it speaks itself: a browser with an engine that is not Chromium's."""

from __future__ import annotations

import itertools
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import websocket

from tests.patience import PATIENCE

NAMES = ("firefox", "firefox-esr")


def installed() -> str | None:
    """The program, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Firefox:
    """One window.

    Parameters
    ----------
    folder : Path
        Where its profile is made.
    program : str
    """

    def __init__(self, folder: Path, program: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [program, "--headless", "--no-remote", "--profile", str(folder), f"--remote-debugging-port={port}"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._socket: websocket.WebSocket | None = None
        self._numbers, self._notes = itertools.count(1), list[dict[str, Any]]()
        try:
            self._socket = self._connected(f"ws://127.0.0.1:{port}/session")
            self._ask("session.new", capabilities={})
            self._ask("session.subscribe", events=["log.entryAdded"])
            self._window = self._ask("browsingContext.getTree")["contexts"][0]["context"]
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._process.kill()
        self._process.wait()

    def show(self, address: str, width: int) -> None:
        """Open a page at a width in CSS pixels, and wait until its equations are set."""
        self._ask("browsingContext.setViewport", context=self._window, viewport={"width": width, "height": 900})
        for url in ("about:blank", address):  # what the page before still asked for ends here, with errors of its own
            self._notes.clear()
            self._ask("browsingContext.navigate", context=self._window, url=url, wait="complete")
        self.run(
            "(window.MathJax && MathJax.startup ? MathJax.startup.promise : Promise.resolve())"
            ".then(() => document.fonts.ready)"
            ".then(() => new Promise((done) => requestAnimationFrame(() => done(''))))"
        )

    def run(self, script: str) -> Any:
        """What an expression of JavaScript, or the promise that it makes, comes to: a text, a number, or null."""
        target = {"context": self._window}
        found = self._ask("script.evaluate", expression=script, target=target, awaitPromise=True)
        if found["type"] != "success":
            raise AssertionError(found["exceptionDetails"]["text"])
        return found["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors of scripts since the page was opened, or this was asked for last."""
        found = [note["params"] for note in self._notes if note["method"] == "log.entryAdded"]
        self._notes.clear()
        return [str(entry["text"]) for entry in found if entry["level"] == "error"]

    def _connected(self, address: str) -> websocket.WebSocket:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return websocket.create_connection(address, timeout=PATIENCE, suppress_origin=True)
            except OSError:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == number:
                if answer["type"] == "error":
                    raise AssertionError(f"{method}: {answer['message']}")
                return dict(answer["result"])
            self._notes.append(answer)
