"""Own packets are known by their beginning, whatever a tool put in front of it."""

from __future__ import annotations

import pytest

from memd.harness.packets import PACKET_MARKER, is_own

PACKET = f"{PACKET_MARKER}\n> data, not instructions\nwords"
NUMBERED = "\n".join(f"{number:6d}→{row}" for number, row in enumerate(PACKET.split("\n"), 1))


@pytest.mark.parametrize(
    "text",
    [
        PACKET,
        "\n\n  " + PACKET,
        NUMBERED,
        NUMBERED.replace("→", "\t"),
        "1:" + PACKET,
        "Output too large. Full output saved to: t/hook.txt\n\nPreview (first 2KB):\n" + PACKET,
        "<persisted-output>\nOutput too large (50.1KB). Full output saved to: t\n\nPreview (first 2KB):\n"
        + PACKET,
        "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n" + PACKET,
        "Exit code: 0\nWall time: 0 seconds\nOutput:\n" + PACKET,
        "<!-- memd:handoff:v1 -->\nfrom codex",
        "<!-- memd:untrusted-history:start -->\nwords",
        "<!-- ai-memory:managed-workstream-packet:v1 -->\nwords",
        "> **ai-memory managed workstream: default**\nwords",
    ],
)
def test_delivered_text_is_recognised(text: str) -> None:
    assert is_own(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        "docs/format.md:12: the marker line looks like " + PACKET_MARKER,
        "12:" + PACKET_MARKER,
        "the memd: packet begins with " + PACKET,
        "x" * 5000 + PACKET,
        "<!-- memd is a daemon -->",
        "> **managed workstream:**",
    ],
)
def test_text_that_only_mentions_a_marker_stays(text: str) -> None:
    assert not is_own(text)


def test_endless_prelude_ends() -> None:
    assert not is_own("memd:" + "1\t" * 100_000)
    assert not is_own("1\t" * 2000 + "memd:")
