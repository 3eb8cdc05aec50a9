"""The launcher's own side: words, waiting for a workstream, and the connection while a child runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memctl import client, launcher
from memctl import tether as tether_module
from memctl.commands.run import split
from memctl.conversation import Broken
from memctl.launcher import Order
from memctl.tether import ANSWER_S, Tether
from memd import protocol
from memd import protocol_runs as runs
from memd.errors import Unavailable


@pytest.mark.parametrize(
    ("words", "own", "rest"),
    [
        ("run", "run", ""),
        ("run --yolo", "run --yolo", ""),
        ("run claude", "run", "claude"),
        ("run claude --yolo --help", "run", "claude --yolo --help"),
        ("run --new side claude -p", "run --new side", "claude -p"),
        ("run --new=side claude", "run --new=side", "claude"),
        ("run --workspace w --wait codex resume x", "run --workspace w --wait", "codex resume x"),
        ("run --executable ./x claude", "run --executable ./x", "claude"),
        ("run -- claude --model x", "run", "claude --model x"),
        ("run --fresh - x", "run --fresh", "- x"),
        ("run --new", "run --new", ""),
        ("run claude run -- x", "run", "claude run -- x"),
    ],
)
def test_what_stands_from_the_name_on_is_the_agents(words: str, own: str, rest: str) -> None:
    assert split(words.split()) == (own.split(), rest.split())


def busy() -> client.Rejected:
    return client.Rejected(
        protocol.Failure(code="busy", message="workstream is already active", remedy="Wait.", exit_status=75)
    )


class Line:
    """A conversation whose answers the test gives; `said` is what was told it."""

    def __init__(self) -> None:
        self.said: list[runs.AnyStep] = []
        self.answers: list[Any] = []
        self.is_open = True
        self.ready = True
        self.opened = 0
        self.refuses = 0
        self.patience: list[float] = []  # how long each answer was waited for
        self.on_hear: Callable[[float], None] = lambda _timeout_s: None
        read, self._write = os.pipe()
        self._read = read

    def fileno(self) -> int:
        return self._read

    def open(self, *, start: bool, timeout_s: float = 0) -> None:
        self.opened += 1
        if self.refuses:
            self.refuses -= 1
            raise Broken("nobody listens")
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def tell(self, step: runs.AnyStep) -> None:
        if not self.is_open:
            raise Broken("not connected")
        self.said.append(step)

    def hear(self, expect: type[runs.Answer], *, timeout_s: float = 0) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            if isinstance(answer, Broken):
                self.is_open = False
            raise answer
        return answer

    def say(self, step: runs.AnyStep, expect: type[runs.Answer], *, timeout_s: float = 60.0, **_: Any) -> Any:
        self.tell(step)
        self.patience.append(timeout_s)
        self.on_hear(timeout_s)
        return self.hear(expect)

    def end(self) -> None:
        os.close(self._read)
        os.close(self._write)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(launcher, "time", made)
    monkeypatch.setattr(tether_module, "time", made)
    return made


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.end()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(launcher, "say", lines.append)
    monkeypatch.setattr(tether_module, "say", lines.append)
    return lines


READY = runs.Ready(
    run="r1", workstream="default", workstream_id="w1", workspace="default", project="p", harness="claude"
)
PREPARE = runs.Prepare(cwd=b"/w")


def order(**more: Any) -> Order:
    return Order(word="claude", native=(), **more)


def test_a_workstream_that_is_free_at_the_third_try_is_taken(
    line: Line, clock: Clock, told: list[str]
) -> None:
    line.answers = [busy(), busy(), READY]
    assert launcher._prepared(line, order(), PREPARE) is READY  # type: ignore[arg-type]
    assert [step.is_retry for step in line.said if isinstance(step, runs.Prepare)] == [False, True, True]
    assert clock.slept == [0.25, 0.25]
    assert len(told) == 1
    assert "waiting briefly" in told[0]


def test_after_five_seconds_it_is_given_up_with_the_holder_named(
    line: Line, clock: Clock, told: list[str]
) -> None:
    line.answers = [busy() for _ in range(100)]
    with pytest.raises(client.Rejected, match="already active"):
        launcher._prepared(line, order(), PREPARE)  # type: ignore[arg-type]
    assert sum(clock.slept) == 5.0
    assert len(told) == 1


def test_wait_waits_as_long_as_it_takes(line: Line, clock: Clock, told: list[str]) -> None:
    line.answers = [*(busy() for _ in range(1000)), READY]
    assert launcher._prepared(line, order(is_waiting=True), PREPARE) is READY  # type: ignore[arg-type]
    assert sum(clock.slept) == 250.0
    assert len(told) == 1


def test_any_other_refusal_is_final(line: Line, clock: Clock, told: list[str]) -> None:
    taken = protocol.Failure(code="taken", message="it exists", remedy="Choose.", exit_status=64)
    line.answers = [client.Rejected(taken)]
    with pytest.raises(client.Rejected, match="it exists"):
        launcher._prepared(line, order(is_waiting=True), PREPARE)  # type: ignore[arg-type]
    assert told == []


# ------------------------------------------------------------------------ while the child runs


@pytest.fixture
def input_is(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Whether something came over the connection."""

    def is_there(there: bool) -> None:
        monkeypatch.setattr(Tether, "_has_input", lambda self: there)

    is_there(False)
    return is_there


@pytest.fixture
def tether(line: Line, clock: Clock, told: list[str], input_is: Callable[[bool], None]) -> Tether:
    made = Tether(line, READY)  # type: ignore[arg-type]
    made.begin(77)
    return made


def names(line: Line) -> list[str]:
    return [type(step).__name__ for step in line.said]


def test_the_child_is_told_of_and_then_nothing_is_said(
    tether: Tether, line: Line, input_is: Callable[[bool], None]
) -> None:
    assert tether.serve() == ANSWER_S
    input_is(True)
    line.answers = [runs.Noted()]
    assert tether.serve() is None
    input_is(False)
    assert tether.serve() is None
    assert line.said == [runs.Started(run="r1", pid=77)]
    assert tether.unsaid() == []


def established(tether: Tether, line: Line, input_is: Callable[[bool], None]) -> None:
    tether.serve()
    input_is(True)
    line.answers = [runs.Noted()]
    tether.serve()
    input_is(False)
    line.said.clear()


def until_open(tether: Tether, line: Line, clock: Clock) -> None:
    """Let time pass as the tether wants it, until a daemon answers."""
    while True:
        left = tether.serve()
        if line.is_open:
            return
        assert left is not None
        clock.now += left


def test_a_short_outage_is_worth_no_word(
    tether: Tether, line: Line, clock: Clock, told: list[str], input_is: Callable[[bool], None]
) -> None:
    established(tether, line, input_is)
    line.refuses = 2
    input_is(True)  # the daemon says nothing by itself: this is the end of the connection
    tether.serve()
    input_is(False)
    until_open(tether, line, clock)
    assert names(line) == ["TakeUp"]
    input_is(True)
    line.answers = [runs.Noted()]
    tether.serve()
    assert told == []
    assert tether.unsaid() == []


def test_a_long_one_is_told_once_and_its_end_too_and_so_is_the_next(
    tether: Tether, line: Line, clock: Clock, told: list[str], input_is: Callable[[bool], None]
) -> None:
    established(tether, line, input_is)
    for number in (1, 2):
        line.refuses = 40
        input_is(True)
        tether.serve()
        input_is(False)
        until_open(tether, line, clock)
        assert len(told) == 2 * number - 1
        assert "memd is away" in told[-1]
        input_is(True)
        line.answers = [runs.Noted()]
        tether.serve()
        input_is(False)
        assert len(told) == 2 * number
        assert "memd is back" in told[-1]
    assert clock.now > 250  # it did not try all the time


def test_what_was_not_answered_is_said_again_after_the_run_was_taken_up(
    tether: Tether, line: Line, clock: Clock, input_is: Callable[[bool], None]
) -> None:
    tether.serve()
    input_is(True)
    line.answers = [Broken("gone")]
    tether.serve()
    input_is(False)
    tether.serve()
    input_is(True)
    line.answers = [runs.Noted(), runs.Noted()]
    tether.serve()
    tether.serve()
    assert names(line) == ["Started", "TakeUp", "Started"]
    assert tether.unsaid() == []


def test_a_daemon_that_does_not_answer_is_left_and_tried_again(
    tether: Tether, line: Line, clock: Clock, input_is: Callable[[bool], None]
) -> None:
    tether.serve()
    clock.now += ANSWER_S
    tether.serve()
    assert not line.is_open
    clock.now += 1
    tether.serve()
    assert line.is_open


def test_a_run_that_is_over_for_memd_is_told_once_and_followed_no_more(
    tether: Tether, line: Line, told: list[str], input_is: Callable[[bool], None]
) -> None:
    tether.serve()
    input_is(True)
    gone = protocol.Failure(code="gone", message="run r1 is over", remedy="Start.", exit_status=75)
    line.answers = [client.Rejected(gone)]
    assert tether.serve() is None
    assert tether.is_over
    assert tether.serve() is None
    assert len(told) == 1
    launcher._close(tether, 0)
    assert names(line) == ["Started"]


# ---------------------------------------------------------------------------------- the end


CLOSED = runs.Closed(workstream="default", events=1, notices=("one notice",))


def test_the_end_is_told_after_whatever_was_not_answered_yet(
    tether: Tether, line: Line, told: list[str], input_is: Callable[[bool], None]
) -> None:
    line.answers = [runs.Noted(), CLOSED]
    launcher._close(tether, 3)
    assert line.said == [runs.Started(run="r1", pid=77), runs.Exited(run="r1", code=3)]
    assert told == ["one notice", "workstream 'default': 1 new event"]


def test_the_end_is_told_again_until_somebody_hears_it(
    tether: Tether, line: Line, clock: Clock, told: list[str]
) -> None:
    line.answers = [runs.Noted(), Broken("cut"), runs.Noted(), Broken("cut"), runs.Noted(), CLOSED]
    launcher._close(tether, 3)
    assert names(line) == ["Started", "Exited", "TakeUp", "Exited", "TakeUp", "Exited"]
    assert clock.slept == [0.25, 0.5]
    assert told[-1] == "workstream 'default': 1 new event"


def test_what_cannot_be_told_is_said_to_the_person_and_fails_nothing(
    tether: Tether, line: Line, clock: Clock, told: list[str]
) -> None:
    line.is_open = False
    line.refuses = 99
    launcher._close(tether, 3)
    assert clock.slept == [0.25, 0.5, 0.75]
    assert line.opened == 4
    [only] = told
    assert "by itself" in only


def test_a_daemon_that_hangs_holds_the_prompt_for_twenty_seconds_at_most(
    tether: Tether, line: Line, clock: Clock, told: list[str]
) -> None:
    def hang(timeout_s: float) -> None:
        clock.now += timeout_s
        line.answers = [Broken("it does not answer")]

    line.on_hear = hang
    began = clock.now
    launcher._close(tether, 3)
    assert clock.now - began <= 21
    [only] = told
    assert "did not answer within 20 s" in only
    assert "closes it, and reads what was written, by itself" in only


def test_the_time_for_the_end_is_not_given_anew_to_each_try(
    tether: Tether, line: Line, clock: Clock, told: list[str]
) -> None:
    line.answers = [runs.Noted(), Broken("cut"), runs.Noted(), CLOSED]
    line.on_hear = lambda _timeout_s: setattr(clock, "now", clock.now + 4.0)
    launcher._close(tether, 3)
    assert line.patience == [10.0, 16.0, 10.0, 7.75]
    assert told[-1] == "workstream 'default': 1 new event"


def test_a_daemon_that_cannot_be_started_at_the_end_fails_nothing(
    tether: Tether, line: Line, clock: Clock, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line.is_open = False

    def opened(*, start: bool, timeout_s: float = 0) -> None:
        if start:
            raise Unavailable("memd did not start")
        raise Broken("nobody")

    monkeypatch.setattr(line, "open", opened)
    launcher._close(tether, 3)
    assert "memd did not start" in told[0]


@pytest.mark.parametrize("impatience", [KeyboardInterrupt])
def test_who_does_not_want_to_wait_for_the_end_need_not(
    tether: Tether, line: Line, told: list[str], impatience: type[BaseException]
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise impatience

    line.say = interrupted  # type: ignore[method-assign]
    launcher._close(tether, 3)
    assert told == ["memd closes the run by itself"]
