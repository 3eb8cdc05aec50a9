"""memctl mcp: a stdio MCP server with the memory tools and the search in what was said."""

from __future__ import annotations

import argparse
import sys

from memd.errors import UsageError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    subparsers.add_parser(
        "mcp",
        description="Serve the memory tools and the search over stdio, for any agent that speaks MCP. "
        "`memctl install-mcp` writes the entry into an agent's settings.",
    )


def run(options: argparse.Namespace) -> int:
    try:
        from memctl import mcp_server
    except ModuleNotFoundError as reason:
        if (reason.name or "").partition(".")[0] not in ("mcp", "anyio"):
            raise
        raise UsageError(
            "the MCP server needs the official SDK, which is not installed",
            remedy=f"Install it beside memd: {sys.executable} -m pip install 'mcp>=2,<3'",
        ) from None
    return mcp_server.run()
