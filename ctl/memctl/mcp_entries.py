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

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from memctl import json_edit
from memd.errors import Refused

NAME = "memd"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's settings. `path` is where they are or would be.

    edit    the settings with our entry; the same text when it is there. raises Refused
    remove  the settings without it; the same text when it is not there. raises Refused
    """

    agent: str
    path: bytes
    edit: Callable[[str], str]
    remove: Callable[[str], str]


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
            return Target(
                agent=agent,
                path=path,
                edit=lambda text: with_codex(text, program, arguments),
                remove=without_codex,
            )
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
    return Target(
        agent=agent,
        path=path,
        edit=lambda text: json_edit.put(text, keys, entry),
        remove=lambda text: without_json(text, keys),
    )


def without_json(text: str, keys: Sequence[str]) -> str:
    """The settings without what stands under the last key, and without an object that is empty by that."""
    if json_edit.is_blank(text):
        return text
    document = json_edit.parse(text)
    parent = document
    for key in keys[:-1]:
        parent = parent.get(key) if isinstance(parent, dict) else None
    if not isinstance(parent, dict) or keys[-1] not in parent:
        return text
    made = json_edit.drop(text, keys)
    del parent[keys[-1]]
    if not parent and not (json_edit.inside(made, keys[:-1]) or "").strip():
        made = json_edit.drop(made, keys[:-1])
        del document[keys[0]]
    return json_edit.checked(made, document)


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


def without_codex(text: str) -> str:
    """Codex's settings without our server; every other byte as it was. raises Refused"""
    try:
        before = tomllib.loads(text)
    except (ValueError, RecursionError) as reason:
        raise Refused(f"the file is not TOML: {reason}", remedy=json_edit.REMEDY) from None
    servers = before.get("mcp_servers", {})
    if not isinstance(servers, dict) or NAME not in servers:
        return text
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    kept: list[str] = []
    is_inside = False
    for line in lines:
        if _own_table.match(line):
            is_inside = True
            if kept and not kept[-1].strip():
                kept.pop()  # the empty line that came with it
        elif is_inside and _boundary.match(line):
            is_inside = False
        if not is_inside:
            kept.append(line)
    made = "".join(kept)
    left = {key: value for key, value in servers.items() if key != NAME}
    rest = {key: value for key, value in before.items() if key != "mcp_servers"}
    try:
        after = tomllib.loads(made)
    except ValueError:
        after = {}
    if after != ({**rest, "mcp_servers": left} if left else rest):
        raise Refused(
            "memd's entry is written in a way that cannot be taken out safely",
            remedy="Take [mcp_servers.memd] out by hand.",
        )
    return made


_key = r"[ \t]*[\"']?%s[\"']?[ \t]*"
_own_table = re.compile(rf"[ \t]*\[{_key % 'mcp_servers'}\.{_key % NAME}(\.[^\]]*)?\][ \t]*(#.*)?\r?\n?$")
_boundary = re.compile(r"[ \t]*(\[|#|\r?\n|$)")


def _gap(text: str) -> str:
    if not text:
        return ""
    return "\n" if text.endswith("\n") else "\n\n"
