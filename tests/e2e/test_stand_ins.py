"""`memctl run` with stand-ins for programs that cannot be had: start, resume, live import, delivery."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import eventually
from support_desk import Desk
from support_stand_ins import NAMES, install, prompts

HARNESSES = tuple(NAMES)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    install(made.fakes.folder)
    yield made
    made.close()


@pytest.fixture
def desk(shared: Desk, tmp_path: Path) -> Desk:
    shared.clear(tmp_path)
    for name in ("prompts", ".kiro", ".gemini", ".config/crush"):
        shutil.rmtree(shared.home.path / name, ignore_errors=True)
    return shared


def hooked(desk: Desk, harness: str) -> None:
    """Installed hooks, and for Kiro the agent that they live in."""
    if harness == "kiro":
        agents = desk.home.path / ".kiro" / "agents"
        agents.mkdir(parents=True, exist_ok=True)
        (agents / "default.json").write_text('{"name": "default"}\n')
    if harness != "crush":
        done = desk.home.memctl("install-hooks", "--agent", harness, "--apply")
        assert done.returncode == 0, done.stderr


def session_of(desk: Desk, harness: str) -> str:
    """The one session of the checkout."""
    (row,) = (row for row in desk.json("sessions", "--cwd", str(desk.checkout)) if row["harness"] == harness)
    found = row["id"]
    assert isinstance(found, str)
    return found


RESUMED = {
    "crush": ["--session", "ID"],
    "kiro": ["--resume-id", "ID"],
    "antigravity": ["--conversation", "ID"],
}


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_round_trip_begins_fresh_and_goes_on_in_its_own_session(desk: Desk, harness: str) -> None:
    hooked(desk, harness)
    assert desk.ok(harness, do="say:first say:second")["args"] == []
    again = desk.ok(harness, do="say:third")["args"]
    session = session_of(desk, harness)
    assert again == [word.replace("ID", session) for word in RESUMED[harness]]
    said = desk.words()
    assert [text for text in said if not text.startswith("re ")][-2:] == ["second", "third"]
    if harness != "antigravity":
        assert said == ["first", "re first", "second", "re second", "third", "re third"]
    assert "SECRET" not in "\n".join(said)


@pytest.mark.parametrize("harness", HARNESSES)
def test_what_is_said_is_found_while_the_agent_still_runs(desk: Desk, harness: str) -> None:
    hooked(desk, harness)
    desk.begin(harness, do="say:first say:live_words wait")
    eventually(lambda: "live words" in desk.home.memctl("search", "live words").stdout)
    desk.fakes.go()


@pytest.mark.parametrize("harness", HARNESSES)
def test_another_agent_s_work_is_told_once(desk: Desk, harness: str) -> None:
    hooked(desk, harness)
    desk.ok("codex", do="say:the_port_is_8123")
    desk.ok(harness, do="say:hello")
    (told,) = prompts(desk.home.path)
    assert "re the port is 8123" in told
    assert told.count("memd:workstream-packet:v1") == 1
    desk.ok(harness, do="say:more")
    assert "8123" not in "".join(prompts(desk.home.path)[1:])
    assert not [text for text in desk.words() if "workstream-packet" in text]
    desk.ok("codex", do="say:and_the_host_is_h")
    desk.ok(harness, do="say:again")
    told = prompts(desk.home.path)[-1]
    assert "re and the host is h" in told
    assert "8123" not in told


@pytest.mark.parametrize(
    ("harness", "word"), [("crush", "models"), ("kiro", "whoami"), ("antigravity", "models")]
)
def test_a_utility_beside_a_foreign_session_imports_nothing_of_it(
    desk: Desk, harness: str, word: str
) -> None:
    desk.home.memctl("up")
    subprocess.run(
        [desk.fakes.folder / NAMES[harness]],
        env={**desk.home.environment, "FAKE_DO": "say:unrelated say:twice"},
        cwd=desk.checkout,
        check=True,
    )
    desk.ok(harness, word, do="say:of_the_utility")
    assert desk.args() == [word]
    assert desk.words() == []


@pytest.mark.parametrize("harness", HARNESSES)
def test_its_exit_code_is_returned(desk: Desk, harness: str) -> None:
    assert desk.run(harness, do="say:x exit:7").returncode == 7


@pytest.mark.parametrize(
    ("harness", "flag"),
    [("crush", "--yolo"), ("kiro", "--trust-all-tools"), ("antigravity", "--dangerously-skip-permissions")],
)
def test_yolo_is_said_in_its_own_words_once(desk: Desk, harness: str, flag: str) -> None:
    assert desk.ok("--yolo", harness)["args"] == [flag]
    assert desk.ok(harness, "--yolo", flag)["args"] == [flag]


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_session_that_is_gone_is_named_and_a_new_one_begins(desk: Desk, harness: str) -> None:
    hooked(desk, harness)
    desk.ok(harness, do="say:first say:second")
    gone = session_of(desk, harness)
    for path in (
        desk.checkout / ".crush",
        desk.home.path / ".kiro/sessions",
        desk.home.path / ".gemini/antigravity-cli",
    ):
        shutil.rmtree(path, ignore_errors=True)
    done = desk.run(harness, do="say:third say:fourth")
    assert done.returncode == 0, done.stderr
    assert "no longer has session" in done.stderr
    assert desk.args() == []
    again = desk.ok(harness, do="say:fifth")["args"]
    assert again[:-1] == RESUMED[harness][:-1]
    assert again[-1] != gone


# -------------------------------------------------------------------------------------------- Crush


def test_crush_finds_its_context_in_a_private_folder_that_is_gone_afterwards(desk: Desk) -> None:
    config = desk.home.path / ".config/crush"
    config.mkdir(parents=True)
    (config / "CRUSH.md").write_text("MINE\n")
    (config / "crush.json").write_text('{"options": {"debug": true}}')
    before = (config / "crush.json").read_bytes()
    desk.ok("codex", do="say:the_port_is_8123")
    folder = Path(desk.ok("crush", do="say:hello")["env"]["CRUSH_GLOBAL_CONFIG"])
    assert not folder.exists()
    (told,) = prompts(desk.home.path)
    assert told.startswith("MINE\n")
    assert "8123" in told
    assert (config / "crush.json").read_bytes() == before
    assert "CRUSH_GLOBAL_CONFIG" not in desk.ok("crush", do="say:more")["env"]


def test_a_broken_configuration_stops_the_launch_and_frees_the_workstream(desk: Desk) -> None:
    config = desk.home.path / ".config/crush"
    config.mkdir(parents=True)
    (config / "crush.json").write_text("[]")
    desk.ok("codex", do="say:the_port_is_8123")
    done = desk.run("crush", do="say:never")
    assert done.returncode == 78
    assert "crush.json is not an object" in done.stderr
    assert [start["name"] for start in desk.fakes.starts()] == ["codex"]
    (config / "crush.json").write_text("{}")
    desk.ok("crush", do="say:now")
    assert "8123" in prompts(desk.home.path)[0]


def test_the_data_folder_that_is_named_is_read_and_passed_on(desk: Desk) -> None:
    assert desk.ok("crush", "--data-dir", "mine", do="say:first")["args"] == ["--data-dir", "mine"]
    session = session_of(desk, "crush")
    again = desk.ok("crush", "-D", "mine", do="say:second")["args"]
    assert again == ["--session", session, "-D", "mine"]
    assert desk.words() == ["first", "re first", "second", "re second"]


def test_a_launch_below_the_top_of_the_checkout_uses_the_store_at_the_top(desk: Desk) -> None:
    desk.ok("crush", do="say:first")
    below = desk.checkout / "src"
    below.mkdir()
    done = desk.run("crush", do="say:second", cwd=below)
    assert done.returncode == 0, done.stderr
    assert desk.args() == ["--session", session_of(desk, "crush")]
    assert desk.words() == ["first", "re first", "second", "re second"]


def test_of_a_shared_store_only_what_worked_in_the_project_is_found(desk: Desk, tmp_path: Path) -> None:
    far = tmp_path / "far"
    desk.ok("crush", "--data-dir", str(far), do="say:other_words")
    assert desk.words() == []
    desk.ok("crush", "--data-dir", str(far), do="say:mine edit:a.py")
    assert desk.words() == ["mine", "re mine"]


def test_two_sessions_at_once_are_not_taken_for_one(desk: Desk) -> None:
    desk.begin("crush", do="say:mine wait")
    eventually(lambda: len(desk.fakes.starts()) == 1 and (desk.checkout / ".crush").exists())
    subprocess.run(
        [desk.fakes.folder / "crush"],
        env={**desk.home.environment, "FAKE_DO": "say:unmanaged"},
        cwd=desk.checkout,
        check=True,
    )
    desk.fakes.go()
    eventually(lambda: any("checkpoint" in text or "No session" in text for text in desk.said()) or None)
    assert desk.words() == []


def test_a_reply_that_was_cut_off_is_imported_when_the_run_is_over(desk: Desk) -> None:
    desk.ok("crush", do="say:first open:second")
    assert desk.words() == ["first", "re first", "second", "re second"]


# --------------------------------------------------------------------------------------------- Kiro


def test_the_third_engine_is_named_in_front_and_taken_up_again_by_a_plain_launch(desk: Desk) -> None:
    hooked(desk, "kiro")
    assert desk.ok("kiro", "--v3", do="say:first")["args"] == ["--v3"]
    session = session_of(desk, "kiro")
    assert session.startswith("sess_")
    assert desk.ok("kiro", "chat", do="say:second")["args"] == ["--v3", "chat", "--resume-id", session]
    assert desk.ok("kiro-v3", do="say:third")["args"] == ["--v3", "--resume-id", session]
    assert desk.words() == [word for text in ("first", "second", "third") for word in (text, f"re {text}")]


def test_the_engines_never_cross(desk: Desk) -> None:
    hooked(desk, "kiro")
    desk.ok("kiro", do="say:second_engine")
    done = desk.run("kiro", "--v3", do="say:third_engine")
    assert done.returncode == 0, done.stderr
    assert desk.args() == ["--v3"]
    assert "begins a new" in done.stderr
    assert "re second engine" in prompts(desk.home.path)[-1]


def test_kiro_home_is_left_out_for_the_resume_of_a_stray_session_only(desk: Desk, tmp_path: Path) -> None:
    mine = {"KIRO_HOME": str(tmp_path / "kiro"), "FAKE_KIRO_STRAYS": "1"}
    fresh = desk.ok("kiro", "--v3", do="say:first", **mine)
    assert fresh["env"]["KIRO_HOME"] == mine["KIRO_HOME"]
    again = desk.ok("kiro", do="say:second", **mine)
    assert again["args"] == ["--v3", "--resume-id", session_of(desk, "kiro")]
    assert "KIRO_HOME" not in again["env"]
    assert desk.words() == ["first", "re first", "second", "re second"]


def test_hooks_are_written_into_all_agents_or_none(desk: Desk) -> None:
    agents = desk.home.path / ".kiro/agents"
    agents.mkdir(parents=True)
    (agents / "a.json").write_text('{"name": "a"}')
    (agents / "b.json").write_text('{"hooks": []}')
    done = desk.home.memctl("install-hooks", "--agent", "kiro-cli", "--apply")
    assert done.returncode != 0
    assert (agents / "a.json").read_text() == '{"name": "a"}'
    (agents / "b.json").write_text("{}")
    assert desk.home.memctl("install-hooks", "--agent", "kiro-cli", "--apply").returncode == 0
    for name in ("a", "b"):
        found = json.loads((agents / f"{name}.json").read_text())["hooks"]
        assert list(found) == ["agentSpawn", "userPromptSubmit"]
        assert "matcher" not in found["agentSpawn"][0]
    assert sorted(path.name for path in agents.iterdir() if path.suffix == ".json") == ["a.json", "b.json"]
    assert json.loads((desk.home.path / ".kiro/hooks/memd.json").read_text())["version"] == "v1"


def test_without_any_agent_the_second_engine_has_no_place_for_hooks_and_that_is_said(desk: Desk) -> None:
    (desk.home.path / ".kiro").mkdir()
    done = desk.home.memctl("install-hooks", "--agent", "kiro", "--apply")
    assert done.returncode == 0, done.stderr
    assert ".kiro/agents holds no file for hooks to stand in" in done.stderr
    assert not (desk.home.path / ".kiro/agents").exists()
    assert (desk.home.path / ".kiro/hooks/memd.json").exists()


# -------------------------------------------------------------------------------------- Antigravity


def test_calls_of_tools_come_from_hooks_and_nothing_of_the_steps(desk: Desk) -> None:
    hooked(desk, "antigravity")
    done = desk.run("antigravity", do="say:first tool:make say:second")
    assert done.stdout == "ran\n"
    assert 'run_command: {"command":"make"}' in desk.words()
    everything = desk.home.memctl("search", "SECRET-TRAJECTORY").stdout
    assert everything.strip() == "nothing found"


def test_tools_run_without_a_daemon_and_their_calls_are_taken_in_later(desk: Desk) -> None:
    hooked(desk, "antigravity")
    assert desk.home.memctl("down").returncode == 0
    done = subprocess.run(
        [desk.fakes.folder / "agy"],
        env={**desk.home.environment, "FAKE_DO": "say:first tool:make_it say:second"},
        cwd=desk.checkout,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "ran\n"
    desk.home.memctl("up")
    eventually(lambda: 'run_command: {"command":"make it"}' in desk.home.memctl("search", "make it").stdout)
    session = session_of(desk, "antigravity")
    exported = desk.home.memctl("export", "--session", session).stdout
    assert exported.count("make it") == 1


def test_no_bare_launch_starts_antigravity(desk: Desk) -> None:
    hooked(desk, "antigravity")
    desk.ok("antigravity", do="say:first say:second")
    assert desk.run(do="say:x").returncode != 0


@pytest.mark.parametrize("harness", ["crush", "kiro"])
def test_a_bare_launch_goes_on_in_the_newest_session(desk: Desk, harness: str) -> None:
    desk.home.memctl("up")
    subprocess.run(
        [desk.fakes.folder / NAMES[harness]],
        env={**desk.home.environment, "FAKE_DO": "say:before"},
        cwd=desk.checkout,
        check=True,
    )
    desk.ok(do="say:after")
    assert desk.fakes.last()["name"] == NAMES[harness]
    assert desk.args() == [word.replace("ID", session_of(desk, harness)) for word in RESUMED[harness]]
    assert desk.words() == ["before", "re before", "after", "re after"]
