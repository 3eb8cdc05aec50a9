"""`memory.jsonc`: which store is used, when a topic is old, what agents are told to remember. Pure.

JSON with comments and trailing commas. The keys are those of openclaude-memory and openpi-memory, so that a
file of theirs can be read too; what memd has no use for (`inject_every_n_turns`, `consolidate_on_compact`,
hand-off settings) is accepted and left alone. Numbers out of bounds are bounded. `shared_dir` of a wrong type
is an error here: taking it for false would move all notes to the other store without a word.

source  openclaude-memory 0.6.7, openpi-memory, read 2026-11
"""

from __future__ import annotations

import msgspec

from memd.errors import ConfigError

MAX_FILE_BYTES = 1 << 16  # the parser needs about 30 ms for a KiB
MAX_ITEMS = 100
MAX_ITEM_CHARS = 1000

MIN_LINES, MAX_LINES = 50, 1000
DEFAULT_LINES = 300
DEFAULT_STALE_DAYS = 180.0

REMEDY = "Correct the file; until then the last good settings hold, and nothing is written to memory."


class Lists(msgspec.Struct, frozen=True, kw_only=True):
    """What agents are told about remembering."""

    always_persist: tuple[str, ...] = ()
    never_persist: tuple[str, ...] = ()
    always_ask: tuple[str, ...] = ()

    def is_empty(self) -> bool:
        return not (self.always_persist or self.never_persist or self.always_ask)


GENERAL = Lists(
    always_persist=(
        "how a problem that took long was solved, and what its cause was",
        "facts about servers, services and accounts that are needed again (never their secrets)",
        "commands and their order that are not obvious from the project",
        "peculiarities of this machine and its tools",
    ),
    never_persist=(
        "what the code itself shows: its patterns, its layout",
        "what the version history shows: who changed what and when",
        "recipes for a fix that is in the code already",
        "the state of the task at hand",
        "what is documented elsewhere",
        "large pieces of code",
    ),
    always_ask=(
        "credentials and tokens",
        "personal data",
        "anything private about people",
    ),
)


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    shared_dir: bool = False
    max_lines: int = DEFAULT_LINES
    stale_after_days: float = DEFAULT_STALE_DAYS  # 0: nothing is ever marked as old
    lists: Lists = Lists()


def parse(text: bytes, path: str) -> Rules:
    """The settings of a `memory.jsonc`.

    raises  ConfigError, which names the file and what is wrong with it
    """
    import json5  # only those who read such a file pay for it

    if len(text) > MAX_FILE_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_FILE_BYTES} bytes", remedy=REMEDY)
    try:
        words = text.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        found = json5.loads(words)
    except UnicodeDecodeError as reason:
        line = text.count(b"\n", 0, reason.start) + 1
        raise ConfigError(f"{path}:{line}: the file is not UTF-8", remedy=REMEDY) from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply", remedy=REMEDY) from None
    except ValueError as reason:
        said = str(reason).removeprefix("<string>:")
        raise ConfigError(f"{path}: not JSON with comments: line {said}", remedy=REMEDY) from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: it holds no object in braces", remedy=REMEDY)
    shared = found.get("shared_dir", False)
    if not isinstance(shared, bool):
        raise ConfigError(f"{path}: shared_dir is neither true nor false", remedy=REMEDY)
    return Rules(
        shared_dir=shared,
        max_lines=_lines(found.get("max_lines")),
        stale_after_days=_days(found.get("stale_after_days")),
        lists=Lists(
            always_persist=_items(found.get("always_persist")),
            never_persist=_items(found.get("never_persist")),
            always_ask=_items(found.get("always_ask")),
        ),
    )


def _lines(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return DEFAULT_LINES
    return max(MIN_LINES, min(value, MAX_LINES))


def _days(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # the last is NaN
        return DEFAULT_STALE_DAYS
    return float(max(0, min(value, 1_000_000)))  # bounded first: not every whole number is a float


def _items(value: object) -> tuple[str, ...]:
    """The strings of a list, each in one line; anything else counts as no list."""
    if not isinstance(value, list):
        return ()
    texts = (" ".join(item.split())[:MAX_ITEM_CHARS] for item in value if isinstance(item, str))
    return tuple(text for text in texts if text)[:MAX_ITEMS]
