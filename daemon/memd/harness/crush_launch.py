"""How Crush is started, and how a session of it is told what it has not seen.

    crush [options]                     a session on the screen
    crush [options] run [prompt...]     one without a screen, which asks for no permissions
    crush COMMAND ...                   in the first place only
    --session ID, --continue            also in front of `run`

Crush has no hook at the start of a session. Its global configuration names files that go into every prompt,
and `CRUSH_GLOBAL_CONFIG` names the folder of that configuration: a child that is to be told something gets a
private folder with a copy that names one file more. A list that is empty there stands for two files of
Crush's own, which have to be named too then. A `crushrc`, the script that came to take the place of the JSON
file, is run where it lies, and one line follows it.

    source  descriptions of Crush up to 0.96 and its published command line, read 2026-12; not run
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from memd.errors import ConfigError
from memd.harness.arguments import HELP, NO_SESSION, Grammar, inserted, is_first, is_usable, names, scan
from memd.harness.crush_store import MOVED, NAMED, folders
from memd.harness.launching import Argv, Delivered, Doorway, Intent, Launch, Said
from memd.harness.model import Environment

PACKET = "managed-workstream.md"

_SESSION = ("--session", "-s")
_SELECTORS = (*_SESSION, "--continue", "-C")
_YOLO = ("--yolo", "-y")
_RUN = ("run", "r")
_UTILITIES = names(
    "completion dirs help login logout logs models projects schema server session stats update-providers"
)
_GRAMMAR = Grammar(
    valued=names("--session -s --data-dir -D --cwd -c --host -H --model -m --small-model"),
    switches=names("--continue -C --yolo -y --debug -d --quiet -q --verbose --version -v")
    | {*HELP, *NO_SESSION},
    clusters=True,
)


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    session = found.value(*_SESSION)
    is_run = found.command(_RUN) is not None
    shows_version = found.has("--version") or (found.has("-v") and not is_run)  # of `run` it is `--verbose`
    moved, data = found.value("--cwd", "-c"), found.value("--data-dir", "-D")
    return Said(
        is_passing=found.is_torn
        or shows_version
        or found.has(*HELP, *NO_SESSION)
        or is_first(native, _UTILITIES),
        is_batch=is_run,
        has_selector=found.has(*_SELECTORS),
        session=session if is_usable(session) else "",
        folders={
            **({MOVED: moved} if moved else {}),
            **({NAMED: posixpath.join(moved, data)} if data else {}),
        },
    )


def compose(native: Sequence[str], intent: Intent) -> Argv:
    found = scan(native, _GRAMMAR)
    ours = ["--session", intent.session] if intent.session else []
    if intent.is_yolo and not found.has(*_YOLO) and found.command(_RUN) is None:
        ours.append("--yolo")
    return Argv(arguments=inserted(native, 0, ours), session=intent.session)


# ----------------------------------------------------------------------------------------- the way in


def deliver(text: str, argv: Argv, doorway: Doorway) -> Delivered:
    """The child with a private folder of configuration that names the text among the global context files.

    raises  ConfigError for a configuration that cannot be copied: what a person set there must not be lost
    """
    config, _ = folders(Environment(home=doorway.home, variables=doorway.variables))
    shown = config.decode("utf-8", "backslashreplace")
    settings = _settings(doorway.read(config + b"/crush.json"), f"{shown}/crush.json")
    try:
        folder, usual = doorway.folder.decode("utf-8"), config.decode("utf-8")
    except UnicodeDecodeError:
        notice = "Crush is not told what it has not seen: a path in its configuration would be no UTF-8"
        return Delivered(argv=replace(argv, notices=(*argv.notices, notice)), is_told=False)
    packet = f"{folder}/{PACKET}"
    options = settings["options"] = settings.get("options") or {}
    listed = options.get("global_context_paths") or [
        f"{usual}/CRUSH.md",
        f"{posixpath.dirname(usual)}/AGENTS.md",
    ]
    options["global_context_paths"] = [*listed, packet]
    files = {
        PACKET: text.encode("utf-8", "replace"),
        "crush.json": json.dumps(settings, indent=2).encode(),
    }
    if doorway.read(config + b"/crushrc") is not None:
        lines = (f"cd {_quoted(usual)}", ". ./crushrc", f"option global-context-path {_quoted(packet)}")
        files["crushrc"] = "\n".join((*lines, "")).encode()
    return Delivered(argv=replace(argv, set={**argv.set, "CRUSH_GLOBAL_CONFIG": folder}), files=files)


def _settings(content: bytes | None, shown: str) -> dict[str, Any]:
    """The configuration as it is; an empty file and `null` are an empty one. raises ConfigError"""
    if not content or not content.strip():
        return {}
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise _refused(shown, "is not JSON") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _refused(shown, "is not an object")
    options = found.get("options")
    if options is not None and not isinstance(options, dict):
        raise _refused(shown, "has options that are not an object")
    listed = None if options is None else options.get("global_context_paths")
    if listed is not None and not (isinstance(listed, list) and all(isinstance(one, str) for one in listed)):
        raise _refused(shown, "has global_context_paths that are not a list of texts")
    return found


def _refused(shown: str, why: str) -> ConfigError:
    return ConfigError(
        f"Crush's configuration {shown} {why}, so no copy of it can name one file more",
        remedy="Correct the file, or start Crush by its own name.",
    )


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"


LAUNCH = Launch(
    executables=("crush",),
    is_pooled=True,
    variables=("CRUSH_GLOBAL_CONFIG", "CRUSH_GLOBAL_DATA"),
    read=read,
    compose=compose,
    deliver=deliver,
)
