"""What memd knows about a harness's hooks: which events, what they carry, what is printed. Pure values.

A hook's command is `INTERPRETER -I -S HOOK_FILE` and the words that `command_words` gives, the same for every
harness that runs commands. Plug-ins and extensions (`hooks/`) speak to the socket themselves: the events are
`PLUGIN_EVENTS`, stdin is the JSON object that `hear_plugin` reads, the answer is the bare text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from memd.harness.model import Environment, Parsed

Role = Literal[
    "start",  # a session begins or goes on: link it, answer with what there is to tell
    "link",  # a session begins: link it; what there is to tell is asked for by another event
    "prompt",  # a person's prompt: the id is certain now
    "activity",  # something was written: look at its transcript
    "end",  # the session ended
]

MAX_TEXT = 4096  # characters of an id, a directory or a path in a payload; a longer one is not believed


class HookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a harness that memd listens to.

    name       as the harness calls it, and as it stands in the installed command
    harmless   what is printed when anything at all goes wrong: exactly these bytes
    matters    the answer matters: wait up to 2 s for a busy daemon, else 250 ms
    may_tell   a text that is told here reaches the model too: for what the start could not be told
    keeps      the text of the payload exists nowhere else: it is kept when the daemon is away
    is_each_turn  of a start: it comes with every turn, and only the first of a conversation is its start
    matcher    for settings files that want one; None: leave the key out
    timeout_s  what the settings file says; 0: leave the key out
    output_bytes  how much the settings file allows it to print, where they say so; 0: leave the key out
    """

    name: str
    role: Role
    harmless: str = ""
    matters: bool = False
    may_tell: bool = False
    keeps: bool = False
    is_each_turn: bool = False
    matcher: str | None = None
    timeout_s: int = 0
    output_bytes: int = 0


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What the payload of a hook says. Empty: it does not say.

    harness    another one than asked, where a harness runs a foreign harness's hooks (Claude's under Grok)
    is_inner   of a sub-agent or an agent started by the agent: links nothing, is told nothing
    is_again   the same conversation goes on in the same process (compact): what memory says may be repeated
    is_clear   a new conversation was begun in the same process
    is_new     the conversation was begun just now; whether its process had one before is not said
    variables  the store variables that the session goes by, as far as the place of its transcript shows them
    """

    session: str = ""
    cwd: str = ""
    transcript: str = ""
    harness: str = ""
    is_inner: bool = False
    is_again: bool = False
    is_clear: bool = False
    is_new: bool = False
    variables: Mapping[str, bytes] = {}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A settings file that hooks are written into, or a file of memd's own that the harness loads.

    path    absolute; two of them may turn out to be one file through links
    form    json-hooks  an object with `hooks`: event -> groups of handlers (Claude Code, Codex and their kin)
            toml-hooks  tables of a TOML file
            file        a file of its own: `source` names it in `hooks/`
            json-own    as json-hooks, in a file that belongs to memd alone
            json-flat   an object with `hooks`: event -> handlers, which are no more than commands (Kiro)
            json-named  an object in which each tool has hooks under its own name (Antigravity)
            json-list   an object with `hooks`: a list of hooks that have names (Kiro)
    source  of `file`: its name below `hooks/`
    stale   names beside `path` that an older memd wrote: replaced, never doubled
    events  those of the harness that are written here; empty: all
    each    a pattern of names: `path` is a folder, and each file in it that there is gets the hooks, all of
            them or none. No file is made for their sake
    """

    path: bytes
    form: Literal["json-hooks", "json-own", "json-flat", "json-named", "json-list", "toml-hooks", "file"]
    source: str = ""
    stale: tuple[bytes, ...] = ()
    events: tuple[str, ...] = ()
    each: str = ""


class Caveat(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps installed hooks from running, or what they cost: said on installing and by `doctor`.

    is_off  they do not run at all
    """

    message: str
    remedy: str
    is_off: bool = False


Look = Callable[[bytes], bytes | None]


def no_caveats(settings: Settings, cwd: bytes, look: Look) -> tuple[Caveat, ...]:
    return ()


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    """All that memd knows about one harness's hooks.

    events    what is listened to, in the order in which it is installed
    settings  where hooks are written, for an environment: one per login, folder or file
    hear      what a payload says, given the event and the payload (an object; anything else comes as an empty
              one); raises nothing, whatever is in it
    answer    what is printed for a text to be told, given the event and the text; of an empty text what is
              printed when there is nothing to tell
    wrapper   the longest that `answer` puts round a text: takes part in the output limit
    is_escaped  the text goes into a JSON string
    owns_memory  it keeps an agent's memory in its logins: the link there is put right at a start
    trust     hooks do not run before the harness was told to trust them
    events_of  what a payload says that exists nowhere else, given the event, the payload and when it came in
              milliseconds; with the session's id and directory. Raises nothing
    caveats   what a person should know of hooks that stand in these settings, given the working directory and
              a look at files (their content, None where there is none); raises nothing
    """

    events: tuple[HookEvent, ...]
    settings: Callable[[Environment], tuple[Settings, ...]]
    hear: Callable[[str, Mapping[str, object]], Heard]
    answer: Callable[[str, str], str]
    wrapper: str = ""
    is_escaped: bool = True
    owns_memory: bool = False
    trust: Literal["", "codex"] = ""
    events_of: Callable[[str, Mapping[str, object], int], Parsed] | None = None
    caveats: Callable[[Settings, bytes, Look], tuple[Caveat, ...]] = no_caveats

    def event(self, name: str) -> HookEvent | None:
        return next((one for one in self.events if one.name == name), None)


def command_words(harness: str, event: HookEvent) -> tuple[str, ...]:
    """The words of an installed command after the hook file: short, and the same after every upgrade."""
    return (
        harness,
        event.name,
        *(("--wait",) if event.matters else ()),
        *(("--keep",) if event.keeps else ()),
        *(("--else", event.harmless) if event.harmless else ()),
    )


def folder(environment: Environment, variable: str, usual: bytes) -> bytes:
    """The folder that an absolute variable names, else the usual one below the home; no slash at its end."""
    chosen = environment.variables.get(variable, b"")
    return (chosen if chosen.startswith(b"/") else environment.home + b"/" + usual).rstrip(b"/")


def text(payload: Mapping[str, object], *names: str) -> str:
    """The first of these members that is a text of a believable length; empty for none."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value and len(value) <= MAX_TEXT and "\0" not in value:
            return value
    return ""


def json_object(content: bytes | None) -> Mapping[str, object]:
    """What a small JSON file says; an empty object when it is none, is missing or is not understood."""
    try:
        found = msgspec.json.decode(content or b"{}")
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")


def above(path: str, folder: str, depth: int) -> bytes:
    """What stands before `/FOLDER/` and `depth` more parts of a path; empty when that is not how it ends."""
    parts = path.rsplit("/", depth + 1)
    if len(parts) != depth + 2 or parts[1] != folder or not parts[0].startswith("/"):
        return b""
    return parts[0].encode("utf-8", "surrogatepass")


def context_json(event: str, told: str) -> str:
    """The answer in which Claude Code, Codex and their kin take a text for the model."""
    whole = told.encode("utf-8", "replace").decode()  # half a surrogate pair is no text
    answer = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": whole}}
    return msgspec.json.encode(answer).decode()


# ------------------------------------------------------------------------ plug-ins that speak to the socket

PLUGIN_EVENTS = (
    HookEvent(name="start", role="link"),
    HookEvent(name="context", role="start", matters=True),
    HookEvent(name="prompt", role="prompt"),
    HookEvent(name="activity", role="activity"),
    HookEvent(name="end", role="end"),
)
"""`start` a session began. `context` what is to stand before the model, asked for once per session, when the
model is about to be called. `prompt` a person's prompt. `activity` something was written. `end` it ended."""


def hear_plugin(event: str, payload: Mapping[str, object]) -> Heard:
    """`{session_id, cwd, transcript_path?, is_inner?, reason?}`, written by our own plug-ins.

    reason  `clear`: a new conversation in the same process; `compact`: the same one, shortened
    """
    return Heard(
        session=text(payload, "session_id"),
        cwd=text(payload, "cwd"),
        transcript=text(payload, "transcript_path"),
        is_inner=payload.get("is_inner") is True,
        is_again=payload.get("reason") == "compact",
        is_clear=payload.get("reason") == "clear",
    )


def answer_plugin(event: str, told: str) -> str:
    """The bare text."""
    return told
