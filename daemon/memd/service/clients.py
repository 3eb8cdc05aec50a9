"""Git as the client of a run has it, for the state of its checkout when the run ends.

That is the daemon's to ask, perhaps long after the launcher is gone and by a daemon that was started anew
since: the few variables that git needs are kept in one small file until the run is over.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import structlog
import trio

from memd import disk
from memd.errors import DiskError
from memd.git import Git
from memd.ledger.store.workstreams import Run
from memd.workstream.checkpoint import Checkpoint, git_checkpoint
from memd.workstream.launch import Client

MAX_RUNS = 256
MAX_FILE_BYTES = 4 << 20

log = structlog.get_logger()


class Clients:
    """path: the file, in a folder of memd's own; home: of a run whose client is not known any more"""

    def __init__(self, path: bytes, home: bytes) -> None:
        self._path = path
        self._home = home
        self._of = _load(path)
        self._one_at_a_time = trio.CapacityLimiter(1)

    async def note(self, run: str, client: Client) -> None:
        """Before the child is there. A disk that refuses costs no launch: git is where it mostly is."""
        kept = {"HOME": client.home, "PATH": client.path}
        if "XDG_CONFIG_HOME" in client.variables:
            kept["XDG_CONFIG_HOME"] = client.variables["XDG_CONFIG_HOME"]
        self._of[run] = kept
        while len(self._of) > MAX_RUNS:
            del self._of[next(iter(self._of))]
        text = msgspec.json.encode(self._of)
        try:
            await trio.to_thread.run_sync(disk.replace_file, self._path, text, limiter=self._one_at_a_time)
        except DiskError as reason:
            log.warning("client.not_noted", reason=str(reason))

    def keep(self, active: Collection[str]) -> None:
        """Forget all other runs: an earlier daemon may not have written down that they are over."""
        self._of = {run: client for run, client in self._of.items() if run in active}

    def forget(self, run: str) -> None:
        """The run is over; the file says so with the next note."""
        self._of.pop(run, None)

    async def checkpoint(self, run: Run) -> Checkpoint:
        """The state of the run's checkout, as its client's git sees it."""
        git = Git(self._of.get(run.id, {"HOME": self._home}))
        return await trio.to_thread.run_sync(git_checkpoint, run.cwd, git)


def _load(path: bytes) -> dict[str, dict[str, bytes]]:
    try:
        text = disk.read_file(path, MAX_FILE_BYTES)
        return msgspec.json.decode(text, type=dict[str, dict[str, bytes]]) if text else {}
    except (DiskError, msgspec.DecodeError):
        return {}
