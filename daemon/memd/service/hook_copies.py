"""The files that installed hooks run, brought up to the version of the daemon that starts.

A package that was upgraded brings a new daemon with it, by `memctl up` or by the service manager alone; its
hooks are to be those that this daemon was tried with. Where no hooks are installed nothing is made.
"""

from __future__ import annotations

import stat

import structlog
import trio

from memctl.hooks import files as hook_files
from memd import disk
from memd.errors import MemdError

MAX_BYTES = 1 << 20

log = structlog.get_logger()


async def renew() -> None:
    """Once. What cannot be renewed stays as it is; `memctl doctor` says so."""
    try:
        if await trio.to_thread.run_sync(_renew):
            log.info("hooks.renewed")
    except (MemdError, OSError) as reason:
        log.warning("hooks.not_renewed", reason=str(reason))


def _renew() -> bool:
    """Whether something was changed. Only plain files of ours are replaced, never a link."""
    wanted = hook_files.wanted()
    facts = [disk.look(path) for path in wanted]
    if facts[-1] is None or not all(one is None or stat.S_ISREG(one.st_mode) for one in facts):
        return False
    old = {path: text for path, text in wanted.items() if disk.read_file(path, MAX_BYTES) != text}
    for path, text in old.items():
        disk.replace_file(path, text)
    return bool(old)
