"""`memctl run` with fake agents: what is started, what goes on in what, and what comes of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support_cases import expectation, make
from support_desk import Desk
from support_fake_harness import NAMES

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


@pytest.fixture
def desk(shared: Desk, tmp_path: Path) -> Desk:
    shared.clear(tmp_path)
    return shared


def test_a_child_gets_the_whole_environment_its_directory_and_the_run(desk: Desk) -> None:
    done = desk.run("claude", do="say:hello", CLAUDE_TEST="mine", MEMD_RUN_ID="of another run")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    start = desk.fakes.last()
    assert start["cwd"] == str(desk.checkout)
    assert start["env"]["CLAUDE_TEST"] == "mine"
    [workstream] = desk.workstreams()
    assert start["env"]["MEMD_WORKSTREAM_ID"] == workstream["workstream_id"]
    assert len(start["env"]["MEMD_RUN_ID"]) == 36
    assert start["env"]["MEMD_SOCKET"] == os.fsdecode(desk.home.socket())
    assert start["fds"] == [0, 1, 2, 3, 4]  # the file and the folder that it opened itself: nothing of ours
    assert "workstream 'default': 3 new events" in done.stderr


def test_native_arguments_need_no_separator_and_keep_their_order_and_bytes(desk: Desk) -> None:
    odd = os.fsdecode(b"\xff\xfe")
    desk.ok("claude", "--model", "m", "two words", "", "--resume=x", "-", odd, "--", "--yolo", "--help")
    assert desk.args() == ["--model", "m", "two words", "", "--resume=x", "-", odd, "--", "--yolo", "--help"]
    desk.ok("--workspace", "w", "--project=p", "claude", "--project", "theirs", "--wait")
    assert desk.args()[:3] == ["--project", "theirs", "--wait"]


@pytest.mark.parametrize("name", NAMES)
def test_a_round_trip_begins_fresh_and_goes_on_in_its_own_session(desk: Desk, name: str) -> None:
    fresh = desk.ok(name, do="say:first")["args"]
    again = desk.ok(name, do="say:second")["args"]
    assert desk.words() == ["first", "re first", "second", "re second"]
    [session] = desk.json("sessions", "--cwd", str(desk.checkout))
    assert session["events"] == 6  # with the checkpoint of each run
    joined = " ".join(again)
    assert session["id"] in joined
    assert not fresh or session["id"] in " ".join(fresh)


def test_help_version_and_utilities_pass_and_leave_the_checkpoint_alone(desk: Desk) -> None:
    desk.home.memctl("up")
    subprocess.run(
        [desk.fakes.folder / "codex"],
        env={**desk.home.environment, "FAKE_DO": "say:unrelated"},
        cwd=desk.checkout,
        check=True,
    )
    for words in (["--version"], ["--help"], ["login", "status"]):
        desk.ok("codex", *words, do="say:of_the_utility")
        assert desk.args() == words
    said = desk.said()
    assert len(said) == 3
    assert all(text.startswith(("HEAD", "Branch", "No repo")) for text in said)
    assert desk.workstreams()[0]["linked_harnesses"] == []


def test_case_28_a_utility_beside_a_live_session_imports_and_links_nothing(
    desk: Desk, tmp_path: Path
) -> None:
    case = "28-utility-run-imports-nothing"
    expected = expectation(case)
    make(case, tmp_path / "made")
    shutil.copytree(tmp_path / "made" / "home", desk.home.path, dirs_exist_ok=True)
    shutil.copy(tmp_path / "made" / "bin" / "codex", desk.fakes.folder / "codex")
    checkout = tmp_path / "made" / expected["workdir"]
    done = desk.run("codex", *expected["argv"], cwd=checkout)
    assert done.returncode == expected["exit_code"]
    assert done.stdout == "codex-cli 9.9.9\n"
    assert (desk.fakes.folder / "argv.log").read_text() == expected["child_argv"] + "\n"
    make(case, tmp_path / "made", "--step", "2")
    shutil.copytree(tmp_path / "made" / "home", desk.home.path, dirs_exist_ok=True)
    desk.run("codex", *expected["argv"], cwd=checkout)
    [workstream] = desk.json("workstreams", cwd=checkout)
    assert workstream["linked_harnesses"] == []
    found = desk.said(workstream["workstream_id"])
    assert not any(text in row for row in found for text in expected["never"])
    assert len(found) == 2


def test_wrapper_words_count_before_and_after_the_name_and_are_translated(desk: Desk) -> None:
    desk.ok("codex", "--yolo", "-m", "M", "two words")
    assert desk.args() == ["-m", "M", "two words", "--dangerously-bypass-approvals-and-sandbox"]
    desk.ok("--yolo", "claude", "-p", "hi")
    assert desk.args()[:2] == ["-p", "hi"]
    assert desk.args()[-1] == "--dangerously-skip-permissions"
    desk.ok("claude", do="say:first")
    desk.ok("--fresh", "claude", do="say:second")
    assert "--session-id" in desk.args()
    desk.ok("claude", "--fresh")
    assert "--fresh" not in desk.args()
    assert "--session-id" in desk.args()


def test_fresh_and_a_selector_contradict_each_other(desk: Desk) -> None:
    done = desk.run("claude", "--fresh", "--resume", "x")
    assert done.returncode == 64
    assert "--fresh" in done.stderr
    assert desk.fakes.starts() == []
    assert desk.workstreams() == []


@pytest.mark.parametrize("code", [0, 1, 23, 255])
def test_the_exit_status_is_the_childs(desk: Desk, code: int) -> None:
    assert desk.run("claude", do=f"say:hello exit:{code}").returncode == code
    assert desk.words() == ["hello", "re hello"]


@pytest.mark.parametrize("number", [9, 2, 15])
def test_a_child_that_dies_by_a_signal_is_a_failure(desk: Desk, number: int) -> None:
    done = desk.run("claude", do=f"say:hello die:{number}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert desk.words() == ["hello", "re hello"]


def test_a_missing_program_makes_no_workstream(desk: Desk) -> None:
    desk.fakes.remove("codex")
    done = desk.run("codex")
    assert done.returncode == 69
    assert "codex" in done.stderr
    assert "PATH" in done.stderr
    unknown = desk.run("cladue")
    assert unknown.returncode == 64
    assert "cladue" in unknown.stderr
    assert desk.workstreams() == []


def test_another_program_may_be_named(desk: Desk, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "claude"
    other.parent.mkdir()
    shutil.move(desk.fakes.folder / "claude", other)
    assert desk.run("claude").returncode == 69
    desk.ok("--executable", str(other), "claude", do="say:hello")
    relative = os.path.relpath(other, desk.checkout)
    desk.ok(f"--executable={relative}", "claude", do="say:more")
    assert "--resume" in desk.args()
    assert desk.run("--executable", str(tmp_path / "nothing"), "claude").returncode == 69


def test_a_child_that_cannot_be_started_is_told_and_the_workstream_is_free(desk: Desk) -> None:
    (desk.fakes.folder / "codex").write_text("#!/nowhere/at/all\n")
    done = desk.run("codex")
    assert done.returncode == 69
    assert "cannot be started" in done.stderr
    [workstream] = desk.workstreams()
    assert any("could not be started" in text for text in desk.said(workstream["workstream_id"]))
    desk.ok("claude", do="say:hello")


def test_a_directory_that_is_gone_starts_nothing(desk: Desk, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && exec memctl-run claude"
    shim = desk.fakes.folder / "memctl-run"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m memctl run "$@"\n')
    shim.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=desk.home.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 64
    assert "gone" in done.stderr


def test_without_a_daemon_nothing_is_started(desk: Desk, tmp_path: Path) -> None:
    done = desk.run("claude", MEMD_SOCKET=str(tmp_path / "nobody" / "listens"))
    assert done.returncode == 69
    assert desk.fakes.starts() == []
    assert "Traceback" not in done.stderr


def test_workstreams_are_chosen_made_and_refused(desk: Desk) -> None:
    desk.ok("claude", do="say:in_default")
    desk.ok("--new", "side", "claude", do="say:on_the_side")
    assert "--session-id" in desk.args()
    desk.ok("claude", do="say:still_there")
    desk.ok("--workstream", "default", "claude", do="say:back")
    names = {one["name"]: one["workstream_id"] for one in desk.workstreams()}
    assert desk.words(names["default"]) == ["in default", "re in default", "back", "re back"]
    assert len(desk.words(names["side"])) == 4
    assert desk.run("--workstream", "nothing", "claude").returncode == 65
    assert desk.run("--new", "side", "claude").returncode == 64
    assert desk.run("--new", "a/b", "claude").returncode == 64
    both = desk.run("--new", "x", "--workstream", "default", "claude")
    assert both.returncode == 64
    assert {one["name"] for one in desk.workstreams()} == {"default", "side"}


def test_a_marker_says_the_scope_and_memctl_says_so_once(desk: Desk) -> None:
    (desk.checkout / ".memd.toml").write_text('workspace = "acme"\nproject = "rockets"\n')
    done = desk.run("claude", do="say:hello")
    assert done.stderr.count("acme/rockets") == 1
    assert "scope" not in desk.run("--workspace", "w", "--project", "p", "claude").stderr
    projects = json.loads((desk.home.path / ".local/share/memd/projects.json").read_bytes())
    noted = {(one["workspace"], one["project"]): one["path"] for one in projects["links"]}
    assert noted["acme", "rockets"] == noted["w", "p"] == str(desk.checkout)


def test_blank_store_variables_count_as_unset_for_child_and_reader(desk: Desk) -> None:
    done = desk.run("claude", do="say:hello", CLAUDE_CONFIG_DIR="", CODEX_HOME="/elsewhere")
    assert done.returncode == 0, done.stderr
    assert "CLAUDE_CONFIG_DIR" not in desk.fakes.last()["env"]
    assert desk.fakes.last()["env"]["CODEX_HOME"] == "/elsewhere"
    assert desk.words() == ["hello", "re hello"]


def test_a_store_that_a_variable_names_reaches_child_and_reader(desk: Desk, tmp_path: Path) -> None:
    other = str(tmp_path / "codex-home")
    for text in ("first", "second"):
        done = desk.run("codex", do=f"say:{text}", CODEX_HOME=other)
        assert done.returncode == 0, done.stderr
    assert desk.words() == ["first", "re first", "second", "re second"]
    assert desk.args()[0] == "resume"
    done = desk.run("codex", do="say:third")
    assert "not used here" in done.stderr
    assert desk.args() == []


def test_a_subdirectory_shares_the_workstream(desk: Desk) -> None:
    below = desk.checkout / "a" / "b"
    below.mkdir(parents=True)
    desk.ok("claude", do="say:above")
    desk.ok("claude", do="say:below", cwd=below)
    assert "--resume" in desk.args()
    assert len(desk.workstreams()) == 1


def test_the_help_is_memctls_own_before_the_name_and_the_agents_after_it(desk: Desk) -> None:
    done = desk.home.memctl("run", "--help")
    assert done.returncode == 0
    assert "--workstream" in done.stdout
    assert "AGENT" in done.stdout
    wrong = desk.home.memctl("run", "--model", "x", "claude")
    assert wrong.returncode == 64
    assert desk.fakes.starts() == []


def test_case_26_a_swept_session_is_replaced_by_a_fresh_one(desk: Desk, tmp_path: Path) -> None:
    case = "26-linked-transcript-swept"
    expected = expectation(case)
    make(case, tmp_path / "made")
    checkout = tmp_path / "made" / expected["workdir"]
    shutil.copytree(tmp_path / "made" / "home", desk.home.path, dirs_exist_ok=True)
    old = expected["session"]
    done = desk.run("claude", "--resume", old, do="say:linked", cwd=checkout)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(desk.home.path / ".claude" / "projects")
    make(case, tmp_path / "made", "--step", "2")
    shutil.copytree(tmp_path / "made" / "home", desk.home.path, dirs_exist_ok=True)
    done = desk.run("claude", do="say:anew", cwd=checkout)
    assert "no longer has session" in done.stderr
    for word in expected["step2"]["argv_must_not_contain"]:
        assert word not in desk.args()
    fresh = desk.args()[-1]
    again = desk.run("claude", do="say:more", cwd=checkout)
    assert "no longer" not in again.stderr
    assert desk.args() == ["--resume", fresh]
    [workstream] = desk.json("workstreams", cwd=checkout)
    said = desk.said(workstream["workstream_id"])
    for _, text in expected["messages"]:
        assert text in said
    assert not any(text in row for row in said for text in expected["never"])


def test_arguments_that_are_too_long_for_a_message_are_refused_in_words(desk: Desk) -> None:
    done = desk.run("claude", *["x" * 100_000] * 6)
    assert done.returncode == 64
    assert "KiB" in done.stderr
    assert desk.fakes.starts() == []
    desk.ok("claude", *["x" * 100_000] * 5)
    assert len(desk.args()[4]) == 100_000
