"""memctl up, down, reload."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time

from memctl import client, quick
from memd import __version__, protocol
from memd.errors import MemdError, TryAgain, Unavailable

START_TRIES = 5  # of the same version, while others start theirs
DOWN_S = 10.0
RELOAD_S = 10.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    up = subparsers.add_parser(
        "up", description="Start memd, or restart one of another version than this package."
    )
    up.add_argument("--quiet", action="store_true", help="show no status afterwards, and offer no hooks")
    up.add_argument("--yes", action="store_true", help="install hooks into agents that have none, unasked")
    subparsers.add_parser("down", description="Stop memd. Whatever it was doing goes on at the next start.")
    subparsers.add_parser("reload", description="Re-read the configuration of the running daemon.")


def run(options: argparse.Namespace) -> int:
    if options.command == "up":
        return _up(quiet=options.quiet, assume_yes=options.yes)
    if options.command == "down":
        return _down()
    done = client.ask(protocol.Reload(), protocol.Done, start=False, timeout_s=RELOAD_S)
    is_good = done.message == "configuration re-read"
    print(done.message, file=sys.stdout if is_good else sys.stderr)
    return 0 if is_good else 78


def _up(*, quiet: bool, assume_yes: bool) -> int:
    from memctl import first_import
    from memctl.hooks import offer as hook_offer

    start()
    renew_hook()
    if not quiet:
        first_import.show()
    if assume_yes:
        code = hook_offer.offer(assume_yes=True)
        return code if quiet else _status() or code
    if quiet:
        return 0
    code = _status()
    return hook_offer.offer(assume_yes=False) or code


def _status() -> int:
    """Print the status; once more where another memctl took the daemon away since it was started."""

    def once_more() -> int | None:
        start()
        return quick.status([])

    return quick.status([], or_else=once_more) or 0


def start() -> None:
    """Have a daemon of this version run, also where others start theirs as soon as none is there.

    raises MemdError; TryAgain when another version runs again every time
    """
    running = client.ping() or client.start_daemon()
    if running.version == __version__:
        return
    print(f"memd {running.version} runs; restarting it as {__version__}", file=sys.stderr)
    for _ in range(START_TRIES):
        stop()
        running = client.start_daemon()
        if running.version == __version__:
            return
    raise TryAgain(
        f"memd {running.version} runs again each time it is stopped",
        remedy="A service or another memctl starts that version: see `memctl doctor`, or install this one's"
        " service with `memctl service install`.",
    )


def renew_hook() -> None:
    """Where hooks are installed, they run what belongs to this package from now on."""
    import os

    from memctl.hooks import files as hook_files

    try:
        if os.path.lexists(hook_files.hook_file()) and hook_files.place():
            print("The installed hooks are of this version now.", file=sys.stderr)
    except MemdError as reason:
        print(f"The installed hooks are as they were: {reason}\n{reason.remedy}", file=sys.stderr)


def _down() -> int:
    from memctl import services

    if client.ping() is None and not services.service_state().is_active:
        print("memd is not running", file=sys.stderr)
        return 0
    stop()
    return 0


def stop() -> None:
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
        with contextlib.suppress(Unavailable):  # somebody else was quicker
            client.ask(protocol.Stop(), protocol.Done, start=False, timeout_s=5.0)
    deadline = time.monotonic() + DOWN_S
    while time.monotonic() < deadline:
        is_there = running is not None and processes.presence(running.pid, began) == "alive"
        now = client.ping()
        if not is_there and (now is None or (running is not None and now.pid != running.pid)):
            return  # gone, and if somebody serves, another one has started it since
        time.sleep(0.02)
    who = f"memd (pid {running.pid})" if running is not None else "memd"
    raise TryAgain(
        f"{who} is still there {DOWN_S:.0f} s after it was told to stop", remedy="Look at `memctl logs`."
    )
