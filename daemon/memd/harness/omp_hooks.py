"""What OMP calls memd for: an extension that speaks to the socket itself.

    <agent dir>/extensions/memd-omp.ts    loaded from nowhere else

The agent dir, in this order: that of a named profile (`OMP_PROFILE`, else `PI_PROFILE`; `default` is none),
`PI_CODING_AGENT_DIR`, `~/.omp/agent`. `PI_CONFIG_DIR` renames `~/.omp`. A profile named on OMP's own command
line is not known here: install with `OMP_PROFILE` set. `XDG_DATA_HOME` moves sessions, never extensions.

    source  OMP 18.2.3, seen 2026-11
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.harness.hooking import PLUGIN_EVENTS, Hooks, Settings, answer_plugin, folder, hear_plugin

if TYPE_CHECKING:
    from memd.harness.model import Environment


def settings(environment: Environment) -> tuple[Settings, ...]:
    """The extension in the agent dir that the environment names."""
    path = agent_dir(environment) + b"/extensions/memd-omp.ts"
    return (Settings(path=path, form="file", source="omp.ts", stale=(b"memd.ts",)),)


def agent_dir(environment: Environment) -> bytes:
    """Where OMP keeps its settings and extensions, without a slash at the end."""
    variables = environment.variables
    config = (variables.get("PI_CONFIG_DIR") or b".omp").strip(b"/")
    profile = variables.get("OMP_PROFILE", variables.get("PI_PROFILE", b""))
    if profile not in (b"", b"default", b".", b"..") and b"/" not in profile:
        return environment.home + b"/" + config + b"/profiles/" + profile + b"/agent"
    return folder(environment, "PI_CODING_AGENT_DIR", config + b"/agent")


HOOKS = Hooks(
    events=PLUGIN_EVENTS,
    settings=settings,
    hear=hear_plugin,
    answer=answer_plugin,
    is_escaped=False,
)
