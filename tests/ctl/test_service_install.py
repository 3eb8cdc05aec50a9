"""Installing the service: the plan for each file, what the manager is asked, what a person is told."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from memctl import service_install
from memctl.launchd import Launchd
from memctl.programs import Answer, ask
from memctl.service_files import PLIST, SERVICE, SOCKET, FileState, Installation, mark
from memctl.service_install import carried_environment, plan_install, plan_uninstall, rewritten_settings
from memctl.services import Running, ServiceFile, ServiceState, judge, look
from memctl.systemd import Systemd
from memd.errors import CannotCreate, Refused, Unavailable

INSTALLATION = Installation(b"/venv/bin/python", "1.0.0")
HERE = Running(is_reachable=True, is_enabled=True, is_active=True, pid=7)


class Scripted:
    """A stand-in for systemctl or launchctl: remembers what it was asked; answers by the words asked for."""

    def __init__(self, answers: Mapping[str, Answer] = {}) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str], environ: Mapping[str, str], timeout_s: float) -> Answer:
        words = " ".join(argv[1:]).removeprefix("--user ")
        self.asked.append(words)
        for prefix, answer in self.answers.items():
            if words.startswith(prefix):
                return answer
        return Answer(0, "", "")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "MEMD_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def shown(folder: Path, **service: str) -> Answer:
    """`systemctl show` of both units, loaded from `folder`; `service` overrides the service's properties."""
    blocks = []
    for name in (SERVICE, SOCKET):
        facts = {
            "Id": name,
            "LoadState": "loaded",
            "ActiveState": "active",
            "UnitFileState": "enabled",
            "FragmentPath": str(folder / name),
            "MainPID": "7",
            "NRestarts": "0",
        }
        facts.update(service if name == SERVICE else {})
        blocks.append("\n".join(f"{key}={value}" for key, value in facts.items()))
    return Answer(0, "\n\n".join(blocks) + "\n", "")


def file(name: str, text: bytes | None, state: FileState) -> ServiceFile:
    return ServiceFile(name, b"/units/" + name.encode(), state, text=text)


# ------------------------------------------------------------------------------ decisions


def test_only_files_as_we_wrote_them_are_rewritten() -> None:
    wanted = {SERVICE: mark("new\n", "2"), SOCKET: mark("same\n", "2")}
    steps = plan_install(
        [file(SERVICE, mark("old\n", "1"), "ours"), file(SOCKET, mark("same\n", "2"), "ours")], wanted
    )
    assert [step.action for step in steps] == ["update", "same"]
    steps = plan_install([file(SERVICE, b"mine\n", "changed"), file(SOCKET, None, "absent")], wanted)
    assert [step.action for step in steps] == ["keep", "create"]


def test_one_foreign_file_stops_the_whole_install() -> None:
    with pytest.raises(Refused, match=r"/units/memd\.socket does not come from memd"):
        plan_install(
            [file(SERVICE, None, "absent"), file(SOCKET, b"x", "foreign")], {SERVICE: b"", SOCKET: b""}
        )


def test_uninstall_removes_nothing_that_somebody_wrote() -> None:
    states: list[FileState] = ["ours", "changed", "foreign", "absent"]
    steps = plan_uninstall([file(SERVICE, b"x", state) for state in states])
    assert [step.action for step in steps] == ["remove", "keep", "keep", "none"]


@pytest.mark.parametrize(
    ("name", "old", "new", "restarts"),
    [
        (SERVICE, mark("a\n", "1"), mark("b\n", "1"), True),
        (SERVICE, mark("a\n", "1"), mark("a\n", "2"), True),
        (SOCKET, mark("a\n", "1"), mark("b\n", "1"), True),
        (SOCKET, mark("a\n", "1"), mark("a\n", "2"), False),
    ],
)
def test_an_upgrade_restarts_the_service_and_keeps_an_equal_socket_open(
    name: str, old: bytes, new: bytes, restarts: bool
) -> None:
    steps = plan_install([file(name, old, "ours")], {name: new})
    assert rewritten_settings(steps) == (frozenset([name]) if restarts else frozenset())


@pytest.mark.skipif(sys.platform != "linux", reason="the folders follow from the home alone")
def test_the_daemon_is_told_what_only_the_shell_knows() -> None:
    environ = {b"XDG_STATE_HOME": b"/odd/state/", b"XDG_DATA_HOME": b"/home/a/.local/share", b"PATH": b"/bin"}
    assert carried_environment(environ, b"/home/a", b"/home/a") == {b"XDG_STATE_HOME": b"/odd/state"}
    assert carried_environment({b"XDG_CONFIG_HOME": b"relative"}, b"/tmp/h", b"/root") == {b"HOME": b"/tmp/h"}


@pytest.mark.parametrize(
    ("states", "running", "level"),
    [
        (["absent", "absent"], HERE, "note"),
        (["ours", "absent"], HERE, "problem"),
        (["ours", "foreign"], HERE, "warning"),
        (["ours", "ours"], HERE, "ok"),
        (["changed", "ours"], HERE, "note"),
        (["ours", "ours"], Running(is_reachable=False), "warning"),
        (["ours", "ours"], HERE._replace(is_enabled=False), "warning"),
        (["ours", "ours"], HERE._replace(is_active=False), "warning"),
        (["ours", "ours"], HERE._replace(is_active=False, is_listening=True), "ok"),
        (["ours", "ours"], HERE._replace(trouble="the service failed (watchdog)"), "problem"),
    ],
)
def test_every_finding_that_needs_a_person_has_a_remedy(
    states: list[FileState], running: Running, level: str
) -> None:
    files = tuple(file(name, None, state) for name, state in zip((SERVICE, SOCKET), states, strict=True))
    found, message, remedy = judge(ServiceState("systemd", files, running=running))
    assert found == level
    assert message
    assert remedy or level in ("ok", "note")


# -------------------------------------------------------------------------------- systemd


def test_install_enables_both_units_and_says_when_memd_stops(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Systemd, "lingers", lambda self: False)
    folder = home / ".config/systemd/user"
    scripted = Scripted({f"show {SERVICE}": shown(folder)})
    report = service_install.install(Systemd(os.environ, scripted), INSTALLATION)
    assert [step.action for step in report.steps] == ["create", "create"]
    assert report.trouble is None
    assert any("memd stops when you log out" in note for note in report.notes)
    acts = [words for words in scripted.asked if not words.startswith("show")]
    assert acts == [
        "daemon-reload",
        "enable memd.service memd.socket",
        "reset-failed memd.service memd.socket",
        "start memd.socket",
        "start memd.service",
    ]
    assert not any("linger" in words for words in scripted.asked)


def test_no_start_leaves_the_starting_to_the_next_login(home: Path) -> None:
    scripted = Scripted({f"show {SERVICE}": shown(home / ".config/systemd/user")})
    service_install.install(Systemd(os.environ, scripted), INSTALLATION, start=False)
    assert "enable memd.service memd.socket" in scripted.asked
    assert not any(words.startswith(("start", "restart")) for words in scripted.asked)


def test_a_dry_run_writes_and_asks_nothing(home: Path) -> None:
    scripted = Scripted()
    report = service_install.install(Systemd(os.environ, scripted), INSTALLATION, dry_run=True)
    assert [step.action for step in report.steps] == ["create", "create"]
    assert scripted.asked == []
    assert list(home.iterdir()) == []


def test_a_changed_socket_is_made_anew_with_the_service_stopped(home: Path) -> None:
    folder = home / ".config/systemd/user"
    folder.mkdir(parents=True)
    (folder / SOCKET).write_bytes(mark("[Socket]\nListenStream=/elsewhere\n", "0.9"))
    scripted = Scripted({f"show {SERVICE}": shown(folder)})
    service_install.install(Systemd(os.environ, scripted), INSTALLATION)
    acts = [words for words in scripted.asked if words.startswith(("stop", "start", "restart"))]
    assert acts == ["stop memd.service memd.socket", "start memd.socket", "restart memd.service"]


def test_without_a_reachable_systemd_the_files_are_there_and_the_answer_says_so(home: Path) -> None:
    scripted = Scripted({"show": Answer(1, "", "Failed to connect to bus: No medium found")})
    report = service_install.install(Systemd(os.environ, scripted), INSTALLATION)
    assert isinstance(report.trouble, Unavailable)
    assert "memctl up" in report.trouble.remedy
    assert (home / ".config/systemd/user" / SERVICE).exists()
    assert (home / ".config/systemd/user" / SOCKET).exists()


@pytest.mark.skipif(shutil.which("systemctl") is None, reason="no systemctl here")
def test_without_a_reachable_systemd_the_next_login_starts_it_all_the_same(home: Path) -> None:
    if os.path.exists(f"/run/user/{os.getuid()}/systemd"):
        pytest.skip("a systemd --user of this user runs here")
    manager = Systemd(os.environ, ask)
    report = service_install.install(manager, INSTALLATION)
    assert isinstance(report.trouble, Unavailable)
    folder = home / ".config/systemd/user"
    assert (folder / "default.target.wants" / SERVICE).is_symlink()
    assert (folder / "sockets.target.wants" / SOCKET).is_symlink()
    service_install.uninstall(manager)
    assert [path for path in folder.rglob("*") if not path.is_dir()] == []


def test_a_systemd_that_reads_other_folders_is_named(home: Path) -> None:
    scripted = Scripted({f"show {SERVICE}": shown(Path("/usr/lib/systemd/user"))})
    report = service_install.install(Systemd(os.environ, scripted), INSTALLATION)
    assert isinstance(report.trouble, CannotCreate)
    assert "/usr/lib/systemd/user/memd.service" in str(report.trouble)


def test_a_home_that_systemctl_cannot_name_is_refused_before_anything_is_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = os.fsencode(home) + b"/\xff"
    monkeypatch.setenv("HOME", os.fsdecode(odd))
    scripted = Scripted()
    with pytest.raises(CannotCreate, match="not UTF-8"):
        service_install.install(Systemd(os.environ, scripted), INSTALLATION)
    assert (scripted.asked, os.path.exists(odd)) == ([], False)


def test_a_setting_that_systemd_refuses_is_reported(home: Path) -> None:
    bad = shown(home / ".config/systemd/user", LoadState="bad-setting", LoadError="bad unit file setting")
    report = service_install.install(Systemd(os.environ, Scripted({f"show {SERVICE}": bad})), INSTALLATION)
    assert isinstance(report.trouble, CannotCreate)
    assert "bad unit file setting" in str(report.trouble)


def test_uninstall_of_nothing_does_nothing(home: Path) -> None:
    scripted = Scripted()
    report = service_install.uninstall(Systemd(os.environ, scripted))
    assert [step.action for step in report.steps] == ["none", "none"]
    assert scripted.asked == []


def test_an_uninstall_that_cannot_stop_memd_removes_no_file(home: Path) -> None:
    folder = home / ".config/systemd/user"
    scripted = Scripted({f"show {SERVICE}": shown(folder), "stop": Answer(1, "", "Job timed out")})
    manager = Systemd(os.environ, scripted)
    service_install.install(manager, INSTALLATION)
    with pytest.raises(Unavailable, match="Job timed out"):
        service_install.uninstall(manager)
    assert (folder / SERVICE).exists()


def test_a_link_at_a_units_name_is_somebody_elses(home: Path) -> None:
    manager = Systemd(os.environ, Scripted())
    folder = home / ".config/systemd/user"
    folder.mkdir(parents=True)
    (home / "dotfiles").write_bytes(mark("x\n", "1"))
    (folder / SERVICE).symlink_to(home / "dotfiles")
    assert look(manager, SERVICE).state == "foreign"
    os.mkfifo(folder / SOCKET)
    assert look(manager, SOCKET).state == "foreign"


def test_the_state_is_read_from_what_systemd_says(home: Path) -> None:
    failed = shown(home, ActiveState="failed", Result="watchdog", MainPID="0", NRestarts="3")
    running = Systemd(os.environ, Scripted({f"show {SERVICE}": failed})).running()
    assert running == Running(
        is_reachable=True,
        is_enabled=True,
        is_listening=True,
        restarts=3,
        trouble="the service failed (watchdog)",
    )


# -------------------------------------------------------------------------------- launchd


def test_the_agent_is_loaded_once_and_again_after_a_change(home: Path) -> None:
    target = f"gui/{os.getuid()}/local.memd"
    absent = Scripted({f"print {target}": Answer(113, "", "Could not find service")})
    report = service_install.install(Launchd(os.environ, absent), INSTALLATION)
    plist = home / "Library/LaunchAgents" / PLIST
    assert (report.trouble, plist.exists()) == (None, True)
    assert absent.asked[-1] == f"bootstrap gui/{os.getuid()} {plist}"
    loaded = Scripted()
    service_install.install(Launchd(os.environ, loaded), INSTALLATION._replace(version="2.0.0"))
    assert f"bootout {target}" in loaded.asked


def test_without_a_graphical_login_the_agent_waits_for_one(home: Path) -> None:
    nobody = Scripted({"print": Answer(125, "", "Domain does not support specified action")})
    report = service_install.install(Launchd(os.environ, nobody), INSTALLATION)
    assert isinstance(report.trouble, Unavailable)
    assert (home / "Library/LaunchAgents" / PLIST).exists()
    assert not any(words.startswith("bootstrap") for words in nobody.asked)


def test_the_agents_state_is_read_from_what_launchd_says() -> None:
    text = "gui/501/local.memd = {\n\tstate = running\n\n\tpid = 812\n\tlast exit code = 0\n}\n"
    running = Launchd({}, Scripted({"print": Answer(0, text, "")})).running()
    assert running == Running(is_reachable=True, is_enabled=True, is_active=True, pid=812)
    crashed = "gui/501/local.memd = {\n\tstate = not running\n\tlast exit code = 73: EX_CANTCREAT\n}\n"
    running = Launchd({}, Scripted({"print": Answer(0, crashed, "")})).running()
    assert (running.is_active, running.trouble) == (False, "the last run ended with exit status 73")


# --------------------------------------------------------------------- this installation


def test_a_memd_that_only_this_shell_can_import_is_not_installed(home: Path) -> None:
    def cannot(argv: Sequence[str], environ: Mapping[str, str], timeout_s: float) -> Answer:
        assert environ["PATH"] == ""
        assert "PYTHONPATH" not in environ
        return Answer(1, "", "ModuleNotFoundError: No module named 'memd'")

    with pytest.raises(Refused, match="No module named 'memd'"):
        service_install.this_installation(cannot)


def test_a_memd_in_the_users_own_packages_is_found_without_isolation(home: Path) -> None:
    def only_there(argv: Sequence[str], environ: Mapping[str, str], timeout_s: float) -> Answer:
        return Answer(1 if "-I" in argv else 0, "", "No module named 'memd'")

    made = service_install.this_installation(only_there)
    assert made.flags == (b"-E", b"-P")
    assert made.interpreter == os.fsencode(sys.executable)


def test_a_program_that_hangs_or_is_missing_is_an_answer() -> None:
    assert ask(["/no/such/program"], {}, 1.0).status == 127
    assert ask([sys.executable, "-c", "input()"], {}, 30.0).status == 1  # standard input is closed
