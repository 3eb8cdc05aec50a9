"""Our hooks in an agent's TOML settings: put in, found, taken out; every other byte as it was. Pure.

    [[hooks]]
    event = "SessionStart"
    command = "..."
    timeout = 10            only where one is wanted, as is `matcher`; other keys make the file invalid

One table per event, ours behind all others. A table is found by its lines, from `[[hooks]]` to the next
header, blank line or comment, so that comments stay with whom they belong to. Hooks that are written in
another way (`hooks = [...]`) are left alone: there the file is refused.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import tomlkit

from memctl.hooks import command as hook_command
from memctl.hooks.settings import ANY_MATCHER, BLANK, Edited, Found, Wanted
from memctl.json_edit import REMEDY
from memd.errors import Refused

NO_NEWLINE = "end"  # the key in `hollow` of a text whose last line had no end

_header = re.compile(r"[ \t]*\[\[[ \t]*(hooks|\"hooks\"|'hooks')[ \t]*\]\][ \t]*(#.*)?")
_other = re.compile(r"[ \t]*(\[.*|#.*)?")


class Table(msgspec.Struct, frozen=True):
    """One `[[hooks]]` in the text: its lines and what they say."""

    first: int
    end: int
    value: Mapping[str, Any]


def found(text: str) -> tuple[Found, ...]:
    """Our hooks in these settings, in their order; raises Refused for settings that are not understood."""
    hooks = _parse(text).get("hooks", [])
    return tuple(_owns(hooks if isinstance(hooks, list) else []))


def install(text: str, wanted: Sequence[Wanted], hollow: Mapping[str, str] | None = None) -> Edited:
    """The settings with exactly one hook of ours for each event wanted. As `hook_settings.install`."""
    before = _parse(text)
    hooks = before.get("hooks", [])
    if not isinstance(hooks, list):
        raise Refused("`hooks` is no list of tables", remedy=REMEDY)
    mine = tuple(_owns(hooks))
    mixed = tuple(dict.fromkeys(one.event for one in mine if one.own.kind == "mixed"))
    want_of = {want.event: want for want in wanted if want.event not in mixed}
    kept: dict[str, Found] = {}
    for one in mine:
        want = want_of.get(one.event)
        if want and one.own.kind == "plain" and one.event not in kept and _fits(one, want):
            kept[one.event] = one
    drops = [one.group for one in mine if one.own.kind == "plain" and one not in kept.values()]
    made = text
    stale = [one for one in kept.values() if one.command != want_of[one.event].command]
    if stale or drops:
        made = _edited(text, hooks, {one.group: want_of[one.event] for one in stale}, set(drops))
    noted = dict(hollow or {})
    if not text.strip():
        noted.setdefault(BLANK, text)
    elif not text.endswith("\n") and not mine:
        noted.setdefault(NO_NEWLINE, "")
    eol = "\r\n" if "\r\n" in text else "\n"
    for event, want in want_of.items():
        if event not in kept:
            made += _gap(made, eol) + _table(want).replace("\n", eol)
    _check(made, before, want_of)
    return Edited(text=made, hollow=noted, mixed=mixed)


def uninstall(text: str, hollow: Mapping[str, str] | None = None) -> Edited:
    """The settings without our hooks; raises Refused."""
    before = _parse(text)
    hooks = before.get("hooks", [])
    mine = tuple(_owns(hooks if isinstance(hooks, list) else []))
    mixed = tuple(dict.fromkeys(one.event for one in mine if one.own.kind == "mixed"))
    drops = {one.group for one in mine if one.own.kind == "plain"}
    if not drops:
        return Edited(text=text, mixed=mixed)
    made = _edited(text, hooks, {}, drops)
    _check(made, before, {})
    if not made.strip() and hollow and BLANK in hollow:
        made = hollow[BLANK]
    elif hollow and NO_NEWLINE in hollow and text.startswith(made):
        made = made.removesuffix("\n").removesuffix("\r")
    return Edited(text=made, mixed=mixed)


# ------------------------------------------------------------------------------ the text


def _table(want: Wanted) -> str:
    optional = {"matcher": want.matcher, "timeout": want.timeout_s or None}
    said = {"event": want.event, "command": want.command, **optional}
    return "[[hooks]]\n" + _lines({key: value for key, value in said.items() if value is not None})


def _members(table: Mapping[str, Any]) -> str:
    """What a person added to a table of ours."""
    return _lines({key: value for key, value in table.items() if key not in ("event", "command")})


def _lines(values: Mapping[str, Any]) -> str:
    document = tomlkit.document()
    for key, value in values.items():
        document.add(key, tomlkit.item(value))
    return tomlkit.dumps(document)


def _gap(text: str, eol: str) -> str:
    """What stands before a new table: an empty line, and the end of a line that has none."""
    if not text.strip():
        return ""
    return eol if text.endswith("\n") else eol + eol


def _edited(text: str, hooks: Sequence[Any], fresh: Mapping[int, Wanted], drops: set[int]) -> str:
    """The text with other commands in some of our tables, and without some."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    mine = [one.group for one in _owns(hooks) if one.own.kind == "plain"]
    tables = [
        table for table in _tables(lines) if any(one.own.kind == "plain" for one in _owns([table.value]))
    ]
    if [table.value for table in tables] != [hooks[at] for at in mine]:
        raise Refused("its hooks are written in a way that cannot be edited safely", remedy=REMEDY)
    for at, table in reversed(list(zip(mine, tables, strict=True))):
        if at in fresh:
            eol = "\r\n" if lines[table.first].endswith("\r\n") else "\n"
            want = fresh[at]
            made = _table(Wanted(event=want.event, command=want.command)) + _members(table.value)
            lines[table.first : table.end] = [made.replace("\n", eol)]
        elif at in drops:
            first = table.first
            if first and not lines[first - 1].strip():
                first -= 1  # the empty line that came with it
            del lines[first : table.end]
    return "".join(lines)


def _tables(lines: Sequence[str]) -> list[Table]:
    """The `[[hooks]]` tables by their lines, a look-alike in a long string among them."""
    found: list[Table] = []
    for first, line in enumerate(lines):
        if not _header.fullmatch(line.rstrip("\r\n")):
            continue
        end = first + 1
        while end < len(lines) and not _other.fullmatch(lines[end].rstrip("\r\n")):
            end += 1
        try:
            (value,) = tomllib.loads("".join(lines[first:end]).replace("\r\n", "\n"))["hooks"]
        except (ValueError, KeyError):
            continue
        found.append(Table(first, end, value))
    return found


# ---------------------------------------------------------------------------- the values


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as reason:
        raise Refused(f"the file is not TOML: {reason}", remedy=REMEDY) from None


def _check(made: str, before: Mapping[str, Any], want_of: Mapping[str, Wanted]) -> None:
    """raises Refused unless all that is foreign is as before and ours is as wanted"""
    try:
        after = tomllib.loads(made.removeprefix("\ufeff"))
    except ValueError:
        after = {}
    now = {one.event: one.command for one in _owns(after.get("hooks", [])) if one.own.kind == "plain"}
    wanted = {event: want.command for event, want in want_of.items()}
    if _foreign(after) != _foreign(before) or now != wanted:
        raise Refused("the file is written in a way that cannot be edited safely", remedy=REMEDY)


def _owns(hooks: Sequence[Any]) -> list[Found]:
    found: list[Found] = []
    for at, table in enumerate(hooks):
        own = hook_command.read(table.get("command")) if isinstance(table, dict) else None
        if own is not None:
            found.append(
                Found(
                    event=str(table.get("event", "")),
                    group=at,
                    index=0,
                    command=table["command"],
                    own=own,
                    matcher=table.get("matcher"),
                    keys=frozenset(table),
                    is_alone=True,
                )
            )
    return found


def _is_plain(table: Mapping[str, Any]) -> bool:
    return any(one.own.kind == "plain" for one in _owns([table]))


def _fits(one: Found, want: Wanted) -> bool:
    return one.matcher == want.matcher or (one.matcher in ANY_MATCHER and want.matcher in ANY_MATCHER)


def _foreign(document: Mapping[str, Any]) -> dict[str, Any]:
    hooks = document.get("hooks")
    if not isinstance(hooks, list):
        return dict(document)
    ours = {one.group for one in _owns(hooks) if one.own.kind == "plain"}
    left = [table for at, table in enumerate(hooks) if at not in ours]
    rest = {key: value for key, value in document.items() if key != "hooks"}
    return {**rest, "hooks": left} if left else rest
