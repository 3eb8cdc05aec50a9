"""What every adapter's hooks hold."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.harness import registry
from memd.harness.hooking import Heard, Hooks, command_words
from memd.harness.losses import CLASSES
from memd.harness.model import MAX_EVENT_BYTES, METADATA_KEYS, Environment, event_id

NAMES = [name for name, adapter in registry.adapters().items() if adapter.hooks is not None]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=20), inner, max_size=3),
    max_leaves=6,
)
SESSION = "0b7c3d1e-0000-4000-8000-000000000001"
VARIABLES = (
    "KIRO_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "XDG_CONFIG_HOME",
    "PI_CODING_AGENT_DIR",
    "OMP_PROFILE",
    "KIMI_CODE_HOME",
    "GROK_HOME",
)
KEYS = st.sampled_from(
    [
        "session_id",
        "sessionId",
        "cwd",
        "transcript_path",
        "source",
        "agent_id",
        "hookEventName",
        "is_inner",
        "reason",
        "conversationId",
        "workspacePaths",
        "toolCall",
        "stepIdx",
        "invocationNum",
        "error",
    ]
)


def hooks(name: str) -> Hooks:
    found = registry.resolve(name).hooks
    assert found is not None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_events_are_named_once_and_fit_a_shell(name: str) -> None:
    events = hooks(name).events
    assert len({event.name for event in events}) == len(events)
    assert any(event.role == "start" or event.may_tell for event in events)
    for event in events:
        words = command_words(name, event)
        assert words[:2] == (name, event.name)
        assert shlex.split(shlex.join(words)) == list(words)
        assert ("--wait" in words) is event.matters
        assert ("--else" in words) is bool(event.harmless)
        assert hooks(name).event(event.name) is event
    assert hooks(name).event("NoSuchEvent") is None


@pytest.mark.parametrize("name", NAMES)
def test_what_may_wait_is_what_is_answered(name: str) -> None:
    for event in hooks(name).events:
        assert event.matters is (event.role == "start")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_tell_is_as_harmless_as_a_failure(name: str) -> None:
    for event in hooks(name).events:
        assert hooks(name).answer(event.name, "") == event.harmless


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_printed_whole_within_its_wrapper(name: str) -> None:
    known = hooks(name)
    told = [event for event in known.events if event.role == "start" or event.may_tell]
    for event in told:
        known.answer(event.name, 'two\nlines "quoted" \\ 日本 \u2028 \udc80').encode("utf-8", "surrogatepass")
    assert max(len(known.answer(event.name, "x")) for event in told) == len(known.wrapper) + 1


@pytest.mark.parametrize("name", NAMES)
@given(payload=st.dictionaries(KEYS | st.text(max_size=10), JSON, max_size=9))
def test_any_payload_is_heard(name: str, payload: dict[str, object]) -> None:
    for event in hooks(name).events:
        heard = hooks(name).hear(event.name, payload)
        assert isinstance(heard, Heard)
        assert all(len(text) <= 4096 for text in (heard.session, heard.cwd, heard.transcript))


@pytest.mark.parametrize("name", [name for name in NAMES if hooks(name).events_of is not None])
@given(payload=st.dictionaries(KEYS | st.text(max_size=10), JSON, max_size=9), at_ms=st.integers(0, 1 << 41))
def test_any_payload_gives_a_bounded_text(name: str, payload: dict[str, object], at_ms: int) -> None:
    events_of = hooks(name).events_of
    assert events_of is not None
    for event in hooks(name).events:
        parsed = events_of(event.name, {**payload, "conversationId": SESSION}, at_ms)
        assert parsed == events_of(event.name, {**payload, "conversationId": SESSION}, at_ms)
        assert {told.session for told in (*parsed.events, *parsed.losses)} <= {SESSION}
        for told in parsed.events:
            assert len(told.content.encode("utf-8")) <= MAX_EVENT_BYTES
            assert event_id(name, told).startswith("native:")
            assert set(told.metadata) <= METADATA_KEYS
        for loss in parsed.losses:
            assert CLASSES[loss.what] == loss.sentence


@pytest.mark.parametrize("name", NAMES)
def test_only_texts_that_exist_nowhere_else_are_kept(name: str) -> None:
    for event in hooks(name).events:
        assert not event.keeps or hooks(name).events_of is not None


@pytest.mark.parametrize("value", [b"relative/", b"", b"../x"])
@pytest.mark.parametrize("name", NAMES)
def test_settings_are_absolute_whatever_the_variables_say(name: str, value: bytes) -> None:
    odd = dict.fromkeys(VARIABLES, value)
    for variables in ({}, odd):
        for settings in hooks(name).settings(Environment(home=b"/home/\xff", variables=variables)):
            assert settings.path.startswith(b"/home/\xff/")
            assert b"/../" not in settings.path
            assert bool(settings.source) is (settings.form == "file")
