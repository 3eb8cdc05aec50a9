"""Our hooks in somebody's TOML settings: all that is theirs stays, and goes back to what it was."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.hooks.settings import Wanted
from memctl.hooks.toml import found, install, uninstall
from memd.errors import Refused

RUN = "/usr/bin/python3.11 -I -S '/the \"home\" \\ é/memd_hook.py' kimi "
WANTED = (
    Wanted(event="SessionStart", command=RUN + "SessionStart --wait || true", timeout_s=10),
    Wanted(event="UserPromptSubmit", command=RUN + "UserPromptSubmit || true", matcher=""),
    Wanted(event="Stop", command=RUN + "Stop || true"),
)
THEIRS = """# mine
default_model = "m"   # kept

[[hooks]]   # another tool's
event = "Stop"
command = "~/other/stop.sh"
timeout = 44

# about the provider
[providers.x]
type = "openai"
text = '''
[[hooks]]
event = "Stop"
'''
"""


def test_tables_have_exactly_the_keys_that_were_asked_for() -> None:
    made = tomllib.loads(install(THEIRS, WANTED).text)
    assert made["hooks"] == [
        {"event": "Stop", "command": "~/other/stop.sh", "timeout": 44},
        {"event": "SessionStart", "command": WANTED[0].command, "timeout": 10},
        {"event": "UserPromptSubmit", "command": WANTED[1].command, "matcher": ""},
        {"event": "Stop", "command": WANTED[2].command},
    ]


def test_a_moved_hook_is_replaced_where_it_stands_and_what_a_person_added_stays() -> None:
    old = '\n[[hooks]]\nevent = "Stop"\ncommand = "/gone/python /x/memd_hook.py kimi Stop"\ntimeout = 99\n'
    after = "# behind\n[tail]\nx = 1 \n"
    text = THEIRS + old + after
    made = install(text, WANTED[2:])
    assert made.text.startswith(THEIRS)
    assert made.text.endswith(after)
    (one,) = found(made.text)
    assert one.command == WANTED[2].command
    assert tomllib.loads(made.text)["hooks"][1]["timeout"] == 99
    assert install(made.text, WANTED[2:]).text == made.text
    assert uninstall(made.text).text == THEIRS + after


def test_events_no_longer_wanted_and_second_ones_go() -> None:
    text = install(THEIRS, WANTED).text + "\n" + install("", WANTED[2:]).text
    made = install(text, WANTED[1:])
    assert [one.event for one in found(made.text)] == ["UserPromptSubmit", "Stop"]


@pytest.mark.parametrize(
    "text",
    [
        "a = [",
        "hooks = []\n",
        'hooks = "x"',
        "[hooks]\nx = 1\n",
        'hooks = [{event = "Stop", command = "y"}]\n',
    ],
)
def test_settings_that_cannot_take_hooks_are_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        install(text, WANTED)
    assert refused.value.remedy


def test_a_longer_command_with_our_hook_in_it_counts_and_is_left_alone() -> None:
    text = "[[hooks]]\nevent = 'Stop'\ncommand = 'true; python memd_hook.py kimi Stop'\n"
    made = install(text, WANTED[2:])
    assert (made.text, made.mixed) == (text, ("Stop",))
    assert uninstall(text).text == text


THEIR_HOOK = "[[hooks]]\nevent = 'Stop'\ncommand = 'x'"
LINES = st.sampled_from(
    ["a = 1", "# c", "", "[t]", "b = 2 # x", "[[other]]", THEIR_HOOK, "s = '''\n[[hooks]]\n'''"]
)


@given(st.lists(LINES, max_size=5), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n", "\n\n"]))
def test_taking_out_what_was_put_in_gives_the_very_bytes_from_before(
    lines: list[str], eol: str, end: str
) -> None:
    text = ("\n".join(lines) + end).replace("\n", eol)
    try:
        before = tomllib.loads(text)
    except ValueError:
        return
    made = install(text, WANTED)
    after = tomllib.loads(made.text)
    assert {**after, "hooks": after["hooks"][: -len(WANTED)]} == {"hooks": [], **before}
    assert install(made.text, WANTED, made.hollow).text == made.text
    assert uninstall(made.text, made.hollow).text == text
