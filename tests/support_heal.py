"""A program that tests run: heal the agents of a pretend user, several times, and say how it went.

    python support_heal.py HOME DATA STATE TIMES [CONFIG_HOME ...]

It waits for the end of its input before it begins, so that several can begin at once.
"""

from __future__ import annotations

import os
import sys

from memd.memory.ownership import Ownership

NOW_MS = 1_790_000_100_000


def main(words: list[bytes]) -> int:
    home, data, state, times = words[:4]
    owner = Ownership(home=home, data=data, state=state, configured=tuple(words[4:]))
    sys.stdin.read()
    worst = 0
    for turn in range(int(times)):
        entries = owner.recover(now_ms=NOW_MS) if turn == 0 else owner.heal(now_ms=NOW_MS + turn)
        for entry in entries:
            if entry.outcome != "linked" or entry.changed:
                print(entry.outcome, os.fsdecode(entry.config_home), entry.reason, flush=True)
            worst = max(worst, entry.outcome == "failed")
    return worst


if __name__ == "__main__":
    sys.exit(main([os.fsencode(word) for word in sys.argv[1:]]))
