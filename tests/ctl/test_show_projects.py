"""What `memctl show` offers: saved checkouts that are still what they were, and a look one level deep."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memctl import show_projects, show_view
from memctl.ledger_address import LOCAL
from memctl.registry import Link
from memctl.show_projects import MAX_ENTRIES, Known, Project, find

WHEN = "2026-02-07T09:00:00Z"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("MEMD_IGNORE_MARKER", raising=False)
    made = home / "wörk dir"
    made.mkdir(parents=True)
    return made


def project(folder: Path, sign: str = "go.mod", marker: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / sign).touch()
    if marker:
        (folder / ".memd.toml").write_text(marker)
    return folder


def link(path: Path | bytes, project: str = "", at: str = WHEN, workspace: str = "default") -> Link:
    path = os.fsencode(path)
    return Link(LOCAL, workspace, project or os.path.basename(path).decode(), path, at)


def known(**used: str) -> dict[tuple[str, str], Known]:
    return {("default", name): Known(1, 7, at) for name, at in used.items()}


def names(found: show_projects.Found) -> list[str]:
    return [one.project for one in found.projects]


# ------------------------------------------------------------------------------------ the look round


@pytest.mark.parametrize("sign", [os.fsdecode(sign) for sign in show_projects.SIGNS])
def test_a_directory_with_one_of_the_signs_is_a_project(work: Path, sign: str) -> None:
    project(work / "one", sign)
    (work / "none").mkdir()
    (work / "none" / "README").touch()
    assert names(find([], LOCAL, bytes(work), "", None)) == ["one"]


def test_the_look_is_one_level_deep_and_includes_the_directory_itself(work: Path) -> None:
    project(work / "child" / "grandchild")
    assert names(find([], LOCAL, bytes(work), "", None)) == []
    project(work)
    project(work / "child")
    assert names(find([], LOCAL, bytes(work), "", None)) == ["child", "wörk dir"]


def test_links_dot_folders_and_folders_of_dependencies_are_passed_over(work: Path, tmp_path: Path) -> None:
    for name in (".hidden", "node_modules", "target", "dist", "build", "vendor", "venv", "__pycache__"):
        project(work / name)
    (work / "linked").symlink_to(project(tmp_path / "elsewhere"))
    (work / "file").touch()
    assert find([], LOCAL, bytes(work), "", None) == ([], [])


def test_a_directory_that_is_reached_by_a_link_is_known_by_its_physical_path(work: Path) -> None:
    made = project(work / "real" / "app")
    (work / "way").symlink_to(work / "real")
    found = find([], LOCAL, bytes(work / "way"), "", None)
    assert [one.path for one in found.projects] == [bytes(made)]


def test_a_look_ends_at_its_bound_and_says_so(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show_projects, "MAX_ENTRIES", 3)
    for number in range(5):
        project(work / f"p{number}")
    found = find([], LOCAL, bytes(work), "", None)
    assert len(found.projects) == 3
    assert found.warnings == [f"looked at 3 entries of {work}, and no further"]
    assert MAX_ENTRIES == 4096


def test_the_scope_is_the_one_that_a_run_there_would_have(work: Path) -> None:
    project(work / "a", marker='workspace = "acme"\nproject = "anvil"\n')
    project(work / "b", ".git")
    found = find([], LOCAL, bytes(work), "", None)
    assert [(one.workspace, one.project, one.source) for one in found.projects] == [
        ("acme", "anvil", "scan"),
        ("default", "b", "scan"),
    ]
    assert names(find([], LOCAL, bytes(work), "acme", None)) == ["anvil"]


def test_a_marker_that_cannot_be_read_is_named_and_the_others_stay(work: Path) -> None:
    project(work / "bad", marker="workspace = ")
    project(work / "good")
    found = find([], LOCAL, bytes(work), "", None)
    assert names(found) == ["good"]
    assert ".memd.toml" in found.warnings[0]


def test_a_place_that_cannot_be_listed_is_a_warning(work: Path) -> None:
    assert find([], LOCAL, bytes(work / "gone"), "", None).warnings == [
        f"cannot look round in {work}/gone: No such file or directory"
    ]


# ----------------------------------------------------------------------------------- saved checkouts


def test_without_a_look_only_saved_ones_are_offered(work: Path) -> None:
    app = project(work / "app")
    project(work / "other")
    found = find([link(app)], LOCAL, None, "", None)
    assert found.projects == [
        Project("default", "app", bytes(app), LOCAL, "registry", None, last_updated=WHEN)
    ]


def test_a_directory_is_offered_once_and_as_the_saved_one(work: Path) -> None:
    app = project(work / "app")
    found = find([link(app)], LOCAL, bytes(work), "", None)
    assert [(one.path, one.source) for one in found.projects] == [(bytes(app), "registry")]


def test_links_that_are_not_what_they_were_are_named_three_of_them(work: Path) -> None:
    moved = [link(work / f"gone{number}") for number in range(5)]
    scoped = link(project(work / "app", marker='project = "other"\n'), "app")
    found = find([scoped, *moved, link(b"relative", "r")], LOCAL, None, "", None)
    assert found.projects == []
    assert found.warnings[0] == f"passed over default/app in {work}/app: it belongs to default/other by now"
    assert found.warnings[3:] == ["passed over 4 more"]


def test_links_of_another_ledger_or_workspace_do_not_count(work: Path) -> None:
    app = project(work / "app", marker='workspace = "acme"\nproject = "app"\n')
    rows = [link(app, workspace="acme"), link(app)._replace(ledger="https://x")]
    assert names(find(rows, LOCAL, None, "acme", None)) == ["app"]
    assert find(rows, LOCAL, None, "elsewhere", None) == ([], [])


def test_links_that_the_ledger_does_not_know_are_dropped_when_it_answered(work: Path) -> None:
    rows = [link(project(work / name)) for name in ("a", "b")] + [link(work / "gone")]
    asked = known(a="2026-03-01T00:00:00Z")
    found = find(rows, LOCAL, None, "", asked)
    assert found == (
        [Project("default", "a", bytes(work / "a"), LOCAL, "registry", True, 1, 7, "2026-03-01T00:00:00Z")],
        [],
    )
    away = find(rows, LOCAL, None, "", None)
    assert names(away) == ["a", "b"]
    assert len(away.warnings) == 1
    assert [one.is_tracked for one in find([], LOCAL, bytes(work), "", asked).projects] == [True, False]


def test_the_last_used_comes_first_then_the_names(work: Path) -> None:
    rows = [
        link(project(work / "old"), at="2026-02-07T08:00:00Z"),
        link(project(work / "new"), at="2026-02-07T08:30:00-02:00"),  # half past ten
        link(project(work / "odd"), at="yesterday"),
    ]
    project(work / "Zed")
    project(work / "abc")
    assert names(find(rows, LOCAL, bytes(work), "", None)) == ["new", "old", "Zed", "abc", "odd"]


# ---------------------------------------------------------------------------------------- for people


def test_a_document_spells_out_odd_bytes_and_has_these_fields() -> None:
    one = Project("default", "a", b"/w/\xff\x1b", LOCAL, "scan", None)
    assert one.document() == {
        "workspace": "default",
        "project": "a",
        "path": "/w/\\xff\\x1b",
        "source": "scan",
        "tracked": None,
        "workstream_count": 0,
        "event_count": 0,
        "last_updated": None,
    }


def test_lines_fit_and_hold_nothing_that_moves_a_cursor() -> None:
    projects = [
        Project("default", "short", b"/home/me/short", LOCAL, "scan"),
        Project(
            "ac\x1bme", "名前" * 20, "/home/me/ö x/".encode() + b"long" * 40, LOCAL, "scan", last_updated=WHEN
        ),
        Project("default", "b\u202ei\u2028d\n", b"/x/\xff\x9b[31m", LOCAL, "scan"),
    ]
    from rich.cells import cell_len

    lines = show_view.rows(projects, b"/home/me", 60, now=1_770_541_200.0)
    assert all(cell_len(line) <= 60 for line in lines)
    assert lines[0].split() == ["short", "~/short"]
    assert lines[1].startswith("ac?me/名前")
    assert lines[1].endswith("longlong")
    assert "  2 hours ago" in show_view.rows(projects, b"/", 60, now=1_770_462_000.0)[1]
    assert lines[2].split() == ["b?i?d?", "/x/\\xff\\x9b[31m"]


def test_the_filter_wants_all_words_in_name_or_path_in_any_case() -> None:
    projects = [
        Project("default", "Äpp", b"/home/me/src/app", LOCAL, "scan"),
        Project("acme", "tool", b"/home/me/x", LOCAL, "scan"),
    ]
    for words, expected in (
        ("äpp", [0]),
        ("SRC ä", [0]),
        ("acme", [1]),
        ("~/", [0, 1]),
        ("nope", []),
        ("", [0, 1]),
    ):
        found = show_view.fitting(projects, words, b"/home/me")
        assert found == [projects[number] for number in expected], words


def test_where_one_left_off_is_offered_where_something_was_done() -> None:
    offer = show_view.Offer([], [("claude", "Claude Code"), ("pi", "pi")], b"/", b"/")
    tracked = Project("default", "a", b"/a", LOCAL, "registry", True, workstream_count=1)
    assert show_view.starts(offer, tracked)[0] == ("", "go on where you left off")
    assert [word for word, _ in show_view.starts(offer, None)] == ["claude", "pi"]
    assert [word for word, _ in show_view.starts(offer._replace(can_go_on=False), tracked)] == [
        "claude",
        "pi",
    ]
    untracked = tracked._replace(workstream_count=0)
    assert [text for _, text in show_view.starts(offer, untracked)] == ["claude  (Claude Code)", "pi"]
