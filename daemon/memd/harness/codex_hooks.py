"""What Codex calls memd for."""

from __future__ import annotations

from memd.harness.hooking import Hooks

HOOKS: Hooks | None = None
