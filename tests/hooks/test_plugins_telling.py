"""Plug-ins and extensions: what they ask memd, and how its answer reaches the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from hooks.stub import text
from hooks.support_plugins import FILES, HOOKS, KINDS, Desk, needs_node, prompt, told

pytestmark = needs_node

RUN = "0b0e6f0e-2f5a-4d0e-9d5e-6f7b1c2d3e4f"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_part_that_asks_memd_is_the_same_in_every_file() -> None:
    parts = set()
    for name in set(FILES.values()):
        source = (HOOKS / name).read_text()
        start = source.index(
            "// ------------------------------------------------------------------ asking memd"
        )
        parts.add(source[start : source.index("// ------", start + 80)])
    assert len(parts) == 1


def test_every_file_needs_nothing_but_nodes_own_modules() -> None:
    for name in set(FILES.values()):
        lines = [line for line in (HOOKS / name).read_text().splitlines() if line.startswith("import ")]
        assert lines
        assert all('"node:' in line for line in lines), lines


@pytest.mark.parametrize("kind", KINDS)
def test_what_memd_has_to_tell_is_put_before_the_model_once_per_session(desk: Desk, kind: str) -> None:
    steps = [prompt(kind, "ses_1"), prompt(kind, "ses_2"), prompt(kind, "ses_1")]
    with desk.stub() as stub:
        played = desk.play(kind, *steps)
    again = [] if kind != "opencode2" else ["packet for ses_1"]  # the second generation keeps nothing
    assert [told(kind, result) for result in played.results] == [
        ["packet for ses_1"],
        ["packet for ses_2"],
        again,
    ]
    asked = [message.stdin["session_id"] for message in stub.messages if message.event == "context"]
    assert asked == ["ses_1", "ses_2"]
    assert played.said == []


@pytest.mark.parametrize("kind", KINDS)
def test_question_names_the_agent_the_run_and_the_session(desk: Desk, kind: str) -> None:
    with desk.stub() as stub:
        process = desk.start(kind, [prompt(kind, "ses_1")], MEMD_RUN_ID=RUN)
        process.communicate(timeout=30)
    asked = next(message for message in stub.messages if message.event == "context")
    assert asked.harness == kind.removesuffix("2")
    assert asked.pid == process.pid
    assert asked.cwd == asked.stdin["cwd"] == str(desk.home)
    assert asked.stdin["session_id"] == "ses_1"
    # the service of OpenCode's second generation may have been started by another run
    assert asked.run == ("" if kind == "opencode2" else RUN)
    if kind in ("pi", "omp"):
        assert asked.stdin["transcript_path"] == "/sessions/ses_1.jsonl"


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_tell_changes_nothing(desk: Desk, kind: str) -> None:
    with desk.stub(lambda message: text("")) as stub:
        played = desk.play(kind, prompt(kind, "ses_1"), prompt(kind, "ses_1"))
    assert [told(kind, result) for result in played.results] == [[], []]
    assert stub.events().count("context") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_long_text_of_many_bytes_arrives_whole(desk: Desk, kind: str) -> None:
    long = "<!-- memd:workstream-packet:v1 -->\n" + "ä€🙂\n" * 50_000
    with desk.stub(lambda message: text(long if message.event == "context" else "")):
        played = desk.play(kind, prompt(kind, "ses_1"))
    assert told(kind, played.results[0]) == [long]


def test_text_for_opencode_stands_before_what_was_typed_and_is_marked(desk: Desk) -> None:
    typed = [
        {"id": "prt_0123456789abKKKKKKKKKKKKKK", "type": "text", "text": "one"},
        {"id": "prt_0123456789acKKKKKKKKKKKKKK", "type": "text", "text": "two"},
    ]
    with desk.stub():
        played = desk.play("opencode", prompt("opencode", "ses_1", parts=typed))
    first, *rest = played.results[0]["parts"]
    assert rest == typed
    assert first["synthetic"] is True
    assert (first["type"], first["sessionID"], first["messageID"]) == ("text", "ses_1", "msg_1")
    assert first["id"].startswith("prt_0123456789aa")
    assert len(first["id"]) == len(typed[0]["id"])


@pytest.mark.parametrize("parts", [[], [{"type": "text", "text": "x"}], [{"id": "odd", "type": "file"}]])
def test_message_of_odd_parts_still_gets_its_text(desk: Desk, parts: list[object]) -> None:
    with desk.stub():
        played = desk.play("opencode", prompt("opencode", "ses_1", parts=parts))
    assert told("opencode", played.results[0]) == ["packet for ses_1"]


@pytest.mark.parametrize(("kind", "attribution"), [("pi", None), ("omp", "agent")])
def test_text_for_pi_and_omp_is_a_message_that_is_not_shown(
    desk: Desk, kind: str, attribution: str | None
) -> None:
    with desk.stub():
        played = desk.play(kind, prompt(kind, "ses_1"))
    (result,) = played.results[0]["results"]
    assert result["message"]["display"] is False
    assert result["message"]["customType"] == "memd"
    assert result["message"].get("attribution") == attribution


@pytest.mark.parametrize("kind", ["opencode", "opencode2"])
def test_session_of_a_sub_agent_is_told_nothing(desk: Desk, kind: str) -> None:
    with desk.stub() as stub:
        played = desk.play(kind, prompt(kind, "ses_child"))
    assert told(kind, played.results[0]) == []
    assert "context" not in stub.events()


def test_sub_agent_that_opencode_announced_is_known_as_one(desk: Desk) -> None:
    born = {"do": "session.created", "event": {"sessionID": "ses_9", "info": {"parentID": "ses_1"}}}
    idle = {"do": "session.idle", "event": {"sessionID": "ses_9"}}
    with desk.stub() as stub:
        played = desk.play_until(stub, 1, "opencode", born, prompt("opencode", "ses_9"), idle)
    assert told("opencode", played.results[1]) == []
    assert [(message.event, message.stdin["is_inner"]) for message in stub.messages] == [("activity", True)]


@pytest.mark.parametrize("session", ["ses_lost", "ses_slow"])
def test_opencode_that_does_not_say_whose_a_session_is_delays_nothing(desk: Desk, session: str) -> None:
    with desk.stub():
        played = desk.play("opencode", prompt("opencode", session))
    assert told("opencode", played.results[0]) == [f"packet for {session}"]
    assert played.results[0]["ms"] < 3000


def test_title_and_summary_requests_of_the_second_generation_are_left_alone(desk: Desk) -> None:
    steps = [
        prompt("opencode2", "ses_1", event={"kind": kind}) for kind in ("title", "compaction", "primary")
    ]
    with desk.stub():
        played = desk.play("opencode2", *steps)
    assert [told("opencode2", result) for result in played.results] == [[], [], ["packet for ses_1"]]


@pytest.mark.parametrize("kind", ["pi", "omp"])
@pytest.mark.parametrize("of", ["no file", "a sub-agent"])
def test_session_that_is_nobodys_is_not_reported(desk: Desk, kind: str, of: str) -> None:
    if kind == "pi" and of == "a sub-agent":
        about = {"session": "s", "file": None, "mode": "json"}
    else:
        about = {"session": "s", "file": None} if of == "no file" else {"session": "s"}
        about["entries"] = [{"type": "model_change"}, {"type": "session_init"}]
    names = ("session_start", "before_agent_start", "turn_end", "agent_end", "session_shutdown")
    with desk.stub() as stub:
        played = desk.play(kind, *({"do": name, **about} for name in names))
    assert stub.messages == []
    assert played.results[1]["results"] in ([None], [])


@pytest.mark.parametrize(("file", "host"), [("pi", "omp"), ("omp", "pi")])
def test_extension_does_nothing_in_the_other_program(desk: Desk, file: str, host: str) -> None:
    """Both programs may be pointed at one folder, and each loads all that is in it."""
    with desk.stub() as stub:
        played = desk.play(host, prompt(host, "s"), file=file)
    assert played.results[0]["handlers"] == 0
    assert stub.messages == []


@pytest.mark.parametrize("kind", ["pi", "omp"])
def test_start_is_reported_outside_a_run_only(desk: Desk, kind: str) -> None:
    """In a run the question for the context links the session: an answer to a start would be lost."""
    start = {"do": "session_start", "session": "s", "event": {"reason": "startup"}}
    with desk.stub() as stub:
        desk.play_until(stub, 1, kind, start)
        assert stub.events() == ["start"]
        desk.play_until(stub, 3, kind, start, prompt(kind, "s"), MEMD_RUN_ID=RUN)
    assert stub.events()[1:] == ["context", "prompt"]


def test_opencode_reports_a_start_outside_a_run_only(desk: Desk) -> None:
    start = {"do": "session.created", "event": {"sessionID": "ses_1", "info": {"id": "ses_1"}}}
    with desk.stub() as stub:
        desk.play_until(stub, 1, "opencode", start)
        assert stub.events() == ["start"]
        desk.play_until(stub, 3, "opencode", start, prompt("opencode", "ses_1"), MEMD_RUN_ID=RUN)
    assert stub.events()[1:] == ["context", "prompt"]


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("pi", {"do": "session_start", "session": "s2", "event": {"reason": "new"}}),
        ("pi", {"do": "session_start", "session": "s2", "event": {"reason": "fork"}}),
        ("omp", {"do": "session_switch", "session": "s2", "event": {"reason": "new"}}),
        ("omp", {"do": "session_branch", "session": "s2"}),
        ("opencode", {"do": "session.created", "event": {"sessionID": "s2", "info": {"id": "s2"}}}),
    ],
)
def test_new_conversation_in_the_same_process_is_called_one(
    desk: Desk, kind: str, step: dict[str, object]
) -> None:
    with desk.stub() as stub:
        desk.play(kind, prompt(kind, "s1"), step, prompt(kind, "s2"), MEMD_RUN_ID=RUN)
    asked = [message.stdin for message in stub.messages if message.event == "context"]
    assert [(one["session_id"], one.get("reason")) for one in asked] == [("s1", None), ("s2", "clear")]


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("pi", ["turn_end", "agent_end", "session_compact", "session_shutdown"]),
        ("omp", ["turn_end", "agent_end", "session_compact", "session_shutdown"]),
        ("opencode", ["session.idle", "session.compacted", "session.deleted"]),
        ("opencode2", ["session.execution.succeeded", "session.deleted"]),
    ],
)
def test_activity_and_the_end_are_reported(desk: Desk, kind: str, steps: list[str]) -> None:
    about = {"session": "ses_1", "event": {"sessionID": "ses_1", "reason": "quit"}}
    with desk.stub() as stub:
        desk.play_until(stub, len(steps), kind, *({"do": name, **about} for name in steps))
    assert sorted(stub.events()) == ["activity"] * (len(steps) - 1) + ["end"]
    compacts = [m for m in stub.messages if m.stdin.get("reason") == "compact"]
    assert len(compacts) == (0 if kind == "opencode2" else 1)


def test_opencode_that_goes_ends_the_sessions_it_had(desk: Desk) -> None:
    with desk.stub() as stub:
        desk.play("opencode", prompt("opencode", "ses_1"), prompt("opencode", "ses_2"), {"do": "dispose"})
    ended = [message.stdin["session_id"] for message in stub.messages if message.event == "end"]
    assert ended == ["ses_1", "ses_2"]


@pytest.mark.parametrize("kind", ["pi", "omp"])
def test_reload_of_an_extension_is_no_end(desk: Desk, kind: str) -> None:
    with desk.stub() as stub:
        desk.play(kind, {"do": "session_shutdown", "session": "s", "event": {"reason": "reload"}})
        assert stub.messages == []
        desk.play(kind, {"do": "session_shutdown", "session": "s", "event": {"reason": "quit"}})
    assert stub.events() == ["end"]
