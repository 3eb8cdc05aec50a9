"""A real worker process, spoken to by its protocol."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from memd.harness.model import Environment
from memd.ledger import messages
from memd.ledger.store.interface import Entry
from support_daemon import SOURCES


class Worker:
    """A real worker process, spoken to by its protocol."""

    def __init__(self, home: Path, variables: Mapping[str, str] = {}) -> None:
        self.home = home
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "memd.ledger.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": SOURCES, "PATH": os.environ["PATH"], **variables},
        )
        self._frames = messages.Frames()
        self._held: list[messages.AnyNews] = []

    def tell(self, command: messages.AnyCommand) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(messages.pack(command))
        self.process.stdin.flush()

    def begin(self, cursors: dict[bytes, bytes] | None = None) -> None:
        home = os.fsencode(self.home)
        environment = Environment(home=home, config_homes=(home + b"/.claude",))
        scratch = home + b"/scratch"
        self.tell(messages.Cursors(cursors=cursors or {}))
        self.tell(messages.Begin(environments=(environment,), rules=messages.Rules(), scratch=scratch))

    def news(self, within_s: float = 20.0) -> messages.AnyNews | None:
        """The next thing it says; None when it stays silent."""
        assert self.process.stdout is not None
        while not self._held:
            if not select.select([self.process.stdout], [], [], within_s)[0]:
                return None
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            assert data, "the worker ended"
            self._held += [messages.news(frame) for frame in self._frames.feed(data)]
        return self._held.pop(0)

    def read(self, within_s: float = 20.0) -> messages.Read | None:
        deadline = time.monotonic() + within_s  # progress is told now and then, whatever else
        while (news := self.news(max(0.0, deadline - time.monotonic()))) is not None:
            if isinstance(news, messages.Read):
                return news
        return None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def entries(read: messages.Read) -> list[Entry]:
    return [entry for batch in messages.batches(read) for entry in batch.entries]
