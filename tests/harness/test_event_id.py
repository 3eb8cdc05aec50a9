"""The id of an event never changes: ledgers of every version and machine know events by it."""

from __future__ import annotations

import hashlib

import pytest

from memd.harness.model import Event, event_id


@pytest.mark.parametrize("content", ["", "a word", "é \U0001f600", "half \ud83d", "nul \0 and \x1b[1m"])
def test_an_id_is_the_digest_of_what_the_harness_wrote(content: str) -> None:
    event = Event(session="s", origin="r1", kind="message", role="user", content=content, at=7, block=2)
    raw = content.encode("utf-8", "surrogatepass")
    expected = "native:" + hashlib.sha256(b"claude\0r1\x002\0message\0" + raw + b"\0").hexdigest()
    assert event_id("claude", event) == event_id("claude", event, raw) == expected
