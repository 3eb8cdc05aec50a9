"""A headless Chromium that tests speak to over pipes, with a profile of its own, ended by its process number.

Chromium's DevTools protocol: a JSON document and a NUL each way, on descriptors 3 and 4 (Chromium 150).
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 60.0
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


def program() -> str | None:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    return None


def needs_chromium() -> None:
    if program() is None:
        pytest.skip("there is no Chromium (Debian: apt-get install chromium)")


class Chromium:
    def __init__(self, profile: Path) -> None:
        found = program()
        assert found is not None
        profile.mkdir(parents=True, exist_ok=True)
        to_it, self._write = os.pipe()
        self._read, from_it = os.pipe()
        self._child = subprocess.Popen(
            [
                "/bin/bash", "-c", f'exec "$@" 3<&{to_it} 4>&{from_it}', "-",
                found, *FLAGS, f"--user-data-dir={profile}", "about:blank",
            ],
            env={
                "HOME": str(profile),
                "PATH": os.environ.get("PATH", ""),
                "TZ": "Europe/Berlin",
                "LANG": "C.UTF-8",
            },
            pass_fds=(to_it, from_it),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        os.close(to_it)
        os.close(from_it)
        self._held = b""
        self._count = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        try:
            os.killpg(self._child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._child.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """The answer; what happens meanwhile is kept in `events`."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_S
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            piece = os.read(self._read, 1 << 20) if ready else b""
            assert piece, "Chromium does not answer"
            self._held += piece
        one, _, self._held = self._held.partition(b"\0")
        found: dict[str, Any] = json.loads(one)
        return found


class Page:
    """One page, opened from a file. width, height: of what is seen, in its own pixels"""

    def __init__(
        self, chromium: Chromium, path: Path, *, width: int = 1280, height: int = 900, scheme: str = "light"
    ) -> None:
        self.chromium = chromium
        target = chromium.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = chromium.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.url = path.as_uri()
        self.call("Page.navigate", url=self.url)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.chromium.call(method, self.session, **parameters)

    def close(self) -> None:
        self.chromium.call("Target.closeTarget", targetId=self.target)

    def resize(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not self.run(condition):
            assert time.monotonic() < end, condition

    def press(self, key: str, times: int = 1) -> None:
        """A key as a person presses it: a name like `Tab`, or one character."""
        codes = {
            "Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36,
            "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
        }  # fmt: skip
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = codes.get(key, ord(key.upper()[0]))
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                said = {"text": text} if text and kind == "keyDown" else {}
                self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **said)

    def type(self, words: str) -> None:
        self.call("Input.insertText", text=words)

    def click(self, selector: str) -> None:
        """A press of the mouse in the middle of what it names."""
        x, y = self.run(
            f"(() => {{ const it = document.querySelector({json.dumps(selector)});"
            " it.scrollIntoView({block: 'center', behavior: 'instant'});"
            " const box = it.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def shoot(self, path: Path, *, whole: bool = True) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    # ------------------------------------------------------------------------ what happened

    def _of(self, *methods: str) -> list[dict[str, Any]]:
        return [
            event["params"]
            for event in self.chromium.events
            if event.get("sessionId") == self.session and event["method"] in methods
        ]

    def requests(self) -> list[str]:
        """Every address that the page asked for, besides its own."""
        sent = [event["request"]["url"] for event in self._of("Network.requestWillBeSent")]
        return [url for url in sent if url != self.url]

    def complaints(self) -> list[str]:
        """What it threw, and what stands in its console."""
        self.run("1")  # what is on the way arrives before the answer
        return [
            json.dumps(event)
            for event in self._of("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        ]
