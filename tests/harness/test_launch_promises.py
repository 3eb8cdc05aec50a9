"""What holds for every harness that memd starts, whatever a person types.

Conformance of adapters 11, 17, 52, of workstreams 60.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.harness import registry
from memd.harness.launching import Argv, Intent, Said
from memd.workstream import launch
from support_launch import LINKED, NEW, adapter, launch_of

OURS = {
    "claude": {"--resume", "--session-id", "--dangerously-skip-permissions"},
    "codex": {"resume", "--dangerously-bypass-approvals-and-sandbox"},
    "opencode": {"--session", "--auto"},
    "pi": {"--session", "--session-id", "--approve"},
    "omp": {f"--resume={LINKED}", "--auto-approve"},
    "kimi": {"--session", "--yolo"},
    "command-code": {"--session", "--yolo"},
    "grok": {"--resume", "--session-id", "--yolo"},
    "crush": {"--session", "--yolo"},
    "kiro": {"--resume-id", "--trust-all-tools", "--v3"},
    "antigravity": {"--conversation", "--dangerously-skip-permissions"},
}
NAMES = tuple(OURS)

WORDS = [
    *("--", "-", "", "--help", "-v", "-p", "--print", "-c", "--continue", "-r", "--resume", "--resume=x"),
    *("--session", "-s", "--session-id", "--fork", "--fork-session", "--session-dir", "--model", "-m"),
    *("--no-session", "--approve", "--auto", "--auto-approve", "--dir", "-i", "--image", "--allowedTools"),
    *("-a", "--ephemeral", "--last", "exec", "resume", "fork", "run", "mcp", "list", "update", "go", "."),
    *("-pc", "-rX", "--odd", "--odd=1", LINKED, NEW, "--dangerously-skip-permissions", "\udcff", "é"),
]
native_arguments = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=10)
intents = st.builds(
    Intent,
    session=st.sampled_from(["", LINKED]),
    new_id=st.just(NEW),
    is_yolo=st.booleans(),
    supports=st.frozensets(st.sampled_from(["--session-id", "--approve", "--help", "--auto-approve"])),
    cwd=st.sampled_from(["", "/home/dev/app"]),
)
harnesses = st.sampled_from(NAMES)


def both(name: str, native: Sequence[str], intent: Intent) -> tuple[Said, Argv]:
    said = launch_of(name).read(native)
    return said, launch.compose(adapter(name), said, native, intent)


def halves(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What stands before the `--`, and the rest."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return list(arguments[:end]), list(arguments[end:])


def is_within(few: Sequence[str], many: Sequence[str]) -> bool:
    rest = iter(many)
    return all(any(word == other for other in rest) for word in few)


@given(harnesses, native_arguments, intents)
def test_what_was_typed_keeps_its_order_and_only_ours_is_added(
    name: str, native: list[str], intent: Intent
) -> None:
    _, argv = both(name, native, intent)
    typed, _ = halves(native)
    before, _ = halves(argv.arguments)
    assert is_within(typed, before)
    added = Counter(before) - Counter(typed)
    assert set(added) <= OURS[name] | {LINKED, NEW}
    assert added.total() <= 5


@given(harnesses, native_arguments, intents)
def test_nothing_lands_behind_the_terminator(name: str, native: list[str], intent: Intent) -> None:
    _, argv = both(name, native, intent)
    assert halves(argv.arguments)[1] == halves(native)[1]


@given(harnesses, native_arguments, intents)
def test_id_is_in_the_arguments_exactly_when_the_child_will_be_on_it(
    name: str, native: list[str], intent: Intent
) -> None:
    said, argv = both(name, native, intent)
    added = " ".join((Counter(argv.arguments) - Counter(native)).elements())
    if said.is_passing or said.has_selector:
        assert LINKED not in added
        assert NEW not in added
    else:
        assert (argv.session == "") == (LINKED not in added and NEW not in added)
        assert argv.session in ("", LINKED, NEW)
        assert argv.session in added


@given(harnesses, native_arguments, intents)
def test_utility_is_started_as_it_was_typed(name: str, native: list[str], intent: Intent) -> None:
    said, argv = both(name, native, intent)
    if said.is_passing:
        assert argv.arguments == tuple(native)


@given(harnesses, native_arguments)
def test_what_a_launch_adds_is_understood_as_what_was_meant(name: str, native: list[str]) -> None:
    said, argv = both(name, native, Intent(session=LINKED, new_id=NEW, cwd="/home/dev/app"))
    if said.is_passing or said.has_selector or not argv.session:
        return
    again = launch_of(name).read(argv.arguments)
    assert again.has_selector
    assert not again.is_passing
    assert again.session == argv.session


@pytest.mark.parametrize("name", NAMES)
def test_unusable_id_never_enters_the_arguments(name: str) -> None:
    for bad in ("--resume", "-x", "../../etc", "a\nb", "x" * 600, "."):
        argv = both(name, ("go",), Intent(session=bad, new_id=NEW, supports=frozenset({"--session-id"})))[1]
        assert bad not in " ".join(argv.arguments).split(" ")
        assert argv.session in ("", NEW)
        assert "no command line may hold" in argv.notices[0]


@pytest.mark.parametrize(
    "name", [name for name, one in registry.adapters().items() if one.launch is not None]
)
def test_plain_start_of_every_harness_is_a_session(name: str) -> None:
    said = launch_of(name).read(())
    assert not said.is_passing
    assert not said.has_selector
    assert not said.is_batch
    assert launch_of(name).executables
    assert set(launch_of(name).yolo_probes) <= set(launch_of(name).probes)
