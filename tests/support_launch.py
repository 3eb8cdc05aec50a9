"""Trying out how a harness is started: a line as it is typed in, what is understood and started out."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from memd.harness import registry
from memd.harness.launching import Argv, Delivered, Doorway, Intent, Launch, Said
from memd.harness.model import Adapter
from memd.workstream import launch

LINKED = "019f3c1e-0000-7000-8000-00000000aaaa"
NEW = "5e0f6d8a-1111-4222-8333-444455556666"


def adapter(name: str) -> Adapter:
    return registry.adapters()[name]


def launch_of(name: str) -> Launch:
    found = adapter(name).launch
    assert found is not None
    return found


def said(name: str, line: str) -> Said:
    """What a harness's arguments say."""
    return launch_of(name).read(shlex.split(line))


def started(
    name: str,
    line: str,
    *,
    session: str = "",
    is_yolo: bool = False,
    supports: Collection[str] = (),
    cwd: str = "/home/dev/app",
) -> Argv:
    """What the child gets for a line that was typed behind the harness's name."""
    native = tuple(shlex.split(line))
    intent = Intent(session=session, new_id=NEW, is_yolo=is_yolo, supports=frozenset(supports), cwd=cwd)
    return launch.compose(adapter(name), launch_of(name).read(native), native, intent)


def shown(argv: Argv) -> str:
    """The arguments as one line, with LINKED and NEW for the two ids."""
    return shlex.join(argv.arguments).replace(LINKED, "LINKED").replace(NEW, "NEW")


def line(name: str, typed: str, session: str = LINKED, supports: Collection[str] = ()) -> str:
    """What is started, as one line."""
    return shown(started(name, typed.replace("LINKED", LINKED), session=session, supports=supports))


def yolo(name: str, typed: str, session: str = "", supports: Collection[str] = ()) -> str:
    """The same with the wrapper's --yolo."""
    return shown(started(name, typed, session=session, is_yolo=True, supports=supports))


def delivered(name: str, typed: str, text: str, session: str = "") -> Delivered:
    """How the text gets to the model of what is started."""
    deliver = launch_of(name).deliver
    assert deliver is not None
    doorway = Doorway(
        said=said(name, typed),
        intent=Intent(session=session, new_id=NEW),
        cwd=b"/w",
        home=b"/home/dev",
        variables={},
        folder=b"/run/x",
        read=lambda path: None,
    )
    return deliver(text, started(name, typed, session=session), doorway)
