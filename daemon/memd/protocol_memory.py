"""What is asked of memory topics, and answered: the inner part of `memory` requests. Closed sets, version 1.

`memd.protocol` carries these; see there for how they travel. Names of topics are text, their paths bytes.
"""

from __future__ import annotations

from typing import Literal

import msgspec

MAX_BODY_BYTES = 512 << 10  # of one write; a request has at most a MiB

# ---------------------------------------------------------------------------- actions


class Action(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", forbid_unknown_fields=True):
    pass


class ListTopics(Action, frozen=True, kw_only=True, tag="list"):
    pass


class ReadTopic(Action, frozen=True, kw_only=True, tag="read"):
    topic: str


class WriteTopic(Action, frozen=True, kw_only=True, tag="write"):
    topic: str
    body: str
    summary: str = ""  # needed for a new topic; empty keeps that of an old one
    pin: bool = False  # false keeps a pin that is there
    replace: bool = False  # else the body is added under a heading with the date
    key: str = ""  # the same in every try of one write: then it is done once


class RemoveTopic(Action, frozen=True, kw_only=True, tag="remove"):
    topic: str


class RestoreTopic(Action, frozen=True, kw_only=True, tag="restore"):
    """Undo a removal: the topic by its file's name, since no line leads to it."""

    file: str


class PinTopic(Action, frozen=True, kw_only=True, tag="pin"):
    topic: str
    pin: bool


class SearchTopics(Action, frozen=True, kw_only=True, tag="search"):
    words: str
    limit: int = 20


class RepairIndex(Action, frozen=True, kw_only=True, tag="repair"):
    pass


class CarryOver(Action, frozen=True, kw_only=True, tag="carry-over"):
    source: bytes = b""  # another tool's store; empty: memd's own local one


class ImportClaude(Action, frozen=True, kw_only=True, tag="import-claude"):
    """Without `files` and `everything` only looks."""

    path: bytes  # a directory of the agent
    files: tuple[str, ...] = ()
    everything: bool = False


class Context(Action, frozen=True, kw_only=True, tag="context"):
    """The block for an agent. For a hook it may be empty: switched off, or given by another tool."""

    limit: int = 0  # bytes, 0: none but the usual
    harness: str = ""  # for a hook of this harness; empty: somebody asked, and gets it in any case


AnyAction = (
    ListTopics
    | ReadTopic
    | WriteTopic
    | RemoveTopic
    | RestoreTopic
    | PinTopic
    | SearchTopics
    | RepairIndex
    | CarryOver
    | ImportClaude
    | Context
)

# ---------------------------------------------------------------------------- results


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the index."""

    name: str
    file: str
    is_pinned: bool = False
    is_stale: bool = False
    is_missing: bool = False  # no such file at the moment
    date: str = ""
    summary: str = ""


class Result(msgspec.Struct, frozen=True, kw_only=True, tag_field="did", forbid_unknown_fields=True):
    store: bytes
    is_shared: bool
    notes: tuple[str, ...] = ()  # what a person should know besides


class Topics(Result, frozen=True, kw_only=True, tag="list"):
    topics: tuple[Topic, ...]
    unlisted: int = 0


class TopicText(Result, frozen=True, kw_only=True, tag="read"):
    topic: Topic
    path: bytes
    content: bytes


class Changed(Result, frozen=True, kw_only=True, tag="changed"):
    """Of write, remove, restore, pin and unpin."""

    topic: Topic
    path: bytes
    outcome: Literal[
        "created",
        "appended",
        "replaced",
        "repeated",
        "removed",
        "restored",
        "pinned",
        "unpinned",
        "unchanged",
    ]
    kept: bytes = b""  # where the text that was replaced is


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    topic: Topic
    lines: tuple[str, ...]  # at most a few, shortened


class Hits(Result, frozen=True, kw_only=True, tag="search"):
    hits: tuple[Hit, ...]
    left_out: int = 0


class Unlisted(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was not taken, and what to do about it."""

    file: bytes
    reason: str
    remedy: str = ""


class Repaired(Result, frozen=True, kw_only=True, tag="repair"):
    added: tuple[Topic, ...]
    reported: tuple[Unlisted, ...]


class CarriedTopic(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    to: str
    name: str
    is_copied: bool  # else the very same file was there
    is_listed: bool  # else it had a line already


class CarriedOver(Result, frozen=True, kw_only=True, tag="carry-over"):
    source: bytes
    outcome: Literal["carried", "done-before", "nothing", "same-folder", "looked"]
    topics: tuple[CarriedTopic, ...] = ()  # carried; of a look: what would be
    left: tuple[Unlisted, ...] = ()


class Block(Result, frozen=True, kw_only=True, tag="context"):
    text: str
    reason: str = ""  # why it is empty


AnyResult = Topics | TopicText | Changed | Hits | Repaired | CarriedOver | Block
