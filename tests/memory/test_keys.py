"""The folder name of a project root."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.checkout import project_root
from memd.memory.key import MAX_UNITS, choose_key, project_key
from support_cases import CASES, build

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "claude_keys.json").read_text("utf-8"))["pairs"]
ODD = json.loads((CASES / "02-key-of-odd-paths" / "keys.json").read_text("utf-8"))

LONG = b"/home/dev/w/" + b"z" * 240


@pytest.mark.parametrize(("path", "key"), RECORDED, ids=[str(n) for n in range(len(RECORDED))])
def test_key_is_the_folder_claude_code_made(path: str, key: str) -> None:
    assert project_key(path.encode("utf-8")) == key


@pytest.mark.parametrize(("path", "key"), ODD)
def test_key_of_an_odd_path(path: str, key: str) -> None:
    assert project_key(path.encode("utf-8")) == key


def test_folder_of_an_odd_path_is_found_on_disk(tmp_path: Path) -> None:
    case = build("02-key-of-odd-paths", tmp_path)
    root = project_root(os.fsencode(case["agent"]))
    key = project_key(root)
    assert key == case["key"]
    assert key.endswith("---demo-v1-2")
    assert (tmp_path / "home/.claude/projects" / key / "memory/launch.md").read_text() == "pad 39\n"


def test_linked_worktree_has_the_key_of_its_main_checkout(tmp_path: Path) -> None:
    case = build("03-worktree-pointer", tmp_path)
    root = project_root(os.fsencode(case["cwd"]))
    assert root == os.fsencode(case["project"])
    assert project_key(root) == case["key"] != case["other_key"]


def test_two_agents_may_share_a_key(tmp_path: Path) -> None:
    case = build("01-two-agents-one-key", tmp_path)
    roots = [project_root(os.fsencode(case[name])) for name in ("healed", "heal_now")]
    assert roots[0] != roots[1]
    assert {project_key(root) for root in roots} == {case["key"]}


def test_all_punctuation_becomes_dashes() -> None:
    assert project_key(b"/A.b_c d(1)~!@#$%^&*+=[]{};:'\",<>?`|\\") == "-A-b-c-d-1" + "-" * 27


def test_length_counts_utf16_units_not_characters() -> None:
    """199 characters, 201 units: one emoji more than fits."""
    path = ("/" + "x" * 196 + "\U0001f600" * 2).encode("utf-8")
    assert len(path.decode("utf-8")) == 199
    key = project_key(path)
    assert key.startswith("-" + "x" * 196 + "---" + "-")
    assert len(key) > MAX_UNITS + 1
    assert project_key(path.replace(b"x", b"", 1)) == "-" + "x" * 195 + "----"


def test_cut_may_split_an_emoji() -> None:
    path = ("/" + "x" * 198 + "\U0001f600").encode("utf-8")
    assert re.fullmatch(r"-x{198}--[0-9a-z]+", project_key(path))


def test_path_of_251_characters_is_hashed() -> None:
    path = b"/" + b"a/" * 125
    assert len(path) == 251
    assert re.fullmatch(r"(-a){100}-[0-9a-z]{1,6}", project_key(path))


def test_hash_is_over_the_path_not_the_key() -> None:
    assert project_key(LONG + b"/a.b") != project_key(LONG + b"/a_b")
    assert project_key(LONG + b"/a.b")[:MAX_UNITS] == project_key(LONG + b"/a_b")[:MAX_UNITS]


def test_bytes_that_are_not_utf8_count_as_node_decodes_them() -> None:
    assert project_key(b"/bad-\xff-x") == "-bad---x"
    assert project_key(b"/bad-\xff\xfe") == "-bad---"
    assert project_key(b"/cut-\xe2\x82-x") == "-cut---x", "one maximal broken part, one character"
    assert project_key(b"/sur-\xed\xa0\x80-x") == "-sur-----x"


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=320))
@example("/" + "\U0001f600" * 100)
@example("/" + "x" * 199)
def test_key_has_one_character_per_unit(text: str) -> None:
    key = project_key(text.encode("utf-8"))
    units = len(text.encode("utf-16-le")) // 2
    assert re.fullmatch(r"[A-Za-z0-9-]*", key)
    assert len(key) == units if units <= MAX_UNITS else MAX_UNITS + 2 <= len(key) <= MAX_UNITS + 7
    kept = [c for c in text if c.isascii() and c.isalnum()]
    if units <= MAX_UNITS:
        assert [c for c in key if c != "-"] == kept


@given(st.binary(max_size=400))
def test_any_bytes_have_a_key(path: bytes) -> None:
    key = project_key(path)
    assert key.isascii()
    assert "/" not in key and "." not in key
    assert len(key) <= MAX_UNITS + 8


def test_short_key_leaves_no_choice() -> None:
    choice = choose_key(b"/home/dev/p", ["-home-dev-p-abc123", "-home-dev"])
    assert (choice.name, choice.problem, choice.current) == ("-home-dev-p", "", "-home-dev-p")


def test_long_key_prefers_the_exact_folder() -> None:
    exact = project_key(LONG)
    choice = choose_key(LONG, [exact[:201] + "older1", exact, exact[:201] + "older2"])
    assert (choice.name, choice.problem) == (exact, "")


def test_folder_with_an_older_hash_is_taken_when_it_is_the_only_one() -> None:
    exact = project_key(LONG)
    older = exact[:201] + "1a2b3c4d5e6f7"
    choice = choose_key(LONG, ["-home", older, exact[:200], exact[:201] + "x.pre", exact[:201] + "a-b"])
    assert (choice.name, choice.problem) == (older, "")
    assert choice.current == exact, "the versions of today look nowhere else"


def test_several_folders_with_older_hashes_are_a_problem() -> None:
    exact = project_key(LONG)
    choice = choose_key(LONG, [exact[:201] + "older1", exact[:201] + "older2"])
    assert choice.name == exact
    assert "2 folders" in choice.problem


def test_no_folder_yet_is_no_problem() -> None:
    choice = choose_key(LONG, [])
    assert (choice.name, choice.problem) == (project_key(LONG), "")


@given(st.lists(st.text(max_size=220)))
def test_any_names_beside_it_raise_nothing(names: list[str]) -> None:
    assert choose_key(LONG, [*names, project_key(LONG)]).name == project_key(LONG)
