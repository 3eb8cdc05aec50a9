"""Our hooks in an agent's JSON settings: put in, found, taken out; every other byte as it was. Pure.

    {"hooks": {EVENT: [{"matcher"?, "hooks": [{"type": "command", "command", "timeout"?}]}]}}

A hook of ours that is there already stays in its place and only its command is brought up to date; a new one
goes behind all others, in a group of its own. So nobody's place in a list moves, which Codex takes for
a change that needs a person's trust. What we made on the way is noted as `hollow`, so that taking out gives
the very text from before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from memctl import json_edit
from memctl.hooks import command as hook_command
from memctl.hooks.command import Own
from memctl.json_edit import REMEDY, parse
from memd.errors import Refused

ANY_MATCHER = (None, "", "*")
BLANK = "*"  # the key in `hollow` of a text that held no value at all


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    event: str
    command: str
    matcher: str | None = None
    timeout_s: int = 0
    output_bytes: int = 0


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One hook of ours and where it stands: `hooks.EVENT[group].hooks[index]`."""

    event: str
    group: int
    index: int
    command: str
    own: Own
    matcher: object = None
    keys: frozenset[str] = frozenset()  # of the handler
    is_alone: bool = False  # the group holds nothing else


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """
    hollow   containers that were there before us and empty, by their path joined with `/`: what stood in
             them; of a text without any value that text, as `*`
    moved    events in which another tool's hooks stand in another place than before
    mixed    events in which a longer command runs our hook; it was left as it is
    """

    text: str
    hollow: Mapping[str, str] = {}
    moved: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()


def found(text: str) -> tuple[Found, ...]:
    """Our hooks in these settings, in their order; raises Refused for settings that are not understood."""
    return tuple(_owns(_checked(text)))


def install(text: str, wanted: Sequence[Wanted], hollow: Mapping[str, str] | None = None) -> Edited:
    """The settings with exactly one hook of ours for each event wanted, and none for others.

    hollow   what an earlier install noted of the same file
    raises   Refused: not understood, or something stands where hooks should
    """
    before = _checked(text, {want.event for want in wanted})
    noted = dict(hollow or {})
    made = text
    mine = tuple(_owns(before))
    mixed = tuple(dict.fromkeys(one.event for one in mine if one.own.kind == "mixed"))
    kept: dict[str, Found] = {}
    for want in wanted:
        usable = [one for one in mine if one.event == want.event and _fits(one, want)]
        if usable and want.event not in mixed:
            kept[want.event] = usable[0]
            made = _brought_up(made, usable[0], want)
    made = _without(made, [one for one in mine if one.own.kind == "plain" and one not in kept.values()])
    for want in wanted:
        if want.event in kept or want.event in mixed:
            continue
        for path in ((), ("hooks",), ("hooks", want.event)):
            inner = None if json_edit.is_blank(made) else json_edit.inside(made, path)
            if inner is not None:
                noted.setdefault("/".join(path), inner)
        if json_edit.is_blank(made):
            noted.setdefault(BLANK, made)
        made = json_edit.append(made, ("hooks", want.event), _group(want))
    made = _without_empty(made, {one.event for one in mine} - {want.event for want in wanted}, noted)
    after = parse(made) if not json_edit.is_blank(made) else {}
    if _foreign(after) != _foreign(before):
        raise Refused("the file is written in a way that cannot be edited safely", remedy=REMEDY)
    now = [(one.event, one.own.kind) for one in _owns(after) if one.own.kind == "plain"]
    if sorted(now) != sorted((want.event, "plain") for want in wanted if want.event not in mixed):
        raise Refused("our hooks do not fit into the file as it is", remedy=REMEDY)
    return Edited(text=made, hollow=noted, moved=_moved(before, after), mixed=mixed)


def uninstall(text: str, hollow: Mapping[str, str] | None = None) -> Edited:
    """The settings without our hooks, and without what is empty because of that. raises Refused"""
    before = _checked(text)
    noted = dict(hollow or {})
    mine = tuple(_owns(before))
    mixed = tuple(dict.fromkeys(one.event for one in mine if one.own.kind == "mixed"))
    plain = [one for one in mine if one.own.kind == "plain"]
    if not plain:
        return Edited(text=text, mixed=mixed)
    made = _without_empty(_without(text, plain), {one.event for one in plain}, noted)
    after = parse(made)
    if _foreign(after) != _foreign(before) or any(one.own.kind == "plain" for one in _owns(after)):
        raise Refused("the file is written in a way that cannot be edited safely", remedy=REMEDY)
    if BLANK in noted and not (json_edit.inside(made, ()) or "").strip() and after == {}:
        made = noted[BLANK]
    return Edited(text=made, moved=_moved(before, after), mixed=mixed)


# ----------------------------------------------------------------------------- the text


def _brought_up(text: str, one: Found, want: Wanted) -> str:
    """The text with an existing hook's command as wanted; what a person added to it stays."""
    path = ("hooks", one.event, one.group, "hooks", one.index)
    if one.command != want.command:
        text = json_edit.replace(text, (*path, "command"), want.command)
    if want.timeout_s and "timeout" not in one.keys:
        text = json_edit.add(text, path, "timeout", want.timeout_s)
    return text


def _without(text: str, owns: Sequence[Found]) -> str:
    """The text without these hooks and the groups that hold nothing else."""
    for one in reversed(owns):
        group: tuple[str | int, ...] = ("hooks", one.event, one.group)
        handlers = parse(text)["hooks"][one.event][one.group]
        is_last = len(handlers["hooks"]) == 1 and not set(handlers) - {"matcher", "hooks"}
        text = json_edit.drop(text, group if is_last else (*group, "hooks", one.index))
    return text


def _without_empty(text: str, events: set[str], hollow: Mapping[str, str]) -> str:
    """The text without lists that these events' hooks left empty; one that was empty before us stays so."""
    if json_edit.is_blank(text):
        return text
    order = [event for event in parse(text).get("hooks", {}) if event in events]
    for path in (*(("hooks", event) for event in reversed(order)), ("hooks",), ()):
        inner = json_edit.inside(text, path)
        if inner is None:
            continue
        noted = hollow.get("/".join(path))
        if noted is not None and noted.strip() == inner.strip():
            text = json_edit.put_inside(text, path, noted)
        elif path and not inner.strip():
            text = json_edit.drop(text, path)
    return text


def _group(want: Wanted) -> dict[str, Any]:
    handler: dict[str, Any] = {"type": "command", "command": want.command}
    if want.timeout_s:
        handler["timeout"] = want.timeout_s
    return {**({} if want.matcher is None else {"matcher": want.matcher}), "hooks": [handler]}


# ---------------------------------------------------------------------------- the values


def _checked(text: str, events: Collection[str] = ()) -> Any:
    """What the settings say; raises Refused where hooks for these events could not stand in them."""
    document = {} if json_edit.is_blank(text) else parse(text)
    if not isinstance(document, dict):
        raise Refused("the file is no JSON object", remedy=REMEDY)
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict):
        raise Refused("`hooks` is no object", remedy=REMEDY)
    for event in events:
        if not isinstance(hooks.get(event, []), list):
            raise Refused(f"`hooks.{event}` is no list", remedy=REMEDY)
    return document


def _handlers(document: Any) -> Iterator[tuple[str, int, dict[str, Any], int, dict[str, Any]]]:
    """Event, group's place, group, handler's place, handler: of all that has the form of one."""
    for event, groups in document.get("hooks", {}).items():
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for index, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if isinstance(handler, dict):
                    yield event, at, group, index, handler


def _owns(document: Any) -> Iterator[Found]:
    for event, at, group, index, handler in _handlers(document):
        own = hook_command.read(handler.get("command"))
        if own is not None:
            yield Found(
                event=event,
                group=at,
                index=index,
                command=handler["command"],
                own=own,
                matcher=group.get("matcher"),
                keys=frozenset(handler),
                is_alone=len(group["hooks"]) == 1,
            )


def _fits(one: Found, want: Wanted) -> bool:
    """Whether an existing hook can stay where it is."""
    if one.own.kind != "plain":
        return False
    return one.matcher == want.matcher or (one.matcher in ANY_MATCHER and want.matcher in ANY_MATCHER)


def _foreign(document: Any) -> Any:
    """The settings as they would be without us and without empty lists where hooks stand."""
    left: dict[str, Any] = {}
    for event, groups in document.get("hooks", {}).items():
        if not isinstance(groups, list):
            left[event] = groups
            continue
        kept = [fresh for group in groups if (fresh := _foreign_group(group)) is not None]
        if kept:
            left[event] = kept
    rest = {key: value for key, value in document.items() if key != "hooks"}
    return {**rest, "hooks": left} if left else rest


def _foreign_group(group: Any) -> Any:
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return group
    handlers = [
        handler
        for handler in group["hooks"]
        if not isinstance(handler, dict)
        or (own := hook_command.read(handler.get("command"))) is None
        or own.kind == "mixed"
    ]
    if not handlers and not set(group) - {"matcher", "hooks"}:
        return None
    return {**group, "hooks": handlers}


def _moved(before: Any, after: Any) -> tuple[str, ...]:
    """Events in which a hook that is not ours changed its place."""

    def places(document: Any) -> dict[str, list[tuple[int, int]]]:
        found: dict[str, list[tuple[int, int]]] = {}
        for event, at, _, index, handler in _handlers(document):
            if hook_command.read(handler.get("command")) is None:
                found.setdefault(event, []).append((at, index))
        return found

    old, new = places(before), places(after)
    return tuple(event for event in old if old[event] != new.get(event))
