"""What Kimi Code's hooks carry and are answered, as Kimi Code 2.1.0 was seen to send and take it."""

from __future__ import annotations

import pytest

from memd.harness.kimi_hooks import HOOKS
from memd.harness.model import Environment

PAYLOAD: dict[str, object] = {
    "hook_event_name": "UserPromptSubmit",
    "session_id": "session_1782c073-2184-4103-b4a8-c808a4410899",
    "cwd": "/home/dev/proj",
    "client_type": "kimi_code_cli",
    "prompt": [{"type": "text", "text": "hello"}],
    "is_steer": False,
}


@pytest.mark.parametrize(
    ("event", "role"),
    [("SessionStart", "link"), ("UserPromptSubmit", "start"), ("Stop", "activity"), ("SessionEnd", "end")],
)
def test_what_each_event_is_for_and_that_silence_is_harmless(event: str, role: str) -> None:
    known = HOOKS.event(event)
    assert known is not None
    assert (known.role, known.harmless, HOOKS.answer(event, "")) == (role, "", "")
    # one key more and an older Kimi refuses its whole configuration
    assert (known.matcher, known.timeout_s, known.output_bytes) == (None, 0, 0)


def test_a_text_is_told_at_the_prompt_as_it_is_and_nowhere_else() -> None:
    text = 'two\n"lines" \\'
    assert HOOKS.answer("UserPromptSubmit", text) == text
    assert HOOKS.wrapper == ""
    assert not HOOKS.is_escaped
    for event in ("SessionStart", "Stop", "SessionEnd"):
        assert HOOKS.answer(event, text) == ""


def test_only_the_first_prompt_of_a_conversation_is_its_start() -> None:
    assert [event.name for event in HOOKS.events if event.is_each_turn] == ["UserPromptSubmit"]


def test_session_and_directory_are_heard() -> None:
    heard = HOOKS.hear("UserPromptSubmit", PAYLOAD)
    assert (heard.session, heard.cwd) == (PAYLOAD["session_id"], "/home/dev/proj")
    assert not (heard.is_inner or heard.is_clear or heard.is_new or heard.is_again or heard.harness)


def test_a_start_says_whether_the_conversation_is_new() -> None:
    assert HOOKS.hear("SessionStart", {**PAYLOAD, "source": "startup"}).is_new
    assert not HOOKS.hear("SessionStart", {**PAYLOAD, "source": "resume"}).is_new


@pytest.mark.parametrize(
    ("value", "path"),
    [(None, b"/h/.kimi-code/config.toml"), (b"/k/", b"/k/config.toml"), (b" ", b"/h/.kimi-code/config.toml")],
)
def test_settings_are_in_the_kimi_home(value: bytes | None, path: bytes) -> None:
    variables = {} if value is None else {"KIMI_CODE_HOME": value}
    (found,) = HOOKS.settings(Environment(home=b"/h", variables=variables))
    assert (found.path, found.form) == (path, "toml-hooks")
