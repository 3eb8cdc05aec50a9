"""What every engine promises of a search."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.errors import UsageError
from memd.harness.model import Session
from memd.ledger import search
from memd.ledger.store.interface import Filter
from support_engines import Lines
from support_ledger import S1, S2, entry

CASE = Path(__file__).parents[1] / "cases" / "32-search-literal-text"


def found(lines: Lines, query: str, limit: int = 20, **where: str) -> list[str]:
    return [hit.content for hit in lines.reader.search(query, Filter(**where), limit)]


def test_words_are_taken_as_people_write_them(lines: Lines, tmp_path: Path) -> None:
    subprocess.run([sys.executable, CASE / "make.py", tmp_path], check=True)
    [transcript] = (tmp_path / "home").rglob("*.jsonl")
    for line in transcript.read_text(encoding="utf-8").splitlines():
        said = json.loads(line)["message"]
        content = said["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        lines.put(entry(text, role=said["role"]))
    queries = json.loads((tmp_path / "queries.json").read_text(encoding="utf-8"))
    assert len(queries) == 22
    assert {query: len(found(lines, query)) for query in queries} == queries


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60) | st.text(alphabet="\"*()-:^ABNEARORT{}+,.'\0\ud800 ", max_size=40))
def test_no_input_is_a_syntax_error(lines: Lines, query: str) -> None:
    lines.put(entry("and or not near text"))
    hits = lines.reader.search(query, Filter(cwd=query, role=query[:8]))
    assert isinstance(hits, list)
    assert isinstance(lines.reader.search(query, Filter()), list)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(st.from_regex(r"[a-zA-Z0-9_.:/@=-]{0,8}[a-z0-9]", fullmatch=True), min_size=1, max_size=6)
)
def test_every_text_is_found_by_its_own_words(lines: Lines, words: list[str]) -> None:
    text = " ".join(words)
    lines.put(entry(text))
    assert text in found(lines, text, limit=1000)
    assert text in found(lines, f'"{text}"', limit=1000)


def test_a_phrase_stands_side_by_side(lines: Lines) -> None:
    lines.put(entry("the failed migration of users"), entry("migration failed, the users left"))
    assert found(lines, '"failed migration"') == ["the failed migration of users"]
    assert len(found(lines, "failed migration")) == 2


def test_a_star_asks_for_a_beginning(lines: Lines) -> None:
    lines.put(entry("migrations run"), entry("migrate now"), entry("a * b"))
    assert sorted(found(lines, "migrat*")) == ["migrate now", "migrations run"]
    assert found(lines, '"migrations" ru*') == ["migrations run"]
    assert found(lines, "*") == []


def test_accents_and_case_do_not_matter(lines: Lines) -> None:
    lines.put(entry("Café Zürich ΑΘΗΝΑ 東京"))
    for query in ("cafe", "CAFÉ", "zurich", "αθηνα", "東京"):
        assert len(found(lines, query)) == 1, query


def test_a_hit_at_the_end_of_a_long_result_is_found(lines: Lines) -> None:
    text = "filler line of output\n" * 2900 + "needle_at_the_very_end"
    lines.put(entry(text[-65_000:], kind="tool_result", role="tool"))
    [hit] = lines.reader.search("needle_at_the_very_end", Filter(), marks=("[", "]"))
    assert "[needle_at_the_very_end]" in hit.snippet
    assert len(hit.snippet) < 400
    assert hit.content.endswith("needle_at_the_very_end")


def test_filters_narrow(lines: Lines) -> None:
    lines.put(
        entry("word one", role="user"),
        entry("word two", role="assistant", occurred_at="2026-03-01T00:00:00Z"),
        entry("word three", kind="tool_result", role="tool", occurred_at="2026-03-01T02:00:00+02:00"),
        sessions=[Session(id=S1, cwd="/w/a")],
    )
    lines.put(
        entry("word four", session=S2, occurred_at=""),
        harness="codex",
        sessions=[Session(id=S2, cwd="/w/ab")],
    )
    assert len(found(lines, "word")) == 4
    assert found(lines, "word", harness="codex") == ["word four"]
    assert len(found(lines, "word", cwd="/w/a")) == 3
    assert len(found(lines, "word", cwd="/w")) == 4
    assert found(lines, "word", cwd="/elsewhere") == []
    assert found(lines, "word", role="assistant") == ["word two"]
    assert found(lines, "word", kind="tool_result") == ["word three"]
    assert found(lines, "word", session=S2) == ["word four"]
    assert sorted(found(lines, "word", since="2026-03-01T00:00:00Z")) == ["word three", "word two"]
    assert found(lines, "word", since="2026-03-01T00:00:01Z") == []
    with pytest.raises(UsageError, match="yesterday"):
        found(lines, "word", since="yesterday")


def test_words_of_the_scope_are_not_words_of_the_text(lines: Lines) -> None:
    lines.put(entry("hello"))
    for query in ("hclaude", "km", "ru", "c1"):
        assert found(lines, query) == []


def test_a_copied_event_is_found_once_in_either_directory(lines: Lines) -> None:
    lines.put(entry("shared words"), sessions=[Session(id=S1, cwd="/w/a")])
    lines.put(entry("shared words", session=S2), sessions=[Session(id=S2, cwd="/w/b")])
    [everywhere] = lines.reader.search("shared", Filter())
    [there] = lines.reader.search("shared", Filter(cwd="/w/b"))
    assert (everywhere.session, everywhere.cwd) == (S1, "/w/a")
    assert (there.session, there.cwd) == (S2, "/w/b")


def test_of_equal_hits_the_newer_comes_first(lines: Lines) -> None:
    now = datetime.datetime.now(datetime.UTC)
    for days in (400, 40, 1):
        moment = (now - datetime.timedelta(days=days)).isoformat()
        lines.put(entry(f"same words {days}", occurred_at=moment))
    assert found(lines, "same words") == ["same words 1", "same words 40", "same words 400"]


def test_a_live_event_is_newer_than_history_that_comes_after_it(lines: Lines) -> None:
    now = datetime.datetime.now(datetime.UTC).isoformat()
    lines.put(entry("alpha live", occurred_at=now))
    old = "2020-01-01T00:00:00Z"
    lines.put(*(entry(f"alpha history {number}", occurred_at=old) for number in range(search.NEWEST)))
    assert found(lines, "alpha", limit=1) == ["alpha live"]


def test_more_words_in_a_hit_count_more_than_a_little_age(lines: Lines) -> None:
    lines.put(
        entry("lock lock lock", occurred_at="2026-02-01T00:00:00Z"),
        entry("a lock among very many other words of no use " * 3, occurred_at="2026-02-02T00:00:00Z"),
    )
    assert found(lines, "lock", limit=1) == ["lock lock lock"]


IMPOSSIBLE = ("9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "soon")


@pytest.mark.parametrize("when", IMPOSSIBLE)
def test_a_session_with_an_impossible_time_stands_where_it_was_taken_in(lines: Lines, when: str) -> None:
    before, after = S1, S2
    odd = "33333333-0000-4000-8000-000000000003"
    lines.put(entry("old", session=before, occurred_at="2026-02-03T10:00:00Z"))
    lines.put(entry("odd", session=odd, occurred_at=when))
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    lines.put(entry("new", session=after, occurred_at=f"{later:%Y-%m-%dT%H:%M:%SZ}"))
    rows = lines.reader.sessions(Filter())
    assert rows[0].id == after
    [event] = lines.reader.export("claude", odd)
    assert event.occurred_at == when
    row = next(row for row in rows if row.id == odd)
    assert row.last_activity == "" or row.last_activity[:4] == f"{later:%Y}"


def test_a_possible_time_counts_beside_impossible_ones(lines: Lines) -> None:
    lines.put(entry("a", occurred_at="1970-01-01T00:00:00Z"))
    lines.put(entry("b", occurred_at="2026-02-03T10:00:00Z"))
    assert lines.reader.sessions(Filter())[0].last_activity == "2026-02-03T10:00:00Z"


def test_a_time_that_has_not_come_lifts_no_hit(lines: Lines) -> None:
    soon = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=1)
    lines.put(entry("the wombat of now", occurred_at=f"{soon:%Y-%m-%dT%H:%M:%SZ}"))
    lines.put(entry("the wombat of then", occurred_at="9999-12-31T23:59:59Z"))
    assert found(lines, "wombat") == ["the wombat of now", "the wombat of then"]
