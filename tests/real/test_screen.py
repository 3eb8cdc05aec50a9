"""The terminal that real programs are shown on."""

from __future__ import annotations

import pytest

from real.namespace import HOME
from real.rig import World
from real.running import RigError
from real.screen import Screen, why_no_screen

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(bool(why_no_screen()), reason=why_no_screen() or "there is one"),
]


def test_typed_line_is_seen_and_answered(world: World) -> None:
    with Screen(world, "sh", "-c", 'read line; echo "heard $line"; read more; exit 7') as screen:
        screen.say("it's 'quoted' $HOME; ok")
        screen.wait(r"heard it's 'quoted' \$HOME; ok")
        screen.key("Enter")
        assert screen.status() == 7


def test_program_has_a_terminal_of_the_asked_size(world: World) -> None:
    with Screen(world, "sh", "-c", "stty size; pwd; read end", cwd=HOME, width=90, height=20) as screen:
        assert "20 90" in screen.wait(HOME)


def test_interrupt_reaches_the_program_as_a_key(world: World) -> None:
    script = "trap 'echo interrupted; exit 130' INT; echo ready; while :; do sleep 0.1; done"
    with Screen(world, "sh", "-c", script) as screen:
        screen.wait("ready")
        screen.key("C-c")
        screen.wait("interrupted")


def test_killed_program_shows_its_status(world: World) -> None:
    with Screen(world, "sh", "-c", "echo ready; read end") as screen:
        screen.wait("ready")
        screen.kill()
        assert screen.status() == 137


def test_wait_that_fails_shows_the_screen(world: World) -> None:
    with Screen(world, "sh", "-c", "echo something else; read end") as screen:
        screen.wait("something")
        with pytest.raises(RigError, match="something else"):
            screen.wait("never there", timeout_s=0.1)
