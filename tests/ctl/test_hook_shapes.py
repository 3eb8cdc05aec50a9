"""Our hooks in settings of Kiro's and Antigravity's shapes: every foreign byte stays as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.hooks.settings import Wanted
from memctl.hooks.shapes import FLAT, LISTED, NAMED, Shape
from memd.errors import Refused

COMMAND = "/usr/bin/python3 -I -S /d/memd/hook/memd_hook.py {} {} || true"
OLDER = "/old/python -I -S /d/memd/hook/memd_hook.py {} {} || true"


def wants(*events: str, command: str = COMMAND, **more: Any) -> list[Wanted]:
    return [Wanted(event=event, command=command.format("kiro", event), **more) for event in events]


KIRO = [*wants("agentSpawn", output_bytes=65536), *wants("userPromptSubmit")]
THIRD = [*wants("SessionStart", timeout_s=5), *wants("UserPromptSubmit", timeout_s=1)]
ANTIGRAVITY = [*wants("PreInvocation", "Stop"), *wants("PreToolUse", matcher="")]
ALL = [(FLAT, KIRO), (LISTED, THIRD), (NAMED, ANTIGRAVITY)]
shapes = pytest.mark.parametrize(("shape", "wanted"), ALL, ids=["flat", "listed", "named"])

AGENT = """{
  "name": "my-agent",  // mine
  "tools": ["*"],
  "hooks": {
    "stop": [{"command": "say"}]
  }
}
"""


def test_an_agent_of_kiro_gets_plain_commands_without_a_matcher() -> None:
    made = json.loads(FLAT.install('{"name": "a"}', KIRO).text)
    assert made == {
        "name": "a",
        "hooks": {
            "agentSpawn": [{"command": KIRO[0].command, "max_output_size": 65536}],
            "userPromptSubmit": [{"command": KIRO[1].command}],
        },
    }


def test_a_hook_file_of_kiro_names_each_hook() -> None:
    made = json.loads(LISTED.install("", THIRD).text)
    assert made["version"] == "v1"
    assert made["hooks"][0] == {
        "name": "memd-session-start",
        "trigger": "SessionStart",
        "action": {"type": "command", "command": THIRD[0].command},
        "timeout": 5,
        "enabled": True,
    }
    assert [hook["name"] for hook in made["hooks"]] == ["memd-session-start", "memd-user-prompt-submit"]


def test_antigravity_has_our_hooks_under_our_name() -> None:
    made = json.loads(NAMED.install('{"other": {"Stop": []}}', ANTIGRAVITY).text)
    assert made["other"] == {"Stop": []}
    assert made["memd"] == {
        "PreInvocation": [{"type": "command", "command": ANTIGRAVITY[0].command}],
        "Stop": [{"type": "command", "command": ANTIGRAVITY[1].command}],
        "PreToolUse": [{"matcher": "", "hooks": [{"type": "command", "command": ANTIGRAVITY[2].command}]}],
    }


@shapes
@pytest.mark.parametrize("text", ["", "\n", "{}", "{ }\n", '{"a": 1}', '{\n\t"a": [1, 2]\n}\n', AGENT])
def test_what_was_put_in_comes_out_again(shape: Shape, wanted: list[Wanted], text: str) -> None:
    if shape is LISTED and text.strip() not in ("", "{}", "{ }"):
        text = '{"version": "v1", "hooks": [ {"name": "x", "trigger": "Stop"} ]}\n'
    first = shape.install(text, wanted)
    assert [one.event for one in shape.found(first.text)] != []
    again = shape.install(first.text, wanted, first.hollow)
    assert again.text == first.text
    out = shape.uninstall(first.text, first.hollow)
    assert out.text == text
    assert shape.found(out.text) == ()
    assert shape.uninstall(out.text).text == out.text


def test_a_name_that_is_no_text_is_somebody_elses() -> None:
    text = '{"version": "v1", "hooks": [{"name": [{"type": "text"}], "trigger": "Stop"}, {"name": {}}, 7]}\n'
    made = LISTED.install(text, THIRD)
    assert LISTED.uninstall(made.text, made.hollow).text == text


@shapes
def test_an_older_command_is_brought_up_to_date_in_its_place(shape: Shape, wanted: list[Wanted]) -> None:
    older = [
        Wanted(event=one.event, command=OLDER.format("kiro", one.event), matcher=one.matcher,
               timeout_s=one.timeout_s, output_bytes=one.output_bytes)
        for one in wanted
    ]  # fmt: skip
    before = shape.install("", older).text
    made = shape.install(before, wanted).text
    assert made == before.replace("/old/python", "/usr/bin/python3")


@shapes
def test_a_hook_for_an_event_that_is_not_wanted_any_more_goes(shape: Shape, wanted: list[Wanted]) -> None:
    before = shape.install("", wanted)
    made = shape.install(before.text, wanted[:1], before.hollow)
    assert [one.event for one in shape.found(made.text)] == [wanted[0].event]


def test_a_matcher_or_a_short_output_in_kiro_is_put_right() -> None:
    command = KIRO[0].command
    for odd in (
        {"command": command, "matcher": ""},
        {"command": command},
        {"command": command, "max_output_size": 9},
    ):
        made = json.loads(FLAT.install(json.dumps({"hooks": {"agentSpawn": [odd]}}), KIRO).text)
        assert made["hooks"]["agentSpawn"] == [{"command": command, "max_output_size": 65536}]


def test_a_longer_command_with_ours_in_it_is_left() -> None:
    text = json.dumps({"hooks": {"agentSpawn": [{"command": f"log; {KIRO[0].command}; done"}]}})
    made = FLAT.install(text, KIRO)
    assert made.mixed == ("agentSpawn",)
    assert json.loads(made.text)["hooks"]["agentSpawn"] == json.loads(text)["hooks"]["agentSpawn"]
    assert FLAT.uninstall(made.text, made.hollow).text == text


def test_hooks_of_others_stay_beside_ours() -> None:
    text = '{"version":"v1","hooks":[{"name":"x","trigger":"SessionStart","action":{"type":"agent"}}]}'
    made = LISTED.install(text, THIRD)
    assert json.loads(made.text)["hooks"][0] == json.loads(text)["hooks"][0]
    assert LISTED.uninstall(made.text, made.hollow).text == text


@pytest.mark.parametrize(
    "text",
    [
        '{"version": "v2", "hooks": []}',
        '{"hooks": []}',
        '{"version": "v1", "hooks": {}}',
        '{"version":"v1","hooks":[{"name":"memd-session-start","trigger":"Stop","action":{"command":"x"}}]}',
        "[]",
        "{",
    ],
)
def test_a_hook_file_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        LISTED.install(text, THIRD)


@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"agentSpawn": {}}}', "7", "{"])
def test_an_agent_with_something_else_where_hooks_should_be_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        FLAT.install(text, KIRO)


@pytest.mark.parametrize("text", ['{"memd": []}', '{"memd": {"Stop": 1}}', "null"])
def test_something_else_under_our_name_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        NAMED.install(text, ANTIGRAVITY)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["hooks", "memd", "command", "matcher", "Stop", "agentSpawn", "name", "trigger", "action"]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@shapes
@given(document=st.dictionaries(st.sampled_from(["hooks", "memd", "version", "x"]), VALUES, max_size=4),
       indent=st.sampled_from([None, 2]))  # fmt: skip
def test_anything_is_refused_or_comes_back(
    shape: Shape, wanted: list[Wanted], document: dict[str, Any], indent: int | None
) -> None:
    text = json.dumps(document, indent=indent)
    try:
        made = shape.install(text, wanted)
    except Refused:
        return
    assert len(shape.found(made.text)) == len(wanted)
    assert shape.uninstall(made.text, made.hollow).text == text
