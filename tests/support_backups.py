"""A memd's three folders with something of every kind in them, and backups of them made without a daemon."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from memd import disk
from memd.ledger.store.interface import Filter
from memd.service import backup_restore, backup_write
from memd.service.backup_places import Roots, below
from memd.service.backup_restore import Backup, Restore
from support_ledger import S1, S2, entry
from support_workstreams import Lines, handoff, run

NOW_S = 1_790_000_000.0

Facts = dict[str, Any]


def quiet(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody looks at."""


def folders(base: Path) -> Roots:
    roots = below(bytes(base))
    for path in roots:
        disk.make_folders(path).close()
    return roots


def ledger_of(roots: Roots) -> Path:
    return Path(bytes(roots.data).decode()) / "ledger"


def fill(roots: Roots, word: str = "first") -> None:
    """Sessions in a sealed and a growing segment, a workstream, a run, a handoff, and the small files."""
    with Lines(ledger_of(roots)) as ledger:
        ledger.put(entry(f"{word}: what does the cache do"), source=b"claude\0/one.jsonl", cursor=b"cursor-1")
        ledger.writer.seal_all()
        ledger.put(entry(f"{word}: it keeps parsed files", session=S2))
        ledger.workstream(name=f"{word} line")
        ledger.link(S2, told=1)
        ledger.work(lambda work: work.put_run(run(session=S2, state="finished", exit_code=0)))
        ledger.work(lambda work: work.put_handoff(handoff(summary=f"{word}: go on")))
    small(roots, word)


def small(roots: Roots, word: str) -> None:
    """What lies beside the ledger."""
    for name, text in {
        b"data/agents.json": f'{{"version": 1, "agents": [], "word": "{word}"}}',
        b"data/projects.json": f'{{"version": 1, "links": [], "word": "{word}"}}',
        b"data/hook/installed.json": f'{{"word": "{word}"}}',
        b"data/memory/MEMORY.md": f"- {word}\n",
        b"data/memory/topic.md": word,
        b"data/memory-kept/old.md": f"{word}, once",
        b"config/config.toml": f"# {word}\n",
        b"state/environments.json": f'[{{"CODEX_HOME": "{word}"}}]',
    }.items():
        disk.replace_file(roots.path(name), text.encode())


def back_up(roots: Roots, path: Path, note: Any = quiet, version: str = "0.1.0") -> backup_write.Written:
    small_files = backup_write.collect(roots)
    return backup_write.Writer(roots, version, note).write(bytes(path), small_files, NOW_S)


def restore(roots: Roots, path: Path) -> backup_restore.Plan:
    """All steps of a restore in its place."""
    with (
        contextlib.closing(Backup(bytes(path))) as backup,
        contextlib.closing(Restore(backup, roots)) as work,
    ):
        work.stage(quiet)
        return work.replace()


def facts(roots: Roots) -> Facts:
    """What a memd in these folders says: texts, hits, workstreams, handoffs, and the small files."""
    with Lines(ledger_of(roots)) as ledger:
        assert ledger.problems() == []
        reader = ledger.reader
        found: Facts = {
            "sessions": [(row.harness, row.id, row.events) for row in reader.sessions(Filter(), 0)],
            "texts": [ledger.texts(S1), ledger.texts(S2)],
            "hits": [hit.snippet for hit in reader.search("parsed", Filter())],
            "view": ledger.view(),
            "linked": [(one.session, one.told) for one in reader.workstreams.linked("w1")],
            "handoffs": [row.summary for row in reader.workstreams.handoffs("default", "proj")],
            "cursor": reader.cursor(b"claude\0/one.jsonl"),
        }
    for name in (*backup_write.form.FILES, b"data/memory/topic.md", b"data/memory-kept/old.md"):
        found[name.decode()] = disk.read_file(roots.path(name), 1 << 20)
    return found


def strays(roots: Roots) -> list[bytes]:
    """Names that only unfinished work has."""
    found = []
    for root in roots:
        for path in Path(bytes(root).decode()).rglob("*"):
            name = bytes(Path(path.name))
            if name.startswith(b".memd") or name in (b"restore.json", b"backup"):
                found.append(name)
    return found
