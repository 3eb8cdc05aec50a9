"""How much a harness lets a start hook say, in the harness's own measure. Pure.

A text that is longer is not cut by the harness but put into a file, of which the model sees a beginning: so
what is printed stays within the limit, the wrapper of the harness included.
"""

from __future__ import annotations

import msgspec

from memd.harness.model import OutputLimit

ELLIPSIS = "…"


class Room(msgspec.Struct, frozen=True):
    """What may still be printed.

    left        in the unit of the limit
    unit        `characters` are UTF-16 units, which is how JavaScript counts: never fewer than characters
    is_escaped  the text goes into a JSON string, where a line feed takes two
    """

    left: int
    unit: str
    is_escaped: bool = False

    def size(self, text: str) -> int:
        """What the text takes. Of two texts joined it is the sum."""
        if self.is_escaped:
            text = msgspec.json.encode(text).decode()[1:-1]
        return len(text.encode("utf-8")) if self.unit == "bytes" else len(text.encode("utf-16-le")) // 2

    def cut(self, text: str, most: int) -> str:
        """The longest beginning of the text that takes at most `most`, with an ellipsis where it was cut."""
        if len(text) <= most and self.size(text) <= most:
            return text
        most -= self.size(ELLIPSIS)
        low, high = 0, min(len(text), max(most, 0))
        while low < high:
            middle = (low + high + 1) // 2
            if self.size(text[:middle]) <= most:
                low = middle
            else:
                high = middle - 1
        return text[:low].rstrip() + ELLIPSIS if most >= 0 else ""

    def without(self, text: str) -> Room:
        """What is left when this was printed."""
        return msgspec.structs.replace(self, left=self.left - self.size(text))


def room_of(limit: OutputLimit, wrapper: str = "", *, is_escaped: bool = False) -> Room:
    """The room inside a wrapper, which is what is printed round the text."""
    bare = Room(limit.count, limit.unit)
    return Room(limit.count - bare.size(wrapper), limit.unit, is_escaped)
