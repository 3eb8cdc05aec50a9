"""The common form of everything that changes something on the disk, so that each fault meets all of it.

A flow makes its scene in a folder when it is made. `work` is what a fault meets, inside `under`. Afterwards
`check_kept` says whether anything is gone or half there, `recover` does what the next start and a second try
do, and `check_done` compares with what an undisturbed run leaves.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support_faults import installed
from support_ledger_faults import LedgerFaults


class Flow:
    """The common form. `is_quiet`: what cannot be written costs no answer, only what is remembered."""

    is_quiet = False

    def __init__(self, top: Path) -> None:
        self.top = top
        top.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def under(self, faults: LedgerFaults) -> Iterator[None]:
        with installed(faults):
            yield

    def work(self) -> None:
        raise NotImplementedError

    def check_kept(self) -> None:
        raise NotImplementedError

    def restart(self) -> None:
        """After a kill another process goes on."""

    def memory(self) -> list[Any]:
        """What the world outside of the disk has got from it until now."""
        return []

    def recover(self) -> None:
        raise NotImplementedError

    def check_done(self) -> None:
        raise NotImplementedError

    def check_answered(self) -> None:
        """What was answered is there after a power cut without anybody's doing it again."""
        self.check_done()

    def after_answer(self) -> None:
        """What comes next, when nobody has to try again."""
        self.recover()


def clear(flow: Flow) -> None:
    shutil.rmtree(flow.top)
