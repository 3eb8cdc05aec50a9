"""A ledger of some weeks of work, made up and always the same but for the day it ends on."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memd.harness.model import Loss, Session
from memd.ledger.store.workstreams import Place
from support_ledger import batch, entry
from support_workstreams import AGENT, Clock, Lines, handoff, run, workstream

HOME = "/home/dev"
DAY_S = 86_400
HARNESSES = ("claude", "codex", "opencode", "pi", "kimi")
PROJECTS = (
    "work/storefront",
    "work/storefront-api",
    "work/billing",
    "work/infra/terraform",
    "src/dotfiles",
    "src/größenrechner",
    "src/paper with a long name about queues",
    "oss/tidepool",
)
TITLES = (
    "Fix the flaky checkout test",
    "Move sessions to the new token store",
    "Why does the nightly export take six hours?",
    "Login page: remember the last workspace",
    "Upgrade to Postgres 17 and drop the old trigger",
    "Review of the retry logic in the webhook worker",
    "Write the migration for soft-deleted invoices",
    "Profile cold start, find the 400 ms in imports",
    "Dark mode for the settings pages",
    "Terraform: split state per region",
    "Make the CLI honour NO_COLOR",
    "Umlaute im Dateinamen: Import schlägt fehl",
    "日本語の見出しが切れる問題を直す",
    "Rename Customer to Account everywhere",
    "Race between the queue's ack and its timeout",
    "Add a health endpoint and document it in the runbook for whoever is on call at night",
)

FACTS: dict[str, Any] = {
    "health": {"state": "healthy", "line": "everything is linked"},
    "ledger": {
        "engine": "sqlite",
        "state": "running",
        "events": 1,
        "sessions": 1,
        "losses": 0,
        "bytes": 7_000_000,
        "left_sources": 0,
    },
    "memory": {
        "agents": [
            {
                "home": f"{HOME}/agent",
                "owned": f"{HOME}/agent/.memd/memory",
                "enrolled_at": "2026-02-03T10:00:00Z",
                "logins": [
                    {
                        "config_home": f"{HOME}/.claude",
                        "path": f"{HOME}/.claude/projects/k/memory",
                        "outcome": "linked",
                        "healed_at": "2026-02-03T10:00:00Z",
                        "reason": "",
                        "remedy": "",
                        "left_behind": [],
                    },
                    {
                        "config_home": f"{HOME}/.claude-work",
                        "path": f"{HOME}/.claude-work/projects/k/memory",
                        "outcome": "skipped",
                        "healed_at": None,
                        "reason": "a plain file is in the way",
                        "remedy": "Move it away.",
                        "left_behind": [],
                    },
                ],
            }
        ],
        "topics": {
            "store": f"{HOME}/.agents/memory",
            "is_shared": True,
            "topics": 3,
            "unlisted": 1,
            "config_error": "",
            "trouble": "",
        },
    },
}
"""What the daemon says of itself, as it stands in the document; one login is not well."""


class Weeks:
    """end: seconds since 1970 that the newest session comes up to; home: where the projects are"""

    def __init__(self, lines: Lines, *, end: float, home: str = HOME, seed: int = 11) -> None:
        self.lines = lines
        self.end = end
        self.home = home
        self.random = random.Random(seed)
        self.sessions: list[tuple[str, str, float, float, str]] = []

    def say(
        self,
        session: str,
        title: str,
        *,
        begin: float,
        events: int = 3,
        step: float = 60.0,
        harness: str = "claude",
        cwd: str = "",
        **facts: Any,
    ) -> None:
        cwd = cwd or f"{self.home}/{PROJECTS[0]}"
        entries = [
            entry(
                f"please look at the export again ({session} {number})"
                + " and again" * self.random.randint(0, 150),
                session=session,
                at=number,
                role="user" if number % 3 == 0 else "assistant",
                occurred_at=rfc3339(begin + number * step),
            )
            for number in range(events)
        ]
        losses: Sequence[Loss] = (
            [Loss(session=session, what="images", sentence="an image", count=2)] if events % 5 == 0 else []
        )
        about = Session(id=session, cwd=cwd, title=title, started=rfc3339(begin), **facts)
        self.lines.writer.append(batch(*entries, harness=harness, sessions=[about], losses=losses))
        self.sessions.append((harness, session, begin, begin + (events - 1) * step, cwd))

    def fill(self, *, days: int = 60, sessions: int = 160) -> None:
        """Working days busier than others, a week away, projects that come and go."""
        pick = self.random
        for number in range(sessions):
            while True:
                back = pick.random() ** 1.4 * days
                begin = self.end - back * DAY_S
                moment = datetime.datetime.fromtimestamp(begin, datetime.UTC)
                if not 30 < back < 37 and (moment.weekday() < 5 or pick.random() < 0.2):
                    break
            begin = max(begin - begin % DAY_S + pick.triangular(7, 22, 11) * 3600, self.end - days * DAY_S)
            events = min(max(2, int(pick.lognormvariate(2.8, 0.9))), 200)
            step = pick.uniform(20, 240)
            begin = min(begin, self.end - events * step - 60)
            self.say(
                f"{number:08x}-0000-4000-8000-{pick.randrange(1 << 48):012x}",
                pick.choice(TITLES) if number % 9 else "",
                begin=begin,
                events=events,
                step=step,
                harness=HARNESSES[min(int(pick.expovariate(0.9)), len(HARNESSES) - 1)],
                cwd=f"{self.home}/{PROJECTS[min(int(pick.expovariate(0.45)), len(PROJECTS) - 1)]}",
                version="2.1.197",
            )
            if number % 7 == 0:
                parent = self.sessions[-1]
                self.say(
                    f"side-{number}", "", begin=begin, events=4, harness=parent[0], cwd=parent[4],
                    is_side=True, parent=parent[1],
                )  # fmt: skip

    def work(self) -> None:
        """Workstreams with runs, links and handoffs; one run goes on."""
        main = [row for row in self.sessions if not row[1].startswith("side-")]
        for number, name in enumerate(("default", "login page", "größer", "postgres-17")):
            place = Place(
                workspace="default", project=f"p{number}", repository="r" * 64, worktree=f"{number}" * 64
            )
            row = workstream(f"w{number}", name=name, place=place)
            self.lines.work(lambda work, row=row: work.put_workstream(row))  # type: ignore[misc]
        for number, (harness, session, begin, end, cwd) in enumerate(main[::4]):
            self.lines.link(session, harness, workstream=f"w{number % 4}", is_current=False)
            state = "expired" if number % 13 == 5 else "finished"
            made = run(
                f"run-{number}", workstream=f"w{number % 4}", harness=harness, cwd=cwd.encode(),
                session=session,
                state=state, phase="exited", began_ms=int(begin * 1000), ended_ms=int(end * 1000) + 60_000,
                exit_code=1 if number % 9 == 4 else 0 if state == "finished" else None,
            )  # fmt: skip
            self.lines.work(lambda work, made=made: work.put_run(made))  # type: ignore[misc]
            if number % 6 == 0:
                self._leave(number, harness, session, end, cwd)
        now = run("run-now", workstream="w1", cwd=main[0][4].encode(), agent=AGENT, phase="running",
                  expires_ms=1 << 60, began_ms=int((self.end - 2400) * 1000))  # fmt: skip
        self.lines.work(lambda work: work.put_run(now))

    def _leave(self, number: int, harness: str, session: str, end: float, cwd: str) -> None:
        summary = self.random.choice(
            (
                "The port stays 8123; the proxy in front of it is not ours.",
                "The migration runs, but the trigger still fires twice.\n\nTry it with one worker first, then"
                " look at the log of the second one. What I changed so far is on the branch.",
            )
        )
        row = handoff(
            f"h{number}", project=f"p{number}", cwd=cwd.encode(), created_ms=int(end * 1000),
            expires_ms=int((self.end + DAY_S) * 1000), summary=summary, from_harness=harness,
            from_session=session,
            steps=("run the tests", "look at `worker.py`") if number % 4 else (),
            state="open" if number == 0 else "accepted" if number % 12 else "expired",
            taken_harness="codex" if number and number % 12 else "",
            ended_ms=0 if number == 0 else int(end * 1000) + 3_600_000,
        )  # fmt: skip
        self.lines.work(lambda work: work.put_handoff(row))


def rfc3339(at_s: float) -> str:
    moment = datetime.datetime.fromtimestamp(at_s, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ledger_of(home: Path) -> Path:
    """Where the ledger of a temporary home is kept; made if it is not there."""
    root = home / ".local/share/memd/ledger"
    root.mkdir(parents=True, mode=0o700, exist_ok=True)
    return root


def weeks(root: Path, *, end: float, home: str, **more: int) -> Weeks:
    """A filled ledger in that folder; nobody has it open afterwards."""
    clock = Clock()
    clock.wall_ms = int(end * 1000)
    with Lines(root, clock) as lines:
        made = Weeks(lines, end=end, home=home)
        made.fill(**more)
        made.work()
    return made
