"""memctl backup, memctl restore: all that memd knows in one file, and back."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from typing import Any

from memctl import asking, client, paths, view
from memd import protocol
from memd.errors import MemdError, Refused, Unavailable, UsageError

BACKUP_S = 24 * 3600.0
LOOK_S = 0.3


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    backup = subparsers.add_parser(
        "backup",
        description="Write the ledger, workstreams, handoffs, enrolments, saved checkouts, settings and the"
        " local store of topics into one file, while memd goes on working.",
        epilog="The file holds what agents said and did: keep it where only you can read it. What agents keep"
        " themselves (their sessions, an enrolled agent's memory, ~/.agents/memory) is not in it.",
    )
    backup.add_argument(
        "file", nargs="?", default="", metavar="FILE", help="a new file; or a folder for one (default: here)"
    )
    backup.add_argument("--json", action="store_true", help="one JSON document")
    restore = subparsers.add_parser(
        "restore",
        description="Put what a backup holds in its place. What was there is kept beside it.",
        epilog="What was forgotten after the backup was made is in the ledger again afterwards.",
    )
    restore.add_argument("file", metavar="FILE", help="what `memctl backup` wrote")
    restore.add_argument("--into", default="", metavar="DIR", help="put it below a new folder, touch nothing")
    restore.add_argument("--yes", action="store_true", help="do not ask: move aside what is there")
    restore.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    return _restore(options) if options.command == "restore" else _backup(options)


# ------------------------------------------------------------------------------------- backup


def _backup(options: argparse.Namespace) -> int:
    path = os.path.abspath(os.fsencode(options.file or "."))
    if os.path.isdir(path):
        name = time.strftime("memd-backup-%Y%m%dT%H%M%SZ.tar.zst", time.gmtime())
        path = os.path.join(path, name.encode())
    shower = _Shower()
    try:
        done = client.ask(protocol.Backup(path=path), protocol.BackedUp, timeout_s=BACKUP_S)
    finally:
        shower.end()
    if options.json:
        view.print_json(
            {
                "path": paths.shown(done.path),
                "bytes": done.size,
                "files": done.files,
                "left_out": [paths.shown(one) for one in done.left_out],
            }
        )
        return 0
    for one in done.left_out:
        print(f"left out, since it is no file: {paths.shown(one)}", file=sys.stderr)
    print(f"{paths.shown(done.path)}: {done.files} files in {_size(done.size)}, written and checked")
    return 0


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1_000_000 else f"{count / 1e3:.1f} KB"


class _Shower:
    """Shows on a terminal how far the backup is, until `end`."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()

    def _show(self) -> None:
        while not self._over.wait(LOOK_S):
            try:
                step = client.ask(protocol.BackupProgress(), protocol.BackupStep, start=False, timeout_s=5.0)
            except MemdError:
                continue
            if step.what and not self._over.is_set():
                share = 100 * step.done // max(step.total, 1)
                sys.stderr.write(f"\r{step.what} {share} %\x1b[K")
                sys.stderr.flush()

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(6.0)
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


# ------------------------------------------------------------------------------------ restore


def _restore(options: argparse.Namespace) -> int:
    path = os.path.realpath(os.fsencode(options.file))
    if not os.path.isfile(path):
        raise UsageError(
            f"there is no file {paths.shown(path)}", remedy="Name a file that `memctl backup` wrote."
        )
    if options.into:
        return _into(path, os.path.abspath(os.fsencode(options.into)), as_json=options.json)
    worker = _Worker([path])
    try:
        looked = worker.hear("looked")
        if looked is None:
            return worker.end()
        if looked.get("there") and not options.yes and not _agrees(looked):
            print("nothing was restored", file=sys.stderr)
            return 77
        if worker.say("stage") is None or worker.hear("staged") is None:
            return worker.end()
        was_running = _stop_daemon()
        try:
            worker.say("replace")
            restored = worker.hear("restored")
            status = worker.end()
        finally:
            if was_running:
                client.start_daemon()
    finally:
        worker.close()
    if restored is None:
        return status
    _tell(restored, as_json=options.json)
    return 0


def _tell(restored: dict[str, Any], *, as_json: bool) -> None:
    import base64

    kept = [
        base64.b64decode(folder) + b"/" + base64.b64decode(restored["kept"])
        for folder in restored.get("folders", ())
    ]
    if as_json:
        view.print_json({"restored": True, "kept": [paths.shown(one) for one in kept]})
        return
    print("restored")
    for one in kept:
        print(f"what was there is in {paths.shown(one)}")
    if kept:
        asking.say("Remove that once you do not need it any more: `memctl forget` does not reach it.")


def _agrees(looked: dict[str, Any]) -> bool:
    there = looked["there"]
    what = f"{there[0]} and {len(there) - 1} more" if len(there) > 1 else there[0]
    if not asking.can_ask():
        raise Refused(
            f"memd has data here already: {what}",
            remedy="Add --yes to move it aside and put the backup in its place, or --into DIR for a look.",
        )
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(looked.get("made_ms", 0) / 1000))
    asking.say(
        f"memd has data here: {what}. It would be moved aside, into folders called before-restore-TIME,"
        f" and the backup of {made} take its place."
    )
    return asking.yes("Restore it?", usual=False) is True


def _into(path: bytes, folder: bytes, *, as_json: bool) -> int:
    worker = _Worker([path, b"--into", folder])
    try:
        restored = worker.hear("restored")
        status = worker.end()
    finally:
        worker.close()
    if restored is None:
        return status
    where = paths.shown(folder)
    if as_json:
        view.print_json({"restored": True, "into": where})
        return 0
    print(f"restored into {where}")
    print(
        # a home of its own: another memd in this one would heal its logins and import its sessions
        f"to look at it with memd of its own: HOME={where} XDG_DATA_HOME={where}/data"
        f" XDG_CONFIG_HOME={where}/config XDG_STATE_HOME={where}/state MEMD_SOCKET={where}/memd.sock"
        " memctl sessions",
        file=sys.stderr,
    )
    return 0


def _stop_daemon() -> bool:
    """Whether one ran. raises TryAgain"""
    from memctl.commands import daemon

    is_running = client.ping() is not None
    daemon.stop()
    return is_running


class _Worker:
    """The process that reads the backup and writes files; it says by itself what went wrong."""

    def __init__(self, words: list[bytes]) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "memd.service.backup_restore", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def hear(self, step: str) -> dict[str, Any] | None:
        """What it says of that step; None when it ends instead."""
        import json

        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            return None
        told = json.loads(line)
        if not isinstance(told, dict) or told.get("step") != step:
            raise Unavailable(f"the restore said {line[:200]!r} where {step!r} was due")
        return told

    def say(self, word: str) -> bool | None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(word.encode() + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            return None
        return True

    def end(self) -> int:
        """Its exit status; 70 for one that was killed."""
        code = self._child.wait()
        return code if code >= 0 else 70

    def close(self) -> None:
        """Let it take back what it began, if it is not done."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
        self._child.wait()
