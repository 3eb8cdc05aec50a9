"""What is said about trust after hooks were installed, and done where a person wants it."""

from __future__ import annotations

import sys

from memctl import asking
from memctl.hooks import places as hook_places
from memctl.hooks.install import Change
from memctl.hooks.places import Place
from memctl.lines import remark
from memctl.paths import shown
from memd.errors import MemdError
from memd.harness import registry


class Trusting:
    """
    is_wanted  the agents are to trust our hooks
    is_told    hooks were installed, so that there is something to be trusted
    is_asking  a person at a terminal may be asked
    """

    def __init__(self, *, is_wanted: bool, is_told: bool, is_asking: bool) -> None:
        self._is_wanted = is_wanted
        self._is_told = is_told
        self._is_asking = is_asking and sys.stdin.isatty() and sys.stderr.isatty()
        self._lines: list[str] = []
        self.exit_status = 0

    def settle(self, place: Place, change: Change) -> str:
        """How our hooks there stand: trusted, untrusted, unknown; empty where nobody asks for trust."""
        if place.hooks.trust != "codex":
            return ""
        if not self._is_told:
            if self._is_wanted:
                self._lines.append("--trust does something together with --apply only.")
            return ""
        program = hook_places.program(registry.adapters()[place.agent])
        if program is None:
            self._lines.append(f"Codex is not on PATH; it runs these hooks once you trust them. {HOW}")
            return "unknown"
        try:
            return self._codex(program, place)
        except MemdError as reason:
            self._lines.append(f"Codex could not be asked whether it trusts these hooks: {reason}. {HOW}")
            if self._is_wanted:
                self.exit_status = reason.exit_status
            return "unknown"

    def _codex(self, program: str, place: Place) -> str:
        from memctl import codex_trust

        path = place.settings.path
        hooks = codex_trust.status(program, path)
        waiting = [hook for hook in hooks if not hook.is_running]
        if waiting and self._is_wanted and self._is_agreed([hook.command for hook in waiting]):
            hooks = codex_trust.trust(program, path)
            waiting = [hook for hook in hooks if not hook.is_running]
            if not waiting:
                self._lines.append(f"Codex trusts memd's hooks in {shown(path)}.")
        if any(not hook.is_enabled for hook in waiting):
            self._lines.append("Codex has hooks of memd switched off: see `/hooks` in Codex.")
        elif waiting:
            self._lines.append(f"Codex runs these hooks once you trust them. {HOW}")
        return "untrusted" if waiting else "trusted" if hooks else "unknown"

    def _is_agreed(self, commands: list[str]) -> bool:
        if not self._is_asking:
            return True
        print("Codex would run, whenever a session starts, is prompted, rests or ends:", file=sys.stderr)
        for command in commands:
            print(f"  {command}", file=sys.stderr)
        return asking.agreed("Trust these hooks?")

    def show(self) -> None:
        for line in dict.fromkeys(self._lines):
            remark(line)


HOW = (
    "Trust them in Codex (`/hooks`), or with `memctl install-hooks --agent codex --apply --trust`; "
    "any change of a hook, or of what stands before it in its list, asks for it again."
)
