"""memd under a real `systemd --user`: install, start by socket, watchdog, crash, upgrade, uninstall."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support_systemd import RUNTIME, Python, UserManager, other_version, ping, user_manager

pytestmark = pytest.mark.systemd


@pytest.fixture
def home(tmp_path: Path) -> str:
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    return str(made)


@pytest.fixture
def manager(home: str, tmp_path: Path) -> Iterator[UserManager]:
    with user_manager(home, tmp_path) as running:
        yield running


@pytest.fixture
def python(tmp_path: Path) -> Python:
    return Python(str(tmp_path / "venv"))


def service(manager: UserManager, *properties: str) -> dict[str, str]:
    return manager.show("memd.service", *properties)


def unit_path(manager: UserManager, name: str = "memd.service") -> Path:
    return Path(manager.home, ".config", "systemd", "user", name)


def drop_in(manager: UserManager, text: str) -> Path:
    path = unit_path(manager, "memd.service.d") / "local.conf"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_install_starts_memd_now_and_with_every_login(manager: UserManager, python: Python) -> None:
    said = manager.run(*python.memctl("service", "install")).stdout
    assert "Lingering is off" in said
    found = service(manager, "ActiveState", "UnitFileState", "StatusText", "MainPID", "Type")
    assert found["ActiveState"] == "active"
    assert found["UnitFileState"] == "enabled"
    assert found["StatusText"].startswith("serving")
    assert int(found["MainPID"]) == ping(manager, python)["pid"]
    assert manager.show("memd.socket", "ActiveState", "UnitFileState") == {
        "ActiveState": "active",
        "UnitFileState": "enabled",
    }
    assert (
        manager.run("stat", "-c", "%a", f"{RUNTIME}/memd", f"{RUNTIME}/memd/memd.sock").stdout == "700\n600\n"
    )


def test_memd_runs_from_the_next_login_on(home: str, tmp_path: Path, python: Python) -> None:
    with user_manager(home, tmp_path) as manager:
        manager.run(*python.memctl("service", "install", "--no-start"))
    with user_manager(home, tmp_path) as manager:
        manager.systemctl("is-system-running", "--wait", check=False)
        assert service(manager, "ActiveState") == {"ActiveState": "active"}
        assert ping(manager, python)["pid"] == int(service(manager, "MainPID")["MainPID"])


def test_the_first_client_starts_the_daemon(manager: UserManager, python: Python) -> None:
    manager.run(*python.memctl("service", "install", "--no-start"))
    assert service(manager, "ActiveState") == {"ActiveState": "inactive"}
    manager.systemctl("start", "memd.socket")
    assert service(manager, "ActiveState") == {"ActiveState": "inactive"}
    assert ping(manager, python)["pid"] == int(service(manager, "MainPID")["MainPID"])
    assert service(manager, "ActiveState") == {"ActiveState": "active"}


def test_up_starts_a_service_that_waited_for_the_next_login(manager: UserManager, python: Python) -> None:
    manager.run(*python.memctl("service", "install", "--no-start"))
    manager.run(*python.memctl("up", "--quiet"))
    assert ping(manager, python)["pid"] == int(service(manager, "MainPID")["MainPID"])


def test_a_service_that_never_ran_can_be_removed(manager: UserManager, python: Python) -> None:
    manager.run(*python.memctl("service", "install", "--no-start"))
    manager.run(*python.memctl("service", "uninstall"))
    assert not unit_path(manager).exists()
    assert service(manager, "LoadState") == {"LoadState": "not-found"}


def test_a_daemon_that_hangs_is_replaced_by_the_watchdog(manager: UserManager, python: Python) -> None:
    drop_in(manager, "[Service]\nWatchdogSec=1\nRestartSec=0\n")
    manager.run(*python.memctl("service", "install"))
    hung = int(service(manager, "MainPID")["MainPID"])
    with manager.death_of(hung):
        manager.run("kill", "-STOP", str(hung))
    assert ping(manager, python)["pid"] != hung
    assert service(manager, "NRestarts", "ActiveState") == {"NRestarts": "1", "ActiveState": "active"}


def test_a_crash_is_followed_by_a_restart_and_no_client_is_refused(
    manager: UserManager, python: Python
) -> None:
    manager.run(*python.memctl("service", "install"))
    crashed = int(service(manager, "MainPID")["MainPID"])
    with manager.death_of(crashed):
        manager.run("kill", "-KILL", str(crashed))
    assert ping(manager, python)["pid"] != crashed
    assert service(manager, "NRestarts") == {"NRestarts": "1"}


def test_a_stopped_service_leaves_a_socket_that_starts_it_again(manager: UserManager, python: Python) -> None:
    manager.run(*python.memctl("service", "install"))
    manager.systemctl("stop", "memd.service")
    manager.run("test", "-S", f"{RUNTIME}/memd/memd.sock")
    assert ping(manager, python)["pid"] == int(service(manager, "MainPID")["MainPID"])


def test_down_stops_the_socket_too_and_up_starts_the_service(manager: UserManager, python: Python) -> None:
    manager.run(*python.memctl("service", "install"))
    manager.run(*python.memctl("down"))
    assert manager.run(*python.ping(), check=False).returncode != 0
    assert manager.show("memd.socket", "ActiveState") == {"ActiveState": "inactive"}
    manager.run(*python.memctl("up", "--quiet"))
    assert ping(manager, python)["pid"] == int(service(manager, "MainPID")["MainPID"])


def test_reload_reaches_the_daemon(manager: UserManager, python: Python) -> None:
    manager.run(*python.memctl("service", "install"))
    before = service(manager, "MainPID")
    manager.systemctl("reload", "memd.service")
    assert service(manager, "MainPID") == before
    broken = Path(manager.home, ".config", "memd", "config.toml")
    broken.parent.mkdir(exist_ok=True)
    broken.write_text("no such key = 1\n")
    assert manager.run("systemctl", "--user", "reload", "memd.service", check=False).returncode != 0
    assert service(manager, "MainPID") == before


def test_an_agent_in_the_services_group_outlives_it(manager: UserManager, python: Python) -> None:
    manager.run(*python.memctl("service", "install"))
    group = service(manager, "ControlGroup")["ControlGroup"]
    start = f"sleep 300 >/dev/null 2>&1 & echo $! > /sys/fs/cgroup{group}/cgroup.procs; echo $!"
    agent = int(manager.run("sh", "-c", start).stdout)
    manager.systemctl("stop", "memd.service")
    assert service(manager, "ActiveState") == {"ActiveState": "inactive"}
    manager.run("kill", "-0", str(agent))


def test_an_upgrade_rewrites_the_files_and_runs_the_new_version(
    manager: UserManager, python: Python, tmp_path: Path
) -> None:
    python.install(other_version(tmp_path / "old", "0.0.1"))
    manager.run(*python.memctl("service", "install"))
    assert ping(manager, python)["version"] == "0.0.1"
    python.install(other_version(tmp_path / "new", "9.9.9"))
    said = manager.run(*python.memctl("service", "install")).stdout
    assert f"renewed {unit_path(manager)}" in said
    assert ping(manager, python)["version"] == "9.9.9"
    assert b"memd 9.9.9" in unit_path(manager).read_bytes().splitlines()[0]


def test_installing_again_changes_and_restarts_nothing(manager: UserManager, python: Python) -> None:
    manager.run(*python.memctl("service", "install"))
    before = service(manager, "MainPID"), unit_path(manager).stat().st_mtime_ns
    said = manager.run(*python.memctl("service", "install")).stdout
    assert f"already right: {unit_path(manager)}" in said
    assert (service(manager, "MainPID"), unit_path(manager).stat().st_mtime_ns) == before


def test_an_edited_unit_is_kept_used_and_survives_uninstall(manager: UserManager, python: Python) -> None:
    manager.run(*python.memctl("service", "install"))
    edited = unit_path(manager).read_text().replace("RestartSec=1", "RestartSec=7")
    unit_path(manager).write_text(edited)
    said = manager.run(*python.memctl("service", "install")).stdout
    assert f"kept {unit_path(manager)}" in said
    assert "was edited and is kept" in said
    assert unit_path(manager).read_text() == edited
    assert service(manager, "RestartUSec", "ActiveState") == {"RestartUSec": "7s", "ActiveState": "active"}
    manager.run(*python.memctl("service", "uninstall"))
    assert unit_path(manager).read_text() == edited
    assert not unit_path(manager, "memd.socket").exists()


def test_a_unit_of_somebody_else_stops_the_install_untouched(manager: UserManager, python: Python) -> None:
    unit_path(manager).parent.mkdir(parents=True)
    unit_path(manager).write_text("[Service]\nExecStart=/bin/true\n")
    done = manager.run(*python.memctl("service", "install"), check=False)
    assert done.returncode == 77
    assert "does not come from memd" in done.stderr
    assert unit_path(manager).read_text() == "[Service]\nExecStart=/bin/true\n"
    assert not unit_path(manager, "memd.socket").exists()


def test_a_masked_unit_stays_masked(manager: UserManager, python: Python) -> None:
    manager.systemctl("mask", "memd.service")
    done = manager.run(*python.memctl("service", "install"), check=False)
    assert done.returncode == 77
    assert unit_path(manager).readlink() == Path("/dev/null")


def test_a_daemon_that_cannot_start_is_reported_and_up_tries_again(
    manager: UserManager, python: Python
) -> None:
    in_the_way = Path(manager.home, ".local", "state", "memd")
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file where a folder should be\n")
    done = manager.run(*python.memctl("service", "install"), check=False)
    assert done.returncode == 69
    assert "memd.service failed" in done.stderr
    status = manager.run(*python.memctl("service", "status"), check=False)
    assert status.returncode == 69
    assert "systemd tries again" in status.stdout
    in_the_way.unlink()
    manager.run(*python.memctl("up", "--quiet"))
    assert ping(manager, python)["pid"] == int(service(manager, "MainPID")["MainPID"])


def test_drop_ins_are_honoured_and_left_alone(manager: UserManager, python: Python) -> None:
    mine = drop_in(manager, "[Service]\nNice=7\n")
    manager.run(*python.memctl("service", "install"))
    assert service(manager, "Nice") == {"Nice": "7"}
    said = manager.run(*python.memctl("service", "uninstall")).stdout
    assert str(mine) in said
    assert mine.read_text() == "[Service]\nNice=7\n"


def test_uninstall_leaves_nothing_of_ours_in_the_configuration(manager: UserManager, python: Python) -> None:
    folder = unit_path(manager).parent
    folder.mkdir(parents=True)
    before = sorted(path.name for path in folder.rglob("*"))
    manager.run(*python.memctl("service", "install"))
    pid = int(service(manager, "MainPID")["MainPID"])
    with manager.death_of(pid):
        manager.run(*python.memctl("service", "uninstall"))
    left = sorted(path.name for path in folder.rglob("*") if not path.name.endswith(".wants"))
    assert left == before
    assert service(manager, "LoadState") == {"LoadState": "not-found"}
    assert manager.run(*python.memctl("service", "status"), check=False).returncode == 69


def test_a_daemon_started_by_hand_gives_way_to_the_service(manager: UserManager, python: Python) -> None:
    manager.run(*python.memctl("up", "--quiet"))
    by_hand = ping(manager, python)["pid"]
    said = manager.run(*python.memctl("service", "install")).stdout
    assert f"(pid {by_hand}) was stopped" in said
    assert ping(manager, python)["pid"] == int(service(manager, "MainPID")["MainPID"]) != by_hand


def test_the_service_uses_the_folders_that_the_shell_named(manager: UserManager, python: Python) -> None:
    state = Path(manager.home, "odd 100% state")
    manager.run(*python.memctl("service", "install"), env={"XDG_STATE_HOME": str(state)})
    assert (state / "memd" / "memd.lock").exists()
    assert not Path(manager.home, ".local", "state", "memd").exists()


def test_an_awkward_home_and_an_empty_path_are_no_obstacle(tmp_path: Path) -> None:
    home = tmp_path / 'R&D 100% "mine" $HOME \\x'
    home.mkdir(mode=0o700)
    with user_manager(str(home), tmp_path) as manager:
        python = Python(str(home / "venv"))
        drop_in(manager, "[Service]\nEnvironment=PATH=\n")
        manager.run(*python.memctl("service", "install"))
        assert service(manager, "ActiveState") == {"ActiveState": "active"}
        assert ping(manager, python)["pid"] == int(service(manager, "MainPID")["MainPID"])
        assert manager.run(*python.memctl("service", "status")).returncode == 0
        manager.run(*python.memctl("service", "uninstall"))
        assert not unit_path(manager).exists()
