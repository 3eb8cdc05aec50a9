"""memctl report: what was done since a time, as a short text, a document, or a page for a browser."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time

from memctl import client, files, paths, quick, report_html
from memctl.commands.sessions import since
from memd import protocol
from memd.errors import CannotCreate, Refused, UsageError

USUAL = b"report.html"
"""The file's name in the state folder, for --open without --html."""

OPEN_S = 10.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    where = paths.shown(usual_file()).replace("%", "%%")
    parser = subparsers.add_parser(
        "report",
        description="Sessions, runs, handoffs, events per day and memory links: a summary, or a page.",
    )
    parser.add_argument(
        "--since", default="", metavar="WHEN", help="a date, an RFC 3339 time, or 24h, 7d; else everything"
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write a page into FILE, readable by you alone; - is standard output"
    )
    parser.add_argument(
        "--open", action="store_true", help=f"show the page in a browser; without --html {where}"
    )
    parser.add_argument("--force", action="store_true", help="write over a FILE that is no report of memd")
    parser.add_argument("--json", action="store_true", help="the same data as one JSON document")


def run(options: argparse.Namespace) -> int:
    wants_page = options.open or options.html is not None
    if options.html is not None and (not options.html or options.html.endswith("/")):
        raise UsageError("--html needs the name of a file", remedy="Write `--html report.html`.")
    if options.html == "-" and (options.open or options.json):
        raise UsageError("--html - goes with neither --open nor --json", remedy="Name a file.")
    if options.force and options.html is None:
        raise UsageError("--force goes with --html", remedy="Name the file that may be written over.")
    target = b"" if not wants_page or options.html == "-" else _target(options.html)
    held = _held(target, is_forced=options.force) if target else None
    request = protocol.Report(
        form="json" if wants_page or options.json else "text",
        color=quick.wants_color(),
        width=quick.columns(),
        since=since(options.since, time.time()),
    )
    code, text = client.ask_text(request)
    if options.json or not wants_page:
        sys.stdout.buffer.write(text)
    if code or not wants_page:
        return code
    page = report_html.page(compact(text))
    if not target:
        sys.stdout.buffer.write(page)
        return 0
    files.write(target, page, held, 0o600)
    print(f"wrote {paths.shown(target)} ({_size(len(page))})", file=sys.stderr)
    return _open(target) if options.open else 0


def compact(text: bytes) -> str:
    """The document without blanks between its parts."""
    import msgspec

    return msgspec.json.format(text, indent=-1).decode()


def usual_file() -> bytes:
    return paths.state_dir() + b"/" + USUAL


def _target(name: str | None) -> bytes:
    """Where the page goes. raises CannotCreate for a folder that is not there"""
    if name is None:
        files.make_folder(paths.state_dir())
        return usual_file()
    path = os.path.abspath(os.fsencode(name))
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise CannotCreate(
            f"{paths.shown(folder)}: there is no such directory", remedy="Make it, or name another."
        )
    return path


def _held(path: bytes, *, is_forced: bool) -> bytes | None:
    """What stands there now, which may be written over. raises Refused for anything that may not"""
    shown = paths.shown(path)
    content, kind = files.read(path)
    if kind in ("link", "other"):
        what = "a link" if kind == "link" else "no regular file"
        raise Refused(f"{shown} is {what}", remedy="Name another file.")
    if content is None or content.startswith(report_html.MARK) or is_forced:
        return content
    raise Refused(
        f"{shown} was not written by `memctl report`",
        remedy="Name another file, or add --force to replace it.",
    )


def _size(length: int) -> str:
    return f"{length / 1e6:.1f} MB" if length >= 1e6 else f"{max(length // 1000, 1)} kB"


def _open(path: bytes) -> int:
    """Hand the file to whatever shows pages here; 69 when nothing does."""
    name = "open" if sys.platform == "darwin" else "xdg-open"
    program = shutil.which(name)
    why = f"there is no {name} here"
    if program is not None:
        try:
            done = subprocess.run(
                [program, path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                timeout=OPEN_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 0
        except OSError as reason:
            why = f"{name}: {reason.strerror}"
        else:
            if not done.returncode:
                return 0
            why = f"{name} ended with exit status {done.returncode}"
    print(f"memctl: no browser was opened: {why}\nOpen {paths.shown(path)} in one yourself.", file=sys.stderr)
    return 69
