"""memctl up, down, reload."""

from __future__ import annotations

import argparse
import sys
import time

from memctl import client, quick
from memd import __version__, protocol
from memd.errors import MemdError, TryAgain

DOWN_S = 10.0
RELOAD_S = 10.0
FIRST_LOOK_S = 2.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    up = subparsers.add_parser(
        "up", description="Start memd, or restart one that is older than this package."
    )
    up.add_argument("--quiet", action="store_true", help="do not show the status afterwards")
    subparsers.add_parser("down", description="Stop memd. Whatever it was doing goes on at the next start.")
    subparsers.add_parser("reload", description="Re-read the configuration of the running daemon.")


def run(options: argparse.Namespace) -> int:
    if options.command == "up":
        return _up(options.quiet)
    if options.command == "down":
        return _down()
    done = client.ask(protocol.Reload(), protocol.Done, start=False, timeout_s=RELOAD_S)
    is_good = done.message == "configuration re-read"
    print(done.message, file=sys.stdout if is_good else sys.stderr)
    return 0 if is_good else 78


def _up(quiet: bool) -> int:
    running = client.ping()
    if running is not None and running.version != __version__:
        print(f"memd {running.version} runs; restarting it as {__version__}", file=sys.stderr)
        _stop()
        running = None
    if running is None:
        client.start_daemon()
    _renew_hook()
    if quiet:
        return 0
    _show_first_import()
    return quick.status([]) or 0


def _renew_hook() -> None:
    """Where hooks are installed, they run what belongs to this package from now on."""
    import os

    from memctl import hook_files

    try:
        if os.path.lexists(hook_files.hook_file()) and hook_files.place():
            print("The installed hooks are of this version now.", file=sys.stderr)
    except MemdError as reason:
        print(f"The installed hooks are as they were: {reason}\n{reason.remedy}", file=sys.stderr)


def _show_first_import() -> None:
    """On a terminal: what is still to be read, as it shrinks. Ctrl-C leaves the import to the daemon."""
    left = _left_bytes()
    if not left or not sys.stderr.isatty():
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("reading sessions"), BarColumn(), DownloadColumn())
    try:
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("", total=left)
            while remaining := _left_bytes():
                total = max(left, remaining)
                progress.update(task, total=total, completed=total - remaining)
                time.sleep(0.2)
    except KeyboardInterrupt:
        print("The import goes on in the background.", file=sys.stderr)


def _left_bytes() -> int:
    """Bytes of session stores that are known and not yet read; waits a moment until the daemon knows."""
    import json

    deadline = time.monotonic() + FIRST_LOOK_S
    while True:
        _, text = client.ask_text(protocol.Status(form="json"))
        ledger = json.loads(text)["ledger"]
        if ledger["state"] == "running" or time.monotonic() > deadline:
            return int(ledger["left_bytes"])
        time.sleep(0.05)


def _down() -> int:
    from memctl import services

    if client.ping() is None and not services.service_state().is_active:
        print("memd is not running", file=sys.stderr)
        return 0
    _stop()
    return 0


def _stop() -> None:
    """Stop the daemon and wait until its process is gone.

    raises TryAgain when it is still there after DOWN_S
    """
    from memctl import services
    from memd import processes

    running = client.ping()
    began = processes.start_of(running.pid) if running is not None else ""
    if services.service_state().is_active:
        services.stop_service()
    if client.ping() is not None:  # also one that was started by hand beside the service
        client.ask(protocol.Stop(), protocol.Done, start=False, timeout_s=5.0)
    deadline = time.monotonic() + DOWN_S
    while time.monotonic() < deadline:
        is_there = running is not None and processes.presence(running.pid, began) == "alive"
        if not is_there and client.ping() is None:
            return
        time.sleep(0.02)
    who = f"memd (pid {running.pid})" if running is not None else "memd"
    raise TryAgain(
        f"{who} is still there {DOWN_S:.0f} s after it was told to stop", remedy="Look at `memctl logs`."
    )
