"""What OpenCode calls memd for: a plug-in that speaks to the socket itself.

    <config folder>/plugin/memd.ts    loaded at start; `XDG_CONFIG_HOME` moves the config folder

One file serves both generations of plug-ins: a function of the first, an object with `setup` of the second.

    source  OpenCode 1.18.33, seen 2026-11
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.harness.hooking import PLUGIN_EVENTS, Hooks, Settings, answer_plugin, folder, hear_plugin

if TYPE_CHECKING:
    from memd.harness.model import Environment


def settings(environment: Environment) -> tuple[Settings, ...]:
    """The plug-in folder of the config folder that the environment names."""
    path = folder(environment, "XDG_CONFIG_HOME", b".config") + b"/opencode/plugin/memd.ts"
    return (Settings(path=path, form="file", source="opencode.ts"),)


HOOKS = Hooks(
    events=PLUGIN_EVENTS,
    settings=settings,
    hear=hear_plugin,
    answer=answer_plugin,
    is_escaped=False,
)
