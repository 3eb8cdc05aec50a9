"""The socket's requests and replies: one closed set of Structs, version 1. The decoder is the validator.

One request, one reply, one connection, except where a connection is held on purpose. Paths travel as
bytes (base64 in JSON), never lossily decoded. A golden file of this schema sits in `tests/contract/`;
changing it means deciding about `v`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Form = Literal["text", "json"]

Outcome = Literal[
    "linked",  # a link is in place; `changed` says whether this run made it
    "migrated",  # what stood there was merged and set aside, then linked
    "skipped",  # left exactly as it was; `reason` says why
    "failed",  # something went wrong half-way; `reason` and `remedy`, the next run goes on
]


class LeftBehind(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a merge could not take over and where it still is."""

    path: bytes
    reason: str
    remedy: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What memd makes of one `<config home>/projects/<key>/memory` of one agent."""

    agent: bytes  # the agent home
    config_home: bytes
    path: bytes
    outcome: Outcome
    changed: bool = False  # this run altered something (in a dry run: would alter)
    reason: str = ""
    remedy: str = ""
    set_aside: bytes = b""  # where the old folder went
    added: int = 0
    replaced: int = 0
    superseded: int = 0
    unchanged: int = 0
    steps: tuple[str, ...] = ()  # the plan in words, filled by a dry run
    left_behind: tuple[LeftBehind, ...] = ()
    healed_at_ms: int = 0  # wall clock, 0 = never changed since enrolment


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """An enrolled agent home and the folder that holds its memory."""

    home: bytes
    owned: bytes
    enrolled_at_ms: int


# ---------------------------------------------------------------------------- requests


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", forbid_unknown_fields=True):
    v: Literal[1] = 1
    config_dir: bytes = b""  # the client's CLAUDE_CONFIG_DIR, made absolute; empty when unset


class Ping(Request, frozen=True, kw_only=True, tag="ping"):
    pass


class Status(Request, frozen=True, kw_only=True, tag="status"):
    form: Form = "text"
    color: bool = False
    width: int = 80
    installed: str = ""  # the version of the package the client runs from


class Diagnose(Request, frozen=True, kw_only=True, tag="diagnose"):
    """What the running daemon knows that `memctl doctor` cannot see from outside."""


class Enroll(Request, frozen=True, kw_only=True, tag="enroll"):
    path: bytes
    confirmed: bool = False


class Unenroll(Request, frozen=True, kw_only=True, tag="unenroll"):
    path: bytes


class Heal(Request, frozen=True, kw_only=True, tag="heal"):
    cwd: bytes = b""  # empty: every agent
    dry_run: bool = False


class Where(Request, frozen=True, kw_only=True, tag="where"):
    path: bytes


class Reload(Request, frozen=True, kw_only=True, tag="reload"):
    pass


class Stop(Request, frozen=True, kw_only=True, tag="stop"):
    pass


AnyRequest = Ping | Status | Diagnose | Enroll | Unenroll | Heal | Where | Reload | Stop


# ------------------------------------------------------------------------------ replies


class Reply(msgspec.Struct, frozen=True, kw_only=True, tag_field="re", forbid_unknown_fields=True):
    v: Literal[1] = 1


class Pong(Reply, frozen=True, kw_only=True, tag="pong"):
    version: str
    pid: int
    uptime_s: float


class Done(Reply, frozen=True, kw_only=True, tag="done"):
    message: str = ""


class Failure(Reply, frozen=True, kw_only=True, tag="failure"):
    code: str
    message: str
    remedy: str
    exit_status: int
    path: bytes = b""  # what a confirmation is asked for


class Healed(Reply, frozen=True, kw_only=True, tag="healed"):
    entries: tuple[Entry, ...]


class Enrolled(Reply, frozen=True, kw_only=True, tag="enrolled"):
    agent: Agent
    entries: tuple[Entry, ...]
    is_new: bool = True


class Unenrolled(Reply, frozen=True, kw_only=True, tag="unenrolled"):
    agent: Agent
    entries: tuple[Entry, ...]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    config_home: bytes
    path: bytes
    state: str  # linked, absent, folder, dangling, foreign-link, file, blocked, unreadable


class WhereReply(Reply, frozen=True, kw_only=True, tag="where"):
    root: bytes
    key: str
    owned: bytes  # empty: no enrolled agent lives there
    entries: tuple[Place, ...]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `memctl doctor`."""

    level: Literal["ok", "note", "warning", "problem"]
    subject: str
    message: str
    remedy: str = ""


class Diagnosis(Reply, frozen=True, kw_only=True, tag="diagnosis"):
    findings: tuple[Finding, ...]


AnyReply = Pong | Done | Failure | Healed | Enrolled | Unenrolled | WhereReply | Diagnosis


_requests = msgspec.json.Decoder(AnyRequest)
_replies = msgspec.json.Decoder(AnyReply)


def decode_request(body: bytes) -> AnyRequest:
    """raises msgspec.DecodeError, which names the field that is wrong"""
    return _requests.decode(body)


def decode_reply(body: bytes) -> AnyReply:
    """raises msgspec.DecodeError"""
    return _replies.decode(body)


def encode(message: AnyRequest | AnyReply) -> bytes:
    return msgspec.json.encode(message)
