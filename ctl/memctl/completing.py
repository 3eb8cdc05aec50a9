"""What may stand at a place of a memctl command line: for the shells' completion.

The parsers of the commands say it, so nothing is listed twice. Names of workstreams, sessions, topics and
handoffs come from the daemon if one runs: none is ever started for this, and whatever is wrong there is
nothing to offer.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from memctl import cli
from memd.errors import MemdError

ANSWER_S = 1.0
MAX_SESSIONS = 30


class Word(NamedTuple):
    """One word that may stand there."""

    text: str
    says: str = ""


class Answer(NamedTuple):
    """kind: `words`, or that files or directories are meant, which a shell knows better"""

    kind: str = "words"
    words: Sequence[Word] = ()


FILES = Answer("files")
DIRECTORIES = Answer("directories")


def answer(before: Sequence[str], current: str) -> Answer:
    """What may stand in place of `current`, behind `before` (without `memctl` itself)."""
    if not before:
        return _words([Word(name, says) for _, group in cli.GROUPS for name, _, says in group], current)
    command, *rest = before
    if command == "help":
        return _words([Word("--all"), *map(Word, cli.commands())], current) if not rest else Answer()
    module = cli.module_of(command)
    if module is None:
        return Answer()
    split = getattr(importlib.import_module(f"memctl.commands.{module}"), "split", None)
    if split is not None and split(before)[1]:
        return FILES  # the agent's own words
    parser = _sub(cli.parser_of(command), command)
    found = _Place(command, parser).look(rest, current)
    if split is not None and command == "run" and found.kind == "words" and not current.startswith("-"):
        is_open = split([*before, "x"])[1] == ["x"]  # else it is an option's value
        return _words(_harnesses(), current) if is_open else found
    return found


class _Place:
    """Where one stands in the words of a command."""

    def __init__(self, command: str, parser: argparse.ArgumentParser) -> None:
        self.command = command
        self.parser = parser
        self.given: dict[str, str] = {}  # values of options before

    def look(self, words: Sequence[str], current: str) -> Answer:
        at, positional, is_plain = 0, 0, False
        while at < len(words):
            word = words[at]
            at += 1
            if is_plain or not word.startswith("-") or word == "-":
                action = self._positional(positional)
                if isinstance(action, argparse._SubParsersAction):
                    self.parser = _sub(self.parser, word)
                    positional = 0
                else:
                    positional += 1
                continue
            if word == "--":
                is_plain = True
                continue
            name, _, value = word.partition("=")
            option = self.parser._option_string_actions.get(name)
            if option is None or option.nargs == 0 or "=" in word:
                if option is not None:
                    self.given[option.dest] = value
                continue
            if at == len(words):
                return self._values(option, current)
            self.given[option.dest] = words[at]
            at += 1
        if current.startswith("-") and not is_plain:
            return self._options(current)
        action = self._positional(positional)
        return Answer() if action is None else self._values(action, current)

    def _positional(self, number: int) -> argparse.Action | None:
        """The one of that number; the last one when it takes any number of words."""
        actions = [action for action in self.parser._actions if not action.option_strings]
        if number < len(actions):
            return actions[number]
        return actions[-1] if actions and actions[-1].nargs in ("*", "+") else None

    def _options(self, current: str) -> Answer:
        name, equals, value = current.partition("=")
        if equals:
            option = self.parser._option_string_actions.get(name)
            return Answer() if option is None or option.nargs == 0 else self._values(option, value)
        words = [
            Word(option, (action.help or "").replace("%%", "%"))
            for option, action in self.parser._option_string_actions.items()
            if action.help != argparse.SUPPRESS and (option.startswith("--") or len(current) == 1)
        ]
        return _words(words, current)

    def _values(self, action: argparse.Action, current: str) -> Answer:
        if isinstance(action, argparse._SubParsersAction):
            says = {one.dest: one.help or "" for one in action._choices_actions}
            return _words([Word(name, says.get(name, "")) for name in action.choices], current)
        if action.choices is not None:
            return _words([Word(str(choice)) for choice in action.choices], current)
        if action.metavar in ("DIR", "PATH", "CONFIG_HOME") or action.dest == "path":
            return FILES if action.dest == "executable" else DIRECTORIES
        for (command, dest), give in _GIVEN.items():
            if dest == action.dest and command in ("", self.command):
                try:
                    return FILES if give is None else _words(give(self), current)
                except (MemdError, OSError, ValueError, KeyError, TypeError):
                    return Answer()
        return Answer()


def _sub(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and name in action.choices:
            found = action.choices[name]
            assert isinstance(found, argparse.ArgumentParser)
            return found
    return parser


def _words(words: Sequence[Word], current: str) -> Answer:
    return Answer("words", [word for word in words if word.text.startswith(current)])


# ------------------------------------------------------------------------------------- who knows


def _harnesses(place: _Place | None = None) -> list[Word]:
    from memd.harness.registry import adapters

    return [Word(name, adapter.title) for name, adapter in adapters().items()]


def _asked(place: _Place, action: str, **fields: object) -> list[dict[str, object]]:
    """The rows of an answer from the daemon, for the scope that the words before name."""
    import json

    from memctl import client, work
    from memd import protocol, protocol_work

    options = argparse.Namespace(
        workspace=place.given.get("workspace", ""), project=place.given.get("project", "")
    )
    made = getattr(protocol_work, action)(**fields, **work.asking(options))
    text = client.ask_text(protocol.Work(action=made, form="json"), start=False, timeout_s=ANSWER_S)[1]
    found = json.loads(text)
    return found if isinstance(found, list) else []


def _workstreams(place: _Place) -> list[Word]:
    rows = _asked(place, "Workstreams", limit=100)
    return [Word(str(row["name"]), "current" if row["current"] else "") for row in rows]


def _workstream_ids(place: _Place) -> list[Word]:
    return [
        Word(str(row["workstream_id"]), str(row["name"])) for row in _asked(place, "Workstreams", limit=100)
    ]


def _handoffs(place: _Place) -> list[Word]:
    return [Word(str(row["handoff_id"]), str(row["summary"])) for row in _asked(place, "ListHandoffs")]


def _workspaces(place: _Place) -> list[Word]:
    return [Word(name) for name in dict.fromkeys(str(row["workspace"]) for row in _asked(place, "Projects"))]


def _projects(place: _Place) -> list[Word]:
    return [Word(name) for name in dict.fromkeys(str(row["project"]) for row in _asked(place, "Projects"))]


def _sessions(place: _Place) -> list[Word]:
    import json

    from memctl import client
    from memd import protocol

    request = protocol.Sessions(
        form="json", harness=place.given.get("harness", ""), limit=MAX_SESSIONS, orphaned=False
    )
    rows = json.loads(client.ask_text(request, start=False, timeout_s=ANSWER_S)[1])
    return [Word(str(row["id"]), f"{row['harness']} {row['title']}".strip()) for row in rows]


def _topics(place: _Place) -> list[Word]:
    from memctl import client
    from memd import protocol
    from memd import protocol_memory as asked

    reply = client.ask(
        protocol.Memory(action=asked.ListTopics()), protocol.MemoryReply, start=False, timeout_s=ANSWER_S
    )
    found = reply.result
    return [Word(one.name, one.summary) for one in found.topics] if isinstance(found, asked.Topics) else []


_GIVEN: dict[tuple[str, str], Callable[[_Place], Sequence[Word]] | None] = {
    ("", "harness"): _harnesses,
    ("install-hooks", "agent"): _harnesses,
    ("uninstall-hooks", "agent"): _harnesses,
    ("install-mcp", "agent"): _harnesses,
    ("uninstall-mcp", "agent"): _harnesses,
    ("handoff", "to"): _harnesses,
    ("handoff", "file"): None,
    ("handoff", "files"): None,
    ("handoff", "id"): _handoffs,
    ("", "workstream"): _workstreams,
    ("", "workstream_id"): _workstream_ids,
    ("rename-workstream", "old"): _workstreams,
    ("rename-project", "old"): _projects,
    ("move-project", "old"): _projects,
    ("move-project", "new"): _workspaces,
    ("", "workspace"): _workspaces,
    ("", "project"): _projects,
    ("", "session"): _sessions,
    ("memory", "topic"): _topics,
    ("memory", "files"): None,
}
"""Who knows the values of an option or word, by command (empty: any) and its name; None: they are files."""
