"""Sessions that somebody moves: into another login, or into a workstream of another checkout."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from functools import partial

import trio

from memctl.paths import shown
from memd import protocol_work as asked
from memd.errors import NotFound, UsageError
from memd.harness.registry import canonical, resolve
from memd.ledger.store.interface import SessionRow
from memd.ledger.store.workstreams import Place
from memd.ledger.terminal import strip_terminal
from memd.service import page
from memd.service.environments import Environments
from memd.service.runs import Records, see
from memd.service.work_view import Sheet, document
from memd.workstream import carrying
from memd.workstream.adopting import Adopted, adopt
from memd.workstream.adoption import is_usable
from memd.workstream.carry import Plan
from memd.workstream.ids import new_id
from memd.workstream.selection import Wanted, checked

CLAUDE = "claude"


class Carrying:
    """Sessions of Claude Code, from whichever login has them into another one."""

    def __init__(self, environments: Environments) -> None:
        self._environments = environments

    async def carry(
        self, session: str, target: bytes, also: Iterable[bytes] = (), source: bytes = b""
    ) -> Plan:
        """also: further logins that may have it. Raises what `carrying.carry` raises"""
        logins = (*self._logins(), *also)
        return await trio.to_thread.run_sync(partial(carrying.carry, session, logins, target, source=source))

    async def bring(self, session: str, transcript: bytes, target: bytes) -> str:
        """A session, whose transcript was seen there, into the login that is launched; what to say of it."""
        login = transcript
        for _ in range(3):  # `projects`, the key's folder, the file
            login = os.path.dirname(login)
        done = await self.carry(session, target, (login,))
        if done.is_done:
            return f"session {session} is in {shown(done.target)} already"
        return f"session {session} was copied from {shown(done.source)} into {shown(done.target)}"

    def _logins(self) -> list[bytes]:
        """The logins that are known, by the stores that Claude Code has in them."""
        stores = resolve(CLAUDE).stores
        found = [store.root for one in self._environments.all() for store in stores(one)]
        return list(dict.fromkeys(os.path.dirname(root) for root in found))


class SessionAnswers:
    """home: of a client that does not say its own."""

    def __init__(
        self,
        *,
        ledger: Records,
        carrying: Carrying,
        home: bytes,
        wall_ms: Callable[[], int],
        noise: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._records = ledger
        self._carrying = carrying
        self._home = home
        self._wall_ms = wall_ms
        self._noise = noise

    # ---------------------------------------------------------------------------- carrying

    async def carry(self, action: asked.CarrySession, sheet: Sheet) -> str:
        """raises what `carrying.carry` raises"""
        usual = (action.variables.get("HOME") or self._home) + b"/.claude"
        chosen = action.variables.get("CLAUDE_CONFIG_DIR", b"")
        target = action.to or (chosen if chosen.startswith(b"/") else usual)
        carried = await self._carrying.carry(action.session, target, (usual,), action.source)
        rows: list[SessionRow] = await self._records.ask(lambda reader: reader.find(action.session, CLAUDE))
        cwd = next((row.cwd for row in rows if row.cwd), "")
        if sheet.is_json:
            return document(_carried(action.session, carried, cwd))
        resume = ["claude", "--resume", action.session]
        if target != usual:
            resume.insert(0, f"CLAUDE_CONFIG_DIR={os.fsdecode(target)}")
        return _told(action.session, carried, cwd, shlex.join(resume), sheet)

    # ---------------------------------------------------------------------------- adopting

    async def adopt(self, action: asked.AdoptSession, place: Place, sheet: Sheet) -> str:
        """raises NotFound, UsageError, lease.Busy"""
        wanted = checked(Wanted(workstream=action.workstream, new=action.new))
        harness = (canonical(action.harness) or resolve(action.harness).name) if action.harness else ""
        row = await self._session(action.session, harness)
        id = new_id(self._wall_ms(), self._noise(10))
        done: Adopted = await self._records.work(
            lambda work: adopt(work, place, action.cwd, row.harness, row.id, wanted, id, see)
        )
        if sheet.is_json:
            return document(
                {
                    "session": row.id,
                    "harness": row.harness,
                    "workstream_id": done.workstream.id,
                    "workstream": done.workstream.name,
                    "is_new": done.is_new,
                    "also_in": done.others,
                }
            )
        title = page.cut(strip_terminal(row.title), sheet.width - 4)
        lines = [f"session {row.id} of {row.harness} is part of workstream {done.workstream.name!r} now"]
        lines += [f"  {title}"] if title else []
        if done.others:
            lines.append(f"  it stays part of {page.count(len(done.others), 'other workstream')} too")
        lines.append(f"  `memctl run {row.harness}` goes on with it")
        return "\n".join(lines) + "\n"

    async def _session(self, session: str, harness: str) -> SessionRow:
        found: list[SessionRow] = await self._records.ask(lambda reader: reader.find(session, harness))
        if not found or not is_usable(session):
            raise NotFound(
                f"no session {session!r} in the ledger",
                remedy="`memctl sessions` lists them; `memctl import --wait` reads what is new.",
            )
        if len(found) > 1:
            names = ", ".join(row.harness for row in found)
            raise UsageError(
                f"several harnesses have a session {session!r}: {names}", remedy="Add --harness."
            )
        if found[0].is_side:
            raise UsageError(
                f"{session!r} is a side conversation of {found[0].parent!r}",
                remedy="Name the session that it belongs to.",
            )
        return found[0]


def _carried(session: str, carried: Plan, cwd: str) -> dict[str, object]:
    def names(paths: tuple[bytes, ...]) -> list[str]:
        return [shown(path) for path in paths]

    return {
        "session": session,
        "to": shown(carried.target),
        "from": shown(carried.source) if carried.source else None,
        "copied": names(carried.copy),
        "extended": names(carried.extend),
        "unchanged": names(carried.unchanged),
        "left_out": names(carried.left_out),
        "has_gone_on": carried.is_ahead,
        "cwd": cwd or None,
    }


def _told(session: str, carried: Plan, cwd: str, resume: str, sheet: Sheet) -> str:
    target = shown(carried.target)
    if carried.is_done:
        further = ", and has gone on there" if carried.is_ahead else ""
        lines = [f"session {session} is in {target} already{further}; nothing was written"]
    else:
        parts = [f"{page.count(len(carried.copy), 'file')} copied"] if carried.copy else []
        parts += [f"{page.count(len(carried.extend), 'file')} made longer"] if carried.extend else []
        lines = [
            f"session {session} is in {target} now",
            f"  from {shown(carried.source)}, which keeps it: {', '.join(parts)}",
        ]
    lines += [f"  left out, no regular file: {shown(path)}" for path in carried.left_out]
    where = f" in {strip_terminal(cwd)}" if cwd else ""
    lines += [f"go on{where} with:", f"  {strip_terminal(resume)}"]
    return "\n".join(lines) + "\n"
