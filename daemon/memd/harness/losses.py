"""What an import may leave out: the closed list of classes, and the counter that every adapter uses."""

from __future__ import annotations

from memd.harness.model import Loss

CLASSES = {
    # left out on purpose
    "reasoning": "Hidden reasoning was left out.",
    "system-prompt": "Instructions and context that the harness gave the model were left out.",
    "synthetic": "What the harness wrote in the user's name (reminders, notices, caveats) was left out.",
    "command": "Commands to the harness itself, and what they printed, were left out.",
    "attachment": "Context that the harness or a hook attached was left out.",
    "api-error": "Error notices shown as replies were left out.",
    "own-packet": "History that memd had delivered came back and was left out.",
    "sidechain": "Side conversations inside the session's files were left out.",
    "sub-agent": "Conversations of sub-agents are kept apart and are not in the main line.",
    "branch": "Branches that were left are kept apart and are not in the main line.",
    "image": "Images and documents were left out.",
    "encrypted": "Content that only the harness's provider can read was left out.",
    "role": "Records of a role that is neither user nor assistant were left out.",
    "undecoded": "What the harness keeps in a form that is not documented was left out.",
    "elsewhere": "What a session did in another directory was left out.",
    "unfinished": "Records that were never completed were left out.",
    "private": "Records that the harness keeps for itself were left out.",
    # not understood
    "unknown-type": "Records of a type that memd does not know were left out.",
    "unknown-version": "Records of a version that memd does not know were left out.",
    "unknown-block": "Parts of messages of a type that memd does not know were left out.",
    "unknown-shape": "Records whose fields do not look as expected were left out.",
    # damaged or too large
    "malformed": "Damaged records were left out.",
    "encoding": "Bytes that are not UTF-8 were replaced in some records.",
    "shortened": "Texts beyond the size limit were shortened.",
    "oversized": "Records beyond the size limit were left out.",
    "bounded": "The import stopped at its limit; the rest follows in the next one.",
}
"""The stable class of a loss and its sentence for people. An adapter uses these and no others."""


class Losses:
    """Counts losses per session and class while one chunk is parsed."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, session: str, what: str, count: int = 1) -> None:
        key = (session, what)
        self._counts[key] = self._counts.get(key, 0) + count

    def done(self) -> tuple[Loss, ...]:
        """One loss per session and class, in the order in which the classes were first met."""
        return tuple(
            Loss(session=session, what=what, sentence=CLASSES[what], count=count)
            for (session, what), count in self._counts.items()
        )
