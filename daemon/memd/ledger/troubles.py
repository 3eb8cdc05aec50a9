"""What of the stores cannot be read now, and what a person can do about it. Pure: looks at nothing itself.

A trouble with a remedy needs a person; one without passes by itself and is only told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from memd.ledger.messages import Trouble

MAX_TOLD = 20  # the others are counted
READABLE = "Make it readable to you (`ls -ld` with its path says whose it is), then run `memctl import`."
LEFT_ALONE = "All else is imported. memd reads it again when it changes; move it away if nobody needs it."
BUG = "All else is imported. Report it as a bug; memd reads it again when it changes."
CUT = "Move sessions that nobody needs out of it; until then the files beyond that are not looked at."


class Troubles:
    """Kept by path. Sources by what their last reading said, folders and stores by the last look at them."""

    def __init__(self) -> None:
        self._sources: dict[bytes, Trouble] = {}
        self._places: dict[bytes, Trouble] = {}
        self.is_news = False  # since it was set to False by who tells

    def note(self, path: bytes, reason: str, remedy: str) -> None:
        """A source could not be read."""
        self._put(self._sources, Trouble(path, reason, remedy))

    def settle(self, path: bytes) -> None:
        """It was read."""
        self._drop(self._sources, (path,))

    def note_place(self, path: bytes, reason: str, remedy: str) -> None:
        """A folder or a store could not be looked at as a whole."""
        self._put(self._places, Trouble(path, reason, remedy))

    def settle_places(self, paths: Iterable[bytes]) -> None:
        self._drop(self._places, paths)

    def begin_look(self, is_there: Callable[[bytes], bool]) -> None:
        """Everything is looked at anew: places say so again, and sources that are gone trouble nobody."""
        self._drop(self._places, list(self._places))
        self._drop(self._sources, [path for path in self._sources if not is_there(path)])

    def forget(self) -> None:
        """Other stores than before are going to be read, or the same by other rules."""
        self.begin_look(lambda _path: False)

    def told(self) -> tuple[Trouble, ...]:
        """The first `MAX_TOLD`: those that need a person before those that pass."""
        every = [*self._places.values(), *self._sources.values()]
        return tuple(sorted(every, key=lambda one: not one.remedy)[:MAX_TOLD])

    def needing(self) -> int:
        """How many need a person."""
        return sum(bool(one.remedy) for one in (*self._places.values(), *self._sources.values()))

    def _put(self, where: dict[bytes, Trouble], trouble: Trouble) -> None:
        self.is_news = self.is_news or where.get(trouble.path) != trouble
        where[trouble.path] = trouble

    def _drop(self, where: dict[bytes, Trouble], paths: Iterable[bytes]) -> None:
        for path in paths:
            self.is_news = where.pop(path, None) is not None or self.is_news
