"""Our hooks in settings of other shapes than Claude Code's: put in, found, taken out. Pure.

    FLAT    Kiro's agents
            {"hooks": {EVENT: [{"command", "max_output_size"?}]}}
    LISTED  Kiro's files of hooks
            {"version": "v1", "hooks": [{"name", "trigger", "action": {"type": "command", "command"},
            "timeout", "enabled"}]}
    NAMED   Antigravity; where there is a matcher in groups
            {"memd": {EVENT: [{"type": "command", "command"}]}}
            {"memd": {EVENT: [{"matcher", "hooks": [{"type": "command", "command"}]}]}}

As with `memctl.hooks.settings` a hook that is there already keeps its place and gets its new command, and
what was made on the way is noted, so that taking out gives the text from before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from memctl import json_edit
from memctl.hooks import command as hook_command
from memctl.hooks.command import Own
from memctl.hooks.settings import BLANK, Edited, Found, Wanted
from memctl.json_edit import REMEDY, parse
from memd.errors import Refused

Path = tuple[str | int, ...]

VERSION = "v1"
_TIMEOUT_S = 5


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """A hook that has our form.

    path     to what is dropped to take it out; `command`: to its command
    """

    event: str
    path: Path
    command: Path
    text: str
    own: Own


class Shape:
    """What every shape has in common; how a hook stands in it says each of them.

    root  the key under which hooks stand
    """

    root = "hooks"

    def found(self, text: str) -> tuple[Found, ...]:
        """Our hooks in these settings, in their order; raises Refused where they are not understood."""
        if json_edit.is_blank(text):
            return ()
        return tuple(
            Found(event=one.event, group=0, index=0, command=one.text, own=one.own)
            for one in self._owns(self._checked(text, ()))
        )

    def install(self, text: str, wanted: Sequence[Wanted], hollow: Mapping[str, str] | None = None) -> Edited:
        """The settings with exactly one hook of ours for each event wanted, and none for others.

        hollow   what an earlier install noted of the same file
        raises   Refused: not understood, or something stands where hooks should
        """
        before = self._checked(text, wanted)
        noted = dict(hollow or {})
        mine = tuple(self._owns(before))
        mixed = tuple(dict.fromkeys(one.event for one in mine if one.own.kind == "mixed"))
        kept: dict[str, _Place] = {}
        for want in wanted:
            usable = [one for one in mine if one.event == want.event and self._fits(before, one, want)]
            if usable and want.event not in mixed:
                kept[want.event] = usable[0]
        made = text
        for want in wanted:
            one = kept.get(want.event)
            if one is not None and one.text != want.command:
                made = json_edit.replace(made, one.command, want.command)
        plain = [one for one in mine if one.own.kind == "plain"]
        made = self._without(made, [one for one in plain if one not in kept.values()])
        for want in wanted:
            if want.event in kept or want.event in mixed:
                continue
            made = self._noting(made, want, noted)
            made = self._append(made, want)
        made = self._tidied(made, {one.event for one in mine}, noted)
        after = parse(made) if not json_edit.is_blank(made) else {}
        if self._foreign(after) != self._foreign(before):
            raise Refused("the file is written in a way that cannot be edited safely", remedy=REMEDY)
        now = sorted(one.event for one in self._owns(after) if one.own.kind == "plain")
        if now != sorted(want.event for want in wanted if want.event not in mixed):
            raise Refused("our hooks do not fit into the file as it is", remedy=REMEDY)
        return Edited(text=made, hollow=noted, mixed=mixed)

    def uninstall(self, text: str, hollow: Mapping[str, str] | None = None) -> Edited:
        """The settings without our hooks, and without what is empty because of that. raises Refused"""
        before = self._checked(text, ())
        noted = dict(hollow or {})
        mine = tuple(self._owns(before))
        mixed = tuple(dict.fromkeys(one.event for one in mine if one.own.kind == "mixed"))
        plain = [one for one in mine if one.own.kind == "plain"]
        if not plain:
            return Edited(text=text, mixed=mixed)
        made = self._tidied(self._without(text, plain), {one.event for one in plain}, noted)
        after = parse(made)
        if self._foreign(after) != self._foreign(before):
            raise Refused("the file is written in a way that cannot be edited safely", remedy=REMEDY)
        if self._foreign(after) == {}:
            if "" in noted:
                made = json_edit.put_inside(made, (), noted[""])
            made = noted.get(BLANK, made)
        return Edited(text=made, mixed=mixed)

    # ------------------------------------------------------------------------------- the shapes

    def _owns(self, document: Any) -> Iterator[_Place]:
        raise NotImplementedError

    def _fits(self, document: Any, one: _Place, want: Wanted) -> bool:
        """Whether an existing hook can stay, but for its command."""
        raise NotImplementedError

    def _append(self, text: str, want: Wanted) -> str:
        raise NotImplementedError

    def _paths(self, event: str) -> tuple[tuple[str, ...], ...]:
        """The containers that a hook of that event stands in, outermost first."""
        return ((), (self.root,), (self.root, event))

    def _foreign(self, document: Any) -> Any:
        """The settings as they would be without us and without what is empty then."""
        raise NotImplementedError

    def _check_more(self, document: Any, wanted: Sequence[Wanted]) -> None:
        hooks = document.get(self.root, {})
        if not isinstance(hooks, dict):
            raise Refused(f"`{self.root}` is no object", remedy=REMEDY)
        for want in wanted:
            if not isinstance(hooks.get(want.event, []), list):
                raise Refused(f"`{self.root}.{want.event}` is no list", remedy=REMEDY)

    # ---------------------------------------------------------------------------------- the text

    def _checked(self, text: str, wanted: Sequence[Wanted]) -> Any:
        document = {} if json_edit.is_blank(text) else parse(text)
        if not isinstance(document, dict):
            raise Refused("the file is no JSON object", remedy=REMEDY)
        self._check_more(document, wanted)
        return document

    def _noting(self, text: str, want: Wanted, noted: dict[str, str]) -> str:
        """Remember what was there and empty before us."""
        if json_edit.is_blank(text):
            noted.setdefault(BLANK, text)
            return text
        for path in self._paths(want.event):
            inner = json_edit.inside(text, path)
            if inner is not None:
                noted.setdefault("/".join(path), inner)
        return text

    def _without(self, text: str, owns: Sequence[_Place]) -> str:
        for one in reversed(owns):
            text = json_edit.drop(text, one.path)
        return text

    def _tidied(self, text: str, ours: Collection[str], noted: Mapping[str, str]) -> str:
        """The text without containers that we left empty; one that was empty before us stays so.

        ours  the events in which hooks of ours stood
        """
        if json_edit.is_blank(text):
            return text
        hooks = parse(text).get(self.root)
        events = [event for event in hooks if event in ours] if isinstance(hooks, dict) else []
        for path in (*((self.root, event) for event in reversed(events)), (self.root,), ()):
            inner = json_edit.inside(text, path)
            if inner is None:
                continue
            before = noted.get("/".join(path))
            if before is not None and before.strip() == inner.strip():
                text = json_edit.put_inside(text, path, before)
            elif path and not inner.strip() and self._may_drop(path):
                text = json_edit.drop(text, path)
        return text

    def _may_drop(self, path: tuple[str, ...]) -> bool:
        return True


class _Flat(Shape):
    def _owns(self, document: Any) -> Iterator[_Place]:
        for event, at, handler in _lists(document.get(self.root)):
            own = hook_command.read(handler.get("command"))
            if own is not None:
                path = (self.root, event, at)
                yield _Place(
                    event=event, path=path, command=(*path, "command"), text=handler["command"], own=own
                )

    def _fits(self, document: Any, one: _Place, want: Wanted) -> bool:
        """A matcher keeps a hook from running, and an output that is cut loses what was told."""
        handler = document[self.root][one.event][one.path[-1]]
        is_plain = one.own.kind == "plain" and "matcher" not in handler
        return is_plain and (not want.output_bytes or handler.get("max_output_size") == want.output_bytes)

    def _append(self, text: str, want: Wanted) -> str:
        handler: dict[str, Any] = {"command": want.command}
        if want.output_bytes:
            handler["max_output_size"] = want.output_bytes
        return json_edit.append(text, (self.root, want.event), handler)

    def _foreign(self, document: Any) -> Any:
        left: dict[str, Any] = {}
        hooks = document.get(self.root, {})
        for event, handlers in hooks.items():
            kept = handlers
            if isinstance(handlers, list):
                kept = [one for one in handlers if not _is_ours(one)]
            if kept != []:
                left[event] = kept
        rest = {key: value for key, value in document.items() if key != self.root}
        return {**rest, self.root: left} if left else rest


class _Named(Shape):
    """What stands under our own name is ours, whoever wrote it there."""

    root = "memd"

    def _owns(self, document: Any) -> Iterator[_Place]:
        for event, at, group in _lists(document.get(self.root)):
            inner = group.get("hooks")
            handlers: list[tuple[Path, Any]] = []
            if isinstance(inner, list):
                handlers = [(("hooks", n), one) for n, one in enumerate(inner)]
            for below, handler in handlers or [((), group)]:
                if not isinstance(handler, dict):
                    continue
                own = hook_command.read(handler.get("command"))
                if own is not None:
                    path: Path = (self.root, event, at)
                    yield _Place(
                        event=event,
                        path=path if len(handlers) < 2 else (*path, *below),
                        command=(*path, *below, "command"),
                        text=handler["command"],
                        own=own,
                    )

    def _fits(self, document: Any, one: _Place, want: Wanted) -> bool:
        is_grouped = len(one.command) > 4
        if one.own.kind != "plain" or is_grouped is (want.matcher is None):
            return False
        at = one.command[2]
        return not is_grouped or document[self.root][one.event][at].get("matcher") == want.matcher

    def _append(self, text: str, want: Wanted) -> str:
        handler: dict[str, Any] = {"type": "command", "command": want.command}
        if want.timeout_s:
            handler["timeout"] = want.timeout_s
        item = handler if want.matcher is None else {"matcher": want.matcher, "hooks": [handler]}
        return json_edit.append(text, (self.root, want.event), item)

    def _foreign(self, document: Any) -> Any:
        return {key: value for key, value in document.items() if key != self.root}


class _Listed(Shape):
    def _owns(self, document: Any) -> Iterator[_Place]:
        hooks = document.get(self.root)
        for at, hook in enumerate(hooks if isinstance(hooks, list) else ()):
            action = hook.get("action") if isinstance(hook, dict) else None
            if not isinstance(action, dict):
                continue
            own = hook_command.read(action.get("command"))
            if own is not None and isinstance(hook.get("trigger"), str):
                yield _Place(
                    event=hook["trigger"],
                    path=(self.root, at),
                    command=(self.root, at, "action", "command"),
                    text=action["command"],
                    own=own,
                )

    def _check_more(self, document: Any, wanted: Sequence[Wanted]) -> None:
        if document and document.get("version") != VERSION:
            raise Refused(
                f"it is not of version {VERSION!r}", remedy="Install a newer memd, or move it away."
            )
        hooks = document.get(self.root, [])
        if not isinstance(hooks, list):
            raise Refused(f"`{self.root}` is no list", remedy=REMEDY)
        mine = {one.path[-1] for one in self._owns(document)}
        names = {_name(want.event) for want in wanted}
        for at, hook in enumerate(hooks):
            name = hook.get("name") if isinstance(hook, dict) else None
            if at not in mine and isinstance(name, str) and name in names:
                raise Refused(
                    f"another hook there is called {name!r}",
                    remedy="Give it another name, then repeat.",
                )

    def _fits(self, document: Any, one: _Place, want: Wanted) -> bool:
        hook = document[self.root][one.path[-1]]
        return one.own.kind == "plain" and hook.get("name") == _name(want.event)

    def _paths(self, event: str) -> tuple[tuple[str, ...], ...]:
        return ((), (self.root,))

    def _append(self, text: str, want: Wanted) -> str:
        hook = {
            "name": _name(want.event),
            "trigger": want.event,
            "action": {"type": "command", "command": want.command},
            "timeout": want.timeout_s or _TIMEOUT_S,
            "enabled": True,
        }
        if json_edit.is_blank(text) or parse(text) == {}:
            text = json_edit.put(text, ("version",), VERSION)
        return json_edit.append(text, (self.root,), hook)

    def _may_drop(self, path: tuple[str, ...]) -> bool:
        return path != (self.root,)  # a file of this kind without a list is none

    def _foreign(self, document: Any) -> Any:
        mine = {one.path[-1] for one in self._owns(document) if one.own.kind == "plain"}
        hooks = document.get(self.root, [])
        left = [hook for at, hook in enumerate(hooks) if at not in mine]
        rest = {key: value for key, value in document.items() if key not in (self.root, "version")}
        return {**rest, self.root: left} if left else rest


FLAT, NAMED, LISTED = _Flat(), _Named(), _Listed()


def _lists(hooks: Any) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Event, place and item of all lists of objects."""
    for event, items in (hooks if isinstance(hooks, dict) else {}).items():
        for at, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict):
                yield event, at, item


def _is_ours(handler: Any) -> bool:
    own = hook_command.read(handler.get("command")) if isinstance(handler, dict) else None
    return own is not None and own.kind == "plain"


def _name(event: str) -> str:
    """`SessionStart` is `memd-session-start`."""
    return "memd" + re.sub(r"([A-Z])", lambda match: "-" + match[1].lower(), event)
