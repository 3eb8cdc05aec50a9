"""A corpus of transcripts, made up and always the same: Claude Code and Codex, records of all sizes.

    corpus.py [FOLDER] [--mb 50] [--sessions 200]

A corpus is a home: `<folder>/.claude/projects/...` and `<folder>/.codex/sessions/...`. Made once and kept in
the cache (see `cache`), which no benchmark writes to.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from corpus_claude import Claude
from corpus_codex import Codex
from corpus_text import Text

SEED = 7
VERSION = 1  # of what is made: another number, another folder in the cache
CLAUDE_SHARE = 0.7
LEAST_BYTES = 4000
SIDE_BYTES = 90_000


class Profile(NamedTuple):
    megabytes: int
    sessions: int


SMALL, MEDIUM, LARGE = Profile(5, 20), Profile(50, 200), Profile(500, 2000)


def cache() -> Path:
    """Where corpora and peers are kept between runs: `MEMD_BENCH_CACHE`, else the user's cache folder."""
    named = os.environ.get("MEMD_BENCH_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(named) if named else Path(base) / "memd-bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kept(profile: Profile) -> Path:
    """The corpus of that profile, made if it is not in the cache."""
    folder = cache() / f"corpus-{VERSION}-{profile.megabytes}mb-{profile.sessions}"
    if not folder.is_dir():
        unfinished = folder.with_suffix(f".{os.getpid()}")
        make(unfinished, profile)
        os.rename(unfinished, folder)
    return folder


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob(".c*/**/*.jsonl"))


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in files(folder))


def make(folder: Path, profile: Profile, seed: int = SEED) -> None:
    """Write a corpus of about that size; few sessions are long, most are short."""
    shutil.rmtree(folder, ignore_errors=True)
    text = Text(seed)
    weights = [text.random.lognormvariate(0, 1.35) for _ in range(profile.sessions)]
    scale = profile.megabytes * 1e6 / sum(weights)
    names = text.words[120:5000]
    projects = [
        f"/home/user/work/{text.random.choice(names)}-{number}"
        for number in range(max(3, profile.sessions // 25))
    ]
    begin = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
    debt = 0.0  # what a long turn wrote beyond its session's share is taken from later ones
    for weight in weights:
        share = max(LEAST_BYTES, weight * scale)
        target = max(LEAST_BYTES, share - min(max(debt, 0), share * 0.7))
        at = int(text.random.expovariate(1 / (len(projects) / 4)))
        cwd = projects[min(len(projects) - 1, at)]
        start = begin + datetime.timedelta(minutes=text.random.randint(0, 150 * 24 * 60))
        if text.random.random() < CLAUDE_SHARE:
            written = _claude(folder, text, cwd, start, target)
        else:
            written = _codex(folder, text, cwd, start, target)
        debt += written - share


def _claude(folder: Path, text: Text, cwd: str, start: datetime.datetime, target: float) -> int:
    session = text.uuid()
    key = "".join(c if c.isalnum() else "-" for c in cwd)
    project = folder / ".claude" / "projects" / key
    aside = target * 0.2 if text.random.random() < 0.3 else 0
    main = Claude(text, cwd, session, start)
    main.put({"type": "permission-mode", "permissionMode": "default", "sessionId": session})
    while main.size < target - aside:
        main.turn()
    main.put({"type": "ai-title", "aiTitle": text.cut("prose", 50).strip(), "sessionId": session})
    written = _write(project / f"{session}.jsonl", main.lines)
    while aside > 3000:
        name = f"a{text.hex(16)}"
        side = Claude(text, cwd, session, main.now, side=name)
        while side.size < min(aside, SIDE_BYTES):
            side.turn()
        written += _write(project / session / "subagents" / f"agent-{name}.jsonl", side.lines)
        aside -= side.size
    return written


def _codex(folder: Path, text: Text, cwd: str, start: datetime.datetime, target: float) -> int:
    thread = text.uuid()
    rollout = Codex(text, cwd, thread, start)
    while rollout.size < target:
        rollout.turn()
    name = f"rollout-{start:%Y-%m-%dT%H-%M-%S}-{thread}.jsonl"
    return _write(folder / ".codex" / "sessions" / f"{start:%Y/%m/%d}" / name, rollout.lines)


def _write(path: Path, lines: list[str]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.write_bytes(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))


def long_session(path: Path, megabytes: float, session: str = "") -> tuple[str, Claude]:
    """One Claude Code session file of that size; its id, and what goes on writing it."""
    text = Text(SEED)
    made = Claude(text, "/home/user/work/long-0", session or text.uuid(), datetime.datetime(2026, 6, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("wb") as file:
        while written < megabytes * 1e6:
            made.turn()
            written += file.write(("\n".join(made.lines) + "\n").encode())
            made.lines.clear()
    return made.session, made


def main() -> int:
    parser = argparse.ArgumentParser(description="Make a corpus of transcripts.")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--mb", type=int, default=MEDIUM.megabytes)
    parser.add_argument("--sessions", type=int)
    options = parser.parse_args()
    profile = Profile(options.mb, options.sessions or options.mb * 4)
    if options.folder:
        folder = Path(options.folder)
        make(folder, profile)
    else:
        folder = kept(profile)
    print(f"{folder}: {len(files(folder))} files, {size(folder) / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
