"""How the installed hooks are, for `memctl doctor`: each file resolved to what would run. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from memctl import service_files
from memctl.hooks import files as hook_files
from memctl.hooks import install as hook_install
from memctl.hooks import interpreter as hook_interpreter
from memctl.hooks import places as hook_places
from memctl.hooks import record as hook_record
from memctl.hooks.install import Change
from memctl.hooks.places import Place
from memctl.paths import shown
from memd.errors import MemdError
from memd.harness import registry
from memd.protocol import Finding

TRUST_S = 10.0


def findings() -> Iterator[Finding]:
    """One finding per file that hooks are, or could be, in; then what they all share."""
    try:
        record = hook_record.read()
        adapters = hook_places.resolve(())
        homes, _ = hook_places.logins(adapters, start=False)
        variables = {os.fsdecode(name): value for name, value in os.environb.items()}
        here = hook_places.present(adapters, homes, variables, is_named=False)
        elsewhere = hook_places.everywhere(adapters, homes, variables, record)
        interpreter = hook_interpreter.current()
    except MemdError as reason:
        yield Finding(level="warning", subject="hooks", message=str(reason), remedy=reason.remedy)
        return
    seen = {place.settings.path for place in here}
    is_run = False
    for place in (*here, *(place for place in elsewhere if place.settings.path not in seen)):
        noted = record.of(place.agent, place.settings.path)
        change = hook_install.plan_install(
            place.agent, place.hooks, place.settings, noted, interpreter, hook_interpreter.runs
        )
        is_here = place.settings.path in seen
        if change.state == "missing" and noted is None and not is_here:
            continue
        if change.state == "refused" and noted is None and not _is_installed(place):
            continue
        found = _one(place, change)
        is_run = is_run or (change.state in ("current", "outdated") and place.settings.form != "file")
        yield found
    yield from _empty(hook_places.empty(adapters, variables, is_named=False))
    yield from _shared(here)
    if is_run:
        yield from _files()


def _is_installed(place: Place) -> bool:
    return b"memd_hook.py" in (hook_places.look(place.settings.path) or b"")


def _one(place: Place, change: Change) -> Finding:
    subject = f"hooks of {place.agent}"
    where = shown(place.settings.path)
    again = f"Run `memctl install-hooks --agent {place.agent} --apply`."
    if change.state == "refused":
        return Finding(level="warning", subject=subject, message=change.error, remedy=change.remedy)
    if change.state == "missing":
        return Finding(level="note", subject=subject, message=f"none in {where}", remedy=again)
    wrong = _wrong_file(change) if place.settings.form == "file" else _wrong_settings(place, change)
    if change.state == "outdated":
        message = "; ".join(wrong) or "not as this memctl would write them"
        return Finding(level="warning", subject=subject, message=f"{where}: {message}", remedy=again)
    for caveat in hook_places.caveats(place):
        return Finding(level="warning", subject=subject, message=caveat.message, remedy=caveat.remedy)
    if place.hooks.trust == "codex" and (untrusted := _trust(place, subject)) is not None:
        return untrusted
    if place.settings.form == "file":
        return Finding(level="ok", subject=subject, message=where)
    count = len(hook_install.events_of(place.hooks, place.settings))
    return Finding(level="ok", subject=subject, message=f"{count} events in {where}")


def _wrong_file(change: Change) -> list[str]:
    state = service_files.judge(change.old)
    wrong = ["it was edited"] if state == "changed" else []
    version, _ = service_files.unmark(change.old or b"")
    if change.old != change.new and state == "ours":
        wrong.append(f"it is the one of memd {version}, not the one of this package")
    return wrong + [f"{shown(path)} is left from an older memd" for path, _ in change.strays]


def _wrong_settings(place: Place, change: Change) -> list[str]:
    """What is wrong with the hooks that stand there, each thing once."""
    mine = hook_install.editor(place.settings.form).found((change.old or b"").decode("utf-8"))
    plain = [one for one in mine if one.own.kind == "plain"]
    wrong: dict[str, None] = {}
    hook_file = hook_files.hook_file().decode("utf-8", "surrogateescape")
    for one in plain:
        if one.own.interpreter and not hook_interpreter.runs(one.own.interpreter):
            wrong[f"{one.own.interpreter}, which is to run the hook, does not"] = None
        if one.own.hook_file != hook_file:
            wrong[f"{one.own.hook_file or one.command} belongs to another memd"] = None
    events = [one.event for one in mine]
    known = [event.name for event in hook_install.events_of(place.hooks, place.settings)]
    missing = [name for name in known if name not in events]
    if missing:
        wrong[f"no hook for {', '.join(missing)}"] = None
    twice = sorted({event for event in events if events.count(event) > 1})
    if twice:
        wrong[f"more than one hook for {', '.join(twice)}"] = None
    extra = sorted({event for event in events if event not in known})
    if extra:
        wrong[f"a hook for {', '.join(extra)}, which memd no longer listens to"] = None
    return list(wrong)


def _trust(place: Place, subject: str) -> Finding | None:
    from memctl import codex_trust

    program = hook_places.program(registry.adapters()[place.agent])
    if program is None:
        return None
    path = place.settings.path
    how = "Trust them in Codex (`/hooks`), or run `memctl install-hooks --agent codex --apply --trust`."
    try:
        hooks = codex_trust.status(program, path, TRUST_S)
    except MemdError as reason:
        message = f"in {shown(path)}, but Codex could not be asked whether it trusts them: {reason}"
        return Finding(level="note", subject=subject, message=message, remedy=how)
    for status, says in (("untrusted", "it was not told to trust"), ("modified", "changed since it was:")):
        events = [hook.event for hook in hooks if hook.status == status]
        if events:
            message = f"Codex does not run all hooks in {shown(path)}: {says} {', '.join(events)}"
            return Finding(level="warning", subject=subject, message=message, remedy=how)
    if any(not hook.is_enabled for hook in hooks):
        message = f"switched off in Codex ({shown(path)})"
        return Finding(level="warning", subject=subject, message=message, remedy="See `/hooks` in Codex.")
    if not hooks:
        message = f"Codex does not see them in {shown(path)}"
        return Finding(level="warning", subject=subject, message=message, remedy="See `/hooks` in Codex.")
    return None


def _empty(folders: Sequence[tuple[str, bytes]]) -> Iterator[Finding]:
    for agent, folder in folders:
        yield Finding(
            level="note",
            subject=f"hooks of {agent}",
            message=f"{shown(folder)} holds no file for hooks to stand in: sessions of an agent that has "
            "none there are told nothing by a hook",
            remedy=f"Make one, then run `memctl install-hooks --agent {agent} --apply`.",
        )


def _shared(places: Sequence[Place]) -> Iterator[Finding]:
    for one, other, folder in hook_places.shared(places):
        yield Finding(
            level="note",
            subject=f"hooks of {one} and {other}",
            message=f"both load what lies in {shown(folder)}; each file leaves the other program alone",
            remedy="To keep them apart give one a folder of its own.",
        )


def _files() -> Iterator[Finding]:
    path = shown(hook_files.hook_file())
    try:
        if hook_files.are_current():
            yield Finding(level="ok", subject="hook", message=path)
            return
        is_there = os.path.isfile(hook_files.hook_file())
    except MemdError as reason:
        yield Finding(level="warning", subject="hook", message=str(reason), remedy=reason.remedy)
        return
    yield Finding(
        level="warning" if is_there else "problem",
        subject="hook",
        message=f"{path}, which agents run, is " + ("of another version" if is_there else "not there"),
        remedy="Run `memctl up`." if is_there else "Run `memctl install-hooks --apply`.",
    )
