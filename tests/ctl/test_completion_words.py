"""What may stand where on a command line: said by the parsers, and by a daemon if one runs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from memctl import cli, client, completing
from memctl.commands import completion
from memctl.commands.completion import bash_quoted, lexed
from memd.errors import Unavailable


@pytest.fixture(autouse=True)
def no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: object, start: bool = True, **more: object) -> object:
        assert not start, "completion starts no daemon"
        raise Unavailable("memd is not running")

    monkeypatch.setattr(client, "ask_text", away)
    monkeypatch.setattr(client, "ask", away)


def words(line: str) -> list[str]:
    """The words that may stand at the end of a line."""
    *before, current = line.split(" ")
    found = completing.answer(before, current)
    return [found.kind] if found.kind != "words" else [word.text for word in found.words]


def test_all_commands_are_offered_with_what_they_do() -> None:
    found = completing.answer([], "").words
    assert [word.text for word in found] == cli.commands()
    assert all(word.says for word in found)
    assert words("sta") == ["status"]
    assert words("help work") == ["workstreams", "workstream-search"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sessions --or", ["--orphaned"]),
        ("sessions --harness cla", ["claude"]),
        ("sessions --harness=cla", ["claude"]),
        ("sessions --harness claude --js", ["--json"]),
        ("install-hooks --agent comm", ["command-code"]),
        ("export --format ", ["jsonl", "markdown"]),
        ("export --session x --format m", ["markdown"]),
        ("memory re", ["read", "remove", "restore", "repair"]),
        ("memory --js", []),
        ("memory list --js", ["--json"]),
        ("service in", ["install"]),
        ("service status --", ["--help", "--json"]),
        ("handoff create --to gr", ["grok"]),
        ("handoff create --file ", ["files"]),
        ("enroll ", ["directories"]),
        ("enroll --yes ", ["directories"]),
        ("enroll x ", []),
        ("forget --project ", ["directories"]),
        ("search --cwd ", ["directories"]),
        ("search word --kind ", []),
        ("run cl", ["claude"]),
        ("run --yolo cl", ["claude"]),
        ("run --workspace cl", []),
        ("run --executable ", ["files"]),
        ("run --exec", ["--executable"]),
        ("run claude ", ["files"]),
        ("run claude --yo", ["files"]),
        ("show --no", ["--no-scan"]),
        ("show -m ", ["files"]),
        ("setup --skip en", ["enroll"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("hook cod", ["codex"]),
        ("nonsense ", []),
        ("status nonsense ", []),
        ("status -- ", []),
        ("status --nonsense ", []),
    ],
)
def test_what_may_stand_there(line: str, expected: list[str]) -> None:
    assert words(line) == expected


def test_hidden_options_are_not_offered() -> None:
    assert words("completion --") == ["--help"]


def answering(rows: object) -> Callable[..., tuple[int, bytes]]:
    def ask_text(request: object, *, start: bool = True, timeout_s: float = 0) -> tuple[int, bytes]:
        assert not start
        assert 0 < timeout_s <= 2
        return 0, json.dumps(rows).encode()

    return ask_text


def test_names_come_from_a_daemon_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"name": "log in", "current": True, "workstream_id": "w1"},
        {"name": "über", "current": False, "workstream_id": "w2"},
    ]
    monkeypatch.setattr(client, "ask_text", answering(rows))
    assert words("run --workstream ") == ["log in", "über"]
    assert words("run --workstream=ü") == ["über"]
    assert words("rename-workstream --from l") == ["log in"]
    assert words("workstream-search --workstream-id ") == ["w1", "w2"]
    projects = [{"workspace": "acme", "project": "a"}, {"workspace": "acme", "project": "b"}]
    monkeypatch.setattr(client, "ask_text", answering(projects))
    assert words("show --workspace ") == ["acme"]
    assert words("rename-project --from ") == ["a", "b"]
    sessions = [{"id": "s1", "harness": "claude", "title": "a title"}]
    monkeypatch.setattr(client, "ask_text", answering(sessions))
    assert completing.answer(["adopt", "--session"], "").words == [("s1", "claude a title")]
    monkeypatch.setattr(client, "ask_text", answering([{"handoff_id": "h1", "summary": "go on"}]))
    assert completing.answer(["handoff", "show"], "").words == [("h1", "go on")]


@pytest.mark.parametrize("rows", [{}, [1], [{}], "x", None])
def test_an_odd_answer_is_no_answer(monkeypatch: pytest.MonkeyPatch, rows: object) -> None:
    monkeypatch.setattr(client, "ask_text", answering(rows))
    assert words("run --workstream ") == []
    assert words("adopt --session ") == []


# ------------------------------------------------------------------------------------ for the shells


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("memctl ", ([""], "")),
        ("memctl ru", (["ru"], "")),
        ("memctl  run   cl", (["run", "cl"], "")),
        ("memctl run --workstream lo\\ g", (["run", "--workstream", "lo g"], "")),
        ("memctl run --workstream 'lo g", (["run", "--workstream", "lo g"], "'")),
        ('memctl run --workstream "lo\\" g', (["run", "--workstream", 'lo" g'], '"')),
        ("memctl a '' b", (["a", "", "b"], "")),
        ("memctl a'b c'd", (["ab cd"], "")),
        ("memctl --harness=co", (["--harness=co"], "")),
        ("memctl", ([], "")),
        ("", ([], "")),
        ("memctl \\", (["\\"], "")),
    ],
)
def test_a_line_of_bash_is_read_as_bash_reads_it(line: str, expected: tuple[list[str], str]) -> None:
    assert lexed(line) == expected


def test_names_are_quoted_for_bash_as_the_line_needs_it() -> None:
    assert bash_quoted("a b'c$d", "") == "a\\ b\\'c\\$d"
    assert bash_quoted("a b'c$d", '"') == "a b'c\\$d"
    assert bash_quoted("a b'c$d", "'") == "a b'\\''c$d"


def answered(capsys: pytest.CaptureFixture[str], shell: str, *line: str) -> list[str]:
    assert cli.run(["completion", shell, "--answer", *line]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def test_the_shells_get_a_kind_and_a_word_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"name": "log in\x1b[1m", "current": False},
        {"name": "a\nb", "current": False},
        {"name": "log\tin", "current": False},
        {"name": "x:log in", "current": True},
    ]
    monkeypatch.setattr(client, "ask_text", answering(rows))
    assert answered(capsys, "zsh", "run", "--workstream", "") == ["words", "x:log in\tcurrent"]
    assert answered(capsys, "bash", "memctl run --workstream x:") == ["words", "log\\ in"]
    assert answered(capsys, "bash", "memctl run --workstream=x:l") == ["words", "log\\ in"]
    assert answered(capsys, "bash", 'memctl run --workstream "x:l') == ["words", "x:log in"]
    assert answered(capsys, "fish", "enroll", "") == ["directories"]
    assert answered(capsys, "fish") == ["words", *(f"{n}\t{s}" for n, s in completing.answer([], "").words)]


def test_whatever_goes_wrong_stays_out_of_the_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(before: object, current: object) -> object:
        raise RuntimeError("a bug")

    monkeypatch.setattr(completing, "answer", broken)
    assert answered(capsys, "bash", "memctl ") == []


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_script_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["completion", shell]) == 0
    assert "--answer" in capsys.readouterr().out
