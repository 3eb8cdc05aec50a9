"""Where the parts of a backup lie on this machine."""

from __future__ import annotations

from typing import NamedTuple


class Roots(NamedTuple):
    """memd's three folders."""

    data: bytes
    config: bytes
    state: bytes

    def path(self, name: bytes) -> bytes:
        """The place of a part, by its name in a backup."""
        area, _, rest = name.partition(b"/")
        return {b"data": self.data, b"config": self.config, b"state": self.state}[area] + b"/" + rest


def below(folder: bytes) -> Roots:
    """The folders of a memd that is told to live in `folder` by XDG_DATA_HOME and the like."""
    return Roots(folder + b"/data/memd", folder + b"/config/memd", folder + b"/state/memd")
