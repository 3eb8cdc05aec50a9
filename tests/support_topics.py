"""A pretend user with memory stores in a temporary folder, and a clock that tests move."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

from memd.memory.shared.access import Places
from memd.memory.shared.clock import Clock
from memd.memory.shared.configuration import Configuration
from memd.memory.shared.index import Entry, entries_of
from memd.memory.shared.topics import TopicStore
from memd.protocol_memory import Changed, WriteTopic

NOW_MS = 1_790_000_000_000


class FakeClock(Clock):
    """Stands still but for what is slept, and what a test moves."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.wall = now_ms
        self.steady = 5_000_000
        self.slept = 0.0

    def now_ms(self) -> int:
        return self.wall

    def steady_ms(self) -> int:
        return self.steady

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.pass_ms(round(seconds * 1000))

    def stamp(self) -> str:
        moment = datetime.datetime.fromtimestamp(self.wall / 1000, datetime.UTC)
        return moment.replace(microsecond=0).isoformat()

    def pass_ms(self, ms: int) -> None:
        """Time goes by, on every clock."""
        self.wall += ms
        self.steady += ms

    def set_wall(self, now_ms: int) -> None:
        """Somebody sets the clock."""
        self.wall = now_ms


class Home:
    """`top/home` is the person's home. The shared folder is in use unless said otherwise."""

    def __init__(self, top: Path, *, shared_dir: bool = True) -> None:
        self.home = os.fsencode(os.path.realpath(top)) + b"/home"
        self.shared = self.home + b"/.agents/memory"
        self.local = self.home + b"/.local/share/memd/memory"
        self.kept = self.home + b"/.local/share/memd/memory-kept"
        self.state = self.home + b"/.local/state/memd"
        self.config = self.home + b"/.config/memd/memory.jsonc"
        self.opencode = self.home + b"/.config/opencode/memory.jsonc"
        self.pi = self.home + b"/.pi/agent/memory.jsonc"
        self.clock = FakeClock()
        os.makedirs(self.home, exist_ok=True)
        if shared_dir and not os.path.exists(self.config):
            put(self.config, b'{ "shared_dir": true }\n')

    @property
    def store(self) -> bytes:
        return self.shared

    def configuration(self) -> Configuration:
        return Configuration(self.config, (self.opencode, self.pi), self.state + b"/topics/v1/settings.json")

    def topics(self, **more: Any) -> TopicStore:
        """A daemon's topics, as after a start."""
        places = Places(shared=self.shared, local=self.local, kept=self.kept, state=self.state)
        return TopicStore(places, self.configuration(), more.pop("clock", self.clock), **more)

    def write(self, topic: str, body: str = "text", summary: str = "about it", **more: Any) -> Changed:
        return self.topics().write(WriteTopic(topic=topic, body=body, summary=summary, **more))

    def index(self, store: bytes | None = None) -> bytes:
        return read((store or self.shared) + b"/MEMORY.md")

    def entries(self, store: bytes | None = None) -> list[Entry]:
        return entries_of(self.index(store))

    def files(self, store: bytes | None = None) -> list[str]:
        """The files that the index names, in order."""
        return [entry.file.decode() for entry in self.entries(store)]


def put(path: bytes, body: bytes = b"", *, mtime_ms: int | None = None) -> bytes:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(body)
    if mtime_ms is not None:
        os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))
    return path


def read(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def topic(name: str, body: str, *, updated: str = "2026-01-03T08:00:00+01:00") -> bytes:
    return (
        f'---\nname: "{name}"\ndescription: "about {name}"\ncreated: 2026-01-02T08:00:00+01:00\n'
        f"last_updated: {updated}\nmetadata:\n  node_type: memory\n---\n\n{body}\n"
    ).encode()


def tree(top: bytes) -> dict[bytes, bytes]:
    """Relative path and content of every regular file below `top`."""
    found: dict[bytes, bytes] = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = folder + b"/" + name
            if os.path.isfile(path) and not os.path.islink(path):
                found[path[len(top) + 1 :]] = read(path)
    return found
