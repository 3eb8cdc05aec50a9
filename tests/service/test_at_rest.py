"""What a daemon that has nothing to do must not have loaded: memory is paid for all day."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from memd import seldom

ROOT = Path(__file__).resolve().parents[2]
SELDOM = re.compile(r'seldom\.module\("([a-z0-9_.]+)"\)')
DAEMON = (
    "memd.ledger.assembly",
    "memd.ledger.sanitiser",
    "memd.ledger.store.moving",
    "memd.ledger.store.postgres",
    "memd.ledger.worker",
    "memd.service.backup_read",
    "memd.service.backup_restore",
    "memd.service.backup_write",
    "memd.service.report",
    "memd.service.report_view",
    "argparse",
    "psycopg",
    "re2",
    "tarfile",
)
WORKER = (
    "apsw",
    "ipaddress",
    "memd.memory",
    "memd.service",
    "memd.workstream",
    "structlog",
    "trio",
    "urllib.parse",
    "watchfiles",
    "zstandard",
)
LOOK = """
import sys
import {module}
from memd.harness.registry import adapters
adapters()
{more}
print(*sys.modules, sep="\\n")
"""
BEGUN = """
import os
from memd.harness.model import Environment
from memd.ledger import messages
begin = messages.Begin(
    environments=(Environment(home=b"/nowhere/home"),), rules=messages.Rules(), scratch=b"/nowhere/scratch"
)
worker = memd.ledger.worker.Worker(0, os.open("/dev/null", os.O_WRONLY))
worker._obey(begin)
worker._look_about()
"""


def loaded(module: str, more: str = "") -> set[str]:
    """The modules that a process has which loaded one and all adapters, and did no more."""
    found = subprocess.run(
        [sys.executable, "-c", LOOK.format(module=module, more=more)],
        capture_output=True,
        check=True,
        env={"PYTHONPATH": f"{ROOT / 'daemon'}:{ROOT / 'ctl'}"},
        text=True,
    )
    return set(found.stdout.split())


def test_a_daemon_at_rest_has_not_loaded_what_runs_seldom() -> None:
    assert loaded("memd.__main__").isdisjoint(DAEMON)


def test_a_worker_with_nothing_to_read_has_loaded_no_more_than_reading_needs() -> None:
    assert loaded("memd.ledger.worker", BEGUN).isdisjoint(WORKER)


def test_every_module_that_is_said_to_be_seldom_is_there_and_on_a_list() -> None:
    named = {name for path in (ROOT / "daemon").rglob("*.py") for name in SELDOM.findall(path.read_text())}
    assert named
    assert named <= {*DAEMON, *WORKER}


def test_what_stands_for_a_seldom_module_has_all_that_is_in_it_and_no_more() -> None:
    stand_in = seldom.module("memd.ledger.sanitiser.cutting")
    assert stand_in.cut("word") == "word"
    with pytest.raises(AttributeError, match="nothing_of_it"):
        _ = stand_in.nothing_of_it
