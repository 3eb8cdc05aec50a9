"""Antigravity's list of prompts: whose each line is, and the first one, which says nothing of that."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from memd.harness.antigravity import ADAPTER
from memd.harness.antigravity_history import LARGE_LINE_BYTES, opener
from memd.harness.model import Event, event_id
from support_antigravity import CWD, FIXTURES, T0, Antigravity, U
from support_imports import Reading, losses_of, readings

ME, OTHER = U.format(1), U.format(2)


@pytest.fixture
def made(tmp_path: Path) -> Antigravity:
    return Antigravity(tmp_path)


def only(made: Antigravity) -> Reading:
    (reading,) = readings(made.folder.parents[1], "antigravity")
    return reading


def texts(made: Antigravity, session: str = ME) -> list[str]:
    return [event.content for event in only(made).events if event.session == session]


def lost(made: Antigravity, session: str = ME) -> Counter[str]:
    return losses_of([only(made)], session)


def test_each_conversation_has_its_own_prompts_in_order(made: Antigravity) -> None:
    for number in range(6):
        made.prompt(f"text {number}", (ME, OTHER)[number % 2], time=T0 + number)
    assert texts(made) == ["text 0", "text 2", "text 4"]
    assert texts(made, OTHER) == ["text 1", "text 3", "text 5"]
    assert only(made).events[0].occurred_at == "2026-02-02T02:40:00.000Z"
    told = [session for part in only(made).parts for session in part.sessions]
    assert {(session.id, session.cwd) for session in told} == {(ME, CWD), (OTHER, CWD)}


def test_losses_are_those_of_lines_that_name_their_conversation() -> None:
    (reading,) = readings(FIXTURES / "odd", "antigravity")
    assert losses_of([reading], U.format(20)) == {
        "command": 1,
        "unknown-type": 1,
        "unknown-shape": 5,
        "own-packet": 1,
    }
    assert {loss.session for part in reading.parts for loss in part.losses} == {U.format(20)}


def test_a_line_that_cannot_be_read_is_a_loss_only_of_whom_it_names(made: Antigravity) -> None:
    made.raw('{"display":"torn","conversationId":"' + ME + '", \n')
    made.raw('{"display":"torn SECRET\n\n[]\nnull\n')
    assert only(made).events == []
    assert lost(made) == {"malformed": 1}
    assert only(made).losses() == {"malformed": 1}


def test_another_directory_than_the_conversation_s_is_a_loss(made: Antigravity) -> None:
    made.prompt("here", ME)
    made.prompt("there", ME, cwd="/elsewhere")
    made.prompt("there", OTHER, cwd="/elsewhere")
    assert texts(made) == ["here"]
    assert lost(made) == {"elsewhere": 1}
    assert texts(made, OTHER) == ["there"]


def test_a_long_prompt_is_kept_shortened(made: Antigravity) -> None:
    made.prompt("x" * (LARGE_LINE_BYTES + 1), ME)
    made.prompt("short", OTHER)
    assert [len(text) for text in texts(made)] == [LARGE_LINE_BYTES + 1]
    assert lost(made) == {"shortened": 1}
    assert lost(made, OTHER) == {}


def test_an_id_that_is_no_id_names_nobody(made: Antigravity) -> None:
    for odd in ("../x", "-rf", "", "not-a-uuid", ME + "/..", 7, None, ["x"]):
        made.prompt("SECRET", conversationId=odd)
    assert only(made).events == []
    assert only(made).losses() == {}


def test_an_unfinished_line_waits_and_a_rewritten_file_gives_the_same_ids(made: Antigravity) -> None:
    made.prompt("one", ME)
    made.raw('{"display":"two"')
    before = [event_id("antigravity", event) for event in only(made).events]
    assert len(before) == 1
    first = made.history.read_text().splitlines()[0]
    made.history.write_text("")
    made.prompt("zero", ME, time=T0 - 1)
    made.raw(first + "\n")
    assert [event_id("antigravity", event) for event in only(made).events][1:] == before


def test_odd_bytes_are_replaced(made: Antigravity) -> None:
    made.prompt("halfMARK", ME)
    made.prompt("oddMARK", ME)
    data = made.history.read_bytes()
    made.history.write_bytes(data.replace(b"halfMARK", rb"half\ud83d").replace(b"oddMARK", b"odd\xff"))
    assert texts(made) == ["half\ufffd", "odd\ufffd"]
    assert lost(made) == {"encoding": 1}


# -------------------------------------------------------------------------------- the first prompt


class Near:
    """A folder made of words: the list as it is written, births as they are said."""

    def __init__(self, made: Antigravity, **born: int) -> None:
        self.made = made
        self.births = {f"conversations/{name}.db".encode(): moment for name, moment in born.items()}

    def names(self, folder: bytes) -> list[bytes]:
        return [path.rpartition(b"/")[2] for path in self.births if path.startswith(folder + b"/")]

    def read(self, path: bytes) -> bytes | None:
        return (self.made.folder / path.decode()).read_bytes()

    def born(self, path: bytes) -> int:
        return self.births.get(path, 0)


def first(made: Antigravity, now_ms: int = T0 + 60_000, **others: int) -> tuple[Event | None, bool]:
    """Of a conversation born a tenth of a second after T0."""
    births = {ME: T0 + 100, **others}
    return opener(ME, CWD, births[ME], Near(made, **births), now_ms)


def test_a_line_within_five_seconds_of_the_birth_is_the_first_prompt(made: Antigravity) -> None:
    made.prompt("start the migration", time=T0)
    event, is_settled = first(made)
    assert event is not None
    assert (event.content, event.session, event.role) == ("start the migration", ME, "user")
    assert event.metadata == {"status": "inferred"}
    assert is_settled
    assert ADAPTER.around is not None


@pytest.mark.parametrize("time", [T0 - 4901, T0 + 5101])
def test_one_further_away_is_not(made: Antigravity, time: int) -> None:
    made.prompt("other", time=time)
    assert first(made) == (None, True)


def test_two_lines_are_too_many_and_one_of_another_directory_is_none(made: Antigravity) -> None:
    made.prompt("one", time=T0)
    made.prompt("elsewhere", time=T0, cwd="/elsewhere")
    assert first(made)[0] is not None
    made.prompt("two", time=T0 + 4000)
    assert first(made) == (None, True)


def test_another_conversation_born_about_then_leaves_it_open_whose_it_is(made: Antigravity) -> None:
    made.prompt("one", time=T0)
    assert first(made, **{OTHER: T0 + 5001})[0] is not None
    assert first(made, **{OTHER: T0 + 4999}) == (None, True)
    assert first(made, **{OTHER: 0}) == (None, True)  # nobody knows when that one was


def test_nothing_is_settled_while_another_line_may_come(made: Antigravity) -> None:
    made.prompt("one", time=T0)
    assert first(made, now_ms=T0 + 1000) == (None, False)
    made.prompt("later", ME, time=T0 + 6000)
    event, is_settled = first(made, now_ms=T0 + 1000)
    assert event is not None
    assert is_settled


def test_without_a_time_of_birth_nothing_is_inferred(made: Antigravity) -> None:
    made.prompt("one", time=T0)
    assert opener(ME, CWD, 0, Near(made), T0) == (None, True)


def test_a_command_is_no_first_prompt(made: Antigravity) -> None:
    made.prompt("/model", time=T0, type="slash_command")
    assert first(made) == (None, True)


def test_the_inferred_prompt_is_the_one_the_list_would_have_given(made: Antigravity) -> None:
    """Nothing is doubled, were a later version to write the id into the same line."""
    made.prompt("one", time=T0)
    event, _ = first(made)
    assert event is not None
    again, _ = first(made)
    assert again is not None
    assert event_id("antigravity", event) == event_id("antigravity", again)
    assert event.at == 0
