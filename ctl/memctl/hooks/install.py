"""One agent's settings file with our hooks in it, or without: planned, then done.

A plan reads and changes nothing. What is done is what was planned: a file that changed in between is left
alone. A settings file that is a link is written through, so that the link and a repository of dotfiles behind
it stay what they are; a link that leads nowhere, or to where nothing may be written, is refused. Before
a change a copy is kept beside the file.
"""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from memctl import files, service_files, settings_files
from memctl.hooks import command as hook_command
from memctl.hooks import files as hook_files
from memctl.hooks import record as hook_record
from memctl.hooks import settings as hook_settings
from memctl.hooks import shapes as hook_shapes
from memctl.hooks import toml as hook_toml
from memctl.hooks.record import Installed, Record
from memctl.hooks.settings import Edited, Found, Wanted
from memctl.paths import shown
from memd import __version__
from memd.errors import CannotCreate, MemdError, Refused

if TYPE_CHECKING:
    from memctl.hooks.places import Place
    from memd.harness.hooking import HookEvent, Hooks, Settings

State = Literal[
    "current",  # all is there as it would be written now
    "missing",  # nothing of ours is there
    "outdated",  # something of ours, but not this
    "refused",  # nothing can be done here; `error` and `remedy` say why
]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done to one file, or why it cannot be done.

    path     as the agent knows it; `real` where it really is
    state    of the hooks before
    old, new content before and after; None: no file
    is_kept  a copy of `old` is kept
    strays   files beside it that an older memd wrote, with their content: to be removed
    folders  made for it, innermost first: to be removed with it, as far as they are empty
    notices  what a person should know
    installed  what the record is to say; None: nothing is installed there afterwards
    """

    agent: str
    path: bytes
    form: str
    real: bytes = b""
    state: State = "refused"
    old: bytes | None = None
    new: bytes | None = None
    is_kept: bool = True
    strays: tuple[tuple[bytes, bytes], ...] = ()
    folders: tuple[bytes, ...] = ()
    notices: tuple[str, ...] = ()
    installed: Installed | None = None
    error: str = ""
    remedy: str = ""
    exit_status: int = 0

    @property
    def is_needed(self) -> bool:
        return self.old != self.new or bool(self.strays)

    def summary(self) -> str:
        """The diff, or a line where a whole file of memd's own comes or goes."""
        if self.form != "file" or (self.old is not None and self.new is not None):
            return self.diff()
        did, content = ("adds", self.new) if self.old is None else ("removes", self.old)
        whole = f"{did} {shown(self.path)}, {len(_lines(content))} lines of memd's own\n"
        return (whole if content else "") + "".join(f"removes {shown(path)}\n" for path, _ in self.strays)

    def diff(self) -> str:
        """A unified diff."""
        name = shown(self.path)
        lines = list(
            difflib.unified_diff(
                _lines(self.old),
                _lines(self.new),
                name if self.old is not None else "/dev/null",
                name + " (with --apply)" if self.new is not None else "/dev/null",
            )
        )
        removed = [f"removes {shown(path)}\n" for path, _ in self.strays]
        return "".join(line if line.endswith("\n") else line + "\n" for line in (*lines, *removed))


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "backslashreplace").splitlines(keepends=True)


# ----------------------------------------------------------------------------- planning


def plan_install(
    agent: str,
    hooks: Hooks,
    place: Settings,
    noted: Installed | None,
    interpreter: bytes,
    runs: Callable[[str], bool],
) -> Change:
    """
    noted        what the record says of this file
    interpreter  what new commands are run by
    runs         whether an interpreter that an installed command names still does
    """
    return _guarded(agent, place, lambda: _install(agent, hooks, place, noted, interpreter, runs))


def plan_installs(
    places: Iterable[Place], record: Record, interpreter: bytes, runs: Callable[[str], bool]
) -> list[Change]:
    """The plan for each place; see `plan_install`."""
    return [
        plan_install(
            place.agent,
            place.hooks,
            place.settings,
            record.of(place.agent, place.settings.path),
            interpreter,
            runs,
        )
        for place in places
    ]


def plan_uninstall(agent: str, hooks: Hooks, place: Settings, noted: Installed | None) -> Change:
    return _guarded(agent, place, lambda: _uninstall(agent, hooks, place, noted))


def _guarded(agent: str, place: Settings, plan: Callable[[], Change]) -> Change:
    """A plan, or a refusal that names the file: one file that cannot be edited does not stop the others."""
    try:
        return plan()
    except MemdError as reason:
        name = shown(place.path)
        said = str(reason)
        return Change(
            agent=agent,
            path=place.path,
            form=place.form,
            error=(said if name in said else f"{name}: {said}") + "; nothing was changed there",
            remedy=reason.remedy,
            exit_status=reason.exit_status,
        )


def _install(
    agent: str,
    hooks: Hooks,
    place: Settings,
    noted: Installed | None,
    interpreter: bytes,
    runs: Callable[[str], bool],
) -> Change:
    real, old = settings_files.read_through(place.path)
    if place.form == "file":
        return _install_file(agent, place, real, old, noted)
    text = settings_files.text(old)
    form = editor(place.form)
    mine = form.found(text)
    folders = _folders(real, noted)
    if not mine:
        noted = None  # of an install that never came to its end, or whose hooks somebody took out by hand
    wanted = [
        Wanted(
            event=event.name,
            command=_command(agent, hooks, event.name, mine, interpreter, runs),
            matcher=event.matcher,
            timeout_s=event.timeout_s,
            output_bytes=event.output_bytes,
        )
        for event in events_of(hooks, place)
    ]
    edited = form.install(text, wanted, noted.hollow if noted else None)
    new = edited.text.encode("utf-8")
    notices = [
        f"{event}: a longer command there runs our hook already; it was left as it is"
        for event in edited.mixed
    ]
    if new != old:
        notices += settings_files.linked_twice(real)
    return Change(
        agent=agent,
        path=place.path,
        form=place.form,
        real=real,
        state="current" if new == old else "outdated" if mine else "missing",
        old=old,
        new=new,
        is_kept=old is not None,
        notices=(*notices, *_moved(hooks, edited)),
        installed=Installed(
            agent=agent,
            path=place.path,
            form=place.form,
            hollow=edited.hollow,
            is_made=noted.is_made if noted else old is None,
            folders=folders,
        ),
    )


def _folders(real: bytes, noted: Installed | None) -> tuple[bytes, ...]:
    """What was or will be made for a file; what a killed install noted counts, too."""
    missing = files.missing_folders(real)
    return (*missing, *(folder for folder in (noted.folders if noted else ()) if folder not in missing))


class Editor(Protocol):
    """What puts hooks into settings of one form, and takes them out. All raise Refused."""

    def found(self, text: str) -> tuple[Found, ...]: ...

    def install(
        self, text: str, wanted: Sequence[Wanted], hollow: Mapping[str, str] | None = None
    ) -> Edited: ...

    def uninstall(self, text: str, hollow: Mapping[str, str] | None = None) -> Edited: ...


def editor(form: str) -> Editor:
    match form:
        case "json-flat":
            return hook_shapes.FLAT
        case "json-named":
            return hook_shapes.NAMED
        case "json-list":
            return hook_shapes.LISTED
        case "toml-hooks":
            return hook_toml
    return hook_settings


def events_of(hooks: Hooks, place: Settings) -> tuple[HookEvent, ...]:
    """The events that are written into that file."""
    return tuple(event for event in hooks.events if not place.events or event.name in place.events)


def _command(
    agent: str,
    hooks: Hooks,
    event: str,
    mine: Sequence[Found],
    interpreter: bytes,
    runs: Callable[[str], bool],
) -> str:
    """What is to be run for an event: what is installed, as long as only its interpreter differs and runs.

    A new virtual environment or Python must not cost a person's trust, which Codex ties to the text.
    """
    from memd.harness.hooking import command_words

    known = hooks.event(event)
    assert known is not None
    words = command_words(agent, known)
    hook_file = hook_files.hook_file()
    for one in mine:
        if one.event == event and one.own.interpreter:
            same = hook_command.compose(os.fsencode(one.own.interpreter), hook_file, words)
            if same == one.command and runs(one.own.interpreter):
                return same
    return hook_command.compose(interpreter, hook_file, words)


def _install_file(
    agent: str, place: Settings, real: bytes, old: bytes | None, noted: Installed | None
) -> Change:
    body = source(place.source)
    state = service_files.judge(old)
    if state == "foreign":
        raise Refused(
            f"{shown(place.path)} does not come from memd",
            remedy="Move it away, then repeat the command.",
        )
    is_current = old is not None and service_files.unmark(old)[1] == body and state == "ours"
    fresh = service_files.mark(body.decode("utf-8"), __version__, "// ")
    strays = tuple(_strays(place, real))
    return Change(
        agent=agent,
        path=place.path,
        form=place.form,
        real=real,
        state="current" if is_current and not strays else "missing" if old is None else "outdated",
        old=old,
        new=old if is_current else fresh,
        is_kept=state == "changed",
        strays=strays,
        notices=("it was edited since memd wrote it",) if state == "changed" else (),
        installed=Installed(
            agent=agent, path=place.path, form=place.form, is_made=True, folders=_folders(real, noted)
        ),
    )


def source(name: str) -> bytes:
    """A file of `hooks/`, which lies beside the package in a checkout and inside it in a wheel."""
    base = os.path.join(hook_files.PACKAGE, "_data", "hooks", name)
    found, _ = files.read(os.fsencode(os.path.realpath(base)))
    if found is None:
        raise CannotCreate(
            f"this installation of memd lacks hooks/{name}", remedy="Install memd again: it is incomplete."
        )
    return found


def _strays(place: Settings, real: bytes) -> list[tuple[bytes, bytes]]:
    """Files of ours under names that an older memd used."""
    found = []
    for name in place.stale:
        path = os.path.dirname(real) + b"/" + name
        content, _ = files.read(path)
        if content is not None and service_files.judge(content) in ("ours", "changed"):
            found.append((path, content))
    return found


def _uninstall(agent: str, hooks: Hooks, place: Settings, noted: Installed | None) -> Change:
    real, old = settings_files.read_through(place.path)
    folders = noted.folders if noted else ()
    none = Change(agent=agent, path=place.path, form=place.form, real=real, state="missing", old=old, new=old)
    if place.form == "file":
        state = service_files.judge(old)
        strays = tuple(_strays(place, real))
        notices = (f"{shown(place.path)} does not come from memd and stays",) if state == "foreign" else ()
        if state not in ("ours", "changed"):
            return msgspec.structs.replace(none, strays=strays, notices=notices)
        return msgspec.structs.replace(
            none, state="current", new=None, is_kept=state == "changed", strays=strays, folders=folders
        )
    if old is None:
        return none
    edited = editor(place.form).uninstall(settings_files.text(old), noted.hollow if noted else None)
    new: bytes | None = edited.text.encode("utf-8")
    if new == old:
        return msgspec.structs.replace(none, notices=_left_mixed(edited))
    is_ours_alone = place.form in ("json-own", "json-list") or (noted is not None and noted.is_made)
    if is_ours_alone and edited.text.split() in ([], ["{}"]):
        new = None
    return msgspec.structs.replace(
        none,
        state="current",
        new=new,
        is_kept=new is not None,
        folders=folders if new is None else (),
        notices=(*_left_mixed(edited), *settings_files.linked_twice(real), *_moved(hooks, edited)),
    )


def _moved(hooks: Hooks, edited: Edited) -> tuple[str, ...]:
    if not edited.moved or hooks.trust != "codex":
        return ()
    return (
        f"hooks of other tools for {', '.join(edited.moved)} now stand in another place of their list: "
        "Codex asks for trust in them again",
    )


def _left_mixed(edited: Edited) -> tuple[str, ...]:
    return tuple(
        f"{event}: a longer command there runs our hook; take it out by hand" for event in edited.mixed
    )


# -------------------------------------------------------------------------------- doing


def apply(change: Change, now_s: int | None = None) -> bytes | None:
    """Do what was planned, under `hook_record.lock`; the path of the copy that was kept.

    raises  Refused when the file is not what it was any more, DiskError
    """
    copy: bytes | None = None
    if change.old != change.new:
        facts = _facts(change)
        if change.is_kept and change.old is not None and facts is not None:
            copy = files.back_up(change.real, change.old, facts, int(time.time()) if now_s is None else now_s)
        try:
            if change.new is not None:
                files.write(change.real, change.new, change.old, 0o600, like=facts)
            elif change.old is not None:
                files.remove(change.real, change.old)
        except BaseException:
            if copy is not None:
                os.unlink(copy)
            raise
    for path, content in change.strays:
        files.remove(path, content)
    files.remove_empty_folders(change.folders)
    return copy


def _facts(change: Change) -> os.stat_result | None:
    if change.old is None:
        return None
    try:
        return os.stat(change.real)
    except FileNotFoundError:
        raise Refused(
            f"{shown(change.real)} went away meanwhile",
            remedy="Look what became of it, then repeat the command.",
        ) from None


def note_before(changes: Sequence[Change]) -> None:
    """Note what taking hooks out again has to know, before they are put in. Raises MemdError."""
    hook_record.note([change.installed for change in changes if change.installed is not None])


def note_after(changes: Sequence[Change]) -> None:
    """Forget of which hooks were taken out. Raises MemdError."""
    done = [change for change in changes if change.installed is None and change.state != "refused"]
    hook_record.note([], [(change.agent, change.path) for change in done])
