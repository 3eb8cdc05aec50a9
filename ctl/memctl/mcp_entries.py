"""Where each agent keeps its MCP servers, and its settings with memd's entry among them. Pure.

    claude    ~/.claude.json, or .claude.json in $CLAUDE_CONFIG_DIR   mcpServers.memd
    codex     $CODEX_HOME or ~/.codex, config.toml                    [mcp_servers.memd]
    opencode  opencode.jsonc or opencode.json in its config folder    mcp.memd
    kimi      $KIMI_CODE_HOME or ~/.kimi-code, mcp.json               mcpServers.memd
    crush     $CRUSH_GLOBAL_CONFIG or its config folder, crush.json   mcp.memd

source  Claude Code 2.1.197, codex-cli 0.171.0, OpenCode 1, Kimi Code 2.1; Crush 0.96 by its documentation;
        all read 2026-11
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from memctl import json_edit
from memd.errors import Refused

NAME = "memd"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's settings. `path` is where they are or would be."""

    agent: str
    path: bytes
    edit: Callable[[str], str]  # the settings with our entry; the same text when it is there. raises Refused


def target(
    agent: str,
    home: bytes,
    variables: Mapping[str, bytes],
    exists: Callable[[bytes], bool],
    command: Sequence[str],
) -> Target:
    """
    variables  the shell's environment, for the places that the agents' own variables name
    exists     whether there is such a file
    command    what starts the server
    raises     Refused for an agent whose settings memd does not know
    """

    def place(variable: str, otherwise: bytes) -> bytes:
        chosen = variables.get(variable, b"")
        return chosen.rstrip(b"/") if chosen.strip() and chosen.startswith(b"/") else home + otherwise

    config = place("XDG_CONFIG_HOME", b"/.config")
    program, arguments = command[0], list(command[1:])
    match agent:
        case "claude":
            folder = place("CLAUDE_CONFIG_DIR", b"")
            entry: Any = {"type": "stdio", "command": program, "args": arguments}
            return _json(agent, folder + b"/.claude.json", ("mcpServers", NAME), entry)
        case "codex":
            path = place("CODEX_HOME", b"/.codex") + b"/config.toml"
            return Target(agent=agent, path=path, edit=lambda text: with_codex(text, program, arguments))
        case "opencode":
            folder = config + b"/opencode"
            name = b"/opencode.jsonc" if exists(folder + b"/opencode.jsonc") else b"/opencode.json"
            entry = {"type": "local", "command": [program, *arguments], "enabled": True}
            return _json(agent, folder + name, ("mcp", NAME), entry)
        case "kimi":
            entry = {"command": program, "args": arguments}
            return _json(
                agent, place("KIMI_CODE_HOME", b"/.kimi-code") + b"/mcp.json", ("mcpServers", NAME), entry
            )
        case "crush":
            chosen = variables.get("CRUSH_GLOBAL_CONFIG", b"")
            folder = chosen if chosen.strip() and chosen.startswith(b"/") else config + b"/crush"
            entry = {"type": "stdio", "command": program, "args": arguments}
            return _json(agent, folder + b"/crush.json", ("mcp", NAME), entry)
    raise Refused(
        f"memd does not know where {agent} keeps its MCP servers",
        remedy="Use one of: claude, codex, opencode, kimi, crush; or name `memctl mcp` there by hand.",
    )


def _json(agent: str, path: bytes, keys: tuple[str, ...], entry: Any) -> Target:
    return Target(agent=agent, path=path, edit=lambda text: json_edit.put(text, keys, entry))


def with_codex(text: str, program: str, arguments: Sequence[str]) -> str:
    """Codex's settings with our server; every other byte as it was. raises Refused"""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    entry = {"command": program, "args": list(arguments)}
    try:
        document = tomlkit.parse(text)
        if tomlkit.dumps(document) != text:
            raise Refused(
                "the file is written in a way that cannot be edited safely", remedy=json_edit.REMEDY
            )
        before = document.unwrap()
        servers = before.get("mcp_servers", {})
        if not isinstance(servers, dict):
            raise Refused("mcp_servers is no table", remedy=json_edit.REMEDY)
        wanted = {**before, "mcp_servers": {**servers, NAME: {**servers.get(NAME, {}), **entry}}}
        if wanted == before:
            return text
        if NAME in servers:
            table = document["mcp_servers"][NAME]
            table["command"] = program
            table["args"] = list(arguments)
            made = tomlkit.dumps(document)
        else:
            fresh = tomlkit.document()
            fresh.update(entry)
            made = f"{text}{_gap(text)}[mcp_servers.{NAME}]\n{tomlkit.dumps(fresh)}"
        if tomlkit.parse(made).unwrap() != wanted:
            raise Refused("the entry does not fit into the file as it is", remedy=json_edit.REMEDY)
    except TOMLKitError as reason:
        raise Refused(f"the file is not TOML: {reason}", remedy=json_edit.REMEDY) from None
    return made


def _gap(text: str) -> str:
    if not text:
        return ""
    return "\n" if text.endswith("\n") else "\n\n"
