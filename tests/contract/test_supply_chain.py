"""What memd is built on: every package is locked with hashes, and its licence is known and allowed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements"


def _licences() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licences", REQUIREMENTS / "licences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LICENCES = _licences()


def named(asked: str) -> tuple[str, str]:
    """The package and the least version of a requirement."""
    found = re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?(?:>=([0-9.]+))?", asked)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[1]).lower(), found[2] or "0"


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


@pytest.mark.parametrize("lock", ["runtime.txt", "all.txt"])
def test_everything_that_is_asked_for_is_locked(lock: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = list(project["dependencies"])
    if lock == "all.txt":
        asked += [one for extra in project["optional-dependencies"].values() for one in extra]
    locked = LICENCES.locked(lock)
    for package, least in map(named, asked):
        assert package in locked, f"{package} is not locked: run .ci/lock"
        assert numbers(locked[package]) >= numbers(least), f"{package} is locked too old: run .ci/lock"


def test_what_runs_is_locked_alike_in_both() -> None:
    everything = LICENCES.locked("all.txt")
    assert LICENCES.locked("runtime.txt").items() <= everything.items()


@pytest.mark.parametrize("lock", ["runtime.txt", "all.txt"])
def test_every_locked_package_has_hashes(lock: str) -> None:
    text = (REQUIREMENTS / lock).read_text()
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if "==" in entry]
    assert len(entries) == len(LICENCES.locked(lock)) >= 15
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in text  # from whatever index the installer is set to, and from nowhere else


def test_no_dependency_has_a_licence_that_is_not_listed() -> None:
    listed = dict(line.split(None, 1) for line in (REQUIREMENTS / "licences.txt").read_text().splitlines())
    assert set(listed) == set(LICENCES.locked("all.txt")), "run .ci/lock"
    assert [row for row in listed.items() if not LICENCES.is_allowed(row[1].strip())] == []


def test_the_list_of_licences_is_what_the_packages_say() -> None:
    listed = dict(line.split(None, 1) for line in (REQUIREMENTS / "licences.txt").read_text().splitlines())
    here = []
    for package, licence in listed.items():
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        here.append(package)
        said = LICENCES.licence(package)
        assert said == licence.strip() or LICENCES.is_allowed(said), f"{package} says {said}: run .ci/lock"
    assert len(here) >= 15


def test_licences_that_nobody_allowed_are_refused() -> None:
    assert LICENCES.is_allowed("MIT OR GPL-3.0-only")
    assert LICENCES.is_allowed("(MIT AND Apache-2.0)")
    for licence in ("GPL-3.0-only", "MIT AND AGPL-3.0-only", "none said", "", "Proprietary"):
        assert not LICENCES.is_allowed(licence)


def test_the_audit_says_why_it_is_skipped_or_what_it_found(tmp_path: Path) -> None:
    """Without the program that asks: a word, and no failure."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncase "$*" in *pip_audit*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [ROOT / ".ci" / "audit"],
        env={"PYTHON": str(python), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("skipped: pip-audit is not installed")
