"""What is done about an entry, over values alone."""

from __future__ import annotations

import pytest

from memd.memory.decide import Circumstances, Facts, decide, is_within, temporary_objection

HOME = b"/work/proj"
OWNED = HOME + b"/.memd/memory"
ENTRY = b"/home/x/.claude/projects/-work-proj/memory"
LOGINS = (b"/home/x/.claude", b"/home/x/.claude-work")


def about(**changes: object) -> Circumstances:
    return Circumstances(home=HOME, owned=OWNED, owned_ino=7, logins=LOGINS, **changes)  # type: ignore[arg-type]


def link_to(target: bytes, **changes: object) -> Facts:
    known: dict[str, object] = {
        "text": target,
        "target": target,
        "target_is_folder": True,
        "target_root": HOME,
    }
    return Facts(path=ENTRY, kind="link", **{**known, **changes})  # type: ignore[arg-type]


def dangling(text: bytes) -> Facts:
    return Facts(path=ENTRY, kind="link", text=text)


@pytest.mark.parametrize(
    ("facts", "action"),
    [
        (Facts(path=ENTRY, kind="link", is_owned=True), "linked"),
        (Facts(path=ENTRY, kind="folder", is_owned=True), "linked"),
        (Facts(path=ENTRY, kind="absent"), "link"),
        (Facts(path=ENTRY, kind="folder"), "take"),
        (Facts(path=ENTRY, kind="folder", is_mount=True), "skip"),
        (Facts(path=ENTRY, kind="folder", is_writable=False), "skip"),
        (Facts(path=ENTRY, kind="absent", is_writable=False), "skip"),
        (Facts(path=ENTRY, kind="odd"), "skip"),
        (Facts(path=ENTRY, kind="blocked", obstacle="x"), "skip"),
        (link_to(HOME + b"/old-memory"), "merge-target"),
        (link_to(OWNED + b"/sub"), "aside"),
        (link_to(HOME), "skip"),
        (link_to(HOME + b"/.memd"), "skip"),
        (link_to(HOME + b"/.instar"), "skip"),
        (link_to(HOME + b"/.git"), "skip"),
        (link_to(HOME + b"/.git/hooks"), "skip"),
        (link_to(b"/work"), "skip"),
        (link_to(b"/"), "skip"),
        (link_to(b"/home/x"), "skip"),
        (link_to(b"/elsewhere", target_root=b""), "skip"),
        (link_to(HOME + b"/inner/memory", target_root=HOME + b"/inner"), "skip"),
        (link_to(HOME + b"/file", target_is_folder=False), "skip"),
        (link_to(b"/home/x/.claude-work/projects/-work-proj/memory", target_root=b""), "wait"),
        (dangling(b"/nowhere"), "aside"),
        (dangling(b"memory"), "aside"),
        (dangling(OWNED), "link"),
    ],
)
def test_every_kind_of_entry_has_its_answer(facts: Facts, action: str) -> None:
    decision = decide(facts, about())
    assert decision.action == action
    assert decision.action != "skip" or (decision.reason and decision.remedy)


def test_a_link_to_where_an_owned_folder_was_is_ours() -> None:
    gone = b"/old/place/.memd/memory"
    assert decide(dangling(gone), about(targets={gone: 7})).action == "replace"


def test_a_link_of_an_agent_that_is_away_is_foreign_unless_the_folder_moved_here() -> None:
    other = b"/other/.memd/memory"
    away = about(others=(b"/other",), targets={other: 99})
    moved = about(others=(b"/other",), targets={other: 7})
    assert decide(dangling(other), away).action == "skip"
    assert decide(dangling(other), moved).action == "replace"
    assert decide(dangling(other), about(others=(b"/other",))).action == "skip"


def test_paths_are_compared_part_by_part() -> None:
    assert is_within(b"/a/b", b"/a") and is_within(b"/a", b"/a") and is_within(b"/a", b"/")
    assert not is_within(b"/ab", b"/a") and not is_within(b"/", b"/a")


def test_a_temporary_agent_is_kept_out_of_a_login_that_is_none() -> None:
    roots = (b"/tmp", b"/dev/shm")
    assert temporary_objection(b"/tmp/a", b"/home/x/.claude", roots)
    assert not temporary_objection(b"/tmp/a", b"/dev/shm/.claude", roots)
    assert not temporary_objection(b"/home/x/a", b"/tmp/.claude", roots)
    assert not temporary_objection(b"/tmpfiles/a", b"/home/x/.claude", roots)
