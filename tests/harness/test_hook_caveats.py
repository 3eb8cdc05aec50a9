"""What keeps a harness's installed hooks from running, or what they cost it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.harness import registry
from memd.harness.hooking import Caveat, Settings
from memd.harness.model import Environment

CWD = b"/w"


def caveats(name: str, files: dict[bytes, str]) -> tuple[Caveat, ...]:
    hooks = registry.resolve(name).hooks
    assert hooks is not None
    (place,) = hooks.settings(Environment(home=b"/h"))
    return hooks.caveats(place, CWD, lambda path: files[path].encode() if path in files else None)


@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("claude", b"/h/.claude/settings.json", '{"disableAllHooks": true}'),
        ("claude", b"/w/.claude/settings.json", '{"disableAllHooks": true}'),
        ("claude", b"/w/.claude/settings.local.json", '{"disableAllHooks": true}'),
        ("claude", b"/etc/claude-code/managed-settings.json", '{"allowManagedHooksOnly": true}'),
        ("codex", b"/h/.codex/config.toml", "[features]\nhooks = false\n"),
    ],
)
def test_a_switch_that_turns_hooks_off_is_named(name: str, path: bytes, text: str) -> None:
    (found,) = caveats(name, {path: text})
    assert found.is_off
    assert path.decode() in found.message
    assert caveats(name, {path: text.replace("true", "false").replace("= false", "= true")}) == ()


def test_settings_that_only_the_machine_may_switch_count_nowhere_else() -> None:
    assert caveats("claude", {b"/w/.claude/settings.json": '{"allowManagedHooksOnly": true}'}) == ()


def test_opencode_waits_until_its_helper_package_is_there() -> None:
    config = b"/h/.config/opencode"
    lock = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "1.18.30"}}}}
    there = {
        config + b"/node_modules/@opencode-ai/plugin/package.json": "{}",
        config + b"/package-lock.json": json.dumps(lock),
    }
    (found,) = caveats("opencode", {})
    assert not found.is_off
    assert "npm install --prefix /h/.config/opencode @opencode-ai/plugin" in found.remedy
    assert caveats("opencode", there) == ()
    for path in there:
        assert caveats("opencode", {key: text for key, text in there.items() if key != path})
    wants_more = {config + b"/package.json": json.dumps({"devDependencies": {"other": "1"}})}
    assert caveats("opencode", there | wants_more)


@given(st.sampled_from(sorted(registry.adapters())), st.binary(max_size=40) | st.just(b'{"packages": 1}'))
def test_whatever_stands_in_the_files_is_no_error(name: str, content: bytes) -> None:
    hooks = registry.resolve(name).hooks
    if hooks is not None:
        hooks.caveats(Settings(path=b"/h/plugin/x", form="file"), CWD, lambda _: content)
