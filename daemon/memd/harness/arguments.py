"""Reading a program's arguments as the program itself does, and putting something of ours among them. Pure.

Only what stands before the first `--` is ever looked at, and nothing is ever put behind it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

END = "--"
HELP = ("--help", "-h")
VERSION = ("--version", "-v")
NO_SESSION = ("--no-session", "--no-session-persistence")
MAX_ID_BYTES = 512

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def names(text: str) -> frozenset[str]:
    """Names that are written one behind the other."""
    return frozenset(text.split())


class Grammar(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one program. An argument with a dash that is none of these is an option all the same,
    and the word behind it may be its value or not: newer versions and extensions bring their own.

    valued    take the next argument, whatever it is, where they have no `=`
    optional  take the next argument unless it begins with a dash
    variadic  as `valued`, and all that follows up to the next dash
    switches  take nothing
    clusters  short ones may stand together: `-pc` is `-p -c`, and `-rX` is `-r X`
    """

    valued: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    variadic: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    clusters: bool = False

    def knows(self, name: str) -> bool:
        return name in self.switches or self.may_take(name)

    def may_take(self, name: str) -> bool:
        return name in self.valued or name in self.optional or name in self.variadic


class Flag(msgspec.Struct, frozen=True):
    """An option that was given.

    value  None when it has none, which is not the same as an empty one
    at     the argument it stands in; `end`: the argument behind it and all it takes
    """

    name: str
    value: str | None
    at: int
    end: int


class Word(msgspec.Struct, frozen=True):
    """An argument that is no option. `is_sure` false: it may be the value of an option nobody knows."""

    text: str
    at: int
    is_sure: bool = True


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """What stands before the `--`.

    end      where `--` stands; the number of arguments when it is not there
    is_torn  the last option lacks the value it must have: what is put behind it would become that value
    """

    flags: tuple[Flag, ...] = ()
    words: tuple[Word, ...] = ()
    end: int = 0
    is_torn: bool = False

    def has(self, *names: str) -> bool:
        return any(flag.name in names for flag in self.flags)

    def value(self, *names: str) -> str:
        """The value of the last of these options that has one; empty when none has."""
        return next((flag.value for flag in reversed(self.flags) if flag.name in names and flag.value), "")

    def command(self, names: Collection[str], *, behind: Word | None = None, past: int = 0) -> Word | None:
        """The word that chooses what the program does.

        names   the commands there are
        behind  look behind this word only
        past    how many other words may come before it
        """
        for word in self.words:
            if behind is not None and word.at <= behind.at:
                continue
            if word.text in names:
                return word
            past -= word.is_sure
            if past < 0:
                return None
        return None

    def word_behind(self, word: Word) -> str:
        """The next word; empty when there is none."""
        return next((other.text for other in self.words if other.at > word.at), "")


def scan(native: Sequence[str], grammar: Grammar) -> Scan:
    """Tell options, their values and words apart; raises nothing."""
    end = terminator(native)
    flags: list[Flag] = []
    words: list[Word] = []
    is_torn, is_sure = False, True
    at = 0
    while at < end:
        argument = native[at]
        if len(argument) < 2 or not argument.startswith("-"):
            words.append(Word(argument, at, is_sure))
            is_sure = True
            at += 1
            continue
        *others, last = _given(argument, at, grammar)
        at += 1
        if last.value is None:
            behind = _behind(native, at, end, last.name, grammar)
            is_torn = behind < at
            if behind > at:
                last = Flag(last.name, native[at], last.at, behind)
                at = behind
        is_sure = last.value is not None or grammar.knows(last.name)
        flags += (*others, last)
    return Scan(flags=tuple(flags), words=tuple(words), end=end, is_torn=is_torn)


def _behind(native: Sequence[str], at: int, end: int, name: str, grammar: Grammar) -> int:
    """Where what an option takes from `at` on is over; before `at` when what it must have is missing."""
    if not grammar.may_take(name):
        return at
    if name in grammar.optional:
        return at if at >= end or native[at].startswith("-") else at + 1
    if at >= end:
        return at - 1
    at += 1
    while name in grammar.variadic and at < end and not native[at].startswith("-"):
        at += 1
    return at


def _given(argument: str, at: int, grammar: Grammar) -> list[Flag]:
    """The options in one argument that begins with a dash; at least one."""
    name, sign, value = argument.partition("=")
    whole = [Flag(name, value if sign else None, at, at + 1)]
    if not grammar.clusters or argument.startswith("--") or len(name) == 2 or grammar.knows(name):
        return whole
    found: list[Flag] = []
    for index, letter in enumerate(argument[1:], 1):
        short = f"-{letter}"
        if grammar.may_take(short):
            rest = argument[index + 1 :]
            return [*found, Flag(short, rest.removeprefix("=") if rest else None, at, at + 1)]
        if short not in grammar.switches:
            return whole
        found.append(Flag(short, None, at, at + 1))
    return found


def is_first(native: Sequence[str], names: Collection[str]) -> bool:
    """Whether the very first argument is one of these: how a program looks that reads no options before."""
    return bool(native) and native[0] in names


def terminator(native: Sequence[str]) -> int:
    """Where the `--` stands; the number of arguments when there is none."""
    return next((at for at, argument in enumerate(native) if argument == END), len(native))


def appended(native: Sequence[str], ours: Sequence[str]) -> tuple[str, ...]:
    """Ours behind everything the person typed, but before a `--`."""
    return inserted(native, len(native), ours)


def inserted(native: Sequence[str], at: int, ours: Sequence[str]) -> tuple[str, ...]:
    """Ours before the argument of that number, and never behind a `--`."""
    at = min(at, terminator(native))
    return (*native[:at], *ours, *native[at:])


def is_usable(session: str) -> bool:
    """Whether an id may be put into a command line or a file name."""
    return (
        0 < len(session.encode("utf-8", "replace")) <= MAX_ID_BYTES
        and session.isprintable()
        and not session.startswith("-")
        and session not in (".", "..")
        and "/" not in session
        and "\\" not in session
    )


def uuid_or_nothing(text: str) -> str:
    """The text if it has the form of a whole UUID; else empty. Where a program takes the beginning of an id,
    a title or a path as well, only this says which session is meant."""
    return text if _UUID.fullmatch(text) else ""
