"""Patterns of the user's own: refused when wrong or slow, alike with and without RE2, never unsettling."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd import errors
from memd.ledger.sanitiser import Sanitiser, check_settings, custom
from memd.ledger.sanitiser.custom import CustomPatterns
from memd.ledger.sanitiser.gates import load_re2
from memd.service.configuration import Configuration

GATES = ["stdlib"] if load_re2() is None else ["stdlib", "re2"]
SAFE = [
    r"ACME-[0-9]{6}",
    r"\bticket-\d+\b",
    r"[a-z]+@corp\.example",
    r"(?:[0-9a-f]{4}-){3}[0-9a-f]{4}",
    r"^Subject: .*$",
    r"(?i)internal(?:-only)?",
    r"kör[eé]y",
    r"\"[^\"]*\"\s*:\s*\"[^\"]*\"",
    r"[^ ]{30}",
    r"END\Z",
    r"\s{3}",
    r"x{2,5}?y",
]


@pytest.mark.parametrize("gate", GATES)
def test_a_match_is_replaced_as_custom(gate: str) -> None:
    sanitiser = Sanitiser([r"ACME-[0-9]{6}"], gate=gate)
    assert sanitiser.scrub("case ACME-123456, case ACME-12") == "case [REDACTED:custom], case ACME-12"
    assert not sanitiser.is_clean(["ACME-123456", "none"])


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(
    ("pattern", "position"),
    [("a(b", "position 1"), ("[z-a]", "position 1"), ("a**", "position 2"), ("(?P<n", "position")],
)
def test_a_wrong_pattern_is_named_with_its_position(gate: str, pattern: str, position: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        Sanitiser(["fine", pattern], gate=gate)
    assert "extra_patterns[1]" in str(caught.value)
    assert repr(pattern) in str(caught.value)
    assert position in str(caught.value)


def test_settings_are_refused_before_anything_runs_on_them() -> None:
    check_settings([r"ACME-[0-9]+"], ["ACME-1"])
    with pytest.raises(errors.ConfigError, match="position 0"):
        check_settings(["(unclosed"], [])
    with pytest.raises(errors.ConfigError, match="allowlist"):
        check_settings([], [""])


def test_a_file_with_a_wrong_pattern_keeps_the_last_good_settings(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[redaction]\nextra_patterns = ["ACME-[0-9]+"]\n')
    configuration = Configuration(str(path).encode())
    assert configuration.error == ""
    path.write_text('[redaction]\nextra_patterns = ["fine", "(unclosed"]\n')
    assert configuration.read() is False
    assert "extra_patterns[1]" in configuration.error
    assert configuration.current.redaction.extra_patterns == ("ACME-[0-9]+",)


def test_an_empty_pattern_or_allowlist_entry_is_refused() -> None:
    with pytest.raises(errors.ConfigError, match=r"extra_patterns\[0\]"):
        Sanitiser([""])
    with pytest.raises(errors.ConfigError, match="allowlist"):
        Sanitiser(allowlist=["fine", ""])


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$",
        r"(?:a|aa)+$",
        r"(?:a?){30}a{30}",
        r"(?:x*)*y",
        r".*.*=.*",
        r"[a-z]+[a-z0-9]+!",
        r"(a|b|ab)*c",
        r"(?:\w+\s?)*;",
        r"(.)\1{20,}",
        r"(a*)a*b",
        r"(?:(?:a*)(?:a*))?b",
        r"(?:a{0,9}){0,9}c",
    ],
)
def test_without_re2_a_pattern_that_could_explode_is_refused(pattern: str) -> None:
    with pytest.raises(errors.ConfigError, match="too long") as caught:
        Sanitiser([pattern], gate="stdlib")
    assert "google-re2" in caught.value.remedy


@pytest.mark.skipif(load_re2() is None, reason="google-re2 is not installed")
@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(?:a|aa)+$", r"(?:x*)*y", r".*.*=.*"])
def test_with_re2_such_a_pattern_runs(pattern: str) -> None:
    sanitiser = Sanitiser([pattern], gate="re2")
    text = "a" * 100_000 + "!"
    assert sanitiser.scrub(text) == text


@pytest.mark.skipif(load_re2() is None, reason="google-re2 is not installed")
def test_what_re2_does_not_know_still_runs_or_is_refused() -> None:
    assert Sanitiser([r"(?<=id )\d{4}"], gate="re2").scrub("id 1234") == "id [REDACTED:custom]"
    with pytest.raises(errors.ConfigError, match="too long"):
        Sanitiser([r"(?=(a+)+$)"], gate="re2")


@pytest.mark.parametrize("pattern", SAFE)
def test_ordinary_patterns_are_accepted_without_re2(pattern: str) -> None:
    assert Sanitiser([pattern], gate="stdlib").scrub("nothing") == "nothing"


words = st.lists(
    st.sampled_from(
        [
            *(
                "ACME-123456",
                "ticket-77",
                "bob@corp.example",
                "12ab-34cd-56ef-7890",
                "Subject: hi",
                "internal-only",
            ),
            *(
                "körey",
                '"a": "b"',
                "x" * 31,
                "END",
                "   ",
                "\n",
                "xxxy",
                " ",
                "\ud800",
                "é",
                "[REDACTED:custom]",
            ),
        ]
    ),
    max_size=12,
).map("".join)


@pytest.mark.skipif(load_re2() is None, reason="google-re2 is not installed")
@settings(max_examples=300, deadline=None)
@given(words)
def test_both_gates_find_the_same_of_ones_own(text: str) -> None:
    assert BOTH[0].scrub(text) == BOTH[1].scrub(text)


@pytest.mark.skipif(load_re2() is None, reason="google-re2 is not installed")
@settings(max_examples=300, deadline=None)
@given(st.one_of(words, st.text(st.characters(exclude_categories=["Cs"]), max_size=40)))
def test_the_look_at_all_of_them_names_each_that_matches(text: str) -> None:
    readable = text.replace("\ud800", "\ufffd")
    finding = {
        number
        for number, pattern in enumerate(MANY._linear)
        if any(match.end() > match.start() for match in pattern.finditer(readable))
    }
    assert finding <= set(MANY.named(readable))


@pytest.mark.skipif(load_re2() is None, reason="google-re2 is not installed")
def test_patterns_too_large_for_one_look_together_are_found_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(custom, "SET_MEMORY_BYTES", 1 << 20)
    patterns = [f"x{number}[^a]{{300}}" for number in range(20)]
    scrubbed = Sanitiser(patterns, gate="re2").scrub("x7" + "b" * 300 + "a, x17" + "c" * 300)
    assert scrubbed == "[REDACTED:custom]a, [REDACTED:custom]"
    check_settings(patterns, [])


BOTH = [Sanitiser(SAFE, gate=gate) for gate in (GATES * 2)[:2]]

INVISIBLE = [r"\s", r"\v", r"[^\S\n]", r"(?i)k", r"(?i:ſ)", r"\W$", r"^\x00", r"é?", r"[\x80-\xff]", r"\Bx"]
UNSETTLING = [
    r"REDACTED",
    r"\[REDACTED:[a-z]+\]",
    r"custom",
    r"[A-Z]+",
    r"\w+:\w+",
    r".",
    r"x\[RED",
    r"\]x",
    r"foo$",
    r"[\s\S]+",
    r"\[",
    r":",
]
MANY = CustomPatterns([*SAFE, *UNSETTLING, *INVISIBLE], load_re2())


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("pattern", UNSETTLING)
def test_a_pattern_that_matches_the_replacement_does_not_unsettle_it(gate: str, pattern: str) -> None:
    sanitiser = Sanitiser([pattern], gate=gate)
    for text in (
        "foofoofoo",
        "xxxxxxxxxxxxxxsecret",
        "a: B [REDACTED:custom] c",
        "key:value\nfoo",
        "x" * 50 + "[RED]x",
    ):
        once = sanitiser.scrub(text)
        assert sanitiser.scrub(once) == once


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(UNSETTLING), st.text(alphabet="x[]RED:custom foo\n", max_size=60))
def test_no_text_unsettles_one(pattern: str, text: str) -> None:
    sanitiser = Sanitiser([pattern])
    once = sanitiser.scrub(text)
    assert sanitiser.scrub(once) == once


@pytest.mark.parametrize("gate", GATES)
def test_allow_listed_matches_are_left_alone(gate: str) -> None:
    key = "AK" + "IA" + "ABCDEFGHIJ234567"
    sanitiser = Sanitiser([r"ACME-[0-9]+"], ["GHIJ", "ACME-1"], gate=gate)
    assert sanitiser.scrub(f"{key} ACME-17 ACME-27") == f"{key} ACME-17 [REDACTED:custom]"
    assert "GHIJ" not in Sanitiser(gate=gate).scrub(key)


@pytest.mark.parametrize("gate", GATES)
def test_matches_longer_than_a_window_are_gone(gate: str) -> None:
    sanitiser = Sanitiser([r"z{8,}"], gate=gate)
    scrubbed = sanitiser.scrub("a" * 700 + "z" * 5000 + "a" * 700)
    assert "z" not in scrubbed
    assert sanitiser.scrub(scrubbed) == scrubbed
