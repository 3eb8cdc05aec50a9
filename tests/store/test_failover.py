"""Two servers, the second a standby of the first: when the first is gone the work goes on on the second."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.ledger.store.buffered import BufferedWriter
from memd.ledger.store.waiting import Queue
from support_daemon import eventually
from support_ledger import S1, batch, entry
from support_postgres import Server, needs_postgres
from support_workstreams import linked, run, workstream

SYNCHRONOUS = ("synchronous_standby_names=*", "synchronous_commit=remote_apply")


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """The first, which answers a commit when the second has it too, and the second."""
    needs_postgres()
    folder = Path(tempfile.mkdtemp(prefix="memd-pg-"))
    folder.chmod(0o755)
    first, second = Server(folder / "a", options=()), Server(folder / "b", options=("hot_standby=on",))
    try:
        first.make().start()
        second.folder.mkdir(mode=0o755)
        demoted: Any = first._demoted()
        if demoted:
            shutil.chown(second.folder, demoted["user"], demoted["group"])
        subprocess.run(
            [
                *first._run("pg_basebackup", "-h", str(first.folder), "-p", str(first.port), "-U", "memd"),
                *("-D", str(second.data), "-R", "-X", "stream", "-c", "fast"),
            ],
            check=True,
            cwd="/",
            **demoted,
        )
        second.start()
        for setting in SYNCHRONOUS:
            name, value = setting.split("=")
            first.sql(f"alter system set {name} = '{value}'")
        first.sql("select pg_reload_conf()")
        eventually(lambda: first.sql("select sync_state from pg_stat_replication") == [("sync",)], 30)
        yield first, second
    finally:
        second.stop()
        first.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_the_standby_goes_on_where_the_first_was_killed(
    servers: tuple[Server, Server], tmp_path: Path
) -> None:
    from memd.ledger.store.postgres.engine import Machine, PostgresEngine

    first, second = servers
    words = (
        f"host={first.folder},{second.folder} port={first.port},{second.port} user=memd dbname=postgres"
        " target_session_attrs=read-write"
    )
    engine = PostgresEngine(words, "memd", Machine("m1", "host"))
    writer = BufferedWriter(engine.lazy_writer(), Queue(bytes(tmp_path)))
    writer.work(lambda work: work.put_workstream(workstream()))
    writer.work(lambda work: work.put_linked("w1", linked(S1)))
    for number in range(3):
        writer.append(batch(entry(f"before {number}", at=number)))
    first.kill()
    writer.append(batch(entry("while nobody was there", at=3)))
    assert writer.waiting.groups == 1
    second.sql("select pg_promote(true, 30)")
    while writer.drain_step():
        pass
    writer.append(batch(entry("after", at=4)))
    writer.work(lambda work: work.put_run(run(boot="postgresql", state="finished")))
    reader = engine.reader()
    wanted = ["before 0", "before 1", "before 2", "while nobody was there", "after"]
    assert [event.content for event in reader.export("claude", S1)] == wanted
    assert [row.sequence for row in reader.workstreams.tail("w1")] == [5, 4, 3, 2, 1]
    assert list(reader.check().problems) == []
    reader.close()
    writer.close()
