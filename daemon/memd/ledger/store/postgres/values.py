"""How values stand in the tables on the server: keys, ids, texts without NULs."""

from __future__ import annotations

import hashlib

from memd.ledger import search
from memd.ledger.store.interface import Batch
from memd.ledger.store.scope import Stored, key, spelled

KEY_BYTES = 16


def key_of(*parts: bytes | str) -> bytes:
    """What a name of any length is found by."""
    digest = hashlib.blake2b(digest_size=KEY_BYTES)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part)
        digest.update(b"\0")
    return digest.digest()


def id_of(event_id: str) -> bytes:
    """An event's id in its column."""
    return stored(key(event_id))


def stored(one: Stored) -> bytes:
    return b"t" + one.encode("utf-8", "surrogatepass") if isinstance(one, str) else b"d" + one


def named(column: bytes) -> str:
    """The id of an event, of its column."""
    rest = bytes(column[1:])
    return rest.decode("utf-8", "surrogatepass") if column[:1] == b"t" else spelled(rest)


def instant_of(moment: str) -> float | None:
    return search.instant(moment)


def cleaned(batch: Batch) -> Batch:
    """The batch without what no text column takes. Nearly always it is the very batch."""
    from msgspec.structs import asdict, replace

    def clean(value: object) -> object:
        return search.clean(value) if isinstance(value, str) else value

    def is_odd(value: object) -> bool:
        return isinstance(value, str) and "\0" in value

    def over(items: object) -> tuple[object, ...]:
        made = []
        for item in items:  # type: ignore[attr-defined]
            fields = asdict(item)
            if any(is_odd(value) for value in fields.values()):
                item = replace(item, **{name: clean(value) for name, value in fields.items()})
            made.append(item)
        return tuple(made)

    return replace(
        batch,
        entries=over(batch.entries),
        losses=over(batch.losses),
        turns=over(batch.turns),
        sessions=over(batch.sessions),
    )
