"""How much of the agents' sessions is still to be read, shown as it shrinks."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from memctl import client
from memd import protocol
from memd.errors import MemdError

FIRST_LOOK_S = 2.0
EVERY_S = 0.2
UNSHOWN_S = 0.5  # what is over by then is not worth a bar


def show() -> None:
    """On a terminal: what is still to be read. Ctrl-C leaves the import to the daemon."""
    if _left_bytes():
        _watch(lambda: bool(_left_bytes()))


def follow(request: protocol.Import) -> bool:
    """Have it done, shown on a terminal; False when a person did not wait for its end. raises MemdError"""
    failed: list[MemdError] = []

    def ask() -> None:
        try:
            client.ask(request, protocol.Done)
        except MemdError as reason:
            failed.append(reason)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(UNSHOWN_S)
    is_whole = not asking.is_alive() or _watch(asking.is_alive)
    if is_whole:
        asking.join()
    if failed:
        raise failed[0]
    return is_whole


def _watch(goes_on: Callable[[], bool]) -> bool:
    """Show what is left while it goes on; whether it came to its end. Nothing is shown without a terminal."""
    if not sys.stderr.isatty():
        return True
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("reading sessions"), BarColumn(), DownloadColumn())
    try:
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task, most = progress.add_task("", total=None), 0
            while goes_on():
                left = int(ledger()["left_bytes"])
                most = max(most, left)
                progress.update(task, total=most or None, completed=most - left)
                time.sleep(EVERY_S)
    except KeyboardInterrupt:
        print("The import goes on in the background.", file=sys.stderr)
        return False
    return True


def ledger() -> dict[str, Any]:
    """What the status says of the ledger."""
    found = json.loads(client.ask_text(protocol.Status(form="json"))[1])["ledger"]
    assert isinstance(found, dict)
    return found


def _left_bytes() -> int:
    """Bytes of session stores that are known and not yet read; waits a moment until the daemon knows."""
    deadline = time.monotonic() + FIRST_LOOK_S
    while True:
        now = ledger()
        if now["state"] == "running" or time.monotonic() > deadline:
            return int(now["left_bytes"])
        time.sleep(0.05)
