"""Tries memd with the programs that a person has installed, each in a home of its own.

Nothing of the real home is written, and nothing is read but the programs themselves and the files that hold
a login. What is judged is memd: whether sessions are linked, cursors stand, sessions are resumed and what is
due is told. What a model says is never looked at.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acceptance.engines import ENGINES, Engine
from memd.harness import registry
from support_daemon import Home
from support_fake_harness import Fakes

CHECKS = ("utility", "hooks", "import", "live", "cursor", "link", "delivery", "resume")
PROMPT = "Answer with one short sentence: which day follows Monday?"
TURN_S = 300.0
UNTOLD = "did not ask for what its session has not seen"


@dataclass
class Report:
    """What became of one engine. checks: name to `ok`, `failed: why` or `-` (not tried)."""

    engine: str
    version: str = ""
    note: str = ""
    home: str = ""
    checks: dict[str, str] = field(default_factory=lambda: dict.fromkeys(CHECKS, "-"))

    @property
    def has_failed(self) -> bool:
        return any(outcome.startswith("failed") for outcome in self.checks.values())

    def judge(self, check: str, holds: bool, why: str) -> bool:
        self.checks[check] = "ok" if holds else f"failed: {why}"
        return holds


class Trial:
    """One engine in its own home."""

    def __init__(self, engine: Engine, options: argparse.Namespace, folder: Path) -> None:
        self.engine = engine
        self.options = options
        self.report = Report(engine.name)
        kept = {name: os.environ[name] for name in ("TERM", *options.env) if name in os.environ}
        self.home = Home(folder / "home", runtime=folder / "run", **kept)
        self.checkout = folder / "project"
        self.checkout.mkdir()
        subprocess.run(["git", "init", "-q", str(self.checkout)], check=True)
        self.codex = Fakes(folder / "other", self.home.path, ("codex",)).folder / "codex"
        self.adapter = registry.adapters()[engine.harness]

    def program(self) -> str | None:
        assert self.adapter.launch is not None
        names = self.adapter.launch.executables
        return next((path for name in names if (path := shutil.which(name))), None)

    def run(self) -> Report:
        program = self.program()
        if program is None:
            self.report.note = "not installed"
            return self.report
        self.report.version = _version(program, self.home)
        self.report.home = str(self.home.path) if self.options.keep else ""
        try:
            self._prepare()
            self._deterministic()
            if not self.options.deterministic_only:
                self._turns()
        except (subprocess.TimeoutExpired, OSError, ValueError, KeyError) as reason:
            self.report.note = f"stopped: {type(reason).__name__}: {reason}"
            self.report.checks["import"] = "failed: the trial could not go on"
        finally:
            self.home.memctl("down")
        return self.report

    def _prepare(self) -> None:
        real = Path.home()
        named = [
            path
            for name, _, path in (one.partition("=") for one in self.options.auth)
            if name == self.engine.name
        ]
        for path in (*self.engine.auth, *named):
            if (real / path).is_file():
                _put(self.home.path / path, (real / path).read_bytes())
        for path, members in self.engine.members:
            if (real / path).is_file():
                found = json.loads((real / path).read_bytes())
                chosen = {key: found[key] for key in members if key in found}
                _put(self.home.path / path, json.dumps(chosen).encode())
        for path, content in self.engine.prepare:
            _put(self.home.path / path, content.encode())

    # ------------------------------------------------------------------------- without a model

    def _deterministic(self) -> None:
        done = self._memctl_run("--version")
        rows = self._sessions()
        self.report.judge(
            "utility", done.returncode == 0 and not rows, "--version failed or imported something"
        )
        if self.adapter.hooks is None:
            return
        # a login that lies in a settings file came with the hooks that the person has there already
        self.home.memctl("uninstall-hooks", "--agent", self.engine.harness, "--apply")
        before = _tree(self.home.path)
        first = self.home.memctl("install-hooks", "--agent", self.engine.harness, "--apply")
        again = self.home.memctl("install-hooks", "--agent", self.engine.harness)
        out = self.home.memctl("uninstall-hooks", "--agent", self.engine.harness, "--apply")
        is_back = {path: data for path, data in _tree(self.home.path).items() if path in before} == before
        statuses = [done.returncode for done in (first, again, out)]
        self.report.judge(
            "hooks", statuses == [0, 0, 0] and is_back, f"statuses {statuses}, restored {is_back}"
        )
        self.home.memctl("install-hooks", "--agent", self.engine.harness, "--apply")

    # ---------------------------------------------------------------------------- with a model

    def _turns(self) -> None:
        other = self.home.memctl(
            "run", "--executable", str(self.codex), "codex", cwd=self.checkout, FAKE_DO="say:of_another_agent"
        )
        if other.returncode != 0:
            raise ValueError(f"the other agent could not be run: {other.stderr.strip()}")
        handoff = self.home.memctl("handoff", "create", "of the acceptance run", cwd=self.checkout)
        first, is_live = self._turn()
        if first is None:
            return
        self.home.memctl("import", "--wait")
        rows = self._sessions()
        events = sum(row["events"] for row in rows)
        self.report.judge(
            "import", bool(events), f"no event of a session; the run ended with {first.returncode}"
        )
        self.report.judge("live", is_live, "nothing was imported before it ended")
        self.report.judge("link", self.engine.harness in self._linked(), "no session of it is linked")
        state = self._handoff_state() if handoff.returncode == 0 else "none"
        is_told = UNTOLD not in first.stderr and state == "accepted"
        self.report.judge("delivery", is_told, f"the handoff is {state}, or the packet was not asked for")
        self.home.memctl("import", "--wait")
        after = sum(row["events"] for row in self._sessions())
        left = self.home.json("status")["ledger"]["left_sources"]
        self.report.judge(
            "cursor", after == events and not left, f"{events} events, then {after}; {left} left"
        )
        second, _ = self._turn()
        if second is None:
            return
        self.home.memctl("import", "--wait")
        rows_after = self._sessions()
        grown = sum(row["events"] for row in rows_after) > after
        is_same = {row["id"] for row in rows_after} == {row["id"] for row in rows}
        self.report.judge("resume", grown and is_same, f"{len(rows_after)} sessions, grown: {grown}")

    def _turn(self) -> tuple[subprocess.CompletedProcess[str] | None, bool]:
        """One turn under memd, and whether something of it was there before it ended; None: not possible."""
        engine = self.engine
        words = ["run", engine.word, *engine.extra, *(engine.turn(PROMPT) if engine.turn else ())]
        command = [sys.executable, "-P", "-m", "memctl", *words]
        before = sum(row["events"] for row in self._sessions())
        if engine.turn is None:
            if not sys.stdin.isatty():
                self.report.note = "needs a person at a terminal"
                return None, False
            for number, step in enumerate(engine.steps, 1):
                print(f"  {number}. {step}", file=sys.stderr)
            print("Press Enter to begin. ", end="", file=sys.stderr, flush=True)
            sys.stdin.readline()
        with tempfile.TemporaryFile("w+") as errors:
            child = subprocess.Popen(
                command,
                env=self.home.environment,
                cwd=self.checkout,
                stdin=subprocess.DEVNULL if engine.turn else None,
                stdout=subprocess.DEVNULL if engine.turn else None,
                stderr=errors,
            )
            is_live, until = False, time.monotonic() + TURN_S
            while child.poll() is None:
                is_live = is_live or sum(row["events"] for row in self._sessions()) > before
                if engine.turn and time.monotonic() > until:
                    child.terminate()
                    child.wait()
                    raise ValueError(f"no answer within {TURN_S:.0f} s")
            errors.seek(0)
            return subprocess.CompletedProcess(command, child.returncode, "", errors.read()), is_live

    # -------------------------------------------------------------------------- what memd says

    def _memctl_run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.home.memctl("run", self.engine.word, *words, cwd=self.checkout)

    def _sessions(self) -> list[dict[str, Any]]:
        found = self.home.json("sessions", "--harness", self.engine.harness, "--cwd", str(self.checkout))
        assert isinstance(found, list)
        return found

    def _linked(self) -> Sequence[str]:
        rows = self.home.json("workstreams", cwd=self.checkout)
        return [name for row in rows for name in row["linked_harnesses"]]

    def _handoff_state(self) -> str:
        rows = self.home.json("handoff", "list", cwd=self.checkout)
        return str(rows[0]["state"]) if rows else "gone"


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(0o600)
    path.write_bytes(content)


def _version(program: str, home: Home) -> str:
    try:
        done = subprocess.run(
            [program, "--version"],
            env=home.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "?"
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0][:40] if lines else "?"


def _tree(home: Path) -> dict[str, bytes]:
    """Every file of the home that is not memd's own."""
    found = {}
    for path in home.rglob("*"):
        name = str(path.relative_to(home))
        if path.is_file() and not name.startswith((".local/share/memd", ".local/state/memd", ".config/memd")):
            found[name] = path.read_bytes()
    return found


def table(reports: Sequence[Report]) -> str:
    """A Markdown table, and a line for each failure."""
    lines = [f"| engine | version | {' | '.join(CHECKS)} |", f"|{' --- |' * (len(CHECKS) + 2)}"]
    for one in reports:
        cells = [outcome.partition(":")[0] for outcome in one.checks.values()]
        lines.append(f"| {one.engine} | {one.version or one.note} | {' | '.join(cells)} |")
    for one in reports:
        for check, outcome in one.checks.items():
            if outcome.startswith("failed"):
                lines.append(f"{one.engine}, {check}: {outcome.partition(': ')[2]}")
        if one.note and one.version:
            lines.append(f"{one.engine}: {one.note}")
        if one.home:
            lines.append(f"{one.engine}: kept in {one.home}")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    names = [engine.name for engine in ENGINES]
    made = argparse.ArgumentParser(
        prog="tests/acceptance/run",
        description="Tries memd with the programs installed here, each in a home of its own. Asks their "
        "models for two short answers each, unless told otherwise; never judges what they say.",
    )
    made.add_argument(
        "--harness", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}"
    )
    made.add_argument("--deterministic-only", action="store_true", help="nothing that needs a model")
    made.add_argument("--keep", action="store_true", help="keep the homes, and say where they are")
    made.add_argument(
        "--auth",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="one more file below your home that holds the login of an engine",
    )
    made.add_argument(
        "--env", action="append", default=[], metavar="VARIABLE", help="give it to the engines too"
    )
    made.add_argument("--json", action="store_true", help="one JSON document")
    return made


def main(words: Sequence[str] | None = None) -> int:
    options = parser().parse_args(words)
    chosen = options.harness or [engine.name for engine in ENGINES]
    reports = []
    for engine in ENGINES:
        if engine.name not in chosen:
            continue
        folder = Path(tempfile.mkdtemp(prefix=f"memd-acceptance-{engine.name}-"))
        print(f"{engine.name} ...", file=sys.stderr)
        try:
            reports.append(Trial(engine, options, folder).run())
        finally:
            if not options.keep:
                shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps([{**vars(one)} for one in reports], indent=1))
    else:
        print(table(reports))
    return 1 if any(one.has_failed for one in reports) else 0
