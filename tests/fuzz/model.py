"""What a target is: a name, what is done with bytes, and bytes to begin with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

MAX_SEED_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class Target:
    """
    run    does it, and raises whatever breaks a promise
    seeds  from fixtures and from forms written down here; each at most `MAX_SEED_BYTES`
    """

    name: str
    run: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]

    def corpus(self) -> list[bytes]:
        """The seeds, each once, in an order that stays."""
        return sorted({seed[:MAX_SEED_BYTES] for seed in self.seeds()})


def choice(data: bytes, count: int) -> int:
    """A number below `count` that the bytes decide: the same for the same bytes."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") % count


def text_of(data: bytes) -> str:
    """Bytes as text, with halves of surrogate pairs where they stand for any."""
    return data.decode("utf-8", "surrogatepass") if _is_wide(data) else data.decode("utf-8", "replace")


def _is_wide(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True
