"""Text that memd itself put in front of a model, recognised when it comes back through a transcript.

Agents keep what a hook gave them: as a file that the model then reads, as a tool result, as a preview of a
long output. Importing that would make every packet part of the next one. A text is ours when its *beginning*
is one of our markers; a marker further inside is a quotation and stays.

    source  Claude Code 2.1.197 (numbered lines, previews), codex-cli 0.171.0 (output headers), read 2026-11
"""

from __future__ import annotations

import re

PACKET_MARKER = "<!-- memd:workstream-packet:v1 -->"
"""The first line of every packet."""

_WINDOW = 4096  # characters looked at; every prelude below is far shorter

_MARKERS = re.compile(
    r"<!-- memd:[a-z][a-z0-9-]*(?::[a-z0-9-]+)* -->"  # packet, handoff, memory block, search result
    r"|<!-- ai-memory:(?:managed-workstream-packet|untrusted-history)(?::[a-z0-9-]+)* -->"
    r"|> \*\*ai-memory managed workstream:"  # the peer's header before it had a marker
)

_PRELUDE = re.compile(
    r"(?:<persisted-output>\s*)?(?:Output too large[^\n]*\n\s*)?(?:Preview \(first [^\n]*\n)"
    r"|(?:Chunk ID|Exit code|Wall time|Process exited|Original token count|Total output lines)[^\n]*\n"
    r"|Output:\n"
    r"|\d{1,7}[ ]*(?:→|\t|\|)|0*1:"  # a line number; `12:` alone is what grep prints, and a quotation
    r"|\s+"
)


def is_own(text: str) -> bool:
    """Whether the text begins with something memd delivered, whatever a tool put in front of it."""
    if text.find("memd:", 0, _WINDOW) < 0 and text.find("ai-memory", 0, _WINDOW) < 0:
        return False
    head = text[:_WINDOW]
    at = 0
    while (match := _PRELUDE.match(head, at)) and match.end() > at:
        at = match.end()
    return _MARKERS.match(head, at) is not None
