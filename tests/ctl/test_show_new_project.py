"""A new project: complete under its name, or not there at all."""

from __future__ import annotations

import os
import shutil
import stat
import tomllib
from pathlib import Path

import pytest

from memctl import files, new_project
from memctl.new_project import create, trouble
from memd.errors import CannotCreate, DiskError, MemdError, UsageError
from memd.workstream import scope


def made(parent: Path, name: str = "app", workspace: str = "default") -> Path:
    return Path(os.fsdecode(create(name, bytes(parent), workspace)))


def test_it_holds_what_agents_and_memd_need(tmp_path: Path) -> None:
    app = made(tmp_path, workspace='ac"me ö')
    assert app == tmp_path / "app"
    assert os.listdir(tmp_path) == ["app"]
    assert tomllib.loads((app / ".memd.toml").read_text()) == {"workspace": 'ac"me ö', "project": "app"}
    assert (app / ".git" / "HEAD").is_file()
    assert "`memctl`" in (app / "AGENTS.md").read_text()
    assert (app / "CLAUDE.md").read_text() == "@AGENTS.md\n"
    link = app / ".claude/skills/memd"
    assert link.is_symlink()
    assert link.resolve() == app / ".agents/skills/memd"
    assert (link / "SKILL.md").is_file()


def test_its_scope_stands_whatever_the_folder_is_called(tmp_path: Path) -> None:
    app = made(tmp_path, workspace="acme")
    app.rename(tmp_path / "renamed")
    found = scope.resolve(bytes(tmp_path / "renamed"), b"/nowhere")
    assert (found.workspace, found.project) == ("acme", "app")


def test_the_skill_has_the_format_that_agents_read(tmp_path: Path) -> None:
    text = (made(tmp_path) / ".agents/skills/memd/SKILL.md").read_text()
    _, front, body = text.split("---\n", 2)
    fields = {line.split(":")[0] for line in front.splitlines() if not line.startswith(" ")}
    assert fields == {"name", "description"}
    assert "name: memd\n" in front  # as its folder is called
    assert len(front.partition("description: >-")[2]) < 1024
    for command in ("workstream-search", "search --cwd .", "handoff show", "handoff create"):
        assert f"memctl {command}" in body


def test_the_commands_that_the_skill_teaches_exist() -> None:
    import argparse
    import importlib
    import shlex

    from memctl import cli

    for line in new_project.SKILL.splitlines():
        if not line.startswith("    memctl "):
            continue
        words = shlex.split(line.partition("#")[0].replace("...", ""))[1:]
        parser = argparse.ArgumentParser(exit_on_error=False)
        module = cli.module_of(words[0])
        assert module is not None, line
        importlib.import_module(f"memctl.commands.{module}").add_parser(parser.add_subparsers())
        parser.parse_args(words)


def test_folders_and_files_have_the_modes_that_the_person_is_used_to(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        app = made(tmp_path)
    finally:
        os.umask(before)
    for path in (app, app / ".agents", app / ".agents/skills/memd", app / ".claude/skills"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o750, path
    assert stat.S_IMODE((app / "AGENTS.md").stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["", "App", "-x", ".x", "_x", "a b", "a/b", "ä", "a\n", "..", "a" * 101])
def test_a_name_that_will_not_do_is_refused_and_nothing_is_made(tmp_path: Path, name: str) -> None:
    assert trouble(name, bytes(tmp_path))
    with pytest.raises(UsageError):
        create(name, bytes(tmp_path), "default")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a", "0", "a.b_c-d", "a" * 100])
def test_other_names_will_do(tmp_path: Path, name: str) -> None:
    assert trouble(name, bytes(tmp_path)) == ""
    assert made(tmp_path, name).name == name


def test_nothing_that_is_there_is_touched(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").write_text("x")
    for name in ("empty", "dangling", "file"):
        with pytest.raises(UsageError, match="is there already"):
            create(name, bytes(tmp_path), "default")
    assert sorted(os.listdir(tmp_path)) == ["dangling", "empty", "file"]
    assert os.listdir(tmp_path / "empty") == []


def test_what_appears_at_the_place_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = new_project._fill

    def meanwhile(folder: bytes, name: str, workspace: str) -> None:
        fill(folder, name, workspace)
        (tmp_path / "app").mkdir()

    monkeypatch.setattr(new_project, "_fill", meanwhile)
    with pytest.raises(CannotCreate, match="File exists"):
        made(tmp_path)
    assert os.listdir(tmp_path) == ["app"]
    assert os.listdir(tmp_path / "app") == []


def test_a_step_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = files.write
    for step in range(len(new_project.contents("app", "default"))):
        left = [step]

        def failing(path: bytes, text: bytes, over: bytes | None, left: list[int] = left) -> None:
            if left[0] == 0:
                raise DiskError("write", path, OSError(28, "No space left on device"))
            left[0] -= 1
            write(path, text, over)

        monkeypatch.setattr(files, "write", failing)
        with pytest.raises(MemdError, match="No space"):
            made(tmp_path)
        assert os.listdir(tmp_path) == []


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(folder: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(new_project, "_begin_repository", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_git_that_fails_is_an_error_with_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\necho cannot do that >&2\nexit 3\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    (tmp_path / "w").mkdir()
    with pytest.raises(CannotCreate, match="git init: cannot do that"):
        made(tmp_path / "w")
    assert os.listdir(tmp_path / "w") == []


def test_without_git_it_is_a_plain_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    app = made(tmp_path)
    assert not (app / ".git").exists()
    assert (app / ".memd.toml").is_file()


def test_variables_of_a_surrounding_git_do_not_lead_it_astray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other.git"))
    assert (made(tmp_path) / ".git").is_dir()
    assert not (tmp_path / "other.git").exists()


def test_a_parent_that_may_not_be_written_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotCreate, match="cannot be made in") as caught:
        create("app", bytes(tmp_path / "gone"), "default")
    assert "may write to" in caught.value.remedy
