"""Whether the start hook of a harness adds the memory block. Pure.

By itself it follows `shared_dir`. Where openclaude-memory (in OpenCode) or openpi-memory (in Pi) use the same
folder they put the very index before the model already; then memd does not do so again.
"""

from __future__ import annotations

from typing import Literal

Setting = Literal["auto", "always", "never"]


def reason_against(
    setting: Setting, *, is_shared: bool, harness: str, sharing: frozenset[str], error: str
) -> str:
    """Why there is no block; empty when there is one.

    sharing  the harnesses in which another tool uses the shared folder
    error    what is wrong with `memory.jsonc`
    """
    if setting == "never":
        return "[memory] inject is never"
    if error and setting == "auto" and not is_shared:
        return "memory.jsonc is broken"
    if setting == "auto" and not is_shared:
        return "the shared folder is not in use"
    if is_shared and harness in sharing:
        return f"another tool gives {harness} the shared memory already"
    return ""
