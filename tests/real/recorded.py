"""What real programs sent to the scripted model, as its log holds it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from real.script import Json


@dataclass(frozen=True)
class Request:
    """One request to the model, as the log holds it."""

    seq: int
    method: str
    path: str
    reply: object
    headers: Mapping[str, str]
    body: Json

    @property
    def text(self) -> str:
        """The body as JSON text: where to look for what the model was told."""
        return json.dumps(self.body, ensure_ascii=False)

    @property
    def is_turn(self) -> bool:
        """Whether a person's prompt is answered, not a title, a token count or a look at the server."""
        return isinstance(self.reply, dict) and bool(self.reply["is_turn"]) and bool(self.body.get("tools"))

    def __str__(self) -> str:
        return f"{self.seq} {self.method} {self.path} -> {self.reply}"


def read_log(written: bytes) -> list[Request]:
    """All requests in a log, in order; a last line that is still on its way is left out."""
    whole = written[: written.rfind(b"\n") + 1]
    entries = (json.loads(line) for line in whole.split(b"\n") if line)
    return [
        Request(e["seq"], e["method"], e["path"], e["reply"], e["headers"], e["body"] or {}) for e in entries
    ]
