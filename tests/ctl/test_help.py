"""What memctl says of itself: a page that fits a screen, suggestions, and the manual page."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memctl import cli, helping, man_page

ROOT = Path(__file__).parents[2]


def test_the_first_page_fits_a_screen_with_a_prompt_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["-h"], ["help"]):
        assert cli.run(words) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 23
        assert max(map(len, lines)) < 80
    assert cli.run([]) == 64
    assert capsys.readouterr().err.splitlines() == lines


def test_every_group_is_on_the_first_page_and_every_command_on_the_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = helping.first_page()
    assert set(cli.commands()) >= helping.FIRST
    for title, group in cli.GROUPS:
        assert f"{title}:" in first
        assert {name for name, _, _ in group} & helping.FIRST
    assert cli.run(["help", "--all"]) == 0
    whole = capsys.readouterr().out
    for name in cli.commands():
        assert f"\n  {name} " in whole
    assert max(map(len, whole.splitlines())) < 80


def test_the_help_of_a_command_can_be_asked_for_in_two_ways(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["help", "where"], ["where", "--help"]):
        with pytest.raises(SystemExit) as ended:
            cli.run(words)
        assert ended.value.code == 0
        assert capsys.readouterr().out.startswith("usage: memctl where ")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("serch", "`search`"),
        ("stats", "`status`"),
        ("sess", "`session` or `sessions`"),
        ("STATUS", "`status`"),
        ("start", "`up`"),
        ("resume", "`continue`"),
        ("claude", "`run claude`"),
        ("agy", "`run agy`"),
        ("version", "`--version`"),
    ],
)
def test_a_mistyped_command_is_answered_with_what_it_may_mean(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([typed]) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"memctl: there is no command {typed!r}; did you mean {meant}")
    assert "memctl --help" in err


@pytest.mark.parametrize("typed", ["xyzzy", "", "\udcff\x1b[31m", "a" * 5000])
def test_what_nothing_comes_near_gets_no_suggestion(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([typed]) == 64
    err = capsys.readouterr().err
    assert "did you mean" not in err
    assert "there is no command" in err
    assert "\x1b" not in err
    err.encode()


def test_an_option_before_the_command_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--json", "status"]) == 64
    assert "memctl: --json stands before the command" in capsys.readouterr().err


def test_a_mistyped_action_is_answered_likewise(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.run(["memory", "lst"])
    assert ended.value.code == 64
    assert "did you mean `list`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "usage", "says"),
    [
        (["config", "--nope"], "usage: memctl config [", "unrecognized arguments: --nope\n"),
        (["sessions", "--limits", "3"], "usage: memctl sessions [", "did you mean `--limit`?"),
        (["memory", "list", "extra"], "usage: memctl memory list [", "unrecognized arguments: extra\n"),
    ],
)
def test_a_word_that_is_unknown_is_told_with_the_usage_of_its_command(
    words: list[str], usage: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.run(words)
    assert ended.value.code == 64
    err = capsys.readouterr().err
    assert err.startswith(usage)
    assert says in err


# ------------------------------------------------------------------------------- the manual page

REQUESTS = {".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".I", ".br", ".nf", ".fi", '.\\"'}


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    def below(parser: argparse.ArgumentParser, prog: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
        yield prog, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, sub in action.choices.items():
                    yield from below(sub, f"{prog} {name}")

    for name in cli.commands():
        yield from below(man_page._sub(cli.parser_of(name), name), name)


def test_every_option_and_word_says_what_it_is() -> None:
    for prog, parser in parsers():
        for action in parser._actions:
            if not isinstance(action, argparse._SubParsersAction):
                assert action.help, f"memctl {prog}: {action.option_strings or action.dest}"


def test_no_usage_is_wider_than_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for prog, parser in parsers():
        assert max(map(len, parser.format_help().splitlines())) <= 80, prog


def test_the_manual_page_is_what_the_parsers_say() -> None:
    made = (ROOT / "man/memctl.1").read_text()
    again = "PYTHONPATH=daemon:ctl python -m memctl.man_page > man/memctl.1"
    assert made == man_page.page(), f"make it anew: {again}"


def test_the_manual_page_names_every_command_and_is_sound() -> None:
    text = man_page.page()
    for name in cli.commands():
        assert f".SS memctl {name}\n".replace("-", "\\-") in text
    for line in text.splitlines():
        assert not line.startswith("'"), line
        assert line.partition(" ")[0] in {
            ".TH",
            ".SH",
            ".SS",
            ".TP",
            ".PP",
            ".B",
            ".I",
            ".br",
            ".nf",
            ".fi",
        } or (not line.startswith(".") or line.startswith('.\\"')), line
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        [groff, "-man", "-ww", "-Tutf8", "-z"], input=text, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


def test_text_is_not_taken_for_requests_of_roff() -> None:
    assert man_page._text(".x 'y' `z` a-b \\n") == "\\&.x \\(aqy\\(aq \\(gaz\\(ga a\\-b \\en"
