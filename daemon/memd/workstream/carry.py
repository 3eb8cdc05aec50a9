"""What it takes for a session of Claude Code to go on in another login: which files, from where. Pure.

A session lies below `projects` of a login, in the folder of one project key, sometimes of two:

    <key>/<session>.jsonl      the transcript; resuming looks for it under the very same key
    <key>/<session>/           its side conversations and large tool results

Files only ever grow at their end, so of two copies one may be the beginning of the other. A copy that is the
beginning of the original is made longer; one that has gone on by itself stays; where both have gone on nobody
can say which is right, and nothing is touched.

source  Claude Code 2.1.197 and 2.1.332, config homes read 2026-11
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from memctl.paths import shown
from memd.errors import NotFound, Refused

SUFFIX = b".jsonl"

Relation = Literal[
    "absent",  # there is no copy
    "same",
    "behind",  # the copy is how the original begins
    "ahead",  # the original is how the copy begins
    "apart",  # neither
]

Relate = Callable[[bytes, bytes, bytes], Relation]
"""Login of the original, login of the copy, file below `projects`: how the copy stands to the original, which
is ahead when it alone is there."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """What one login has of a session; paths are relative to its `projects`.

    files     regular files, transcripts and what belongs to them
    left_out  what is neither file nor folder, a link for example: it is not carried
    """

    login: bytes
    files: tuple[bytes, ...] = ()
    left_out: tuple[bytes, ...] = ()

    @property
    def transcripts(self) -> tuple[bytes, ...]:
        return tuple(path for path in self.files if is_transcript(path))


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done. Transcripts come last: without them the rest is invisible to the program.

    source    empty: no other login has the session
    copy      files that the target lacks; `extend`: files of which it has the beginning
    unchanged files that it has already, all of them or more
    is_ahead  the session has gone on in the target
    """

    source: bytes
    target: bytes
    copy: tuple[bytes, ...] = ()
    extend: tuple[bytes, ...] = ()
    unchanged: tuple[bytes, ...] = ()
    left_out: tuple[bytes, ...] = ()
    is_ahead: bool = False

    @property
    def is_done(self) -> bool:
        return not self.copy and not self.extend


def is_transcript(path: bytes) -> bool:
    return path.count(b"/") == 1 and path.endswith(SUFFIX)


def plan(session: str, sources: Sequence[Holder], target: Holder, relate: Relate) -> Plan:
    """How the session gets into the target.

    sources  other logins; those without a transcript of it count for nothing
    target   what the login that it shall go on in has already
    raises   NotFound when nobody has it; Refused when two of them have gone on with it separately
    """
    found = [holder for holder in sources if holder.transcripts]
    if not found:
        if target.transcripts:
            return Plan(source=b"", target=target.login, unchanged=target.files)
        raise NotFound(
            f"no login has a session {session!r} of Claude Code",
            remedy="`memctl sessions --harness claude` lists sessions; name the login it lies in by --from.",
        )
    source = _furthest(session, found, relate)
    done: dict[Relation, list[bytes]] = {}
    for path in sorted(source.files, key=lambda path: (is_transcript(path), path)):
        done.setdefault(relate(source.login, target.login, path), []).append(path)
    if apart := done.get("apart"):
        raise _split(session, source.login, target.login, apart[-1])
    return Plan(
        source=source.login,
        target=target.login,
        copy=tuple(done.get("absent", ())),
        extend=tuple(done.get("behind", ())),
        unchanged=(*done.get("same", ()), *done.get("ahead", ())),
        left_out=source.left_out,
        is_ahead=any(is_transcript(path) for path in done.get("ahead", ())),
    )


def _furthest(session: str, holders: Sequence[Holder], relate: Relate) -> Holder:
    """The login whose transcripts go on where those of all others end."""
    best = holders[0]
    for other in holders[1:]:
        paths = sorted({*best.transcripts, *other.transcripts})
        seen = {path: relate(best.login, other.login, path) for path in paths}
        further = {path for path, relation in seen.items() if relation == "ahead"}
        shorter = {path for path, relation in seen.items() if relation in ("behind", "absent")}
        apart = [path for path, relation in seen.items() if relation == "apart"]
        if apart or (further and shorter):
            raise _split(session, best.login, other.login, (apart or sorted(further))[0])
        if further:
            best = other
    return best


def _split(session: str, one: bytes, other: bytes, path: bytes) -> Refused:
    return Refused(
        f"session {session} has gone on separately in {shown(one)} and in {shown(other)}:"
        f" {shown(path)} differs",
        remedy="Go on in one of the two logins, or start anew with `memctl run claude --fresh`: what was said"
        " in both is in the ledger.",
    )
