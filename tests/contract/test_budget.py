"""What the short ways of memctl import: an agent's hook and a status pay for nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CTL = ROOT / "ctl"

BUILTINS_OF_THE_HOOK = {"_signal", "_socket", "memctl", "memctl.hook", "posix", "sys", "time", "__future__"}


def _modules_after(code: str, *flags: str) -> set[str]:
    script = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, *flags, "-c", script], capture_output=True, text=True, check=True, env={}
    )
    return set(done.stdout.split())


def test_the_hook_path_imports_builtins_only() -> None:
    code = f"sys.path.insert(0, {str(CTL)!r})\nimport memctl.hook"
    assert _modules_after(code, "-I", "-S") <= BUILTINS_OF_THE_HOOK


def test_a_status_imports_nothing_that_takes_milliseconds() -> None:
    code = (
        f"sys.path[:0] = [{str(CTL)!r}, {str(ROOT / 'daemon')!r}]\n"
        "sys.argv = ['memctl', 'status']\n"
        "from memctl.__main__ import main\n"
        "sys.stderr.write = lambda text: 0\n"
        "assert main() == 69"
    )
    extra = _modules_after(code, "-I", "-S") - BUILTINS_OF_THE_HOOK
    assert extra <= {"memctl.__main__", "memctl.quick", "memd", "pwd", "binascii", "encodings.idna"}


@pytest.mark.parametrize("folder", ["daemon", "ctl"])
def test_source_roots_are_never_imported_as_packages(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()
    for path in [*ROOT.glob("daemon/**/*.py"), *ROOT.glob("ctl/**/*.py"), *ROOT.glob("tests/*/*.py")]:
        text = path.read_text(encoding="utf-8")
        assert f"\nfrom {folder}." not in text, path
        assert f"\nimport {folder}." not in text, path


def test_no_module_is_longer_than_five_hundred_lines() -> None:
    for path in [*ROOT.glob("daemon/**/*.py"), *ROOT.glob("ctl/**/*.py"), *ROOT.glob("tests/**/*.py")]:
        if "fixtures" not in path.parts and "cases" not in path.parts:
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path
