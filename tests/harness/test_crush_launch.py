"""How Crush is started: selectors in front, and a private configuration that names the packet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from memd.errors import ConfigError, MemdError
from memd.harness.crush_launch import LAUNCH, PACKET
from memd.harness.crush_store import MOVED, NAMED
from memd.harness.launching import Argv, Delivered, Doorway, Intent, Said
from memd.workstream.launch import Client, chosen, store_variables
from support_launch import line, said, yolo


@pytest.mark.parametrize(
    ("typed", "started"),
    [
        ("", "--session LINKED"),
        ("run 'fix it'", "--session LINKED run 'fix it'"),
        ("--debug run go", "--session LINKED --debug run go"),
        ("--data-dir /d", "--session LINKED --data-dir /d"),
        ("-- go", "--session LINKED -- go"),
    ],
)
def test_the_linked_session_is_named_in_front(typed: str, started: str) -> None:
    assert line("crush", typed) == started
    assert line("crush", typed, session="") == typed


@pytest.mark.parametrize(
    "typed", ["--session x", "--session=x", "-s x", "-sx", "--continue", "-C", "run -C go"]
)
def test_a_person_s_own_selector_stays_alone(typed: str) -> None:
    assert said("crush", typed).has_selector
    assert line("crush", typed).replace("'", "") == typed


@pytest.mark.parametrize(
    "typed",
    ["models", "login", "logs -f", "projects", "stats", "session list", "update-providers", "schema",
     "help", "completion bash", "dirs", "server", "--help", "-h", "run -h", "--version", "-v"],
)  # fmt: skip
def test_utilities_pass_as_they_are(typed: str) -> None:
    assert said("crush", typed).is_passing
    assert yolo("crush", typed, session="x") == typed


def test_a_run_without_a_screen_asks_nothing_and_is_a_session_all_the_same() -> None:
    assert said("crush", "run -v go") == Said(is_batch=True)
    assert said("crush", "'run' models").is_batch
    assert not said("crush", "fix run").is_batch


@pytest.mark.parametrize(
    ("typed", "started"),
    [
        ("", "--yolo"),
        ("-d", "--yolo -d"),
        ("--yolo", "--yolo"),
        ("-y", "-y"),
        ("-dy", "-dy"),
        ("run go", "run go"),  # it asks for no permissions, and has no such option
    ],
)
def test_yolo_is_said_once(typed: str, started: str) -> None:
    assert yolo("crush", typed) == started


def test_yolo_follows_the_selector() -> None:
    assert yolo("crush", "-d", session="0b7c3d1e-0000-4000-8000-000000000001").startswith("--session 0b7c")
    assert yolo("crush", "", session="s-1") == "--session s-1 --yolo"


def test_folders_that_arguments_name_are_told() -> None:
    client = Client(cwd=b"/w", home=b"/h", path=b"", variables={"CRUSH_GLOBAL_DATA": b" "})
    for typed, data in (
        ("-D data", b"/w/data"),
        ("--data-dir=/d", b"/d"),
        ("-c sub -D data", b"/w/sub/data"),
    ):
        assert store_variables(said("crush", typed), client)[NAMED] == data
    assert store_variables(said("crush", "--cwd sub"), client) == {MOVED: b"/w/sub"}
    assert store_variables(said("crush", ""), client) == {}


def test_it_is_found_by_its_name_and_may_be_started_unasked() -> None:
    assert chosen("Crush")[0].name == "crush"
    assert LAUNCH.executables == ("crush",)
    assert LAUNCH.is_pooled


# ------------------------------------------------------------------------------------- the way in

CONFIG = "/h/.config/crush"
FOLDER = "/state/runs/r1"


def told(files: Mapping[str, str], **variables: bytes) -> Delivered:
    def read(path: bytes) -> bytes | None:
        content = files.get(path.decode("utf-8", "replace"))
        return None if content is None else content.encode()

    doorway = Doorway(
        said=Said(),
        intent=Intent(),
        cwd=b"/w",
        home=b"/h",
        variables=variables,
        folder=FOLDER.encode(),
        read=read,
    )
    assert LAUNCH.deliver is not None
    return LAUNCH.deliver("PACKET é", Argv(arguments=("-d",), set={"A": "b"}), doorway)


def paths(made: Delivered) -> Any:
    return json.loads(made.files["crush.json"])["options"]["global_context_paths"]


def test_the_packet_is_the_last_of_the_global_context_files() -> None:
    mine = {"options": {"global_context_paths": ["~/notes.md"], "debug": True}, "models": {"b": 1, "a": 2.50}}
    made = told({f"{CONFIG}/crush.json": json.dumps(mine)})
    assert made.is_told
    assert made.argv.arguments == ("-d",)
    assert made.argv.set == {"A": "b", "CRUSH_GLOBAL_CONFIG": FOLDER}
    assert made.files[PACKET] == "PACKET é".encode()
    assert paths(made) == ["~/notes.md", f"{FOLDER}/{PACKET}"]
    copy = json.loads(made.files["crush.json"])
    assert (copy["models"], copy["options"]["debug"]) == (mine["models"], True)
    assert list(copy["models"]) == ["b", "a"]


@pytest.mark.parametrize(
    "content", [None, "", " \n", "null", "{}", '{"options":null}',
                '{"options":{"global_context_paths":null}}', '{"options":{"global_context_paths":[]}}'],
)  # fmt: skip
def test_an_empty_list_stands_for_crush_s_own_files(content: str | None) -> None:
    made = told({} if content is None else {f"{CONFIG}/crush.json": content})
    assert paths(made) == [f"{CONFIG}/CRUSH.md", "/h/.config/AGENTS.md", f"{FOLDER}/{PACKET}"]


@pytest.mark.parametrize(
    "content", ["[]", "7", '"text"', "{", '{"options":[]}', '{"options":{"global_context_paths":"x"}}',
                '{"options":{"global_context_paths":[1]}}', "[" * 100_000],
)  # fmt: skip
def test_a_configuration_that_cannot_be_copied_stops_the_launch(content: str) -> None:
    with pytest.raises(ConfigError, match=r"crush\.json") as refused:
        told({f"{CONFIG}/crush.json": content})
    assert isinstance(refused.value, MemdError)
    assert refused.value.remedy


def test_the_folder_of_the_variables_is_the_one_that_is_copied() -> None:
    made = told({"/x/crush/crush.json": '{"a":1}'}, XDG_CONFIG_HOME=b"/x")
    assert json.loads(made.files["crush.json"])["a"] == 1
    made = told({"/c/crush.json": '{"a":2}'}, XDG_CONFIG_HOME=b"/x", CRUSH_GLOBAL_CONFIG=b"/c")
    assert json.loads(made.files["crush.json"])["a"] == 2
    assert paths(made)[0] == "/c/CRUSH.md"


def test_a_crushrc_is_run_where_it_lies_and_names_the_packet_too() -> None:
    assert "crushrc" not in told({}).files
    made = told({"/it's/crushrc": "model x"}, CRUSH_GLOBAL_CONFIG=b"/it's")
    assert made.files["crushrc"].decode().splitlines() == [
        "cd '/it'\\''s'",
        ". ./crushrc",
        f"option global-context-path '{FOLDER}/{PACKET}'",
    ]


def test_a_path_that_json_cannot_hold_leaves_the_text_due() -> None:
    made = told({}, CRUSH_GLOBAL_CONFIG=b"/caf\xe9")
    assert not made.is_told
    assert not made.files
    assert "UTF-8" in made.argv.notices[0]
