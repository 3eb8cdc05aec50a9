"""`memctl handoff`, as a person types it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support_daemon import Home
from support_git import checkout


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", runtime=tmp_path / "run")
    yield made
    made.memctl("down")
    made.end_all()


def test_from_create_over_show_to_accept(home: Home) -> None:
    app = checkout(home.path / "wörk dir" / "app")
    made = home.memctl(
        "handoff",
        *("create", "der Port bleibt 8123", "--question", "why?", "--step", "run it", "--file", "a b.py"),
        *("--to", "Claude-Code", "--expires", "2d"),
        cwd=app,
    )
    assert made.returncode == 0, made.stderr
    assert "for claude in default/app, for 2 days" in made.stdout
    shown = home.memctl("handoff", "show", cwd=app / ".")
    assert "der Port bleibt 8123" in shown.stdout
    assert "- why?" in shown.stdout
    assert "<memd-handoff>" in shown.stdout
    [row] = home.json("handoff", "list", cwd=app)
    assert (row["state"], row["for_harness"], row["cwd"]) == ("open", "claude", str(app))
    assert home.memctl("handoff", "accept", row["handoff_id"], cwd="/").returncode == 0
    again = home.memctl("handoff", "accept", row["handoff_id"], cwd=app)
    assert (again.returncode, again.stdout) == (77, "")
    assert "it was accepted" in again.stderr
    none = home.memctl("handoff", "cancel", cwd=app)
    assert none.returncode == 65
    assert "memctl handoff list" in none.stderr


def test_the_summary_may_come_on_standard_input(home: Home) -> None:
    app = checkout(home.path / "app")
    for words in (("create",), ("create", "-")):
        made = home.json("handoff", *words, cwd=app, stdin="from a pipe\n")
        assert made["summary"] == "from a pipe"
    assert made["replaced"] is not None
    for stdin in ("", " \n", "x" * 20_000, "x" * 300_000):
        refused = home.memctl("handoff", "create", cwd=app, stdin=stdin)
        assert (refused.returncode, refused.stdout) == (64, "")
    assert home.json("handoff", "list", cwd=app)[0]["handoff_id"] == made["handoff_id"]


def test_words_that_make_no_sense_are_refused_with_a_remedy(home: Home) -> None:
    app = checkout(home.path / "app")
    for words, code in (
        (("create", "x", "--to", "nobody"), 64),
        (("create", "x", "--workstream", "none"), 65),
        (("create", "x", "--to", "pi", "--workstream", "default"), 64),
        (("create", "x", "--expires", "soon"), 64),
        (("create", "x", "--expires", "0d"), 64),
        (("create", "x", "--expires", "60w"), 64),
        (("list", "--limit", "0"), 64),
        (("show", "none"), 65),
        ((), 64),
    ):
        done = home.memctl("handoff", *words, cwd=app)
        assert (done.returncode, done.stdout) == (code, ""), (words, done.stderr)
        assert len(done.stderr.splitlines()) >= 2, done.stderr
