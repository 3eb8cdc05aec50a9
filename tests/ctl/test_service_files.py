"""The service files: every path comes back as it went in, and our own text is told from a person's."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import support_unit_files as unit_files
from memctl.service_files import (
    PLIST,
    RUNTIME_SOCKET,
    SERVICE,
    SOCKET,
    Installation,
    exec_line,
    is_plain_text,
    judge,
    mark,
    render_launchd,
    render_systemd,
    unmark,
)

ROOT = Path(__file__).parents[2]
CASE = ROOT / "tests" / "cases" / "35-service-files-awkward-home"
TEMPLATES = {
    SERVICE: (ROOT / "systemd" / SERVICE).read_text(),
    SOCKET: (ROOT / "systemd" / SOCKET).read_text(),
    PLIST: (ROOT / "launchd" / PLIST).read_text(),
}
PYTHON = b"/venv/bin/python"

AWKWARD = [
    b"plain",
    b"a space",
    b"100% %h %%",
    b"R&D <x> 'single'",
    b'"double"',
    b"$HOME ${HOME} $$",
    b"back\\slash \\x41 \\",
    "münchen \u4e2d\u6587 \U0001f600".encode(),
    b"\xff\xfe not utf-8",
    b"new\nline\ttab\r\x01\x7f",
    "\ufffe noncharacter".encode(),
    b"-I = ; # @ : + !",
]

folder_names = st.one_of(
    st.sampled_from(AWKWARD),
    st.binary(min_size=1, max_size=30).filter(lambda name: b"\0" not in name and b"/" not in name),
    st.text(min_size=1, max_size=20)
    .map(lambda text: text.encode("utf-8", "surrogateescape" if text.isascii() else "replace"))
    .filter(lambda name: b"\0" not in name and b"/" not in name),
)


def read_service(text: bytes) -> dict[str, list[str]]:
    return unit_files.settings(text.decode("utf-8"))


def started(found: dict[str, list[str]]) -> tuple[list[bytes], dict[bytes, bytes]]:
    """What the service runs in the end, with which variables."""
    argv, exported = unit_files.through_shell(unit_files.command(found["Service.ExecStart"][0]))
    return argv, {**unit_files.environment(found.get("Service.Environment", [])), **exported}


def case_home(tmp_path: Path) -> bytes:
    subprocess.run([sys.executable, str(CASE / "make.py"), str(tmp_path)], check=True)
    return (tmp_path / "home.txt").read_bytes()


# ------------------------------------------------------------------------------- systemd


@given(folder_names, folder_names)
def test_any_home_comes_back_from_the_unit(home: bytes, data: bytes) -> None:
    interpreter = b"/home/" + home + b"/venv/bin/python3"
    environment = {b"HOME": b"/home/" + home, b"XDG_DATA_HOME": b"/" + data}
    units = render_systemd(TEMPLATES, Installation(interpreter, "1.2.3", environment=environment))
    found = read_service(units[SERVICE])
    assert started(found) == ([interpreter, b"-I", b"-m", b"memd"], environment)
    reload_argv, exported = unit_files.through_shell(unit_files.command(found["Service.ExecReload"][0]))
    assert reload_argv == [interpreter, b"-I", b"-m", b"memctl", b"reload"]
    assert exported.items() <= environment.items()


@pytest.mark.parametrize("name", AWKWARD)
def test_the_command_line_really_starts_such_a_program(tmp_path: Path, name: bytes) -> None:
    folder = os.fsencode(tmp_path) + b"/" + name
    os.mkdir(folder)
    program = folder + b"/show"
    with open(program, "wb") as file:
        file.write(b'#!/bin/sh\nprintf "%s\\0" "$@" "$KEPT"\n')
    os.chmod(program, 0o755)
    line = exec_line([program, b"-m", b"memd", name], [b"KEPT=" + name])
    done = subprocess.run(unit_files.command(line), capture_output=True, check=True, env={})
    assert done.stdout == b"-m\0memd\0" + name + b"\0" + name + b"\0"


def test_a_plain_home_is_named_without_a_shell_between() -> None:
    assert exec_line([b"/home/x y/python", b"-I", b"-m", b"memd"]) == '"/home/x y/python" -I -m memd'


def test_systemd_gets_no_program_name_that_it_refuses(tmp_path: Path) -> None:
    home = case_home(tmp_path)
    units = render_systemd(
        TEMPLATES, Installation(home + b"/venv/bin/python", "1", environment={b"HOME": home})
    )
    found = read_service(units[SERVICE])
    assert unit_files.command(found["Service.ExecStart"][0])[0] == b"/bin/sh"
    argv, environment = started(found)
    assert argv[0] == home + b"/venv/bin/python"
    assert environment == {b"HOME": home}


def test_agents_own_processes_outlive_the_service() -> None:
    found = read_service(render_systemd(TEMPLATES, Installation(PYTHON, "1"))[SERVICE])
    assert found["Service.KillMode"] == ["process"]


def test_a_crash_is_followed_by_a_restart_and_a_refusal_is_not() -> None:
    found = read_service(render_systemd(TEMPLATES, Installation(PYTHON, "1"))[SERVICE])
    assert found["Service.Restart"] == ["on-failure"]
    assert found["Service.RestartPreventExitStatus"] == ["64 73 77 78"]
    assert found["Service.Type"] == ["notify"]
    assert int(found["Service.WatchdogSec"][0]) > 0


def test_the_unit_closes_what_memd_does_not_need() -> None:
    found = read_service(render_systemd(TEMPLATES, Installation(PYTHON, "1"))[SERVICE])
    assert found["Service.NoNewPrivileges"] == ["yes"]
    assert found["Service.RestrictAddressFamilies"] == ["AF_UNIX"]
    assert found["Service.UMask"] == ["0077"]
    assert found["Service.RuntimeDirectoryMode"] == ["0700"]
    assert found["Service.NotifyAccess"] == ["main"]


def test_the_socket_is_this_users_alone() -> None:
    found = read_service(render_systemd(TEMPLATES, Installation(PYTHON, "1"))[SOCKET])
    assert found["Socket.ListenStream"] == ["%t/memd/memd.sock"]
    assert found["Socket.SocketMode"] == ["0600"]
    assert found["Socket.DirectoryMode"] == ["0700"]
    assert found["Socket.Backlog"] == ["1024"]


def test_the_folder_with_the_socket_outlives_the_service() -> None:
    found = read_service(render_systemd(TEMPLATES, Installation(PYTHON, "1"))[SERVICE])
    assert found["Service.RuntimeDirectory"] == ["memd"]
    assert found["Service.RuntimeDirectoryPreserve"] == ["yes"]


def test_no_line_depends_on_the_search_path() -> None:
    units = render_systemd(TEMPLATES, Installation(PYTHON, "1"))
    found = read_service(units[SERVICE])
    for key, values in found.items():
        if key.startswith("Service.Exec"):
            assert unit_files.command(values[0])[0] == PYTHON
    assert "Service.Environment" not in found


def test_a_socket_path_of_ones_own_is_written_literally() -> None:
    units = render_systemd(TEMPLATES, Installation(PYTHON, "1", socket=b"/tmp/100% mine/memd.sock"))
    assert read_service(units[SOCKET])["Socket.ListenStream"] == ["/tmp/100%% mine/memd.sock"]


@pytest.mark.parametrize("socket", [b"/tmp/a\nb", b"/tmp/\xff", b"/tmp/end ", b"relative"])
def test_a_socket_path_that_a_unit_cannot_hold_is_refused(socket: bytes) -> None:
    with pytest.raises(ValueError, match="path"):
        render_systemd(TEMPLATES, Installation(PYTHON, "1", socket=socket))


@pytest.mark.parametrize("interpreter", [b"", b"python", b"/a\0b"])
def test_only_an_absolute_interpreter_is_written(interpreter: bytes) -> None:
    with pytest.raises(ValueError, match="absolute"):
        render_systemd(TEMPLATES, Installation(interpreter, "1"))
    with pytest.raises(ValueError, match="absolute"):
        render_launchd(TEMPLATES, Installation(interpreter, "1"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@pytest.mark.parametrize("name", [name for name in AWKWARD if is_plain_text(name)])
def test_systemd_itself_accepts_the_units(tmp_path: Path, name: bytes) -> None:
    home = os.fsencode(tmp_path) + b"/" + name
    os.makedirs(home + b"/bin")
    os.symlink(sys.executable, home + b"/bin/python")
    installation = Installation(home + b"/bin/python", "1", environment={b"HOME": home})
    for file, text in render_systemd(TEMPLATES, installation).items():
        (tmp_path / file).write_bytes(text)
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", tmp_path / SERVICE, tmp_path / SOCKET],
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "XDG_RUNTIME_DIR": str(tmp_path),
            "SYSTEMD_UNIT_PATH": f"{tmp_path}:",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    about_ours = [line for line in done.stderr.splitlines() if "memd" in line]
    assert (done.returncode, about_ours) == (0, [])


# ------------------------------------------------------------------------------- launchd


def in_xml(name: bytes) -> bool:
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not any((char < " " and char not in "\t\n\r") or char in "\ufffe\uffff" for char in text)


@given(folder_names)
def test_any_home_comes_back_from_the_property_list(home: bytes) -> None:
    folder = b"/Users/" + home
    installation = Installation(
        folder + b"/venv/bin/python",
        "1.2.3",
        environment={b"HOME": folder},
        log=folder + b"/Library/memd.log",
    )
    if not in_xml(home):
        with pytest.raises(ValueError, match="property list"):
            render_launchd(TEMPLATES, installation)
        return
    agent = plistlib.loads(render_launchd(TEMPLATES, installation)[PLIST])
    shown = os.fsdecode(folder)
    assert agent["ProgramArguments"] == [shown + "/venv/bin/python", "-I", "-m", "memd"]
    assert agent["EnvironmentVariables"] == {"HOME": shown}
    assert agent["StandardErrorPath"] == agent["StandardOutPath"] == shown + "/Library/memd.log"


def test_the_launch_agent_restarts_after_a_crash_and_leaves_agents_alone(tmp_path: Path) -> None:
    home = case_home(tmp_path)
    text = render_launchd(TEMPLATES, Installation(home + b"/bin/python", "1"))[PLIST]
    agent = plistlib.loads(text)
    assert agent["ProgramArguments"][0] == os.fsdecode(home) + "/bin/python"
    assert agent["Label"] + ".plist" == PLIST
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["AbandonProcessGroup"] is True
    assert agent["RunAtLoad"] is True
    assert agent["Umask"] == 0o077
    assert agent["EnvironmentVariables"] == {}


# ------------------------------------------------------------------------------- the mark


@pytest.mark.parametrize("name", [SERVICE, SOCKET, PLIST])
def test_a_file_as_written_is_ours_and_one_edited_byte_is_noticed(name: str) -> None:
    installation = Installation(PYTHON, "1.2.3")
    text = {**render_systemd(TEMPLATES, installation), **render_launchd(TEMPLATES, installation)}[name]
    assert judge(text) == "ours"
    assert unmark(text)[0] == "1.2.3"
    assert judge(text.replace(b"memd.sock", b"memd.s0ck").replace(b"Umask", b"UmasK") + b"\n") == "changed"
    assert judge(text + b"# mine\n") == "changed"
    assert judge(unmark(text)[1]) == "foreign"
    assert judge(None) == "absent"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0), st.binary(min_size=1, max_size=3))
def test_any_insertion_is_noticed(body: str, where: int, inserted: bytes) -> None:
    marked = mark(body, "1")
    assert judge(marked) == "ours"
    at = where % (len(marked) + 1)
    edited = marked[:at] + inserted + marked[at:]
    assert judge(edited) != "ours"


def test_the_socket_setting_of_the_template_is_the_runtime_folders() -> None:
    assert Installation(PYTHON, "1").socket == RUNTIME_SOCKET
