"""What the tests beside this one rest on: a world is closed, belongs to one test, leaves nothing behind."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import psutil
import pytest

from real.model import PORT
from real.namespace import HOME, is_below, outermost
from real.rig import CHECKOUT, World, dev_uid
from real.running import RigError

pytestmark = pytest.mark.real

_ASK = f"""
import json, sys, urllib.request
body = json.dumps({{"model": "m", "messages": [{{"role": "user", "content": sys.argv[1]}}]}}).encode()
request = urllib.request.Request("http://127.0.0.1:{PORT}/v1/messages", body, {{"x-api-key": "hush"}})
print(json.load(urllib.request.urlopen(request))["content"][0]["text"])
"""


def test_world_has_loopback_and_nothing_else(world: World) -> None:
    listed = world.run("cat", "/proc/net/dev").out
    assert [line.split(":")[0].strip() for line in listed.splitlines() if ":" in line] == ["lo"]
    assert world.run("cat", "/proc/net/route").out.count("\n") == 1  # the heading: no way out


def test_world_hides_what_belongs_to_the_tester(world: World) -> None:
    assert world.run("ls", "-A", "/run").out.split() == ["accounts", "user"]
    assert world.run("ls", "-A", HOME).out.split() == [".gitconfig"]
    outside = str(Path(sys.prefix).resolve())
    for path in (str(Path.home()), str(world.folder)):
        if not is_below(outside, path) and not is_below(str(CHECKOUT), path):
            assert world.run("ls", f"{path}/requests.jsonl", f"{path}/.cache", may_fail=True).status != 0


def test_program_is_an_ordinary_user_who_cannot_change_the_checkout(world: World) -> None:
    status = world.run("cat", "/proc/self/status").out
    assert f"Uid:\t{dev_uid()}\t{dev_uid()}" in status
    assert "CapEff:\t0000000000000000" in status
    assert world.run("touch", f"{CHECKOUT}/stray", may_fail=True).status != 0
    assert world.run("whoami").out == "dev\n"


def test_program_starts_from_the_interpreter_that_runs_the_tests(world: World) -> None:
    said = world.run(sys.executable, "-c", "import sys, trio; print(sys.prefix)").out
    assert said.strip() == sys.prefix


def test_file_in_the_world_is_the_users(world: World) -> None:
    made = world.put(f"{HOME}/a/b/c.txt", "text")
    assert {os.stat(path).st_uid for path in (made, made.parent, made.parent.parent)} == {dev_uid()}
    assert world.run("cat", "a/b/c.txt").out == "text"


def test_end_of_the_world_ends_every_process_in_it(tmp_path: Path) -> None:
    with World(tmp_path / "world") as world:
        plain = world.start("sleep", "86413")
        world.run("sh", "-c", "setsid sleep 86414 </dev/null >/dev/null 2>&1 &")
        inside = world.pids()
        assert plain.pid in inside
        assert len(inside) == 3  # the first process, the program, the orphan
    assert plain.finish().status == 137
    assert not inside & set(psutil.pids())


def test_killed_program_says_so(world: World) -> None:
    running = world.start("sleep", "1000")
    running.kill()
    assert running.finish().status == 137
    with pytest.raises(RigError, match="ended already"):
        _ = running.pid


def test_failing_program_fails_the_test_with_all_it_said(world: World) -> None:
    with pytest.raises(RigError, match=r"(?s)exit 3.*out there.*in trouble"):
        world.run("sh", "-c", "echo out there; echo in trouble >&2; exit 3")


def test_model_answers_in_the_world_and_its_requests_are_kept(world: World) -> None:
    said = world.run(sys.executable, "-c", _ASK, "hello SENTINEL-one")
    assert said.out == "ACK SENTINEL-one\n"
    (request,) = world.requests()
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == "***"
    assert "hello SENTINEL-one" in request.text


def test_held_reply_waits_for_its_word(world: World) -> None:
    asking = world.start(sys.executable, "-c", _ASK, "HOLD green SENTINEL-two")
    held = world.wait_for_request(lambda request: "SENTINEL-two" in request.text)
    assert asking.is_alive
    world.release("green")
    assert "RELEASED SENTINEL-two" in asking.finish().out
    assert held.seq == 1


def test_wait_for_a_request_that_never_comes_says_which_came(world: World) -> None:
    world.run(sys.executable, "-c", _ASK, "hello SENTINEL-three")
    with pytest.raises(RigError, match="SENTINEL-three"):
        world.wait_for_request(lambda request: request.path == "/nowhere", timeout_s=0.05)


def test_nested_folders_are_kept_once() -> None:
    assert outermost(["/a/b", "/a", "/ab", "/a/b/c", "/a"]) == ["/a", "/ab"]


def test_log_is_one_object_a_line(world: World) -> None:
    world.run(sys.executable, "-c", _ASK, "two\nlines \u2028 SENTINEL-four")
    (line,) = (world.folder / "requests.jsonl").read_bytes().splitlines()
    assert json.loads(line)["body"]["messages"][0]["content"] == "two\nlines \u2028 SENTINEL-four"
