"""memctl up, down, reload."""

from __future__ import annotations

import argparse
import sys
import time

from memctl import client, quick
from memd import __version__, protocol
from memd.errors import TryAgain

DOWN_S = 10.0
RELOAD_S = 10.0


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
    print(done.message)
    return 0 if done.message == "configuration re-read" else 78


def _up(quiet: bool) -> int:
    running = client.ping()
    if running is not None and running.version != __version__:
        print(f"memd {running.version} runs; restarting it as {__version__}", file=sys.stderr)
        _stop()
        running = None
    if running is None:
        client.start_daemon()
    if quiet:
        return 0
    return quick.status([]) or 0


def _down() -> int:
    from memctl import services

    if client.ping() is None and not services.service_state().is_active:
        print("memd is not running", file=sys.stderr)
        return 0
    _stop()
    return 0


def _stop() -> None:
    """Stop the daemon and wait until it is gone.

    raises TryAgain when it still answers after DOWN_S
    """
    from memctl import services

    if services.service_state().is_active:
        services.stop_service()
    if client.ping() is not None:  # also one that was started by hand beside the service
        client.ask(protocol.Stop(), protocol.Done, start=False, timeout_s=5.0)
    deadline = time.monotonic() + DOWN_S
    while time.monotonic() < deadline:
        if client.ping() is None:
            return
        time.sleep(0.02)
    raise TryAgain("memd still answers after it was told to stop", remedy="Look at `memctl logs`.")
