"""What Pi calls memd for: an extension that speaks to the socket itself.

    <agent dir>/extensions/memd-pi.ts    every `*.ts` there is loaded without a question

OMP honours the same variable for its agent dir and also loads all that lies in `extensions`: two programs on
one folder would each load both. The name says whose it is, and the extension leaves when the other loads it.

    source  Pi 1.6.0, seen 2026-11
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.harness.hooking import PLUGIN_EVENTS, Hooks, Settings, answer_plugin, folder, hear_plugin

if TYPE_CHECKING:
    from memd.harness.model import Environment


def settings(environment: Environment) -> tuple[Settings, ...]:
    """The extension in the agent dir that the environment names."""
    path = folder(environment, "PI_CODING_AGENT_DIR", b".pi/agent") + b"/extensions/memd-pi.ts"
    return (Settings(path=path, form="file", source="pi.ts"),)


HOOKS = Hooks(
    events=PLUGIN_EVENTS,
    settings=settings,
    hear=hear_plugin,
    answer=answer_plugin,
    is_escaped=False,
)
