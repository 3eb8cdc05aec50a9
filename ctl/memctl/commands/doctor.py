"""memctl doctor: the whole installation, each finding with its remedy. Works without a daemon too."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator

from memctl import client, paths, registry, services, view
from memctl.hooks import health as hook_health
from memctl.lines import filled
from memd import __version__, protocol
from memd.errors import ConfigError, MemdError
from memd.ledger import configured
from memd.protocol import Finding

LOW_DISK_BYTES = 100_000_000
MARKS = {
    "ok": ("green", "ok"),
    "note": ("cyan", "note"),
    "warning": ("yellow", "warning"),
    "problem": ("red", "problem"),
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "doctor",
        description="Check the whole installation. Exit status: 0 well, 1 something needs a person.",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    found = list(findings())
    needs_person = any(finding.level in ("warning", "problem") for finding in found)
    if options.json:
        view.print_json(
            {
                "ok": not needs_person,
                "findings": [
                    {"level": f.level, "subject": f.subject, "message": f.message, "remedy": f.remedy}
                    for f in found
                ],
            }
        )
        return int(needs_person)
    out = view.console()
    from rich.text import Text

    for finding in found:
        style, word = MARKS[finding.level]
        text = f"{word:<8} {finding.subject}: {finding.message}"
        first, *rest = filled(text, sys.stdout, " " * 9)
        out.print(Text(first[:8], style=style).append(Text(first[8:], style="default")))
        if finding.remedy:
            rest += filled(f"         -> {finding.remedy}", sys.stdout, " " * 12)
        for line in rest:
            out.print(Text(line))
    return int(needs_person)


def findings() -> Iterator[Finding]:
    yield Finding(
        level="ok",
        subject="package",
        message=f"memd {__version__}, Python {'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}",
    )
    yield from _folders()
    yield _disk()
    yield _service()
    yield from hook_health.findings()
    yield from _registry()
    running = client.ping()
    if running is None:
        yield Finding(
            level="problem",
            subject="daemon",
            message=f"nothing answers at {paths.shown(paths.find_socket())}",
            remedy="Start it with `memctl up`.",
        )
        yield _configuration()
        return
    yield _daemon(running)
    try:
        diagnosis = client.ask(protocol.Diagnose(), protocol.Diagnosis, start=False)
    except MemdError as reason:
        yield Finding(level="problem", subject="daemon", message=str(reason), remedy=reason.remedy)
        return
    yield from diagnosis.findings


def _daemon(running: protocol.Pong) -> Finding:
    if running.version != __version__:
        return Finding(
            level="warning",
            subject="daemon",
            message=f"version {running.version} runs, {__version__} is installed",
            remedy="Restart it with `memctl up`.",
        )
    return Finding(
        level="ok",
        subject="daemon",
        message=f"pid {running.pid} answers at {paths.shown(paths.find_socket())}",
    )


def _folders() -> Iterator[Finding]:
    for subject, path in (
        ("state folder", paths.state_dir()),
        ("data folder", paths.data_dir()),
    ):
        shown = paths.shown(path)
        if not os.path.lexists(path):
            if os.access(_existing(path), os.W_OK | os.X_OK):
                yield Finding(level="note", subject=subject, message=f"{shown} does not exist yet")
            else:
                yield Finding(
                    level="problem",
                    subject=subject,
                    message=f"{shown} cannot be made: {paths.shown(_existing(path))} cannot be written to",
                    remedy=paths.WRITABLE,
                )
        elif not os.path.isdir(path) or not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            yield Finding(
                level="problem",
                subject=subject,
                message=f"{shown} cannot be read and written",
                remedy=f"Make it a directory of yours: `ls -ld '{shown}'` shows what it is.",
            )
        elif not paths.is_private(os.path.realpath(path)):
            yield Finding(
                level="warning",
                subject=subject,
                message=f"{shown} is open to other users",
                remedy=f"Run `chmod 700 '{shown}'`.",
            )
        else:
            yield Finding(level="ok", subject=subject, message=shown)


def _existing(path: bytes) -> bytes:
    """The nearest folder above that is there."""
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def _disk() -> Finding:
    free = shutil.disk_usage(_existing(paths.data_dir())).free
    if free < LOW_DISK_BYTES:
        return Finding(
            level="warning",
            subject="disk",
            message=f"only {free // 1_000_000} MB free where memd keeps its data",
            remedy="Free some space; nothing is lost meanwhile, but nothing new can be kept.",
        )
    return Finding(level="ok", subject="disk", message=f"{free // 1_000_000_000} GB free")


def _service() -> Finding:
    try:
        state = services.service_state()
    except MemdError as reason:
        return Finding(level="warning", subject="service", message=str(reason), remedy=reason.remedy)
    level, message, remedy = services.judge(state)
    return Finding(level=level, subject="service", message=message, remedy=remedy)


def _registry() -> Iterator[Finding]:
    """What is wrong with the list of checkouts; nothing to say while it can be read."""
    try:
        registry.links()
    except MemdError as reason:
        yield Finding(level="problem", subject="checkouts", message=str(reason), remedy=reason.remedy)


def _configuration() -> Finding:
    path = paths.config_path()
    try:
        with open(path, "rb") as file:
            configured.parse(file.read(), paths.shown(path))
    except FileNotFoundError:
        pass
    except ConfigError as reason:
        return Finding(level="problem", subject="configuration", message=str(reason), remedy=reason.remedy)
    except OSError as reason:
        return Finding(
            level="problem", subject="configuration", message=f"{paths.shown(path)}: {reason.strerror}"
        )
    return Finding(level="ok", subject="configuration", message="read without complaint")
