"""Kiro CLI: where the sessions of its two engines lie. What is in them is `memd.harness.kiro_records`.

    v2   <kiro home>/sessions/cli/<uuid>.jsonl                     with <uuid>.json beside it
    v3   <kiro home>/sessions/<bucket>/sess_<uuid>/messages.jsonl  with session.json beside it

`KIRO_HOME` moves both, but version 2.16.2 wrote the third engine's sessions below `~/.kiro` regardless: that
is looked at as well. Neither engine resumes what the other wrote: a session belongs to the engine in whose
store it lies, and its id has the engine's form. Names of buckets say nothing. What another version of the
metadata describes is not read at all.

    source  built from descriptions of Kiro CLI 2.16, read 2026-11; no store of the program was at hand
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from memd.harness.kiro_hooks import HOOKS
from memd.harness.kiro_launch import LAUNCH
from memd.harness.kiro_records import V2, V3, begin, parse
from memd.harness.model import Adapter, Environment, Session, Store
from memd.harness.records import FAULTS, clip, whole_halves

_UUID = rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_SECOND = re.compile(rb"(%b)\.jsonl" % _UUID)
_THIRD = re.compile(rb"[^/]+/(sess_%b)/messages\.jsonl" % _UUID)


class _Second(msgspec.Struct, gc=False):
    """`<uuid>.json` of the second engine."""

    session_id: Any = None
    cwd: Any = None
    title: Any = None


class _Third(msgspec.Struct, gc=False):
    """`session.json` of the third engine."""

    schemaVersion: Any = None
    dataModelVersion: Any = None
    id: Any = None
    workspacePaths: Any = None
    title: Any = None
    createdAt: Any = None


_second = msgspec.json.Decoder(_Second).decode
_third = msgspec.json.Decoder(_Third).decode


def stores(environment: Environment) -> tuple[Store, ...]:
    """The sessions of both engines; the third's also where it wrote them in spite of `KIRO_HOME`."""
    usual = environment.home + b"/.kiro"
    home = environment.variables.get("KIRO_HOME", b"").strip().rstrip(b"/") or usual
    found = [Store(root=home + b"/sessions/cli", patterns=("*.jsonl",), flavor=V2, rewrites=True)]
    for place in dict.fromkeys((home, usual)):
        patterns = ("*/sess_*/messages.jsonl",)
        found.append(Store(root=place + b"/sessions", patterns=patterns, flavor=V3, rewrites=True))
    return tuple(found)


def beside(path: bytes) -> bytes:
    """The metadata of a session."""
    if path.endswith(b"/messages.jsonl"):
        return path.removesuffix(b"messages.jsonl") + b"session.json"
    return path.removesuffix(b"l") if path.endswith(b".jsonl") else path + b".json"


def identify(path: bytes, head: bytes, flavor: str) -> Session | None:
    """The session that the metadata names, if it is the one whose place this is.

    head  the metadata
    """
    if flavor == V3 or (not flavor and path.endswith(b"/messages.jsonl")):
        return _third_session(path, head)
    return _second_session(path, head)


def _second_session(path: bytes, head: bytes) -> Session | None:
    named = _SECOND.fullmatch(path)
    if named is None:
        return None
    try:
        found = _second(whole_halves(head))
    except FAULTS:
        return None
    if found.session_id != named[1].decode("ascii") or not _is_place(found.cwd):
        return None
    title = clip(found.title, 512)[0] if isinstance(found.title, str) else ""
    return Session(id=found.session_id, cwd=found.cwd, title=title)


def _third_session(path: bytes, head: bytes) -> Session | None:
    named = _THIRD.fullmatch(path)
    if named is None:
        return None
    try:
        found = _third(whole_halves(head))
    except FAULTS:
        return None
    is_known = found.schemaVersion == "1.0.0" and found.dataModelVersion == 1
    if not is_known or isinstance(found.dataModelVersion, bool) or found.id != named[1].decode("ascii"):
        return None
    if not isinstance(found.workspacePaths, list):
        return None
    places = [one for one in found.workspacePaths if _is_place(one)]
    if not places:
        return None
    return Session(id=found.id, cwd=places[0], also=tuple(places[1:]))


def _is_place(path: object) -> bool:
    return isinstance(path, str) and path.startswith("/") and "\0" not in path and len(path) <= 16384


ADAPTER = Adapter(
    name="kiro",
    title="Kiro",
    aliases=("kiro-cli", "kiro-v2", "kiro-cli-v2", "kiro-v3", "kiro-cli-v3"),
    stores=stores,
    identify=identify,
    begin=begin,
    beside=beside,
    parse=parse,
    launch=LAUNCH,
    hooks=HOOKS,
)
