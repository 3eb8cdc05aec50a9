"""What a hook's message says, whatever is in it, and what its harness makes of that. Pure.

    harness NUL event NUL cwd NUL run NUL pid NUL stdin

Stdin is one JSON object. A byte-order mark, bytes that are not UTF-8 and half a surrogate pair are put up
with; of one that was cut, the members before its first nested one count. Anything else is an empty object.
"""

from __future__ import annotations

import re

import msgspec

from memd.errors import BadRequest
from memd.harness import registry
from memd.harness.hooking import Heard, HookEvent, Hooks
from memd.harness.model import Adapter
from memd.harness.records import FAULTS, whole_halves

_RUN = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_HEAD_BYTES = 64 << 10
_MEMBERS = re.compile(
    rb'\s*\{(?:\s*"(?:[^"\\]|\\.)*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?[0-9][^,\s"{}\[\]]*|true|false|null)\s*,)*'
)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """run: empty unless it can be an id of a run. pid: of the process that started the hook; 0: not known"""

    harness: str
    event: str
    cwd: bytes = b""
    run: str = ""
    pid: int = 0
    payload: dict[str, object] = {}


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a hook, with what its harness says about it."""

    adapter: Adapter
    hooks: Hooks
    event: HookEvent
    call: Call
    heard: Heard

    @property
    def cwd(self) -> bytes:
        """Where the session works; empty: not known."""
        said = self.heard.cwd.encode("utf-8", "surrogatepass")
        return said if said.startswith(b"/") else self.call.cwd

    @property
    def key(self) -> tuple[str, str]:
        return self.adapter.name, self.heard.session


def heard(call: Call) -> Session:
    """What its harness makes of a call; raises BadRequest for a harness or an event that is not known."""
    name = registry.canonical(call.harness)
    adapter = registry.adapters()[name] if name is not None else None
    hooks = adapter.hooks if adapter is not None else None
    event = hooks.event(call.event) if hooks is not None else None
    if adapter is None or hooks is None or event is None:
        raise BadRequest(f"memd listens to no hook {call.event[:64]!r} of {call.harness[:64]!r}")
    return Session(
        adapter=adapter, hooks=hooks, event=event, call=call, heard=hooks.hear(event.name, call.payload)
    )


def read(body: bytes) -> Call:
    """What the message says; fields that are missing are empty."""
    fields = body.split(b"\0", 5)
    fields += [b""] * (6 - len(fields))
    harness, event, cwd, run, pid, stdin = fields
    return Call(
        harness=harness.decode("utf-8", "replace"),
        event=event.decode("utf-8", "replace"),
        cwd=cwd if cwd.startswith(b"/") else b"",
        run=well_formed(run.decode("ascii", "replace")),
        pid=int(pid) if pid.isdigit() and len(pid) < 10 else 0,
        payload=payload_of(stdin),
    )


def well_formed(run: str) -> str:
    """The id, if it can be one; else as if there were none."""
    return run if _RUN.fullmatch(run) else ""


def payload_of(stdin: bytes) -> dict[str, object]:
    data = stdin.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        return {}
    for attempt in (_as_it_is, _mended, _beginning):
        try:
            found = msgspec.json.decode(attempt(data))
        except FAULTS:
            continue
        return found if isinstance(found, dict) else {}
    return {}


def _as_it_is(data: bytes) -> bytes:
    return data


def _mended(data: bytes) -> bytes:
    return whole_halves(data.decode("utf-8", "replace").encode())


def _beginning(data: bytes) -> bytes:
    head = _MEMBERS.match(_mended(data[:_HEAD_BYTES]))
    return head[0].rstrip().removesuffix(b",") + b"}" if head else b""
