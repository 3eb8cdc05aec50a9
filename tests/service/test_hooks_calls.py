"""What is made of a hook's message, whatever is in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.errors import BadRequest
from memd.service.hook_calls import Call, heard, payload_of, read

RUN = "0199a000-0000-7000-8000-00000000b001"


def test_five_fields_and_a_payload() -> None:
    call = read(b"claude\0Stop\0/w \xff\0" + RUN.encode() + b'\x0042\0{"a":"\\u0000"}')
    expected = Call(harness="claude", event="Stop", cwd=b"/w \xff", run=RUN, pid=42, payload={"a": "\0"})
    assert call == expected


@pytest.mark.parametrize("run", ["", "x", RUN[:-1], RUN + "0", RUN.upper(), RUN + "\n", "٠199a000-0000-7000"])
def test_a_run_id_that_is_not_well_formed_is_none(run: str) -> None:
    assert read(b"c\0e\0/\0" + run.encode() + b"\x001\0").run == ""


@pytest.mark.parametrize("pid", [b"", b"-1", b"1.5", b"99999999999999999999", "٣".encode()])
def test_an_odd_pid_is_not_known(pid: bytes) -> None:
    assert read(b"c\0e\0/\0\0" + pid + b"\0").pid == 0


@given(st.binary(max_size=200) | st.lists(st.binary(max_size=9), max_size=9).map(b"\0".join))
def test_any_bytes_are_a_call(body: bytes) -> None:
    call = read(body)
    assert isinstance(call.payload, dict)
    try:
        heard(call)
    except BadRequest:
        pass


@pytest.mark.parametrize(
    ("stdin", "payload"),
    [
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b' \n{"a":"\xff"} ', {"a": "\ufffd"}),
        (b'{"a":"\\ud83d"}', {"a": "\ufffd"}),
        (b'{"a":1', {}),
        (b'{"session_id":"s","cwd":"/w","prompt":"cut he', {"session_id": "s", "cwd": "/w"}),
        (
            b'{"n":-1.5e3,"t":true,"z":null,"e":"\\"}","x":{"y":1',
            {"n": -1500.0, "t": True, "z": None, "e": '"}'},
        ),
        (b"[1]", {}),
        (b'"text"', {}),
        (b"", {}),
        (b"\0\0", {}),
        (b"[" * 100_000, {}),
        (b'{"a":' * 100_000, {}),
    ],
)
def test_a_payload_that_is_damaged_gives_what_can_be_read(stdin: bytes, payload: dict[str, object]) -> None:
    assert payload_of(stdin) == payload


def test_a_payload_that_was_cut_in_a_long_text_still_says_whose_it_is() -> None:
    cut = b'{"session_id":"s","transcript_path":"/t","prompt":"' + b"x\\n" * (6 << 20)
    assert payload_of(cut) == {"session_id": "s", "transcript_path": "/t"}


@pytest.mark.parametrize(
    ("harness", "event"), [("nobody", "Stop"), ("claude", "NoSuch"), ("", ""), ("claude", "")]
)
def test_what_nobody_listens_to_is_refused(harness: str, event: str) -> None:
    with pytest.raises(BadRequest):
        heard(Call(harness=harness, event=event))


def test_other_words_for_a_harness_are_understood() -> None:
    assert heard(Call(harness="claude-code", event="Stop")).adapter.name == "claude"
