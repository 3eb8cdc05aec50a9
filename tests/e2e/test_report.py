"""`memctl report` as a person types it."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memctl.report_html import MARK
from support_daemon import Home
from support_report import Weeks, ledger_of
from support_workstreams import Clock, Lines

PAST = 40 * 86_400


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "höme dir", runtime=tmp_path / "run", TZ="UTC")
    with Lines(ledger_of(made.path), Clock()) as lines:
        weeks = Weeks(lines, end=time.time(), home=str(made.path))
        weeks.say("s-new", "the newest one", begin=time.time() - 3600)
        weeks.say("s-old", "</script><b>an older one", begin=time.time() - PAST, harness="codex")
    yield made
    made.memctl("down")
    made.end_all()


def data_of(page: Path) -> dict[str, object]:
    text = page.read_text(encoding="utf-8")
    found = text.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    decoded: dict[str, object] = json.loads(found)
    return decoded


def test_without_a_file_a_summary_is_printed(home: Home) -> None:
    done = home.memctl("report")
    assert (done.returncode, done.stderr) == (0, "")
    assert "sessions     2" in done.stdout
    assert "6 of 6 in the ledger" in done.stdout
    assert "older one" not in done.stdout


def test_since_takes_dates_times_and_ages(home: Home) -> None:
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 7 * 86_400))
    for words, count in (("7d", 1), ("24h", 1), (day, 1), (f"{day}T10:00:00+02:00", 1), ("8w", 2), ("", 2)):
        found = home.json("report", *(("--since", words) if words else ()))
        assert len(found["sessions"]) == count, words
        assert (found["since"] is None) == (not words)
    for words in ("yesterday", "0001-01-01", "2026-02-30", "-3d"):
        refused = home.memctl("report", f"--since={words}")
        assert refused.returncode == 64, words
        assert f"--since {words}" in refused.stderr


def test_the_page_holds_the_same_data_and_is_for_its_owner_alone(home: Home) -> None:
    page = home.path / "my report.html"
    done = home.memctl("report", "--html", page.name, "--json")
    assert done.returncode == 0
    assert f"wrote {page} (" in done.stderr
    printed = json.loads(done.stdout)
    assert data_of(page) == printed
    assert [row["title"] for row in printed["sessions"]] == ["the newest one", "</script><b>an older one"]
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert page.read_bytes().startswith(MARK)
    assert [path.name for path in home.path.iterdir() if "report" in path.name] == [page.name]


def test_a_report_is_written_over_and_nothing_else_is(home: Home) -> None:
    page = home.path / "r.html"
    assert home.memctl("report", "--html", str(page)).returncode == 0
    page.chmod(0o644)
    first = page.read_bytes()
    assert home.memctl("report", "--html", str(page), "--since", "7d").returncode == 0
    assert page.read_bytes() != first
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    page.write_text("<!doctype html>\nmine")
    refused = home.memctl("report", "--html", str(page))
    assert refused.returncode == 77
    assert "--force" in refused.stderr
    assert page.read_text() == "<!doctype html>\nmine"
    assert home.memctl("report", "--html", str(page), "--force").returncode == 0
    assert page.read_bytes().startswith(MARK)


def test_links_and_folders_are_never_written_over(home: Home) -> None:
    kept = home.path / "kept.html"
    kept.write_bytes(MARK + b"mine")
    (home.path / "link.html").symlink_to(kept)
    (home.path / "folder").mkdir()
    os.mkfifo(home.path / "pipe")
    for name in ("link.html", "folder", "pipe"):
        refused = home.memctl("report", "--html", name, "--force")
        assert refused.returncode == 77, name
        assert name in refused.stderr
    assert kept.read_bytes() == MARK + b"mine"
    gone = home.memctl("report", "--html", "no/such/folder/r.html")
    assert gone.returncode == 73
    assert not (home.path / "no").exists()


def test_a_dash_is_standard_output(home: Home) -> None:
    done = home.memctl("report", "--html", "-")
    assert done.returncode == 0
    assert done.stdout.encode().startswith(MARK)
    assert not (home.path / "-").exists()


def test_open_hands_the_page_to_the_desktop_and_says_where_it_is(home: Home, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    said = tmp_path / "opened"
    for name in ("xdg-open", "open"):
        (programs / name).write_text(f'#!/bin/sh\nprintf "%s" "$1" >"{said}"\nexit ${{FAILS:-0}}\n')
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    done = home.memctl("report", "--open", PATH=path)
    usual = home.path / ".local/state/memd/report.html"
    assert done.returncode == 0, done.stderr
    assert said.read_text() == str(usual)
    assert "report.html" in done.stderr
    assert stat.S_IMODE(usual.stat().st_mode) == 0o600
    done = home.memctl("report", "--open", "--html", "x y.html", PATH=path)
    assert said.read_text() == str(home.path / "x y.html")
    failed = home.memctl("report", "--open", PATH=path, FAILS="3")
    assert failed.returncode == 69
    assert "exit status 3" in failed.stderr
    alone = home.memctl("report", "--open", PATH=str(tmp_path / "nothing"))
    assert alone.returncode == 69
    assert "there is no" in alone.stderr


def test_words_that_do_not_go_together_are_refused(home: Home) -> None:
    for line in ("--html=", "--html sub/", "--html - --json", "--html - --open", "--force", "x"):
        words = line.split()
        done = home.memctl("report", *words)
        assert (done.returncode, done.stdout) == (64, ""), words


def test_the_help_names_the_file_that_open_writes(home: Home) -> None:
    done = home.memctl("report", "--help")
    assert "memd/report.html" in "".join(done.stdout.split())
