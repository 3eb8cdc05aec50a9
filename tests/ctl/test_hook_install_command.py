"""The command that agents run: it works in a shell whatever the paths, and is known again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.hooks.command import compose, read
from memd.errors import Refused

WORDS = ("claude", "SessionStart", "--wait", "--else", '{"decision":"allow"}')
ODD = 'Sam\'s "Mac" $HOME `id` hömé\t;&|*'


@pytest.mark.parametrize("folder", ["plain", ODD, "two\nlines", "-dash", "a = b"])
def test_a_shell_runs_it_from_any_folder(tmp_path: Path, folder: str) -> None:
    hook = tmp_path / folder / "memd_hook.py"
    hook.parent.mkdir()
    hook.write_text("import sys; print(sys.argv[1:], sys.flags.isolated, sys.flags.no_site)")
    python = tmp_path / folder / "python3"
    python.symlink_to(os.path.realpath(sys.executable))
    command = compose(os.fsencode(python), os.fsencode(hook), WORDS)
    done = subprocess.run(
        ["sh", "-c", command], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{list(WORDS)} 1 1\n"
    own = read(command)
    assert own is not None
    assert (own.kind, own.words) == ("plain", WORDS)
    assert (own.interpreter, own.hook_file) == (str(python), str(hook))


@pytest.mark.parametrize(("words", "said"), [(WORDS, '{"decision":"allow"}\n'), (("claude", "Stop"), "")])
def test_a_hook_whose_file_is_gone_blocks_nobody(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """Python itself exits with 2 then, which stops a prompt in Claude Code."""
    for interpreter in (sys.executable, "/gone/python"):
        command = compose(os.fsencode(interpreter), os.fsencode(tmp_path / "memd_hook.py"), words)
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, said)


def test_a_path_that_is_not_utf8_is_refused_with_a_way_out() -> None:
    with pytest.raises(Refused, match=r"/h\\xff/memd_hook.py is not UTF-8") as refused:
        compose(b"/usr/bin/python3", b"/h\xff/memd_hook.py", WORDS)
    assert "XDG_DATA_HOME" in refused.value.remedy


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("/usr/bin/python3.11 -I -S /h/memd_hook.py claude Stop", "plain"),
        ("/opt/gone/bin/memctl hook claude-code session-start", "plain"),
        ("python3 -m memctl hook codex Stop", "plain"),
        ("memd_hook.py claude Stop || true", "plain"),
        ("/x/memd_hook.py grok Stop || echo '{}'", "plain"),
        ("~/theirs.sh && python3 /h/memd_hook.py claude Stop", "mixed"),
        ("A=1 python3 /h/memd_hook.py claude Stop", "mixed"),
        ("python3 /h/memd_hook.py claude Stop | tee log || true", "mixed"),
        ("python3 '/h/memd_hook.py", "mixed"),
        ("~/other/stop.sh 'a b'", None),
        ("python3 /h/my_memd_hook.py", None),
        ("python3 /h/memd_hook.py.bak", None),
        ("echo 'see memd_hook.py'", None),
        ("memctl status", None),
        ("", None),
    ],
)
def test_ours_is_told_from_theirs(command: str, kind: str | None) -> None:
    own = read(command)
    assert (own.kind if own else None) == kind


@given(st.one_of(st.none(), st.integers(), st.text(), st.text(alphabet="memd_hok.py'\"\\;|& /-")))
def test_any_value_is_told_without_an_error(command: object) -> None:
    read(command)
