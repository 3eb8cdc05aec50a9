"""Words, programs, the client's environment and what installed programs know.

Workstreams 59, 60, 61, 71; adapters 11, 15, 16, 17.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.errors import UsageError
from memd.harness import registry
from memd.harness.launching import Argv, Intent, Launch, Said
from memd.harness.model import Adapter
from memd.processes import is_alive
from memd.workstream import launch
from memd.workstream.bare import NoProgram
from memd.workstream.launch import Client, Probes
from support_launch import LINKED, NEW, adapter, launch_of

# ------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("claude", "claude"),
        ("claude-code", "claude"),
        ("Claude_Code", "claude"),
        (" CODEX ", "codex"),
        ("open-code", "opencode"),
        ("opencode", "opencode"),
        ("pi", "pi"),
        ("oh-my-pi", "omp"),
        ("omp", "omp"),
    ],
)
def test_every_word_for_a_harness_finds_it(word: str, name: str) -> None:
    found, flavor = launch.chosen(word)
    assert (found.name, flavor) == (name, "")


def test_unknown_word_is_refused_with_the_words_there_are() -> None:
    with pytest.raises(UsageError, match="'emacs'") as caught:
        launch.chosen("emacs")
    assert "claude" in caught.value.remedy
    assert caught.value.exit_status == 64


@pytest.fixture
def harnesses(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put other adapters into the registry."""

    def put(*found: Adapter) -> None:
        monkeypatch.setattr(registry, "adapters", lambda: {one.name: one for one in found})

    return put


def test_word_of_a_flavour_chooses_it_too(harnesses: Callable[..., None]) -> None:
    flavored = replace(launch_of("pi"), words={"pi-next": "next"})
    harnesses(replace(adapter("pi"), launch=flavored))
    found, flavor = launch.chosen("PI_NEXT")
    assert (found.name, flavor) == ("pi", "next")
    assert launch.chosen("pi")[1] == ""


def test_harness_that_cannot_be_started_is_refused(harnesses: Callable[..., None]) -> None:
    unstartable = replace(adapter("pi"), launch=None)
    harnesses(adapter("claude"), unstartable)
    with pytest.raises(UsageError, match="pi cannot be started"):
        launch.chosen("pi")
    with pytest.raises(UsageError, match="Pi cannot be started"):
        launch.compose(unstartable, Said(), (), Intent())


@pytest.mark.parametrize(
    ("typed", "native", "is_yolo", "is_fresh"),
    [
        ([], (), False, False),
        (["--yolo"], (), True, False),
        (["--fresh", "-p", "--yolo", "go"], ("-p", "go"), True, True),
        (["--model", "--yolo", "x"], ("--model", "x"), True, False),
        (["--yolo", "--yolo"], (), True, False),
        (["--yolo=x", "--fresher", "-y"], ("--yolo=x", "--fresher", "-y"), False, False),
        (["go", "--", "--yolo", "--fresh"], ("go", "--", "--yolo", "--fresh"), False, False),
        (["--yolo", "--", "--yolo"], ("--", "--yolo"), True, False),
        (["-x", "--", "a", "--"], ("-x", "--", "a", "--"), False, False),
    ],
)
def test_words_of_the_wrapper_are_taken_out_before_a_terminator(
    typed: list[str], native: tuple[str, ...], is_yolo: bool, is_fresh: bool
) -> None:
    found = launch.unwrap([word.encode() for word in typed])
    assert (found.native, found.is_yolo, found.is_fresh) == (native, is_yolo, is_fresh)


def test_any_bytes_come_through_unchanged() -> None:
    odd = bytes(range(1, 256))
    assert os.fsencode(launch.unwrap([odd]).native[0]) == odd


# ----------------------------------------------------------------------------- compose


def _composed(said: Said, intent: Intent, native: tuple[str, ...] = ("go",)) -> tuple[Argv, list[Intent]]:
    """What is composed, and the intents that the adapter was asked with."""
    asked: list[Intent] = []

    def compose(native: tuple[str, ...], intent: Intent) -> Argv:
        asked.append(intent)
        return Argv(arguments=(*native, "--ours"), session=intent.session or intent.new_id, set={"A": "b"})

    own = replace(launch_of("pi"), compose=compose)
    return launch.compose(replace(adapter("pi"), launch=own), said, native, intent), asked


def test_utility_reaches_no_adapter() -> None:
    argv, asked = _composed(Said(is_passing=True), Intent(session=LINKED, new_id=NEW, is_yolo=True))
    assert argv == Argv(arguments=("go",))
    assert asked == []


def test_selector_leaves_only_the_rest_of_the_intent() -> None:
    intent = Intent(session=LINKED, new_id=NEW, is_yolo=True, flavor="v3", supports=frozenset({"--x"}))
    argv, asked = _composed(Said(has_selector=True, session="theirs"), intent)
    assert asked == [replace(intent, session="", new_id="")]
    assert argv.session == "theirs"
    assert argv.set == {"A": "b"}


def test_session_that_nobody_knows_stays_unknown() -> None:
    argv, _ = _composed(Said(has_selector=True), Intent(session=LINKED, new_id=NEW))
    assert argv.session == ""


@pytest.mark.parametrize(
    ("name", "session", "is_yolo", "wanted"),
    [
        ("pi", "", False, True),
        ("pi", "", True, True),
        ("pi", LINKED, False, False),
        ("pi", LINKED, True, True),
        ("omp", "", False, False),
        ("omp", LINKED, True, True),
        ("claude", "", True, False),
    ],
)
def test_program_is_asked_only_when_the_answer_matters(
    name: str, session: str, is_yolo: bool, wanted: bool
) -> None:
    own = launch_of(name)
    intent = Intent(session=session, new_id=NEW, is_yolo=is_yolo)
    assert launch.probes(own, Said(), intent) == (own.probes if wanted else ())
    assert launch.probes(own, Said(is_passing=True), intent) == ()


# ------------------------------------------------------------------------- environment


def client(tmp_path: Path, *folders: str, **variables: str) -> Client:
    (tmp_path / "work").mkdir(exist_ok=True)
    return Client(
        cwd=os.fsencode(tmp_path / "work"),
        home=os.fsencode(tmp_path),
        path=":".join(folders).encode(),
        variables={name: os.fsencode(value) for name, value in variables.items()},
    )


def test_client_sends_all_variables_that_decide_where_sessions_lie() -> None:
    names = launch.variables()
    assert len(set(names)) == len(names)
    assert {"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"} <= set(names)
    assert {"PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR", "OMP_PROFILE", "OPENCODE_DB"} <= set(names)


def test_empty_variables_count_as_unset_for_us_and_for_the_child(tmp_path: Path) -> None:
    mine = client(tmp_path, CODEX_HOME="", XDG_DATA_HOME=" ", PI_CODING_AGENT_DIR="/pi")
    assert launch.store_variables(Said(), mine) == {"PI_CODING_AGENT_DIR": b"/pi"}
    assert launch.blanks(launch_of("codex"), mine) == ("XDG_DATA_HOME", "CODEX_HOME")
    assert launch.blanks(launch_of("pi"), mine) == ("XDG_DATA_HOME",)


@pytest.mark.parametrize(("named", "lies"), [("../s", "work/../s"), ("/s", "/s")])
def test_folder_in_the_arguments_overrules_the_variable(tmp_path: Path, named: str, lies: str) -> None:
    mine = client(tmp_path, PI_CODING_AGENT_SESSION_DIR="/elsewhere", CODEX_HOME="/codex")
    said = launch_of("pi").read(("--session-dir", named))
    variables = launch.store_variables(said, mine)
    assert variables["PI_CODING_AGENT_SESSION_DIR"] == os.path.join(os.fsencode(tmp_path), lies.encode())
    assert variables["CODEX_HOME"] == b"/codex"


# ---------------------------------------------------------------------------- programs


def program(folder: Path, name: str, script: str = "exit 0", mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(mode)
    return path


def test_program_is_found_in_the_clients_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "daemon", "codex").parent))
    mine = program(tmp_path / "mine", "codex")
    program(tmp_path / "later", "codex")
    found = launch.program(
        launch_of("codex"), client(tmp_path, "/nowhere", str(tmp_path / "mine"), str(tmp_path / "later"))
    )
    assert found == os.fsencode(mine)


def test_what_cannot_be_executed_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "a", "pi", mode=0o644)
    (tmp_path / "b" / "pi").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "pi").symlink_to("gone")
    (tmp_path / "d").write_text("no folder")
    os.mkfifo(tmp_path / "c" / "fifo")
    real = program(tmp_path / "e", "pi")
    folders = [str(tmp_path / letter) for letter in "abcde"]
    assert launch.program(launch_of("pi"), client(tmp_path, *folders)) == os.fsencode(real)
    with pytest.raises(NoProgram):
        launch.program(launch_of("pi"), client(tmp_path, *folders[:-1]))


def test_link_stays_a_link(tmp_path: Path) -> None:
    """Some programs ask by which name they were called."""
    program(tmp_path / "real", "busybox")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pi").symlink_to("../real/busybox")
    found = launch.program(launch_of("pi"), client(tmp_path, str(tmp_path / "bin")))
    assert found == os.fsencode(tmp_path / "bin" / "pi")


@pytest.mark.parametrize("entry", ["bin", "./bin", ""])
def test_relative_path_entries_are_the_clients(tmp_path: Path, entry: str) -> None:
    mine = client(tmp_path, "/nowhere", entry)
    program(tmp_path / "work" / entry, "pi")
    found = launch.program(launch_of("pi"), mine)
    assert os.path.isabs(found)
    assert os.path.samefile(found, tmp_path / "work" / entry / "pi")


def test_client_without_a_path_has_the_systems(tmp_path: Path) -> None:
    shell = replace(launch_of("pi"), executables=("sh",))
    assert launch.program(shell, client(tmp_path)).endswith(b"/sh")


def test_better_name_goes_before_a_better_folder(tmp_path: Path) -> None:
    program(tmp_path / "first", "second-best")
    best = program(tmp_path / "last", "best")
    own = replace(launch_of("pi"), executables=("best", "second-best"))
    mine = client(tmp_path, str(tmp_path / "first"), str(tmp_path / "last"))
    assert launch.program(own, mine) == os.fsencode(best)


@pytest.mark.parametrize("named", ["{tmp}/own/claude-next", "../own/claude-next", "claude-next"])
def test_person_may_name_the_program(tmp_path: Path, named: str) -> None:
    own = program(tmp_path / "own", "claude-next")
    mine = client(tmp_path, str(tmp_path / "own"))
    found = launch.program(launch_of("claude"), mine, named.format(tmp=tmp_path).encode())
    assert os.path.samefile(found, own)
    assert os.path.isabs(found)


def test_name_of_any_bytes_is_found(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/\xff bin"
    os.mkdir(folder)
    with open(folder + b"/pi\xfe", "w") as file:
        file.write("#!/bin/sh\n")
    os.chmod(folder + b"/pi\xfe", 0o755)
    mine = replace(client(tmp_path), path=folder)
    assert launch.program(launch_of("pi"), mine, b"pi\xfe") == folder + b"/pi\xfe"


def test_missing_program_is_told_with_its_name_and_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(NoProgram) as caught:
        launch.program(launch_of("claude"), client(tmp_path, "/one", "/two"))
    assert "'claude'" in str(caught.value)
    assert "/one:/two" in str(caught.value)
    assert caught.value.exit_status == 69
    with pytest.raises(NoProgram, match="'opus'"):
        launch.program(launch_of("claude"), client(tmp_path, "/one"), b"opus")


@pytest.mark.parametrize(
    ("named", "why"),
    [
        (b"./gone", "No such file"),
        (b"./", "not a file"),
        (b"./plain", "may not be executed"),
        (b"/a\0b", "NUL"),
        (b"./plain/x", "Not a directory"),
    ],
)
def test_named_program_that_cannot_be_started_is_told_why(tmp_path: Path, named: bytes, why: str) -> None:
    mine = client(tmp_path)
    program(tmp_path / "work", "plain", mode=0o644)
    with pytest.raises(NoProgram, match=why):
        launch.program(launch_of("claude"), mine, named)


def test_long_path_and_odd_signs_do_not_flood_the_message(tmp_path: Path) -> None:
    mine = replace(client(tmp_path), path=b"/\x1b[31m\xff" + b"/very/long" * 2000)
    with pytest.raises(NoProgram) as caught:
        launch.program(launch_of("claude"), mine, b"x\x1b[1m")
    assert len(str(caught.value)) < 600
    assert str(caught.value).isprintable()


def test_installed_harnesses_are_those_whose_program_is_there(tmp_path: Path) -> None:
    program(tmp_path / "bin", "claude")
    program(tmp_path / "bin", "omp")
    program(tmp_path / "bin", "codex", mode=0o600)
    mine = client(tmp_path, str(tmp_path / "bin"))
    assert launch.installed(registry.adapters().values(), mine) == {"claude", "omp"}
    assert launch.installed([replace(adapter("claude"), launch=None)], mine) == frozenset()


# ------------------------------------------------------------------------------ probes

WORDS = ("--session-id", "--approve")
HELP = 'echo "$@" >> "$HOME/asked"; echo "  --session-id <id>  the id"; echo "--approver, --no-approve" >&2'


def asked(tmp_path: Path) -> int:
    """How often the program was started."""
    path = tmp_path / "asked"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def probes(tmp_path: Path) -> Probes:
    return Probes(os.fsencode(tmp_path / "programs.json"))


def test_words_that_the_help_prints_are_known(tmp_path: Path, probes: Probes) -> None:
    path = os.fsencode(program(tmp_path / "bin", "pi", HELP))
    assert probes.known(path, WORDS, client(tmp_path)) == {"--session-id"}
    assert (tmp_path / "asked").read_text() == "--help\n"


def test_coloured_words_are_words(tmp_path: Path, probes: Probes) -> None:
    path = os.fsencode(program(tmp_path / "bin", "pi", r"printf '\033[1m--approve\033[0m,\n'"))
    assert probes.known(path, WORDS, client(tmp_path)) == {"--approve"}


def test_version_is_asked_once(tmp_path: Path, probes: Probes) -> None:
    path = program(tmp_path / "bin", "pi", HELP)
    (tmp_path / "bin" / "link").symlink_to("pi")
    mine = client(tmp_path)
    for name in ("pi", "pi", "link"):
        assert probes.known(os.fsencode(path.with_name(name)), WORDS, mine) == {"--session-id"}
    assert probes.known(os.fsencode(path), WORDS[:1], mine) == {"--session-id"}
    assert asked(tmp_path) == 1


def test_answer_outlives_the_daemon(tmp_path: Path, probes: Probes) -> None:
    path = os.fsencode(program(tmp_path / "bin", "pi", HELP))
    probes.known(path, WORDS, client(tmp_path))
    again = Probes(os.fsencode(tmp_path / "programs.json"))
    assert again.known(path, WORDS, client(tmp_path)) == {"--session-id"}
    assert asked(tmp_path) == 1
    assert stat.S_IMODE((tmp_path / "programs.json").stat().st_mode) == 0o600


def test_other_version_is_asked_anew(tmp_path: Path, probes: Probes) -> None:
    path = program(tmp_path / "bin", "pi", HELP)
    probes.known(os.fsencode(path), WORDS, client(tmp_path))
    program(tmp_path / "bin", "pi", "echo --approve")
    assert probes.known(os.fsencode(path), WORDS, client(tmp_path)) == {"--approve"}


def test_word_that_was_never_asked_for_is_asked_for(tmp_path: Path, probes: Probes) -> None:
    path = os.fsencode(program(tmp_path / "bin", "pi", HELP))
    assert probes.known(path, ("--approve",), client(tmp_path)) == frozenset()
    assert probes.known(path, WORDS, client(tmp_path)) == {"--session-id"}


def test_nothing_is_started_for_no_words(tmp_path: Path, probes: Probes) -> None:
    path = os.fsencode(program(tmp_path / "bin", "pi", HELP))
    assert probes.known(path, (), client(tmp_path)) == frozenset()
    assert asked(tmp_path) == 0


@pytest.mark.parametrize(
    "script",
    ["echo --session-id; exit 3", "exit 0", "kill -9 $$", "while :; do echo --session-id; done"],
)
def test_program_that_fails_knows_nothing_and_is_asked_again_later(
    tmp_path: Path, probes: Probes, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000_000.0
    monkeypatch.setattr(launch.time, "time", lambda: now)
    path = os.fsencode(program(tmp_path / "bin", "pi", f'echo x >> "$HOME/asked"; {script}'))
    for _ in range(2):
        assert probes.known(path, WORDS, client(tmp_path)) == frozenset()
    assert asked(tmp_path) == 1
    now += launch.DOUBTFUL_FOR_S
    assert probes.known(path, WORDS, client(tmp_path)) == frozenset()
    assert asked(tmp_path) == 2


def is_soon_gone(pid: int) -> bool:
    """Whether it is ended; the system may need a moment for that."""
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        os.sched_yield()
    return not is_alive(pid)


def test_hanging_program_is_ended_with_what_it_started(
    tmp_path: Path, probes: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "PROBE_S", 0.3)
    script = 'echo --session-id; sleep 600 & echo $! $$ > "$HOME/pids"; trap "" TERM; wait'
    path = os.fsencode(program(tmp_path / "bin", "pi", script))
    assert probes.known(path, WORDS, client(tmp_path)) == frozenset()
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        assert is_soon_gone(pid)


def test_what_a_program_leaves_behind_is_ended(tmp_path: Path, probes: Probes) -> None:
    script = 'sleep 600 >/dev/null 2>&1 & echo $! > "$HOME/pids"; echo --approve'
    path = os.fsencode(program(tmp_path / "bin", "pi", script))
    assert probes.known(path, WORDS, client(tmp_path)) == {"--approve"}
    assert is_soon_gone(int((tmp_path / "pids").read_text()))


def test_program_is_asked_in_the_clients_environment(
    tmp_path: Path, probes: Probes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAEMON_SECRET", "x")
    script = 'env > "$HOME/env"; pwd >> "$HOME/env"; cat; echo --approve'
    path = os.fsencode(program(tmp_path / "bin", "pi", script))
    mine = client(tmp_path, "/usr/bin", "/bin", PI_CODING_AGENT_DIR="/pi", CODEX_HOME="")
    assert probes.known(path, WORDS, mine) == {"--approve"}
    lines = (tmp_path / "env").read_text().splitlines()
    assert {f"HOME={tmp_path}", "PATH=/usr/bin:/bin", "LC_ALL=C", "PI_CODING_AGENT_DIR=/pi"} <= set(lines)
    assert lines[-1] == str(tmp_path / "work")
    assert not any(line.startswith(("DAEMON_SECRET", "CODEX_HOME")) for line in lines)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"x": 1}', b"\xff" * 100])
def test_damaged_notes_cost_one_question(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "programs.json").write_bytes(damage)
    path = os.fsencode(program(tmp_path / "bin", "pi", HELP))
    probes = Probes(os.fsencode(tmp_path / "programs.json"))
    for _ in range(2):
        assert probes.known(path, WORDS, client(tmp_path)) == {"--session-id"}
    assert asked(tmp_path) == 1


def test_notes_that_cannot_be_kept_change_no_answer(tmp_path: Path) -> None:
    probes = Probes(os.fsencode(tmp_path / "no" / "folder" / "programs.json"))
    path = os.fsencode(program(tmp_path / "bin", "pi", HELP))
    for _ in range(2):
        assert probes.known(path, WORDS, client(tmp_path)) == {"--session-id"}
    assert asked(tmp_path) == 1


def test_notes_stay_small(tmp_path: Path, probes: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "MAX_KNOWN", 2)
    for name in ("a", "b", "c"):
        probes.known(os.fsencode(program(tmp_path / "bin", name, HELP)), WORDS, client(tmp_path))
    again = Probes(os.fsencode(tmp_path / "programs.json"))
    again.known(os.fsencode(tmp_path / "bin" / "c"), WORDS, client(tmp_path))
    assert asked(tmp_path) == 3
    again.known(os.fsencode(tmp_path / "bin" / "a"), WORDS, client(tmp_path))
    assert asked(tmp_path) == 4


@pytest.mark.parametrize("path", [b"/nowhere/pi", b"/a\0b", b"/tmp"])
def test_program_that_is_not_there_knows_nothing(tmp_path: Path, probes: Probes, path: bytes) -> None:
    assert probes.known(path, WORDS, client(tmp_path)) == frozenset()


def test_vanished_directory_of_the_client_knows_nothing(tmp_path: Path, probes: Probes) -> None:
    path = os.fsencode(program(tmp_path / "bin", "pi", HELP))
    gone = replace(client(tmp_path), cwd=os.fsencode(tmp_path / "gone"))
    assert probes.known(path, WORDS, gone) == frozenset()


def test_launches_of_the_registry_are_complete() -> None:
    for name in ("claude", "codex", "opencode", "pi", "omp"):
        own = launch_of(name)
        assert isinstance(own, Launch)
        assert own.executables == (name,)
