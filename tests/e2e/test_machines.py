"""Two machines, one line of work: a laptop and a desktop as network namespaces, a server between them.

`MEMD_LONG=1` also cuts the link for 30 and for 100 real seconds: four minutes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from support_daemon import eventually
from support_desk import MEMCTL
from support_machines import Machine, two_machines
from support_postgres import Server

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[Machine, Machine, Server]]:
    with two_machines() as made:
        yield made


@pytest.fixture
def machines(world: tuple[Machine, Machine, Server]) -> tuple[Machine, Machine]:
    """Both with a checkout of their own; the first test begins the work that the others go on with."""
    laptop, desktop, _server = world
    for machine in (laptop, desktop):
        machine.cable.mend()
    return laptop, desktop


def test_what_was_begun_on_one_goes_on_on_the_other(machines: tuple[Machine, Machine]) -> None:
    laptop, desktop = machines
    laptop.ok("claude", do="say:on_the_laptop")
    [begun] = laptop.workstreams()
    assert desktop.workstreams() == []
    [found] = desktop.json("workstreams", "--all")["elsewhere"]
    assert (found["workstream_id"], found["directory"]) == (begun["workstream_id"], str(laptop.checkout))
    assert found["machine"]
    assert len(found["commit"]) == 40
    refused = desktop.run("--workstream", "default", "codex", do="say:too_early")
    assert refused.returncode == 77
    assert "last used on" in refused.stderr
    assert "memctl workstreams bind default" in refused.stderr
    (desktop.checkout / "a.txt").write_text("changed\n")
    bound = desktop.home.memctl("workstreams", "bind", "default", cwd=desktop.checkout)
    assert bound.returncode == 0, bound.stderr
    assert "belongs to this checkout now" in bound.stdout
    assert "changes that are not committed" in bound.stdout
    desktop.ok("codex", do="say:on_the_desktop")
    assert [row["workstream_id"] for row in desktop.workstreams()] == [begun["workstream_id"]]
    said = ["on the laptop", "re on the laptop", "on the desktop", "re on the desktop"]
    assert desktop.words() == said
    assert laptop.words() == said
    laptop.ok("claude", do="say:back_again")
    assert desktop.words()[-2:] == ["back again", "re back again"]


def test_a_person_is_asked_and_only_a_yes_binds(machines: tuple[Machine, Machine]) -> None:
    laptop, desktop = machines
    laptop.ok("--new", "asked for", "claude", do="say:on_the_laptop")
    command = ["ip", "netns", "exec", desktop.cable.name, *MEMCTL, "run", "--workstream", "asked for"]
    for answer, status in (("", 77), ("n", 77), ("y", 0)):
        screen = desktop.terminal([*command, "codex"], FAKE_DO="say:after_a_yes")
        shown = screen.until("[y/N]")
        assert "last used on" in shown
        screen.type(f"{answer}\n")
        assert screen.wait() == status
    assert desktop.words()[-2:] == ["after a yes", "re after a yes"]
    [found] = [row for row in desktop.workstreams() if row["name"] == "asked for"]
    assert found["current"]
    laptop.ok("--workstream", "default", "claude", do="say:the_usual_one")
    desktop.ok("--workstream", "default", "codex", do="say:the_usual_one")


def test_one_of_them_has_the_workstream(machines: tuple[Machine, Machine]) -> None:
    laptop, desktop = machines
    child = laptop.begin("claude", do="mark:there wait")
    eventually((laptop.home.path / "there").exists)
    busy = desktop.run("codex", do="say:not_now")
    assert busy.returncode == 75
    assert "already active" in busy.stderr
    assert " on " in busy.stderr
    laptop.fakes.go()
    assert child.wait(timeout=60) == 0
    desktop.ok("codex", do="say:now")


def test_a_link_that_is_cut_disturbs_no_run_and_loses_nothing(machines: tuple[Machine, Machine]) -> None:
    laptop, desktop = machines
    (laptop.home.path / "there").unlink(missing_ok=True)
    (laptop.home.path / "go").unlink(missing_ok=True)
    child = laptop.begin("claude", do="mark:there wait say:said_in_the_dark exit:7")
    eventually((laptop.home.path / "there").exists)
    laptop.cable.cut()
    laptop.fakes.go()
    assert child.wait(timeout=90) == 7
    eventually(lambda: laptop.ledger()["waiting_batches"] > 0, 60)
    state = laptop.ledger()
    assert state["state"] == "unreachable"
    assert state["waiting_since"]
    assert laptop.home.json("status")["health"] == "degraded"
    assert "waiting here for the ledger's server" in " ".join(laptop.home.memctl("status").stdout.split())
    told = laptop.home.memctl("doctor").stdout
    assert "problem  ledger (postgresql): " in told
    assert "waiting here for the server since" in told
    refused = laptop.run("claude", do="say:never")
    assert refused.returncode == 69
    assert "server" in refused.stderr
    laptop.cable.mend()
    eventually(lambda: laptop.ledger()["waiting_batches"] == 0, 60)
    eventually(lambda: not desktop.home.json("status")["runs"], 60)
    eventually(lambda: "said in the dark" in desktop.words(), 60)
    assert desktop.words().count("said in the dark") == 1
    laptop.ok("claude", do="say:afterwards")


@pytest.mark.skipif(not os.environ.get("MEMD_LONG"), reason="takes minutes: set MEMD_LONG=1")
@pytest.mark.parametrize(("seconds", "is_taken"), [(30, False), (100, False), (100, True)])
def test_a_link_that_is_cut_for_long_loses_nothing_and_the_run_goes_on_unless_somebody_came(
    world: tuple[Machine, Machine, Server],
    machines: tuple[Machine, Machine],
    seconds: int,
    is_taken: bool,
) -> None:
    laptop, desktop = machines
    name = f"cut for {seconds}{' and taken' if is_taken else ''}"
    dark = f"dark_{seconds}_{is_taken}"
    for left in ("there", "go"):
        (laptop.home.path / left).unlink(missing_ok=True)
    laptop.ok("--new", name, "claude", do="say:begun")
    bound = desktop.home.memctl("workstreams", "bind", name, cwd=desktop.checkout)
    assert bound.returncode == 0, bound.stderr
    child = laptop.begin("--workstream", name, "claude", do=f"mark:there wait say:{dark} exit:7")
    eventually((laptop.home.path / "there").exists)
    laptop.cable.cut()
    cut_at = time.monotonic()
    assert desktop.run("--workstream", name, "codex", do="say:too_early").returncode == 75
    time.sleep(seconds - (time.monotonic() - cut_at))
    if is_taken:
        desktop.ok("--workstream", name, "codex", do="say:taken_over")
    elif seconds < 90:
        assert desktop.run("--workstream", name, "codex", do="say:too_early").returncode == 75
    assert child.poll() is None
    laptop.cable.mend()
    if not is_taken:
        now = "(extract(epoch from clock_timestamp()) * 1000)::bigint"
        held = f"select count(*) from memd.runs where state = 'active' and expires_ms > {now}"
        eventually(lambda: world[2].sql(held) == [(1,)], 60)
        assert desktop.run("--workstream", name, "codex", do="say:too_early").returncode == 75
    laptop.fakes.go()
    assert child.wait(timeout=90) == 7
    eventually(lambda: laptop.ledger()["waiting_batches"] == 0, 60)
    said = dark.replace("_", " ")

    def times() -> int:
        return [hit["content"] for hit in desktop.json("search", said)].count(said)

    eventually(lambda: not desktop.home.json("status")["runs"], 60)
    eventually(lambda: times() > 0, 60)
    assert times() == 1
    desktop.ok("--workstream", name, "codex", do="say:afterwards")


def test_a_machine_that_vanished_frees_the_workstream_when_its_lease_is_over(
    world: tuple[Machine, Machine, Server], machines: tuple[Machine, Machine]
) -> None:
    laptop, desktop = machines
    server = world[2]
    (laptop.home.path / "there").unlink(missing_ok=True)
    (laptop.home.path / "go").unlink(missing_ok=True)
    laptop.begin("claude", do="mark:there wait")
    eventually((laptop.home.path / "there").exists)
    laptop.cable.cut()
    assert desktop.run("codex", do="say:too_early").returncode == 75
    [(left_ms,)] = server.sql(
        "select expires_ms - (extract(epoch from clock_timestamp()) * 1000)::bigint from memd.runs"
        " where state = 'active'"
    )
    assert 0 < left_ms <= 90_000
    server.sql("update memd.runs set expires_ms = expires_ms - 90000 where state = 'active'")
    desktop.ok("codex", do="say:taken_over")
    laptop.fakes.go()


def test_a_daemon_that_was_killed_goes_on_with_its_queue(machines: tuple[Machine, Machine]) -> None:
    laptop, desktop = machines
    eventually(lambda: laptop.ledger()["waiting_batches"] == 0, 60)
    laptop.cable.cut()
    subprocess.run(
        [laptop.fakes.folder / "claude"],
        env={**laptop.home.environment, "FAKE_DO": "say:before_the_kill"},
        cwd=laptop.checkout,
        check=True,
    )
    eventually(lambda: laptop.ledger()["waiting_batches"] > 0, 60)
    os.kill(laptop.home.json("status")["pid"], signal.SIGKILL)
    begun = laptop.home.memctl("up")
    assert begun.returncode == 0, begun.stderr
    assert laptop.ledger()["waiting_batches"] > 0
    laptop.cable.mend()
    eventually(lambda: laptop.ledger()["waiting_batches"] == 0, 60)
    found = desktop.json("search", "kill")
    assert [hit["content"] for hit in found] == ["before the kill", "re before the kill"] or len(found) == 2
