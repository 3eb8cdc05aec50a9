"""Moving the ledger from one engine to the other: a program of its own, which `memctl ledger migrate` starts.

The daemon must be down, and cannot come up meanwhile: this holds its lock. The source is only read, and stays
where it is. What this says on standard output are lines of JSON: how far it is, and at the end what became
of it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import msgspec

from memctl import paths
from memd import disk
from memd.errors import ConfigError, MemdError, Refused
from memd.ledger import configured
from memd.ledger.store import machine
from memd.ledger.store.copying import Copied, Copy
from memd.ledger.store.interface import Reader, Writer
from memd.ledger.store.sqlite import SqliteWriter
from memd.ledger.store.sqlite_reader import SqliteReader
from memd.ledger.store.waiting import Queue
from memd.settings import Settings

SAY_S = 0.2


def main() -> int:
    parser = argparse.ArgumentParser(prog="memd.ledger.migrating")
    parser.add_argument("--to", choices=("postgresql", "sqlite"), required=True)
    parser.add_argument("--without-forgotten", action="store_true")
    options = parser.parse_args()
    os.umask(0o077)
    try:
        done = migrate(options.to, with_forgotten=not options.without_forgotten)
    except MemdError as reason:
        _say({"error": str(reason), "remedy": reason.remedy, "status": reason.exit_status})
        return reason.exit_status
    _say({"done": done})
    return 65 if done.problems else 0


def migrate(to: str, *, with_forgotten: bool) -> Copied:
    """raises Refused while a daemon runs or something waits for the server, ConfigError, and as engines do"""
    settings = _settings()
    root = paths.data_dir() + b"/ledger"
    with disk.make_folders(paths.state_dir()):
        pass
    try:
        lock = disk.take_lock(paths.state_dir() + b"/memd.lock")
    except MemdError:
        raise Refused(
            "memd runs; it would write while the ledger is copied", remedy="Stop it first: `memctl down`."
        ) from None
    with lock:
        if to == "postgresql":
            source: Reader = _existing(root)
            reader, writer = _server(root, settings)
        else:
            _nothing_may_wait(root)
            source, other = _server(root, settings)
            other.close()
            writer, reader = SqliteWriter(root), SqliteReader(root)
        try:
            return Copy(source, reader, writer, _Progress()).run(with_forgotten=with_forgotten)
        finally:
            for one in (source, reader, writer):
                one.close()


def _existing(root: bytes) -> SqliteReader:
    if disk.look(root + b"/ledger.sqlite3") is None:
        raise Refused(
            "there is no ledger on this machine yet",
            remedy='Set [ledger] engine to "postgresql" and start memd: nothing has to be copied.',
        )
    SqliteWriter(root).close()  # brings one of an older memd to today's, and finishes what a crash left
    return SqliteReader(root)


def _nothing_may_wait(root: bytes) -> None:
    if disk.look(root + b"/waiting.sqlite3") is None:
        return
    queue = Queue(root)
    state = queue.state
    queue.close()
    if state.groups:
        raise Refused(
            f"{state.groups} groups of what was read still wait here for the server",
            remedy="Start memd with the server there until `memctl status` shows none, then migrate.",
        )


def _server(root: bytes, settings: Settings) -> tuple[Reader, Writer]:
    from memd.ledger.store.postgres.engine import Machine, PostgresEngine

    if not settings.ledger.connection and not os.environ.get("PGSERVICE") and not os.environ.get("PGHOST"):
        raise ConfigError(
            "nothing says where the server is",
            remedy='Write [ledger] connection = "service=memd" into the configuration first.',
        )
    here = Machine(machine.id_of(root), machine.host_name())
    engine = PostgresEngine(settings.ledger.connection, settings.ledger.schema, here)
    return engine.reader(), engine.writer()


def _settings() -> Settings:
    path = paths.config_path()
    text = disk.read_file(path, 1 << 20)
    return Settings() if text is None else configured.parse(text, paths.shown(path))


class _Progress:
    def __init__(self) -> None:
        self._again_at = 0.0

    def __call__(self, what: str, number: int, count: int) -> None:
        now = time.monotonic()
        if now >= self._again_at:
            self._again_at = now + SAY_S
            _say({"what": what, "number": number, "count": count})


def _say(value: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
