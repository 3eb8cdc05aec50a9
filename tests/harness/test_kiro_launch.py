"""How Kiro's two engines are started: which engine, where its words stand, and what never crosses."""

from __future__ import annotations

import pytest

from memd.harness.kiro_launch import LAUNCH, engine_of
from memd.harness.kiro_records import V2, V3
from memd.harness.launching import Argv, Intent
from memd.workstream.launch import chosen
from support_launch import LINKED, line, said, shown, yolo

THIRD = f"sess_{LINKED}"


def started(typed: str = "", **intent: object) -> Argv:
    return LAUNCH.compose(tuple(typed.split()), Intent(**intent))  # type: ignore[arg-type]


def test_every_word_of_it_starts_the_same_program() -> None:
    assert [chosen(word)[1] for word in ("kiro", "kiro-cli", "KIRO_CLI")] == ["", "", ""]
    assert [chosen(word)[1] for word in ("kiro-v2", "kiro-cli-v2")] == [V2, V2]
    assert [chosen(word)[1] for word in ("kiro-v3", "kiro-cli-v3")] == [V3, V3]
    assert LAUNCH.executables == ("kiro-cli",)
    assert LAUNCH.is_pooled


@pytest.mark.parametrize(
    ("typed", "flavor"),
    [
        ("", ""),
        ("chat", ""),
        ("--v3", V3),
        ("--mode plan", V3),
        ("--mode=plan", V3),
        ("--agent-engine v3", V3),
        ("--agent-engine=v3", V3),
        ("--agent-engine v2", V2),
        ("--agent-engine=v2", V2),
    ],
)
def test_arguments_say_which_engine(typed: str, flavor: str) -> None:
    assert said("kiro", typed).flavor == flavor
    assert not said("kiro", typed).is_passing


@pytest.mark.parametrize("typed", ["--agent-engine v4", "--agent-engine=", "--agent-engine"])
def test_an_engine_nobody_knows_passes(typed: str) -> None:
    assert said("kiro", typed).is_passing


def test_the_second_engine_resumes_at_the_end() -> None:
    assert line("kiro", "") == "--resume-id LINKED"
    assert line("kiro", "chat --agent me") == "chat --agent me --resume-id LINKED"
    assert line("kiro", "chat -- go") == "chat --resume-id LINKED -- go"
    assert line("kiro", "", session="") == ""


def test_the_third_engine_is_named_in_front_in_all_three_cases() -> None:
    assert shown(started("chat", flavor=V3)) == "--v3 chat"
    assert shown(started("chat", session=THIRD)) == "--v3 chat --resume-id sess_LINKED"
    assert line("kiro", f"chat --resume-id {THIRD}", session="") == "--v3 chat --resume-id sess_LINKED"


@pytest.mark.parametrize("typed", ["--v3", "--mode plan", "--agent-engine v3"])
def test_an_engine_that_is_named_already_is_not_named_again(typed: str) -> None:
    assert shown(started(typed, session=THIRD)) == f"{typed} --resume-id sess_LINKED"


def test_the_id_tells_the_engine_and_a_foreign_one_is_never_resumed() -> None:
    assert [engine_of(one) for one in (LINKED, THIRD, "x", "", f"sess_{LINKED}/..")] == [V2, V3, "", "", ""]
    crossed = started("--v3", session=LINKED)
    assert (shown(crossed), crossed.session) == ("--v3", "")
    assert "begins a new session" in crossed.notices[0]
    crossed = started("", session=THIRD, flavor=V2)
    assert (shown(crossed), crossed.session) == ("", "")
    crossed = started("", session="not-an-id")
    assert (shown(crossed), crossed.session) == ("", "")


def test_a_plain_launch_goes_on_in_the_engine_of_its_session() -> None:
    assert started("", session=THIRD).session == THIRD
    assert started("", session=THIRD, flavor=V3).session == THIRD
    assert started("", session=LINKED, flavor=V2).session == LINKED


@pytest.mark.parametrize("typed", ["--resume", "-r", "--resume-picker", "--list", f"--resume-id {LINKED}"])
def test_a_person_s_own_selector_stays_alone(typed: str) -> None:
    assert said("kiro", typed).has_selector
    assert line("kiro", typed) == typed.replace(LINKED, "LINKED")


def test_only_an_id_of_kiro_s_own_is_believed() -> None:
    assert said("kiro", f"--resume-id {THIRD}").session == THIRD
    assert said("kiro", "--resume-id ../../x").session == ""


@pytest.mark.parametrize(
    "typed",
    ["--help", "-h", "--help-all", "--version", "-V", "--no-interactive", "chat --no-interactive go",
     "--list-sessions", "-l", "--list-models", "--delete-session x", "-d x", "login", "whoami", "doctor",
     "--agent me settings list", "--resume-id x mcp", "-v doctor", "--agent=me agent list"],
)  # fmt: skip
def test_utilities_pass_as_they_are(typed: str) -> None:
    assert said("kiro", typed).is_passing
    assert yolo("kiro", typed, session=LINKED) == typed


def test_verbose_is_no_version_and_chat_is_a_session() -> None:
    for typed in ("-v", "--verbose", "chat", "chat login", "--agent login", "fix the login"):
        assert not said("kiro", typed).is_passing


@pytest.mark.parametrize(
    ("typed", "line_"),
    [
        ("", "--trust-all-tools"),
        ("chat", "chat --trust-all-tools"),
        ("--trust-all-tools", "--trust-all-tools"),
        ("-a", "-a"),
        ("--trust-tools=fs_read", "--trust-tools=fs_read"),
        ("--trust-tools fs_read", "--trust-tools fs_read"),
        ("--trust-tools=", "--trust-tools="),
    ],
)
def test_yolo_is_said_once_and_widens_nothing(typed: str, line_: str) -> None:
    assert yolo("kiro", typed) == line_


def test_the_third_engine_has_no_word_for_yolo() -> None:
    made = started("", session=THIRD, is_yolo=True)
    assert shown(made) == "--v3 --resume-id sess_LINKED"
    assert "permissions.yaml" in made.notices[0]


def test_yolo_follows_the_selector() -> None:
    assert yolo("kiro", "chat", session=LINKED) == "chat --resume-id LINKED --trust-all-tools"


def test_kiro_home_is_left_out_for_one_resume_only() -> None:
    assert started("", session=THIRD, is_usual=True).unset == ("KIRO_HOME",)
    assert started("", session=THIRD).unset == ()
    assert started("", session=LINKED, is_usual=True).unset == ()
    assert started("--v3", is_usual=True).unset == ()
    assert started("--v3", session=LINKED, is_usual=True).unset == ()
