"""One settings file: planned, and done as planned or not at all."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from memctl import files
from memctl.hooks import files as hook_files
from memctl.hooks import install as hook_install
from memctl.hooks import interpreter as hook_interpreter
from memctl.hooks import places as hook_places
from memctl.hooks import record as hook_record
from memctl.hooks.install import Change
from memd.errors import DiskError, Refused, UsageError
from memd.harness import registry
from memd.harness.hooking import Heard, HookEvent, Hooks, Settings

PYTHON = b"/usr/bin/python3"
HAND_MADE = Hooks(
    events=(
        HookEvent(name="SessionStart", role="start", matters=True, timeout_s=10),
        HookEvent(name="Stop", role="activity", harmless='{"decision":"allow"}', matcher=""),
    ),
    settings=lambda _: (),
    hear=lambda event, payload: Heard(),
    answer=lambda event, told: told,
)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("posix.environ", {b"HOME": bytes(tmp_path)})
    return tmp_path / ".local/share/memd"


def plan(path: Path, *, form: str = "json-hooks", hooks: Hooks = HAND_MADE) -> Change:
    place = msgspec.structs.replace(Settings(path=os.fsencode(path), form="json-hooks"), form=form)
    noted = hook_record.read().of("x", place.path)
    return hook_install.plan_install("x", hooks, place, noted, PYTHON, lambda _: True)


def unplan(path: Path, *, form: str = "json-hooks", hooks: Hooks = HAND_MADE) -> Change:
    place = msgspec.structs.replace(Settings(path=os.fsencode(path), form="json-hooks"), form=form)
    return hook_install.plan_uninstall("x", hooks, place, hook_record.read().of("x", place.path))


def do(change: Change) -> bytes | None:
    assert change.state != "refused", change.error
    hook_install.note_before([change])
    copy = hook_install.apply(change, 1_700_000_000)
    hook_install.note_after([change])
    return copy


@pytest.mark.parametrize(
    "form", ["json-hooks", "json-own", "json-flat", "json-named", "json-list", "toml-hooks"]
)
@pytest.mark.parametrize("before", [None, b""])
def test_a_file_of_any_form_comes_and_goes(tmp_path: Path, form: str, before: bytes | None) -> None:
    path = tmp_path / "agent" / "settings"
    if before is not None:
        path.parent.mkdir()
        path.write_bytes(before)
    made = plan(path, form=form)
    assert made.state == "missing"
    do(made)
    assert b"memd_hook.py" in path.read_bytes()
    assert plan(path, form=form).state == "current"
    assert not plan(path, form=form).is_needed
    do(unplan(path, form=form))
    assert (path.read_bytes() if path.exists() else None) in (before, None)
    assert path.parent.exists() == (before is not None), "folders that were made for it go with it"
    assert hook_record.read().installed == ()


def test_folders_go_with_the_file_as_far_as_they_are_empty_and_were_made_for_it(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    path = tmp_path / "home" / "agent" / "deep" / "settings"
    do(plan(path))
    do(plan(path))  # a second time: they are there by now, and still ours
    (tmp_path / "home" / "agent" / "theirs").touch()
    do(unplan(path))
    assert not path.parent.exists()
    assert [one.name for one in (tmp_path / "home").rglob("*")] == ["agent", "theirs"]
    (tmp_path / "home" / "agent" / "deep").mkdir()  # a person's own by now
    do(plan(path))
    do(unplan(path))
    assert path.parent.is_dir()


def test_a_folder_that_became_a_link_stays(tmp_path: Path) -> None:
    path = tmp_path / "agent" / "settings"
    do(plan(path))
    path.parent.rename(tmp_path / "moved")
    path.parent.symlink_to(tmp_path / "moved")
    do(unplan(path))
    assert path.parent.is_symlink()
    assert list((tmp_path / "moved").iterdir()) == []


def test_toml_settings_have_exactly_the_keys_that_the_harness_gives(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("# mine\nmodel = 'x'\n")
    do(plan(path, form="toml-hooks"))
    start, stop = tomllib.loads(path.read_text())["hooks"]
    assert start == {
        "event": "SessionStart",
        "command": f"/usr/bin/python3 -I -S {hook_files.hook_file().decode()} x SessionStart --wait || true",
        "timeout": 10,
    }
    assert set(stop) == {"event", "command", "matcher"}
    assert stop["command"].endswith("""--else '{"decision":"allow"}' || echo '{"decision":"allow"}'""")
    do(unplan(path, form="toml-hooks"))
    assert path.read_text() == "# mine\nmodel = 'x'\n"


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda path: path.write_text('{"theirs": 2}'),
        lambda path: path.unlink(),
        lambda path: (path.unlink(), path.symlink_to("elsewhere")),
    ],
)
def test_a_file_that_changed_since_it_was_read_is_left_alone(
    tmp_path: Path, meanwhile: Callable[[Path], object]
) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"theirs": 1}')
    change = plan(path)
    meanwhile(path)
    now = path.read_text() if path.is_file() else None
    with pytest.raises((Refused, DiskError)):
        hook_install.apply(change)
    assert (path.read_text() if path.is_file() else None) == now
    assert [one.name for one in tmp_path.iterdir() if "settings" in one.name and one != path] == []


def test_a_file_that_appeared_since_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    change = plan(path)
    path.write_text("{}")
    with pytest.raises(Refused):
        hook_install.apply(change)
    assert path.read_text() == "{}"


def test_an_error_names_the_file_once(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{")
    change = plan(path)
    assert (change.state, change.exit_status) == ("refused", 77)
    assert change.error.count(str(path)) == 1
    assert change.remedy
    assert not change.is_needed
    path.write_bytes(b"\xff")
    assert "not UTF-8" in plan(path).error


def test_what_codex_has_to_trust_again_is_said(tmp_path: Path) -> None:
    """It goes by the place in a list: ours go behind others, and taking them out moves who came later."""
    path = tmp_path / "hooks.json"
    trusting = msgspec.structs.replace(HAND_MADE, trust="codex")
    theirs = {"hooks": [{"type": "command", "command": "theirs"}]}
    path.write_text(json.dumps({"hooks": {"Stop": [theirs]}}))
    change = plan(path, hooks=trusting)
    assert change.notices == ()
    do(change)
    assert unplan(path, hooks=trusting).notices == ()
    document = json.loads(path.read_text())
    document["hooks"]["Stop"].append(theirs)
    path.write_text(json.dumps(document))
    assert plan(path, hooks=trusting).state == "current"
    (notice,) = unplan(path, hooks=trusting).notices
    assert "Stop" in notice and "trust in them again" in notice
    assert unplan(path, hooks=HAND_MADE).notices == ()


def test_a_second_name_of_the_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    os.link(path, tmp_path / "other")
    (notice,) = plan(path).notices
    assert "hard link" in notice


def test_a_record_that_is_damaged_costs_nothing(tmp_path: Path, data: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"a": 1}')
    do(plan(path))
    (data / "hook" / "installed.json").write_bytes(b"{ not")
    assert hook_record.read().installed == ()
    do(unplan(path))
    assert path.read_text() == '{"a": 1}'


def test_what_was_noted_of_hooks_that_are_gone_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    do(plan(path))
    path.write_text("{ }\n")  # somebody began anew
    do(plan(path))
    do(unplan(path))
    assert path.read_text() == "{ }\n"


# ------------------------------------------------------------------------------- who and with what


def test_an_interpreter_of_homebrew_is_named_by_what_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "Cellar" / "python@3.11" / "3.11.9" / "bin" / "python3.11"
    real.parent.mkdir(parents=True)
    real.write_text("")
    real.chmod(0o755)
    monkeypatch.setattr("sys._base_executable", str(real))
    assert hook_interpreter.current() == os.fsencode(real)
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt" / "python@3.11").symlink_to("../Cellar/python@3.11/3.11.9")
    assert hook_interpreter.current() == os.fsencode(tmp_path / "opt/python@3.11/bin/python3.11")


def test_only_a_python_that_runs_will_do(tmp_path: Path) -> None:
    assert hook_interpreter.runs(os.fsdecode(hook_interpreter.current()))
    assert not hook_interpreter.runs("python3")
    assert not hook_interpreter.runs("/gone/python3")
    assert not hook_interpreter.runs("/bin/false")
    assert not hook_interpreter.runs("/x\0y")


def test_names_are_resolved_and_unknown_ones_refused() -> None:
    assert [one.name for one in hook_places.resolve(["Claude-Code", "claude", "codex"])] == [
        "claude",
        "codex",
    ]
    with pytest.raises(UsageError, match="nobody"):
        hook_places.resolve(["nobody"])
    without = next((name for name, one in registry.adapters().items() if one.hooks is None), None)
    if without is not None:
        with pytest.raises(UsageError, match="installs no hooks"):
            hook_places.resolve([without])


def test_a_settings_file_too_large_to_be_true_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 10)
    path = tmp_path / "settings.json"
    path.write_text('{"a": "long enough"}')
    assert plan(path).state == "refused"
