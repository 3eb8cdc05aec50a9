"""What each harness's payloads say, and where its hooks are written."""

from __future__ import annotations

import json

import pytest

from memd.harness import claude_hooks, codex_hooks, omp_hooks, opencode_hooks, pi_hooks
from memd.harness.hooking import Hooks
from memd.harness.model import Environment


def paths(hooks: Hooks | None, variables: dict[str, bytes], *config_homes: bytes) -> list[bytes]:
    assert hooks is not None
    environment = Environment(home=b"/home/a", variables=variables, config_homes=config_homes)
    return [settings.path for settings in hooks.settings(environment)]


def test_claude_has_one_settings_file_per_login() -> None:
    assert paths(claude_hooks.HOOKS, {}) == [b"/home/a/.claude/settings.json"]
    found = paths(
        claude_hooks.HOOKS,
        {"CLAUDE_CONFIG_DIR": b"/home/a/.claude-work/"},
        b"/home/a/.claude",
        b"/home/a/.claude-work",
    )
    assert found == [b"/home/a/.claude-work/settings.json", b"/home/a/.claude/settings.json"]


@pytest.mark.parametrize(
    ("hooks", "variables", "path"),
    [
        (codex_hooks.HOOKS, {}, b"/home/a/.codex/hooks.json"),
        (codex_hooks.HOOKS, {"CODEX_HOME": b"/c/"}, b"/c/hooks.json"),
        (opencode_hooks.HOOKS, {}, b"/home/a/.config/opencode/plugin/memd.ts"),
        (opencode_hooks.HOOKS, {"XDG_CONFIG_HOME": b"/x"}, b"/x/opencode/plugin/memd.ts"),
        (pi_hooks.HOOKS, {}, b"/home/a/.pi/agent/extensions/memd-pi.ts"),
        (pi_hooks.HOOKS, {"PI_CODING_AGENT_DIR": b"/p"}, b"/p/extensions/memd-pi.ts"),
        (omp_hooks.HOOKS, {}, b"/home/a/.omp/agent/extensions/memd-omp.ts"),
        (omp_hooks.HOOKS, {"PI_CODING_AGENT_DIR": b"/p"}, b"/p/extensions/memd-omp.ts"),
        (omp_hooks.HOOKS, {"PI_CONFIG_DIR": b".o"}, b"/home/a/.o/agent/extensions/memd-omp.ts"),
        (
            omp_hooks.HOOKS,
            {"OMP_PROFILE": b"w", "PI_PROFILE": b"v", "PI_CODING_AGENT_DIR": b"/p", "PI_CONFIG_DIR": b".o"},
            b"/home/a/.o/profiles/w/agent/extensions/memd-omp.ts",
        ),
        (omp_hooks.HOOKS, {"PI_PROFILE": b"v"}, b"/home/a/.omp/profiles/v/agent/extensions/memd-omp.ts"),
        (omp_hooks.HOOKS, {"OMP_PROFILE": b"default"}, b"/home/a/.omp/agent/extensions/memd-omp.ts"),
    ],
)
def test_variables_move_where_hooks_are_written(
    hooks: Hooks, variables: dict[str, bytes], path: bytes
) -> None:
    assert paths(hooks, variables) == [path]


@pytest.mark.parametrize("module", [claude_hooks, codex_hooks])
def test_a_start_says_session_directory_and_transcript(module: object) -> None:
    payload = {
        "session_id": "s",
        "cwd": "/w",
        "transcript_path": "/t.jsonl",
        "hook_event_name": "SessionStart",
    }
    hear = module.hear  # type: ignore[attr-defined]
    heard = hear("SessionStart", {**payload, "source": "startup"})
    assert (heard.session, heard.cwd, heard.transcript) == ("s", "/w", "/t.jsonl")
    assert not (heard.is_inner or heard.is_again or heard.is_clear or heard.harness)
    assert not hear("SessionStart", {**payload, "source": "resume"}).is_again
    assert hear("SessionStart", {**payload, "source": "compact"}).is_again
    assert hear("SessionStart", {**payload, "source": "clear"}).is_clear


@pytest.mark.parametrize("module", [claude_hooks, codex_hooks])
def test_an_agent_id_marks_a_sub_agent_and_an_agent_type_alone_does_not(module: object) -> None:
    hear = module.hear  # type: ignore[attr-defined]
    payload = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "agent_type": "reviewer"}
    assert not hear("UserPromptSubmit", payload).is_inner
    assert hear("UserPromptSubmit", {**payload, "agent_id": "a1"}).is_inner


def test_a_grok_session_is_not_taken_for_one_of_claude() -> None:
    payload: dict[str, object] = {
        "hookEventName": "session_start", "sessionId": "g", "cwd": "/w", "transcriptPath": "/g/updates.jsonl",
        "source": "new",
    }  # fmt: skip
    heard = claude_hooks.hear("SessionStart", payload)
    assert (heard.harness, heard.session, heard.transcript) == ("grok", "g", "/g/updates.jsonl")


@pytest.mark.parametrize("module", [claude_hooks, codex_hooks])
def test_a_text_is_given_as_additional_context(module: object) -> None:
    printed = module.answer("SessionStart", "a\n日")  # type: ignore[attr-defined]
    expected = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "a\n日"}}
    assert json.loads(printed) == expected
    assert "日" in printed  # unescaped: an escape would take six characters of the limit


def test_a_plug_in_says_when_it_is_inside_another_agent() -> None:
    hooks = pi_hooks.HOOKS
    assert hooks is not None
    heard = hooks.hear("start", {"session_id": "s", "cwd": "/w", "is_inner": True, "reason": "clear"})
    assert (heard.session, heard.is_inner, heard.is_clear) == ("s", True, True)
    assert not hooks.hear("start", {"is_inner": "true"}).is_inner
    assert hooks.answer("context", "bare\ntext") == "bare\ntext"


def test_the_place_of_a_transcript_shows_the_login() -> None:
    path = "/home/a/.claude-work/projects/-home-a-proj/6f0.jsonl"
    heard = claude_hooks.hear("SessionStart", {"transcript_path": path})
    assert heard.variables == {"CLAUDE_CONFIG_DIR": b"/home/a/.claude-work"}
    for odd in (
        "/projects/x/y.jsonl",
        "projects/x/y",
        "/home/a/other/x/y.jsonl",
        "",
        7,
        "/home/a/projects/y",
    ):
        assert claude_hooks.hear("SessionStart", {"transcript_path": odd}).variables == {}
    path = "/c/sessions/2026/11/30/rollout-x.jsonl"
    assert codex_hooks.hear("SessionStart", {"transcript_path": path}).variables == {"CODEX_HOME": b"/c"}
