"""The socket's requests and replies: one closed set of Structs, version 1. The decoder is the validator.

One request, one reply, one connection, except where a connection is held on purpose. Paths travel as
bytes (base64 in JSON), never lossily decoded. A golden file of this schema sits in `tests/contract/`;
changing it means deciding about `v`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from memd import protocol_memory, protocol_runs, protocol_work
from memd.errors import BadRequest

Form = Literal["text", "json"]

Outcome = Literal[
    "linked",  # a link is in place; `changed` says whether this run made it
    "migrated",  # what stood there was merged and set aside, then linked
    "skipped",  # left exactly as it was; `reason` says why
    "returned",  # unenrolled: a folder of its own again, with a copy of the memory
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
    confirmed: bool = False


class Heal(Request, frozen=True, kw_only=True, tag="heal"):
    cwd: bytes = b""  # empty: every agent
    dry_run: bool = False


class Where(Request, frozen=True, kw_only=True, tag="where"):
    path: bytes


class Reload(Request, frozen=True, kw_only=True, tag="reload"):
    pass


class Stop(Request, frozen=True, kw_only=True, tag="stop"):
    pass


class Sessions(Request, frozen=True, kw_only=True, tag="sessions"):
    """Sessions in the ledger, newest activity first. Answered as rendered text."""

    form: Form = "text"
    color: bool = False
    width: int = 80
    harness: str = ""
    cwd: bytes = b""
    limit: int = 0
    orphaned: bool = False  # only those whose directory is gone


class Search(Request, frozen=True, kw_only=True, tag="search"):
    """The best hits first. Answered as rendered text."""

    query: str
    form: Form = "text"
    color: bool = False
    width: int = 80
    harness: str = ""
    cwd: bytes = b""
    role: str = ""
    kind: str = ""
    since: str = ""  # RFC 3339
    limit: int = 20


class Export(Request, frozen=True, kw_only=True, tag="export"):
    """One page of a session: events with a greater sequence than `after`; an empty text is the end."""

    session: str
    harness: str = ""
    form: Literal["jsonl", "markdown"] = "jsonl"
    after: int = -1


class Import(Request, frozen=True, kw_only=True, tag="import"):
    """Look at every store now; with `wait` answer when all that was visible is in the ledger."""

    wait: bool = False
    harness: str = ""
    store: bytes = b""  # a store outside the usual places
    variables: dict[str, bytes] = {}  # the client's store variables


class Forget(Request, frozen=True, kw_only=True, tag="forget"):
    """Remove for good what all the given conditions select."""

    harness: str = ""
    session: str = ""
    project: bytes = b""
    before: str = ""
    matching: str = ""
    dry_run: bool = False


class CheckLedger(Request, frozen=True, kw_only=True, tag="check-ledger"):
    """Derive rows and index from the segments again and compare; with `repair` put right what disagrees."""

    repair: bool = False


class Report(Request, frozen=True, kw_only=True, tag="report"):
    """What there was since a time, with how memd is now. Answered as rendered text."""

    form: Form = "text"
    color: bool = False
    width: int = 80
    since: str = ""  # RFC 3339; empty: from the beginning


class Backup(Request, frozen=True, kw_only=True, tag="backup"):
    """Everything that cannot be made anew, into a new file; called off when the client goes away."""

    path: bytes  # absolute


class BackupProgress(Request, frozen=True, kw_only=True, tag="backup-progress"):
    """How far the backup is that is being made."""


class Memory(Request, frozen=True, kw_only=True, tag="memory"):
    """Something with the topics of the shared memory folder, or of the local one."""

    action: protocol_memory.AnyAction


class Run(Request, frozen=True, kw_only=True, tag="run"):
    """One step of a launcher's conversation; the connection stays open for the next one."""

    step: protocol_runs.AnyStep


class Work(Request, frozen=True, kw_only=True, tag="work"):
    """Something with workstreams or handoffs. Answered as rendered text."""

    action: protocol_work.AnyAction
    form: Form = "text"
    color: bool = False
    width: int = 80


AnyRequest = (
    Ping
    | Status
    | Diagnose
    | Enroll
    | Unenroll
    | Heal
    | Where
    | Reload
    | Stop
    | Sessions
    | Search
    | Export
    | Import
    | Forget
    | CheckLedger
    | Report
    | Backup
    | BackupProgress
    | Memory
    | Run
    | Work
)


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


class Forgotten(Reply, frozen=True, kw_only=True, tag="forgotten"):
    """What was (or would be) forgotten.

    elsewhere  events of it that other sessions shared
    handoffs   notes from one session to the next that go with it
    """

    events: int
    session_count: int
    segments: int
    elsewhere: int
    sessions: tuple[tuple[str, str], ...] = ()  # (harness, session), at most 1,000
    handoffs: int = 0


class LedgerReport(Reply, frozen=True, kw_only=True, tag="ledger-report"):
    events: int
    standings: int
    segments: int
    problem_count: int
    problems: tuple[tuple[str, str, str], ...] = ()  # what, where, sentence
    repaired: int = 0


class BackedUp(Reply, frozen=True, kw_only=True, tag="backed-up"):
    """left_out  what lies in memd's folders and is neither a file nor a folder"""

    path: bytes
    size: int
    files: int
    left_out: tuple[bytes, ...] = ()


class BackupStep(Reply, frozen=True, kw_only=True, tag="backup-step"):
    """Bytes done and bytes in all of what is done now; nothing is done when `what` is empty."""

    what: str = ""
    done: int = 0
    total: int = 0


class MemoryReply(Reply, frozen=True, kw_only=True, tag="memory"):
    result: protocol_memory.AnyResult


class RunReply(Reply, frozen=True, kw_only=True, tag="run"):
    answer: protocol_runs.AnyAnswer


AnyReply = (
    Pong
    | Done
    | Failure
    | Healed
    | Enrolled
    | Unenrolled
    | WhereReply
    | Diagnosis
    | Forgotten
    | LedgerReport
    | BackedUp
    | BackupStep
    | MemoryReply
    | RunReply
)


_requests = msgspec.json.Decoder(AnyRequest)
_replies = msgspec.json.Decoder(AnyReply)


def decode_request(body: bytes) -> AnyRequest:
    """raises BadRequest, which names the field that is wrong"""
    try:
        return _requests.decode(body)
    except (msgspec.DecodeError, RecursionError) as reason:
        raise BadRequest(f"not a request of protocol version 1: {reason}") from None


def decode_reply(body: bytes) -> AnyReply:
    """raises msgspec.DecodeError"""
    return _replies.decode(body)


def encode(message: AnyRequest | AnyReply) -> bytes:
    return msgspec.json.encode(message)
