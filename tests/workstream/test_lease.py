"""The lease of a run: what it is worth at a moment, whatever the clock, the processes and the machine do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.ledger.store.workstreams import Moment, Phase, Process, Run, RunGone, State
from memd.workstream import lease
from memd.workstream.lease import BEAT_S, LEASE_S, Seen
from support_workstreams import AGENT, LAUNCHER, WALL_MS, run

BOOT = "boot-1"


def at(seconds: float, boot: str = BOOT, wall_s: float | None = None) -> Moment:
    wall = seconds if wall_s is None else wall_s
    return Moment(boot=boot, ms=int(seconds * 1000), wall_ms=WALL_MS + int(wall * 1000))


def opened(seconds: float = 0, **more: object) -> Run:
    return lease.opened(run(**more), at(seconds))


def seeing(launcher: Seen, agent: Seen) -> lease.See:
    return lambda process: {LAUNCHER: launcher, AGENT: agent}[process]


@pytest.mark.parametrize(
    ("seconds", "worth"), [(0, "held"), (89.999, "held"), (90, "lapsed"), (4000, "lapsed")]
)
def test_without_evidence_the_clock_decides(seconds: float, worth: str) -> None:
    assert lease.standing(opened(), at(seconds)) == worth


@pytest.mark.parametrize("wall_s", [-2 * 86400, 3 * 86400, -WALL_MS / 1000, 248_147_647])
def test_the_wall_clock_is_of_no_account(wall_s: float) -> None:
    assert lease.standing(opened(), at(89, wall_s=wall_s)) == "held"
    assert lease.standing(opened(), at(91, wall_s=wall_s)) == "lapsed"


@pytest.mark.parametrize("suspended_s", [90, 3600])
def test_time_asleep_counts(suspended_s: float) -> None:
    assert lease.standing(opened(), at(1 + suspended_s)) == "lapsed"


@pytest.mark.parametrize("stopped_s", [30, 89, 91, 600])
def test_a_launcher_that_was_stopped_comes_back_while_nobody_claimed(stopped_s: float) -> None:
    late = lease.renewed(opened(), at(stopped_s))
    assert lease.standing(late, at(stopped_s + 89)) == "held"


def test_after_a_reboot_every_lease_is_void() -> None:
    assert lease.standing(opened(), at(1, boot="boot-2")) == "free"
    assert lease.standing(opened(), at(1, boot="boot-2"), "alive") == "free"
    with pytest.raises(RunGone, match="started anew"):
        lease.renewed(opened(), at(1, boot="boot-2"))


@pytest.mark.parametrize(
    ("launcher", "agent", "phase", "seen"),
    [
        ("alive", "alive", "running", "alive"),
        ("alive", "gone", "running", "alive"),
        ("gone", "alive", "running", "alive"),
        ("unknown", "alive", "running", "alive"),
        ("gone", "gone", "running", "gone"),
        ("gone", "unknown", "running", "unknown"),
        ("unknown", "gone", "running", "unknown"),
        ("gone", None, "prepared", "gone"),
        ("gone", None, "planned", "unknown"),
        ("alive", None, "planned", "alive"),
        ("gone", None, "running", "unknown"),
        ("gone", "alive", "exited", "gone"),
        ("alive", "gone", "exited", "alive"),
    ],
)
def test_a_holder_is_gone_only_when_nothing_of_it_can_be_left(
    launcher: Seen, agent: Seen | None, phase: Phase, seen: Seen
) -> None:
    held = opened(phase=phase, agent=None if agent is None else AGENT)
    assert lease.evidence(held, seeing(launcher, agent or "unknown")) == seen


def test_a_lease_is_free_at_once_when_its_holder_is_gone() -> None:
    assert lease.standing(opened(), at(1), "gone") == "free"


def test_a_living_holder_keeps_the_lease_however_late_it_is() -> None:
    assert lease.standing(opened(), at(4000), "alive") == "held"


@pytest.mark.parametrize("state", ["finished", "cancelled", "expired"])
def test_a_run_that_is_over_stays_over(state: State) -> None:
    over = lease.ended(opened(), at(5), state, 3)
    assert (over.state, over.exit_code, over.ended_ms) == (state, 3, WALL_MS + 5000)
    assert lease.standing(over, at(5)) == "free"
    assert lease.ended(over, at(9), "cancelled") == over
    with pytest.raises(RunGone):
        lease.renewed(over, at(6))


def test_a_run_that_nobody_knows_is_over() -> None:
    with pytest.raises(RunGone):
        lease.renewed(None, at(0))


def test_beats_come_well_within_a_lease() -> None:
    assert BEAT_S * 2 < LEASE_S


def test_the_refusal_names_the_holder_and_since_when() -> None:
    held = replace(opened(), agent=AGENT)
    said = lease.conflict(held, "default", at(600))
    text = str(said)
    assert text.startswith("workstream is already active:")
    for word in ("claude", "'default'", "4242", "4243", "10 min ago", "since 20"):
        assert word in text
    assert (said.code, said.exit_status) == ("busy", 75)
    assert "--wait" in said.remedy
    assert "another 31 s" in str(lease.conflict(held, "default", at(59.5)))


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["prepare", "beat", "finish", "cancel", "wait", "reboot", "die", "step"]),
        st.integers(0, 3),
        st.sampled_from([0, 1, 30, 89, 90, 91, 4000]),
    ),
    max_size=40,
)


class Table:
    """One workstream, and everybody who has ever held a run of it."""

    def __init__(self) -> None:
        self.now_s = 0
        self.boot = 1
        self.runs: list[Run] = []
        self.mine: dict[int, int] = {}  # who believes to hold which run
        self.dead: set[int] = set()

    def moment(self) -> Moment:
        return at(self.now_s, boot=f"boot-{self.boot}")

    def see(self, process: Process) -> Seen:
        return "gone" if process.pid in self.dead else "unknown"

    def prepare(self, who: int) -> None:
        for number, held in enumerate(self.runs):
            if held.state != "active":
                continue
            seen = lease.evidence(held, self.see)
            if lease.standing(held, self.moment(), seen) == "held":
                return
            self.runs[number] = lease.ended(held, self.moment(), "expired")
        self.dead.discard(who)
        fresh = run(str(len(self.runs)), launcher=Process(who))
        self.runs.append(lease.opened(fresh, self.moment()))
        self.mine[who] = len(self.runs) - 1

    def act(self, act: str, who: int, seconds: int) -> None:
        number = self.mine.get(who)
        if act == "prepare":
            self.prepare(who)
        elif act == "wait":
            self.now_s += seconds
        elif act == "reboot":
            self.boot += 1
            self.now_s = 0
        elif act == "die":
            self.dead.add(who)
        elif number is not None and act == "beat":
            try:
                self.runs[number] = lease.renewed(self.runs[number], self.moment())
            except RunGone:
                del self.mine[who]
        elif number is not None and act in ("finish", "cancel"):
            state: State = "finished" if act == "finish" else "cancelled"
            self.runs[number] = lease.ended(self.runs[number], self.moment(), state)

    def holders(self) -> list[int]:
        return [number for number, held in enumerate(self.runs) if held.state == "active"]


@given(ACTS)
def test_there_are_never_two_holders_and_no_run_comes_back(acts: list[tuple[str, int, int]]) -> None:
    table = Table()
    over: set[int] = set()
    for act, who, seconds in acts:
        table.act(act, who, seconds)
        holders = table.holders()
        assert len(holders) <= 1
        assert not over.intersection(holders)
        over.update(number for number, held in enumerate(table.runs) if held.state != "active")


@given(ACTS)
def test_a_silent_holder_loses_nothing_while_nobody_comes(acts: list[tuple[str, int, int]]) -> None:
    table = Table()
    table.prepare(9)
    for act, who, seconds in acts:
        if act in ("wait", "beat"):
            table.act(act, who, seconds)
    table.act("beat", 9, 0)
    assert table.holders() == [0]
    assert lease.standing(table.runs[0], table.moment()) == "held"
