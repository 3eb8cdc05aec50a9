"""Our hooks in somebody's JSON settings: all that is theirs stays, and goes back to what it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memctl.hooks import command as hook_command
from memctl.hooks.settings import Wanted, found, install, uninstall
from memctl.json_edit import parse
from memd.errors import Refused

RUN = "/usr/bin/python3.11 -I -S /h/hook/memd_hook.py claude "
WANTED = (
    Wanted(event="SessionStart", command=RUN + "SessionStart --wait", timeout_s=10),
    Wanted(event="Stop", command=RUN + "Stop", matcher=""),
    Wanted(event="SessionEnd", command=RUN + "SessionEnd --else '{}'"),
)
OTHERS = ("~/other/start.sh", "/x/memd_hook.py.bak 1", "a && python /x/memd_hook.py claude Stop", 7, None)


def commands(text: str) -> dict[str, list[str]]:
    """Ours, by event."""
    mine: dict[str, list[str]] = {}
    for one in found(text):
        if one.own.kind == "plain":
            mine.setdefault(one.event, []).append(one.command)
    return mine


def theirs(document: Any) -> Any:
    """The settings without our hooks and without lists that hold nothing."""
    document = json.loads(json.dumps(document))
    hooks = document.pop("hooks", {})
    for event, groups in hooks.items():
        for group in groups:
            if isinstance(group, dict) and isinstance(group.get("hooks"), list):
                group["hooks"] = [one for one in group["hooks"] if not is_ours(one)]
        hooks[event] = [
            group
            for group in groups
            if not isinstance(group, dict) or group.get("hooks") != [] or set(group) - {"matcher", "hooks"}
        ]
    left = {event: groups for event, groups in hooks.items() if groups}
    return {**document, **({"hooks": left} if left else {})}


def is_ours(handler: Any) -> bool:
    own = hook_command.read(handler.get("command")) if isinstance(handler, dict) else None
    return own is not None and own.kind == "plain"


# ------------------------------------------------------------------ any settings at all

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.text(alphabet='ab"\\/*,}]{\u5099\n', max_size=6)
)
extras = st.dictionaries(st.sampled_from(["model", "env", "備考"]), scalars, max_size=2)
foreign_handlers = st.one_of(
    scalars,
    st.builds(
        lambda command, more: {"type": "command", "command": command, **more},
        st.sampled_from(OTHERS),
        extras,
    ),
)
own_handlers = st.builds(
    lambda command, more: {"type": "command", "command": command, **more},
    st.sampled_from(
        [RUN + "Stop", "/gone/python '/a b/memd_hook.py' claude Stop", "/o/memctl hook claude Stop"]
    ),
    st.one_of(st.just({}), st.just({"timeout": 3})),
)


def groups_of(handlers: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    group = st.builds(
        lambda hooks, matcher, more: {**matcher, "hooks": hooks, **more},
        st.lists(handlers, max_size=2),
        st.sampled_from([{}, {"matcher": ""}, {"matcher": "startup"}, {"matcher": "*"}]),
        st.one_of(st.just({}), extras),
    )
    return st.one_of(scalars, group, group)


def documents(handlers: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    events = st.dictionaries(
        st.sampled_from(["SessionStart", "Stop", "PreToolUse", "Old"]),
        st.lists(groups_of(handlers), max_size=3),
        max_size=3,
    )
    return st.builds(
        lambda first, hooks, last: {**first, **hooks, **{f"{key}2": value for key, value in last.items()}},
        extras,
        st.one_of(st.just({}), events.map(lambda hooks: {"hooks": hooks})),
        extras,
    )


@st.composite
def texts(draw: st.DrawFn, handlers: st.SearchStrategy[Any]) -> str:
    """Settings as somebody wrote them: any indentation and line ends, comments, commas, odd spaces."""
    document = draw(documents(handlers))
    eol = draw(st.sampled_from(["\n", "\r\n"]))
    if draw(st.booleans()):
        made = json.dumps(document, indent=draw(st.sampled_from([None, 1, 2, 4, "\t"])), ensure_ascii=False)
        made = made.replace("\n", eol)
    else:
        made = freely(draw, document, eol)
    return draw(st.sampled_from(["", "\ufeff"])) + made + draw(st.sampled_from(["", eol, eol + eol, " "]))


def freely(draw: st.DrawFn, value: Any, eol: str) -> str:
    gaps = ["", "", " ", eol, eol + "  ", f"// why }} ,{eol}", "/* not ] this */", f" // x{eol}\t"]

    def gap() -> str:
        return draw(st.sampled_from(gaps))

    if isinstance(value, dict) and value:
        inner = [
            f"{gap()}{json.dumps(key)}{gap()}:{gap()}{freely(draw, one, eol)}{gap()}"
            for key, one in value.items()
        ]
        return "{" + ",".join(inner) + draw(st.sampled_from(["", ",", f",{gap()}"])) + "}"
    if isinstance(value, list) and value:
        inner = [f"{gap()}{freely(draw, one, eol)}{gap()}" for one in value]
        return "[" + ",".join(inner) + draw(st.sampled_from(["", ",", f",{gap()}"])) + "]"
    if isinstance(value, dict | list):
        return str(value)[0] + gap() + str(value)[-1]
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@given(texts(foreign_handlers))
@settings(max_examples=150)
def test_taking_out_what_was_put_in_gives_the_very_bytes_from_before(text: str) -> None:
    made = install(text, WANTED)
    assert uninstall(made.text, made.hollow).text == text


@given(texts(st.one_of(foreign_handlers, own_handlers)))
@settings(max_examples=150)
def test_everything_foreign_stays_and_each_event_has_one_hook_of_ours(text: str) -> None:
    before = parse(text)
    made = install(text, WANTED)
    assert theirs(parse(made.text)) == theirs(before)
    mixed = {one.event for one in found(text) if one.own.kind == "mixed"}
    assert set(made.mixed) == mixed
    assert commands(made.text) == {want.event: [want.command] for want in WANTED if want.event not in mixed}
    again = install(made.text, WANTED, made.hollow)
    assert again.text == made.text
    out = uninstall(made.text, made.hollow).text
    assert commands(out) == {}
    assert theirs(parse(out)) == theirs(before)
    assert uninstall(out).text == out


# ------------------------------------------------------------------------- what it looks like

BEFORE = """// mine
{
    "model": "x", // why
    "hooks": {
        "Stop": [
            {"matcher": "", "hooks": [{"type": "command", "command": "~/other/stop.sh"}]}, // keep me last
        ],
        "PreToolUse": [],
    },
}
"""


def test_a_hook_takes_the_form_of_its_neighbours() -> None:
    made = install(BEFORE, (WANTED[1], Wanted(event="SessionEnd", command="run memd_hook.py", timeout_s=3)))
    assert made.text == BEFORE.replace(
        "// keep me last\n",
        """// keep me last
            {
                "matcher": "",
                "hooks": [
                    {
                        "type": "command",
                        "command": "/usr/bin/python3.11 -I -S /h/hook/memd_hook.py claude Stop"
                    }
                ]
            },
""",
    ).replace(
        '"PreToolUse": [],\n',
        """"PreToolUse": [],
        "SessionEnd": [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "run memd_hook.py",
                        "timeout": 3
                    }
                ]
            }
        ],
""",
    )
    assert made.moved == ()
    assert uninstall(made.text, made.hollow).text == BEFORE


@pytest.mark.parametrize(
    "text", ["", "\n", " \r\n", "\ufeff", "{}", "{}\n", "{\n}\n", '{"hooks": {}}', '{"hooks": { }}']
)
def test_settings_that_say_nothing_come_back_as_they_were(text: str) -> None:
    made = install(text, WANTED)
    assert commands(made.text) == {want.event: [want.command] for want in WANTED}
    assert uninstall(made.text, made.hollow).text == text


def test_without_the_note_nothing_of_ours_stays_either() -> None:
    made = install('{"hooks": {}, "model": "x"}', WANTED)
    assert uninstall(made.text).text == '{"model": "x"}'


def settings_with(*commands: str, event: str = "Stop") -> str:
    groups = [{"hooks": [{"type": "command", "command": command, "timeout": 44}]} for command in commands]
    return json.dumps({"hooks": {event: groups}}, indent=2)


def test_a_moved_hook_is_replaced_where_it_stands_and_what_a_person_added_stays() -> None:
    old = "/gone/python -I -S '/old place/memd_hook.py' claude Stop"
    text = settings_with("~/a.sh", old, "~/b.sh")
    made = install(text, WANTED[1:2])
    assert made.text == text.replace(old, WANTED[1].command)
    assert made.moved == ()


def test_of_several_the_first_stays_and_events_no_longer_wanted_are_left() -> None:
    text = settings_with(RUN + "Stop", "~/a.sh", "/o/memctl hook claude stop")
    made = install(text, WANTED[1:2])
    assert json.loads(made.text) == json.loads(settings_with(WANTED[1].command, "~/a.sh"))
    other = install(settings_with(RUN + "Gone", event="Gone"), WANTED[1:2])
    assert list(json.loads(other.text)["hooks"]) == ["Stop"]


def test_a_matcher_that_would_miss_sessions_is_not_kept() -> None:
    text = '{"hooks": {"Stop": [{"matcher": "startup", "hooks": [{"command": "memctl hook claude Stop"}]}]}}'
    assert [one.matcher for one in found(install(text, WANTED[1:2]).text)] == [""]


def test_a_longer_command_with_our_hook_in_it_counts_and_is_left_alone() -> None:
    text = settings_with("~/log.sh; " + RUN + "Stop")
    made = install(text, WANTED[1:2])
    assert (made.text, made.mixed) == (text, ("Stop",))
    assert uninstall(text).text == text


def test_whose_place_moves_is_said() -> None:
    text = settings_with(RUN + "Stop", "~/a.sh")
    assert uninstall(text).moved == ("Stop",)
    assert uninstall(settings_with("~/a.sh", RUN + "Stop")).moved == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "no JSON object"),
        ('{"hooks": []}', "`hooks` is no object"),
        ('{"hooks": {"Stop": {}}}', r"`hooks\.Stop` is no list"),
        ('{"hooks": {"Stop": []}, "hooks": {"Stop": []}}', "edited safely|do not fit"),
        ("{} {}", "not JSON"),
        ("// nothing else", "not JSON"),
        ('{"a": ' * 1000 + "1" + "}" * 1000, "nested too deeply"),
    ],
)
def test_settings_that_cannot_take_hooks_are_refused(text: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        install(text, WANTED)
    assert refused.value.remedy


def test_an_event_of_others_may_hold_anything() -> None:
    text = '{"hooks": {"Odd": {"x": 1}, "Older": "text"}}'
    made = install(text, WANTED)
    assert uninstall(made.text, made.hollow).text == text
