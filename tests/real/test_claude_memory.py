"""One memory under every login, shown on what the real Claude Code sends to its model.

The program writes its notes where its own request says, because the scripted model calls its Write tool
with that path; nothing here computes a project key. `MEMORY.md` is in every request of a later session;
a note's body comes with the Read tool.

source  Claude Code 2.1.197, run 2026-11
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from real.harnesses import HARNESSES, claude_login
from real.namespace import HOME
from real.product import Memd
from real.recorded import Request
from real.rig import World
from real.screen import Screen, why_no_screen
from real.script import memory_directory

pytestmark = pytest.mark.real

ROOT = f"{HOME}/proj"
SUBDIRECTORY = f"{ROOT}/src/deep"
WORKTREE = f"{HOME}/trees/feature"
PLACES = {"the root": ROOT, "a subdirectory": SUBDIRECTORY, "a linked worktree": WORKTREE}

FIRST = f"{HOME}/.claude"  # the login that needs no variable
SECOND = f"{HOME}/.claude-work"
KEY_FOLDER = "projects/-home-dev-proj"
CLAUDE = HARNESSES["claude"]


@pytest.fixture
def checkout(claude_world: World) -> World:
    """A world with a git checkout, a subdirectory and a linked worktree of it; no login, no memd."""
    world = claude_world
    world.run("git", "init", "-q", ROOT)
    world.put(f"{SUBDIRECTORY}/code.txt", "code\n")
    world.run("git", "add", ".", cwd=ROOT)
    world.run("git", "commit", "-qm", "start", cwd=ROOT)
    world.run("git", "worktree", "add", "-q", WORKTREE, cwd=ROOT)
    return world


@pytest.fixture
def memd(checkout: World) -> Iterator[Memd]:
    """The daemon, up, with nothing enrolled."""
    memd = Memd(checkout)
    memd.up()
    yield memd
    assert "Traceback" not in memd.log()


def make_login(world: World, folder: str) -> None:
    """What a person's /login leaves before the first session."""
    world.put_all(claude_login(list(PLACES.values()), "" if folder == FIRST else folder))
    world.run("mkdir", "-p", folder)


def session(world: World, login: str, cwd: str, prompt: str) -> list[Request]:
    """Run one real session under a login and return the requests it made to its model."""
    before = len(world.turns())
    env = {} if login == FIRST else {"CLAUDE_CONFIG_DIR": login}
    world.run(*CLAUDE.turn(prompt, ()), cwd=cwd, env=env)
    made = world.turns()[before:]
    assert made, f"no request under {login} in {cwd}"
    return made


def remember(world: World, login: str, cwd: str, topic: str, word: str) -> None:
    """A real session that writes a note and its line in the index."""
    steps = (
        f"WRITE_FILE $MEMORY/{topic}.md body SENTINEL-body_{word}",
        f"WRITE_FILE $MEMORY/MEMORY.md - [{topic}]({topic}.md) about SENTINEL-index_{word}",
    )
    made = session(world, login, cwd, " ;; ".join(steps))
    assert "File created successfully" in made[-1].text


def recall(world: World, login: str, cwd: str, topic: str) -> tuple[str, str]:
    """A real session that reads a note: its first request to the model, and the one with the note in it."""
    made = session(world, login, cwd, f"READ_FILE $MEMORY/{topic}.md")
    return made[0].text, made[-1].text


@pytest.mark.parametrize(
    ("written_in", "read_in"),
    [
        ("the root", "the root"),
        ("the root", "a subdirectory"),
        ("the root", "a linked worktree"),
        ("a linked worktree", "a subdirectory"),
    ],
)
def test_note_of_one_login_reaches_the_model_under_the_other(
    checkout: World, memd: Memd, written_in: str, read_in: str
) -> None:
    make_login(checkout, FIRST)
    make_login(checkout, SECOND)
    memd.ctl("enroll", ROOT)
    remember(checkout, FIRST, PLACES[written_in], "deploy", "a1")

    first, with_note = recall(checkout, SECOND, PLACES[read_in], "deploy")
    assert "SENTINEL-index_a1" in first
    assert "SENTINEL-body_a1" not in first
    assert "SENTINEL-body_a1" in with_note
    assert memory_directory(first) == f"{SECOND}/{KEY_FOLDER}/memory"  # its own login's path, as ever


def test_each_login_sees_what_the_other_added(checkout: World, memd: Memd) -> None:
    make_login(checkout, FIRST)
    make_login(checkout, SECOND)
    memd.ctl("enroll", ROOT)
    remember(checkout, FIRST, ROOT, "deploy", "b1")
    steps = (
        "READ_FILE $MEMORY/MEMORY.md",  # the program lets no file be written over unread
        "WRITE_FILE $MEMORY/MEMORY.md - [a](a.md) SENTINEL-index_b1\\n- [b](b.md) SENTINEL-index_b2",
    )
    session(checkout, SECOND, ROOT, " ;; ".join(steps))

    (request,) = session(checkout, FIRST, ROOT, "hello")
    assert "SENTINEL-index_b1" in request.text
    assert "SENTINEL-index_b2" in request.text


def test_login_made_while_memd_runs_has_the_memory_in_its_first_session(checkout: World, memd: Memd) -> None:
    make_login(checkout, FIRST)
    memd.ctl("enroll", ROOT)
    remember(checkout, FIRST, ROOT, "deploy", "c1")
    new = f"{HOME}/.claude-new"
    make_login(checkout, new)
    memd.wait_until_linked(ROOT, new)

    first, with_note = recall(checkout, new, SUBDIRECTORY, "deploy")
    assert "SENTINEL-index_c1" in first
    assert "SENTINEL-body_c1" in with_note


@pytest.mark.skipif(bool(why_no_screen()), reason=why_no_screen() or "there is one")
def test_login_that_its_first_session_makes_has_the_memory_in_that_session(
    checkout: World, memd: Memd
) -> None:
    """Nothing is there but a name in CLAUDE_CONFIG_DIR: the program makes the login, asking its questions."""
    make_login(checkout, FIRST)
    memd.ctl("enroll", ROOT)
    remember(checkout, FIRST, ROOT, "deploy", "h1")
    new = f"{HOME}/.claude-new"
    with Screen(checkout, *CLAUDE.screen, cwd=ROOT, env={"CLAUDE_CONFIG_DIR": new}) as screen:
        for question in ("Choose the text style", "Press Enter to continue", "Yes, I trust this folder"):
            screen.wait(question)
            screen.key("Enter")
        screen.wait(CLAUDE.ready)
        memd.wait_until_linked(ROOT, new)
        screen.say("hello SENTINEL-typed")
        screen.wait("ACK SENTINEL-typed")
        screen.say(CLAUDE.leave)
        assert screen.status() == 0
    assert "SENTINEL-index_h1" in checkout.turns()[-1].text


def test_notes_of_logins_from_before_enrolment_are_merged(checkout: World, memd: Memd) -> None:
    make_login(checkout, FIRST)
    make_login(checkout, SECOND)
    remember(checkout, FIRST, ROOT, "deploy", "d1")
    remember(checkout, SECOND, WORKTREE, "tests", "d2")
    memd.ctl("enroll", ROOT)

    under_first, with_note = recall(checkout, FIRST, ROOT, "tests")
    assert "SENTINEL-index_d1" in under_first
    assert "SENTINEL-index_d2" in under_first
    assert "SENTINEL-body_d2" in with_note
    under_second, with_note = recall(checkout, SECOND, WORKTREE, "deploy")
    assert "SENTINEL-index_d1" in under_second
    assert "SENTINEL-index_d2" in under_second
    assert "SENTINEL-body_d1" in with_note
    for login, word in ((FIRST, "d1"), (SECOND, "d2")):
        kept = checkout.outside(f"{login}/{KEY_FOLDER}/memory.pre-shared/MEMORY.md")
        assert f"SENTINEL-index_{word}" in kept.read_text()


def test_memory_that_the_program_made_anew_joins_again(checkout: World, memd: Memd) -> None:
    make_login(checkout, FIRST)
    make_login(checkout, SECOND)
    memd.ctl("enroll", ROOT)
    remember(checkout, FIRST, ROOT, "deploy", "e1")
    checkout.run("rm", "-r", SECOND)
    make_login(checkout, SECOND)
    memd.wait_until_linked(ROOT, SECOND)

    first, with_note = recall(checkout, SECOND, ROOT, "deploy")
    assert "SENTINEL-index_e1" in first
    assert "SENTINEL-body_e1" in with_note


def test_memory_stays_shared_when_memd_is_killed(checkout: World, memd: Memd) -> None:
    make_login(checkout, FIRST)
    make_login(checkout, SECOND)
    memd.ctl("enroll", ROOT)
    checkout.run("kill", "-9", str(memd.pid()))
    remember(checkout, SECOND, ROOT, "deploy", "f1")

    first, with_note = recall(checkout, FIRST, ROOT, "deploy")
    assert "SENTINEL-index_f1" in first
    assert "SENTINEL-body_f1" in with_note


def test_note_written_while_memd_was_away_is_merged_when_it_is_back(checkout: World, memd: Memd) -> None:
    make_login(checkout, FIRST)
    memd.ctl("enroll", ROOT)
    remember(checkout, FIRST, ROOT, "deploy", "i1")
    memd.ctl("down")
    make_login(checkout, SECOND)
    remember(checkout, SECOND, SUBDIRECTORY, "tests", "i2")
    memd.up()
    memd.wait_until_linked(ROOT, SECOND)

    first, with_note = recall(checkout, FIRST, ROOT, "tests")
    assert "SENTINEL-index_i1" in first
    assert "SENTINEL-index_i2" in first
    assert "SENTINEL-body_i2" in with_note


def test_unenrolled_agent_keeps_its_memory_under_every_login(checkout: World, memd: Memd) -> None:
    make_login(checkout, FIRST)
    make_login(checkout, SECOND)
    memd.ctl("enroll", ROOT)
    remember(checkout, FIRST, ROOT, "deploy", "j1")
    memd.ctl("unenroll", ROOT)
    memd.ctl("down")

    first, with_note = recall(checkout, SECOND, ROOT, "deploy")
    assert "SENTINEL-index_j1" in first
    assert "SENTINEL-body_j1" in with_note
    assert checkout.run("find", FIRST, SECOND, "-type", "l").out == ""


def test_logins_share_nothing_without_memd(checkout: World) -> None:
    """The control: what the tests above see comes from memd."""
    make_login(checkout, FIRST)
    make_login(checkout, SECOND)
    remember(checkout, FIRST, ROOT, "deploy", "g1")

    first, after_reading = recall(checkout, SECOND, ROOT, "deploy")
    assert "SENTINEL-index_g1" not in first
    assert "SENTINEL-body_g1" not in after_reading
