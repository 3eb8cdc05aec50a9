"""The wall clock of everything in a home is set while it runs: daemon, worker, launcher, agents, commands.

Two days back, three days ahead, to 1970, to 2038 and after. Leases do not notice; a handoff counts its time
on the clock as it is; of memory nothing is lost or doubled, and the newer file is the one that the file
system says is newer.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import support_points
from e2e.test_run_clock import ask
from memd.memory.key import project_key
from support_daemon import eventually
from support_desk import Desk
from support_shim import DAY_S, Shim, why_not

pytestmark = [pytest.mark.faults, pytest.mark.skipif(bool(why_not()), reason=why_not() or "it can be set")]

IS_FULL = bool(os.environ.get("MEMD_FULL_SWEEPS"))
NOW = "as it was"
STEPS: dict[str, Callable[[Shim], None]] = {
    "two days back": lambda shim: shim.step(-2 * DAY_S),
    "three days ahead": lambda shim: shim.step(3 * DAY_S),
    "1970": lambda shim: shim.set_to(60),
    "2038": lambda shim: shim.set_to(2**31 + 60),
    NOW: lambda shim: shim.step(0),
}
SORTED = ("1970", "two days back", NOW, "three days ahead", "2038")
PAIRS = [(one, other) for one, other in itertools.permutations(STEPS, 2) if NOW in (one, other) or IS_FULL]
THERE_AND_BACK = [*STEPS, *reversed(STEPS)] if IS_FULL else [*STEPS]
BUSY = "busy workstream is already active: claude"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


@pytest.fixture
def shim(desk: Desk, tmp_path: Path) -> Shim:
    made = Shim(tmp_path, desk.home.path)
    desk.home.environment.update(made.variables)
    return made


def test_a_run_and_its_lease_do_not_notice(desk: Desk, shim: Shim) -> None:
    child = desk.home.start()
    holder = desk.begin("claude", do="say:before wait say:after exit:4")
    eventually(lambda: [run for run in desk.home.json("status")["runs"] if run["agent_pid"]])
    for name, step in STEPS.items():
        step(shim)
        assert ask(desk, "codex").startswith(BUSY), name
        child.kill()  # and not either for a daemon that starts by such a clock
        child.wait()
        child = desk.home.start()
        assert ask(desk, "codex").startswith(BUSY), name
        status = desk.home.json("status")
        assert [run["harness"] for run in status["runs"]] == ["claude"], name
        support_points.tried(2)
    STEPS["1970"](shim)
    desk.fakes.go()
    assert holder.wait(60) == 4
    eventually(lambda: desk.words() == ["before", "re before", "after", "re after"])
    assert ask(desk, "codex") == "planned\n"


@pytest.mark.parametrize("name", STEPS)
def test_a_lease_of_which_only_the_clock_knows_is_neither_cut_short_nor_kept(
    desk: Desk, shim: Shim, name: str
) -> None:
    """Its ninety seconds are those of the clock that nobody sets."""
    desk.home.start()
    assert ask(desk, "claude") == "planned\n"
    STEPS[name](shim)
    assert ask(desk, "codex").startswith(BUSY)
    [run] = desk.home.json("status")["runs"]
    assert run["harness"] == "claude"
    support_points.tried()


def test_a_handoff_counts_its_time_on_the_clock_as_it_is(desk: Desk, shim: Shim) -> None:
    desk.home.start()

    def state(id: object) -> str:
        rows = desk.home.json("handoff", "list", cwd=desk.checkout)
        return str(next(row["state"] for row in rows if row["handoff_id"] == id))

    for one, other in PAIRS:
        STEPS[one](shim)
        words = ("create", f"from {one} to {other}", "--expires", "1h")
        made = desk.home.json("handoff", *words, cwd=desk.checkout)["handoff_id"]
        assert state(made) == "open", one
        STEPS[other](shim)
        is_later = SORTED.index(other) > SORTED.index(one)
        assert state(made) == ("expired" if is_later else "open"), (one, other)
        done = desk.home.memctl("handoff", "accept", made, cwd=desk.checkout)
        assert done.returncode == (77 if is_later else 0), (one, other, done.stderr)
        support_points.tried()


def test_shared_memory_keeps_every_line_once_and_lists_every_topic(desk: Desk, shim: Shim) -> None:
    home = desk.home
    (home.path / ".config/memd").mkdir(parents=True)
    (home.path / ".config/memd/memory.jsonc").write_text('{ "shared_dir": true }')
    folder = home.path / ".agents/memory"
    folder.mkdir(parents=True)
    home.start()
    names = THERE_AND_BACK
    for number, name in enumerate(names):
        STEPS[name](shim)
        for topic in ("Always", f"Topic {number}"):
            for _ in range(2):  # the second time it is the same write
                words = ("--summary", "s", "--key", f"{topic} {number}")
                done = home.memctl("memory", "write", topic, *words, stdin=f"line {number} end")
                assert done.returncode == 0, (name, done.stderr)
        support_points.tried()
    text = (folder / "always.md").read_text()
    assert [text.count(f"line {number} end") for number in range(len(names))] == [1] * len(names)
    listed = {topic["name"] for topic in home.json("memory", "list")["topics"]}
    assert listed == {"Always", *(f"Topic {number}" for number in range(len(names)))}
    assert home.memctl("memory", "repair").returncode == 0
    left = {path.name for path in folder.iterdir()}
    assert left == {"MEMORY.md", "always.md", *(f"topic-{number}.md" for number in range(len(names)))}


def test_of_two_notes_the_newer_one_wins_whatever_the_clock_says_and_the_other_is_kept(
    desk: Desk, shim: Shim
) -> None:
    home, agent = desk.home, desk.checkout
    (home.path / ".claude").mkdir()
    (home.path / ".claude/.credentials.json").write_text("{}")
    home.start()
    assert home.memctl("enroll", str(agent)).returncode == 0
    link = home.path / ".claude/projects" / project_key(bytes(agent.resolve())) / "memory"
    owned = agent / ".memd/memory"
    eventually(link.is_symlink)
    (owned / "note.md").write_text("body start\n")
    for name in THERE_AND_BACK:
        STEPS[name](shim)
        replaced_by_folder(link)
        (link / "note.md").write_text(f"body {name}\n")
        assert home.memctl("heal").returncode == 0
        eventually(link.is_symlink)
        assert (owned / "note.md").read_text() == f"body {name}\n", name
        support_points.tried()
    files = [path for top in (agent, home.path) for path in top.rglob("*") if path.is_file()]
    kept = {path.read_text() for path in files if path.name.startswith("note")}
    assert kept == {f"body {name}\n" for name in ("start", *STEPS)}


def replaced_by_folder(link: Path) -> None:
    """As a harness does it in two steps; memd may make the link again in between."""
    while True:
        link.unlink()
        try:
            link.mkdir()
        except FileExistsError:
            continue
        return
