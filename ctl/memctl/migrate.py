"""memctl ledger migrate: copy the ledger from one engine into the other, by a program of the daemon's."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from memctl import view
from memd.errors import MemdError

PROGRAM = "memd.ledger.migrating"
NEXT = {
    "postgresql": 'Now set [ledger] engine = "postgresql" in the configuration and start memd: `memctl up`.',
    "sqlite": 'Now set [ledger] engine = "sqlite" in the configuration and start memd: `memctl up`.',
}


class NotMigrated(MemdError):
    code = "refused"

    def __init__(self, message: str, remedy: str, status: int) -> None:
        super().__init__(message, remedy=remedy)
        self.exit_status = status


def run(to: str, *, as_json: bool, without_forgotten: bool) -> int:
    """The exit status. raises NotMigrated with what stands in the way"""
    words = [sys.executable, "-I" if sys.flags.isolated else "-P", "-m", PROGRAM, "--to", to]
    if without_forgotten:
        words.append("--without-forgotten")
    done: dict[str, Any] | None = None
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        for line in child.stdout:
            said = json.loads(line)
            if "error" in said:
                child.wait()
                raise NotMigrated(said["error"], said["remedy"], said["status"])
            if "done" in said:
                done = said["done"]
            elif sys.stderr.isatty():
                sys.stderr.write(f"\r{said['what']}: {said['number']} of {said['count']}  ")
                sys.stderr.flush()
    if sys.stderr.isatty():
        sys.stderr.write("\r" + " " * 50 + "\r")
    if done is None:
        raise NotMigrated(
            "the copy ended before its end", "Begin it again: what is there already is left alone.", 75
        )
    problems = done.get("problems", [])
    if as_json:
        view.print_json({"to": to, **done, "ok": not problems})
        return 65 if problems else 0
    for problem in problems:
        print(problem)
    print(
        f"{done.get('events', 0)} events of {done.get('sessions', 0)} sessions,"
        f" {done.get('workstreams', 0)} workstreams, {done.get('handoffs', 0)} handoffs"
        f" and {done.get('cursors', 0)} sources: "
        + (f"{len(problems)} disagreements" if problems else "copied, read again, and the same")
    )
    if done.get("kept"):
        print(f"{done['kept']} events were there in another version, which stays")
    if not problems:
        print("The ledger that was copied is untouched.")
        print(NEXT[to])
    return 65 if problems else 0
