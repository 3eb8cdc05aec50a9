"""Completion, pressed for with Tab in the real shells, with a real daemon behind it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator

import pytest

from support_desk import Desk
from support_terminal import Terminal

PROGRAM = """#!{python}
import json, os, sys
if sys.argv[1:2] == ["completion"]:
    os.execv(sys.executable, [sys.executable, "-P", "-m", "memctl", *sys.argv[1:]])
print("GOT " + json.dumps(sys.argv[1:]) + " END", flush=True)
"""

SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], 'PS1="ready> "; eval "$(memctl completion bash)"'),
    "zsh": (
        ["-f", "-i"],
        'PS1="ready> "; autoload -U compinit; compinit -u -D; eval "$(memctl completion zsh)"',
    ),
    "fish": (
        ["--no-config", "-i"],
        "function fish_prompt; echo -n 'ready> '; end; memctl completion fish | source",
    ),
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    program = made.fakes.folder / "memctl"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    (made.checkout / "some dir").mkdir()
    (made.checkout / "file").touch()
    made.ok("--new", "log in's ü", "claude", do="say:hello")
    yield made
    made.close()


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, desk: Desk) -> Iterator[Terminal]:
    name = str(request.param)
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    options, setup = SHELLS[name]
    environment = {**desk.home.environment, "LC_ALL": "C.UTF-8", "TERM": "xterm"}
    environment["PATH"] = f"{desk.fakes.folder}:{os.path.dirname(sys.executable)}:/usr/bin:/bin"
    terminal = Terminal([found, *options], environment, desk.checkout, columns=200)
    terminal.type(setup + "; echo be''gin\r")
    terminal.until("begin")
    yield terminal
    terminal.close()


PRESSED = [
    ("memctl docto\t", ["doctor"]),
    ("memctl run cla\t", ["run", "claude"]),
    ("memctl sessions --orph\t", ["sessions", "--orphaned"]),
    ("memctl search --harness command-\tx", ["search", "--harness", "command-code", "x"]),
    ("memctl search --harness=command-\tx", ["search", "--harness=command-code", "x"]),
    ("memctl memory carr\t", ["memory", "carry-over"]),
    ("memctl run --workstream lo\t", ["run", "--workstream", "log in's ü"]),
    ("memctl run claude --prompt fi\t", ["run", "claude", "--prompt", "file"]),
    ("memctl enroll so\t", ["enroll", "some dir/"]),
]
"""What is typed, and the words that reach memctl."""


@pytest.mark.parametrize(("typed", "words"), PRESSED)
def test_tab_completes(shell: Terminal, typed: str, words: list[str]) -> None:
    shell.type(typed + "\r")  # each key is dealt with before the next one
    text = shell.until(" END").replace("\n", "")
    found = json.loads(text.rpartition("GOT ")[2].partition(" END")[0])
    assert [word.rstrip("/") for word in found] == [word.rstrip("/") for word in words]
