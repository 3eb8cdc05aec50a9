"""What memd knows about a harness's hooks: which events, what they carry, what is printed. Pure values.

A hook's command is `INTERPRETER -I -S HOOK_FILE HARNESS EVENT --else ANSWER`, the same for every harness that
runs commands. Plug-ins and extensions (`hooks/`) speak to the socket themselves, with the same harness and
event names and a JSON object of the same keys as stdin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from memd.harness.model import Environment

Role = Literal[
    "start",  # a session begins or goes on: link it, answer with what there is to tell
    "prompt",  # a person's prompt: the id is certain now; answered only where the start could not be
    "activity",  # something was written: look at its transcript
    "end",  # the session ended
]


class HookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a harness that memd listens to.

    name       as the harness calls it, and as it stands in the installed command
    harmless   what is printed when anything at all goes wrong: exactly these bytes
    matters    the answer matters: wait up to 2 s for a busy daemon, else 250 ms
    matcher    for settings files that want one; None: leave the key out
    timeout_s  what the settings file says; 0: leave the key out
    """

    name: str
    role: Role
    harmless: str = ""
    matters: bool = False
    matcher: str | None = None
    timeout_s: int = 0


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What the payload of a hook says. Empty: it does not say.

    harness    another one than asked, where a harness runs a foreign harness's hooks (Claude's under Grok)
    is_inner   of a sub-agent or an agent started by the agent: links nothing, is told nothing
    is_again   the same conversation goes on in the same process (resume inside, clear, compact)
    is_clear   a new conversation was begun in the same process
    """

    session: str = ""
    cwd: str = ""
    transcript: str = ""
    harness: str = ""
    is_inner: bool = False
    is_again: bool = False
    is_clear: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A settings file that hooks are written into, or a file of memd's own that the harness loads.

    path    absolute
    form    json-hooks  an object with `hooks`: event -> groups of handlers (Claude Code, Codex and their kin)
            toml-hooks  tables of a TOML file
            file        a file of its own: `source` names it in `hooks/`
            json-own    as json-hooks, in a file that belongs to memd alone
    source  of `file`: its name below `hooks/`
    stale   names beside `path` that an older memd wrote: replaced, never doubled
    """

    path: bytes
    form: Literal["json-hooks", "json-own", "toml-hooks", "file"]
    source: str = ""
    stale: tuple[bytes, ...] = ()


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """All that memd knows about one harness's hooks.

    events    what is listened to, in the order in which it is installed
    settings  where hooks are written, for an environment: one per login, folder or file
    hear      what a payload says, given the event, the payload (an object; anything else comes as an empty
              one) and the variables of the hook's environment that `variables` names; raises nothing
    answer    what is printed for a text to be told, given the event and the text; of an empty text what is
              printed when there is nothing to tell
    wrapper   what `answer` puts round a text of the start event: takes part in the output limit
    is_escaped  the text goes into a JSON string
    trust     hooks do not run before the harness was told to trust them
    """

    events: tuple[HookEvent, ...]
    settings: Callable[[Environment], tuple[Settings, ...]]
    hear: Callable[[str, Mapping[str, object]], Heard]
    answer: Callable[[str, str], str]
    wrapper: str = ""
    is_escaped: bool = True
    trust: Literal["", "codex"] = ""

    def event(self, name: str) -> HookEvent | None:
        return next((one for one in self.events if one.name == name), None)
