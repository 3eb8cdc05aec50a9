"""Reading arguments as programs do: options, their values, words, the `--`, and a place for ours.

Conformance of adapters 13, 17, 52.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.harness.arguments import (
    Grammar,
    appended,
    inserted,
    is_usable,
    scan,
    uuid_or_nothing,
)

GRAMMAR = Grammar(
    valued=frozenset({"--model", "-m"}),
    optional=frozenset({"--resume", "-r"}),
    variadic=frozenset({"--tools"}),
    switches=frozenset({"--print", "-p", "-c"}),
    clusters=True,
)


def words(*native: str) -> list[str]:
    return [word.text for word in scan(native, GRAMMAR).words]


def test_value_of_an_option_is_no_word() -> None:
    assert words("--model", "mcp", "-m", "doctor", "fix it") == ["fix it"]


def test_value_that_looks_like_an_option_is_not_one() -> None:
    found = scan(["--model", "--print", "x"], GRAMMAR)
    assert not found.has("--print")
    assert found.value("--model") == "--print"


def test_optional_value_is_taken_only_without_a_dash() -> None:
    assert scan(["--resume", "x", "go"], GRAMMAR).value("--resume") == "x"
    assert scan(["--resume", "--print", "go"], GRAMMAR).value("--resume") == ""
    assert scan(["--resume"], GRAMMAR).has("--resume")


def test_many_values_end_at_the_next_option() -> None:
    assert words("--tools", "a", "b", "-p", "go") == ["go"]


def test_value_behind_an_equals_sign_is_one_argument() -> None:
    found = scan(["--model=x=y", "go"], GRAMMAR)
    assert found.value("--model") == "x=y"
    assert [word.text for word in found.words] == ["go"]


def test_empty_value_is_there_and_says_nothing() -> None:
    found = scan(["--resume="], GRAMMAR)
    assert found.has("--resume")
    assert found.value("--resume") == ""


def test_last_value_counts() -> None:
    assert scan(["-m", "a", "--model", "b", "--model"], GRAMMAR).value("-m", "--model") == "b"


@pytest.mark.parametrize(
    ("argument", "flags"),
    [
        ("-pc", [("-p", None), ("-c", None)]),
        ("-mX", [("-m", "X")]),
        ("-m=X", [("-m", "X")]),
        ("-pcrX", [("-p", None), ("-c", None), ("-r", "X")]),
        ("-pz", [("-pz", None)]),
        ("-x", [("-x", None)]),
    ],
)
def test_short_options_may_stand_together(argument: str, flags: list[tuple[str, str | None]]) -> None:
    assert [(flag.name, flag.value) for flag in scan([argument], GRAMMAR).flags] == flags


def test_cluster_that_ends_in_a_valued_option_takes_the_next_argument() -> None:
    found = scan(["-pm", "x", "go"], GRAMMAR)
    assert (found.has("-p"), found.value("-m"), [word.text for word in found.words]) == (True, "x", ["go"])


def test_nothing_behind_the_terminator_is_looked_at() -> None:
    found = scan(["go", "--", "--print", "mcp"], GRAMMAR)
    assert (found.end, found.flags, [word.text for word in found.words]) == (1, (), ["go"])


def test_lone_dash_is_a_word() -> None:
    assert words("-", "") == ["-", ""]


@pytest.mark.parametrize("native", [["--model"], ["go", "-m"], ["--tools"], ["--model", "--", "x"], ["-pm"]])
def test_option_without_the_value_it_needs_is_noticed(native: list[str]) -> None:
    assert scan(native, GRAMMAR).is_torn


@pytest.mark.parametrize("native", [[], ["--resume"], ["--model="], ["--model", "x"], ["--odd"]])
def test_option_that_has_what_it_needs_is_not_torn(native: list[str]) -> None:
    assert not scan(native, GRAMMAR).is_torn


@pytest.mark.parametrize(
    ("native", "is_command"),
    [
        (["mcp"], True),
        (["--model", "x", "mcp"], True),
        (["--odd", "x", "mcp"], True),  # `x` may be a value
        (["--odd", "mcp"], True),  # and so may this, but then nobody would call it that
        (["--odd=x", "fix", "mcp"], False),
        (["fix", "mcp"], False),
        (["--model", "mcp"], False),
        (["--", "mcp"], False),
    ],
)
def test_command_is_the_first_word(native: list[str], is_command: bool) -> None:
    assert (scan(native, GRAMMAR).command({"mcp"}) is not None) is is_command


def test_command_may_be_looked_for_behind_another() -> None:
    found = scan(["exec", "-p", "resume", "T"], GRAMMAR)
    run = found.command({"exec"})
    resume = found.command({"resume"}, behind=run)
    assert resume is not None
    assert found.word_behind(resume) == "T"
    assert found.command({"exec"}, behind=run) is None


def test_ours_never_land_behind_a_terminator() -> None:
    assert appended(["a", "--", "b"], ["--x"]) == ("a", "--x", "--", "b")
    assert inserted(["a", "--", "b"], 3, ["--x"]) == ("a", "--x", "--", "b")
    assert inserted(["a", "b"], 1, ["--x"]) == ("a", "--x", "b")
    assert appended([], ["--x"]) == ("--x",)


@pytest.mark.parametrize(
    "session",
    [
        "",
        "-x",
        "--resume",
        ".",
        "..",
        "a/b",
        "a\\b",
        "a\nb",
        "a\0b",
        "\x1b[1m",
        "x" * 513,
        "é" * 257,
        "a\udcff",
    ],
)
def test_id_that_no_command_line_may_hold_is_known(session: str) -> None:
    assert not is_usable(session)


@pytest.mark.parametrize("session", ["a", "x" * 512, "sitzung-ü", "ses_1", "a.b_c-d"])
def test_id_of_plain_letters_is_usable(session: str) -> None:
    assert is_usable(session)


def test_only_a_whole_uuid_says_which_session_is_meant() -> None:
    whole = "019f3c1e-0000-7000-8000-00000000AAAA"
    assert uuid_or_nothing(whole) == whole
    for text in (whole[:-1], whole + "0", f" {whole}", "a title", "x.jsonl", ""):
        assert uuid_or_nothing(text) == ""


ARGUMENTS = st.lists(
    st.one_of(
        st.sampled_from(["--model", "-m", "--resume", "--tools", "-p", "-pc", "--", "--odd", "x", "-"]),
        st.text(max_size=6),
    ),
    max_size=12,
)


@given(ARGUMENTS)
def test_every_argument_before_the_terminator_is_in_exactly_one_place(native: list[str]) -> None:
    found = scan(native, GRAMMAR)
    places = [word.at for word in found.words]
    for flag in {flag.at: flag for flag in found.flags}.values():
        places += range(flag.at, max(flag.end, flag.at + 1))
    assert sorted(places) == list(range(found.end))


def test_half_a_megabyte_of_options_is_read_at_once() -> None:
    before = time.process_time()
    scan(["-x"] * 100_000 + ["--tools", *["a"] * 100_000], GRAMMAR)
    assert time.process_time() - before < 5
