"""What OpenCode calls memd for: a plug-in that speaks to the socket itself.

    <config folder>/plugin/memd.ts    loaded at start; `XDG_CONFIG_HOME` moves the config folder

One file serves both generations of plug-ins: a function of the first, an object with `setup` of the second.

At every start OpenCode sees to it that its helper package is in the config folder, and with any plug-in it
waits for that: about 4 s once, 71 s at every start without a network. It looks only whether `node_modules` is
there and the lock file names the package, and all that `package.json` asks for, in whatever version.

    source  OpenCode 1.18.33, seen 2026-11
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from memd.harness.hooking import (
    PLUGIN_EVENTS,
    Caveat,
    Hooks,
    Look,
    Settings,
    answer_plugin,
    folder,
    hear_plugin,
    json_object,
    shown,
)

if TYPE_CHECKING:
    from memd.harness.model import Environment


def settings(environment: Environment) -> tuple[Settings, ...]:
    """The plug-in folder of the config folder that the environment names."""
    path = folder(environment, "XDG_CONFIG_HOME", b".config") + b"/opencode/plugin/memd.ts"
    return (Settings(path=path, form="file", source="opencode.ts"),)


def caveats(place: Settings, cwd: bytes, look: Look) -> tuple[Caveat, ...]:
    """The wait for the helper package, while it is not there."""
    config = place.path.rpartition(b"/plugin/")[0]
    lock = json_object(look(config + b"/package-lock.json")).get("packages")
    root = lock.get("") if isinstance(lock, dict) else None
    wanted = {HELPER, *_dependencies(json_object(look(config + b"/package.json")))}
    has_it = look(config + b"/node_modules/" + HELPER.encode() + b"/package.json") is not None
    if has_it and isinstance(root, dict) and wanted <= _dependencies(root):
        return ()
    where = shown(config)
    return (
        Caveat(
            message=f"OpenCode lacks its helper package in {where}: with a plug-in there it fetches that at "
            "its next start and waits: some seconds once, over a minute at every start without a network",
            remedy=f"Run `npm install --prefix {shlex.quote(where)} {HELPER}` (64 MB), or start OpenCode "
            "once with a network; `npm config set fetch-retries 0` makes starts without one quick.",
        ),
    )


def _dependencies(package: Mapping[str, object]) -> set[str]:
    kinds = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
    return {name for kind in kinds if isinstance(named := package.get(kind), dict) for name in named}


HELPER = "@opencode-ai/plugin"

HOOKS = Hooks(
    events=PLUGIN_EVENTS,
    settings=settings,
    hear=hear_plugin,
    answer=answer_plugin,
    is_escaped=False,
    caveats=caveats,
)
