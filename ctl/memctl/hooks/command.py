"""The command that agents run for memd: put together, and recognised again whatever stands before it. Pure.

    INTERPRETER -I -S HOOK_FILE HARNESS EVENT [...] || true      quoted for sh

The hook itself always exits with 0, but Python exits with 2 when its file is gone, and with 2 a hook blocks
a prompt in Claude Code: hence the end (`|| echo ANSWER` where a harness wants an answer). It costs nothing
that can be measured.

The text must not change without need: Codex trusts a hook by a hash over it. A command is ours when it runs
a file called `memd_hook.py`, or `memctl hook`, by whatever interpreter or path. Where that is only a part of
a longer command, somebody made it by hand: it counts, and is never altered.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

import msgspec

from memd.errors import Refused

HOOK_NAME = "memd_hook.py"
FLAGS = ("-I", "-S")


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """A command of ours.

    kind  `plain`: it does nothing but run our hook. `mixed`: a part of it does; the other fields are empty
    """

    kind: Literal["plain", "mixed"]
    interpreter: str = ""
    hook_file: str = ""
    words: tuple[str, ...] = ()  # behind the hook file


def compose(interpreter: bytes, hook_file: bytes, words: Sequence[str]) -> str:
    """The command for these words behind the hook file; raises Refused for a path no settings can hold."""
    answer = words[-1] if words[-2:-1] == ("--else",) else ""
    otherwise = ("echo", answer) if answer else ("true",)
    command = shlex.join((utf8(interpreter), *FLAGS, utf8(hook_file), *words))
    return f"{command} || {shlex.join(otherwise)}"


def utf8(path: bytes) -> str:
    try:
        return path.decode("utf-8")
    except UnicodeDecodeError:
        shown = path.decode("utf-8", "backslashreplace")
        raise Refused(
            f"{shown} is not UTF-8, which the settings of agents must be",
            remedy="Give the folder another name, or set XDG_DATA_HOME to a folder with a name in UTF-8.",
        ) from None


def read(command: object) -> Own | None:
    """What a command is to us; None: somebody else's."""
    if not isinstance(command, str) or (HOOK_NAME not in command and "memctl" not in command):
        return None
    try:
        words = _words(command)
    except ValueError:  # quotes that do not close
        return Own(kind="mixed") if HOOK_NAME in command else None
    words = _without_end(words)
    plain = [word for word, is_operator in words if not is_operator]
    at = _ours(plain)
    if at is None:
        return None
    if len(plain) != len(words) or any("=" in word.partition("/")[0] for word in plain[:at]):
        return Own(kind="mixed")
    if _name(plain[at]) != HOOK_NAME:  # memctl hook HARNESS EVENT
        return Own(kind="plain", words=tuple(plain[at + 2 :]))
    before = plain[:at]
    return Own(
        kind="plain",
        interpreter=before[0] if before else "",
        hook_file=plain[at],
        words=tuple(plain[at + 1 :]),
    )


def _ours(words: Sequence[str]) -> int | None:
    """Where our hook file or `memctl hook` stands as a word of its own."""
    for at, word in enumerate(words):
        if _name(word) == HOOK_NAME:
            return at
        if _name(word) == "memctl" and words[at + 1 : at + 2] == ["hook"]:
            return at
    return None


def _name(word: str) -> str:
    return word.rpartition("/")[2]


def _without_end(words: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """The words without `|| true` or `|| echo ANSWER` at their end."""
    for end in (2, 3):
        tail = words[-end:]
        if tail[:1] == [("||", True)] and tail[1][0] == ("true", "echo")[end - 2]:
            return words[:-end]
    return words


def _words(command: str) -> list[tuple[str, bool]]:
    """The words as sh sees them, each with whether it is an operator; raises ValueError."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|<>()\n")
    lexer.whitespace = " \t"
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[tuple[str, bool]] = []
    for word in lexer:
        found.append((word, bool(word) and all(char in ";&|<>()\n" for char in word)))
    return found
