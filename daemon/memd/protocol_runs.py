"""A launcher's conversation about one run: the inner part of `run` requests. Closed sets, version 1.

One connection carries it, one reply to each step, in this order:

    Greet -> Greeted        which of the client's variables count; may be left out by one who knows
    Prepare -> Ready        the workstream is reserved; `choices` when there is something to choose
    Choose -> Ready         any number of times: the answer of a person, or a renewed lease while one thinks
    Plan -> LaunchPlan      what to start
    Started -> Noted        the child is there
    Exited -> Closed        it is gone, and what it wrote is in the ledger
    Cancel -> Noted         before the child is there: the workstream is free again

A lost connection takes nothing away: `TakeUp` on another one goes on where the run stands. Native arguments,
environment and directories are bytes as the client has them. `memd.protocol` carries these.
"""

from __future__ import annotations

import msgspec

MAX_ARGUMENTS_BYTES = 512 << 10

# ------------------------------------------------------------------------------ steps


class Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", forbid_unknown_fields=True):
    pass


class Greet(Step, frozen=True, kw_only=True, tag="greet"):
    pass


class Prepare(Step, frozen=True, kw_only=True, tag="prepare"):
    """Reserve a workstream, for the process at the other end of the connection.

    word        the launcher word of a harness; empty: go on where the person left off
    native      everything after that word, wrapper words included
    executable  the program to start instead of the one found; empty: look in `path`
    carry       copy the linked session from the login it lies in, without asking
    bind        a workstream of another checkout of this repository may belong to this one from now on
    variables   those of `Greeted.variables` that the client has
    path        the client's PATH
    is_terminal standard input and standard error are terminals: somebody can be asked
    is_retry    the same launch again, because the workstream was taken: nothing is said twice
    """

    cwd: bytes
    word: str = ""
    native: tuple[bytes, ...] = ()
    executable: bytes = b""
    workspace: str = ""
    project: str = ""
    workstream: str = ""
    new: str = ""
    is_yolo: bool = False
    is_fresh: bool = False
    carry: bool = False
    bind: bool = False
    variables: dict[str, bytes] = {}
    path: bytes = b""
    is_terminal: bool = False
    is_retry: bool = False


class Choose(Step, frozen=True, kw_only=True, tag="choose"):
    """session: of `Ready.choices`, empty: a new one; `carry`: yes to `Ready.carry`. `is_decided` false only
    renews the lease."""

    run: str
    session: str = ""
    carry: bool = False
    is_decided: bool = False


class Plan(Step, frozen=True, kw_only=True, tag="plan"):
    run: str


class Started(Step, frozen=True, kw_only=True, tag="started"):
    run: str
    pid: int


class Exited(Step, frozen=True, kw_only=True, tag="exited"):
    """code: as a shell tells it; None: the child could not be started. `failure`: why not"""

    run: str
    code: int | None = None
    failure: str = ""


class Cancel(Step, frozen=True, kw_only=True, tag="cancel"):
    run: str


class TakeUp(Step, frozen=True, kw_only=True, tag="take-up"):
    run: str


AnyStep = Greet | Prepare | Choose | Plan | Started | Exited | Cancel | TakeUp

# ---------------------------------------------------------------------------- answers


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag_field="is", forbid_unknown_fields=True):
    """notices: lines for standard error, in order."""

    notices: tuple[str, ...] = ()


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    title: str
    age: str
    events: int


class Greeted(Answer, frozen=True, kw_only=True, tag="greeted"):
    """variables: names. They say where harnesses keep what they write, and where a client stands."""

    variables: tuple[str, ...]


class Ready(Answer, frozen=True, kw_only=True, tag="ready"):
    """The workstream is reserved; empty: a utility that is started beside whoever has it.

    choices  sessions that may be taken over, newest first; there is somebody to ask
    carry    a question, to be answered by yes or no; empty: there is none
    """

    run: str
    workstream: str
    workstream_id: str
    workspace: str
    project: str
    harness: str
    choices: tuple[Choice, ...] = ()
    carry: str = ""


class LaunchPlan(Answer, frozen=True, kw_only=True, tag="plan"):
    """What to start: `executable` with `arguments` after its name, in `cwd`, `set` and `unset` applied."""

    executable: bytes
    arguments: tuple[bytes, ...]
    cwd: bytes
    set: dict[str, bytes] = {}
    unset: tuple[str, ...] = ()


class Noted(Answer, frozen=True, kw_only=True, tag="noted"):
    pass


class Closed(Answer, frozen=True, kw_only=True, tag="closed"):
    """events: how many new ones the workstream has; without a workstream nothing was kept."""

    workstream: str
    events: int


AnyAnswer = Greeted | Ready | LaunchPlan | Noted | Closed
