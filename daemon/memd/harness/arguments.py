"""Reading a program's arguments as the program itself does, and putting something of ours among them. Pure.

Only what stands before the first `--` is ever looked at, and nothing is ever put behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

END = "--"
MAX_ID_BYTES = 512


class Grammar(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one program, as far as they take something. Any other word with a dash is a switch.

    valued     take the next word, whatever it is, where they have no `=`
    optional   take the next word unless it begins with a dash
    switches   short ones that take nothing: `-pc` is `-p -c` where both are known, and `-rX` is `-r X`.
               Empty: the program knows no such clusters
    """

    valued: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()


class Flag(msgspec.Struct, frozen=True):
    """An option that was given. value: None when it has none; `at`: the argument it stands in."""

    name: str
    value: str | None
    at: int


class Word(msgspec.Struct, frozen=True):
    """An argument that is neither an option nor the value of one."""

    text: str
    at: int


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """What stands before the `--`.

    end       where `--` stands; the number of arguments when it is not there
    is_torn   the last option lacks the value it must have: what is put behind it would become that value
    """

    flags: tuple[Flag, ...] = ()
    words: tuple[Word, ...] = ()
    end: int = 0
    is_torn: bool = False

    def has(self, names: Collection[str]) -> bool:
        return any(flag.name in names for flag in self.flags)

    def value(self, names: Collection[str]) -> str:
        """The value of the last of these options that has one; empty when none has."""
        return next((flag.value for flag in reversed(self.flags) if flag.name in names and flag.value), "")

    def word(self, index: int) -> str:
        """The word of that number; empty when there are not so many."""
        return self.words[index].text if index < len(self.words) else ""


def scan(native: Sequence[str], grammar: Grammar) -> Scan:
    """Tell options, their values and words apart; raises nothing."""
    end = terminator(native)
    flags: list[Flag] = []
    words: list[Word] = []
    is_torn = False
    at = 0
    while at < end:
        argument = native[at]
        if len(argument) < 2 or not argument.startswith("-"):
            words.append(Word(argument, at))
            at += 1
            continue
        given = _given(argument, at, grammar)
        flags += given
        last = given[-1]
        at += 1
        if last.value is not None or "=" in argument:
            continue
        if last.name in grammar.valued:
            is_torn = at >= end
        elif last.name not in grammar.optional or at >= end or native[at].startswith("-"):
            continue
        if at < end:
            flags[-1] = Flag(last.name, native[at], last.at)
            at += 1
    return Scan(flags=tuple(flags), words=tuple(words), end=end, is_torn=is_torn)


def _given(argument: str, at: int, grammar: Grammar) -> list[Flag]:
    """The options in one argument that begins with a dash."""
    name, sign, value = argument.partition("=")
    if argument.startswith("--") or not grammar.switches or len(name) == 2:
        return [Flag(name, value if sign else None, at)]
    found: list[Flag] = []
    for index, letter in enumerate(argument[1:], 1):
        short = f"-{letter}"
        if short in grammar.valued or short in grammar.optional:
            rest = argument[index + 1 :]
            return [*found, Flag(short, rest.removeprefix("=") if rest else None, at)]
        if short not in grammar.switches:
            return [Flag(name, value if sign else None, at)]  # another kind of word
        found.append(Flag(short, None, at))
    return found


def terminator(native: Sequence[str]) -> int:
    """Where the `--` stands; the number of arguments when there is none."""
    return next((at for at, argument in enumerate(native) if argument == END), len(native))


def appended(native: Sequence[str], ours: Sequence[str]) -> tuple[str, ...]:
    """Ours behind everything the person typed, but before a `--`."""
    end = terminator(native)
    return (*native[:end], *ours, *native[end:])


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
