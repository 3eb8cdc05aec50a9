"""Merging two `MEMORY.md`: union by linked file, in the owner's order, as bytes. Pure.

A key is the file a line links to, in one spelling: `./a.md`, `a.md`, `<a.md>` and `a.md#top` are one key, and
`a%20b.md` is `a b.md`. The first link to a file in a line counts. A link with a scheme (`https:`) is no key.
Keys that lead out of the folder (`../outside.md`) are keys like any other: they are compared, never followed.

An entry is such a line with the indented lines that continue it. All other text comes in units: a list item,
a paragraph, a fenced block. What is merged:

- The owned text stays as it is and where it is.
- An owned entry is replaced by the incoming one only when the body of that very file was replaced, too.
- Entries with keys the owned text has not, and units with a line that it has not, are added at the end of
  their own section, which is found by its heading; a heading that is missing is added with them.
- Of several owned entries for one file the first stays. This alone is no reason to change anything, and does
  not happen where a fence is left open, since then a line may be code.

Nothing else is dropped but entries for files that are known to have been left behind. The caller keeps a copy
of the old text whenever the new one differs.

source  Claude Code 2.1.197, read 2026-11: of the index it shows 200 lines or about 25 kB to the model
"""

from __future__ import annotations

from memd.memory.outline import Outline, Unit, bare, has_stray_fence, split, units
from memd.memory.placement import Edits, compose, reindented

SHOWN_LINES = 200
SHOWN_BYTES = 25_000
WARN_LINES = 180  # past this a caller warns that the newest entries are about to become invisible

BOM = b"\xef\xbb\xbf"
MAX_ROUNDS = 4


def index_keys(text: bytes) -> tuple[bytes, ...]:
    """The files an index lists, in order, as often as it lists them."""
    return tuple(u.key for u in units(bare(split(text.removeprefix(BOM)))) if u.kind == "entry")


def line_count(text: bytes) -> int:
    """How many lines Claude Code sees; a final newline starts no further one."""
    return text.count(b"\n") + (not text.endswith(b"\n") and text != b"")


def merge_index(
    owned: bytes | None,
    incoming: bytes,
    *,
    won: frozenset[bytes],
    carried: frozenset[bytes] | None = None,
    left_behind: frozenset[bytes] = frozenset(),
) -> bytes:
    """The owned index with what the incoming one adds; `owned` itself, byte for byte, when that is nothing.

    owned        None where the folder has no index: then the incoming text is taken as it is
    won          the files (paths within the folder, as on disk) whose incoming body replaced the owned one
    carried      the files that are in the owned folder after the merge. None: not known
    left_behind  what the merge did not take over (links, devices, unreadable files, notes the owner deleted),
                 as paths within the folder. Incoming entries for these, or for something below them, are
                 left out unless `carried` says the file is there all the same. An entry for a file that is
                 merely missing stays: it did no harm where it came from, and its words may be all there is
    raises       nothing, whatever the bytes
    """
    gone = left_behind - (carried or frozenset())
    if owned is None or not owned.strip(BOM + b"\r\n \t"):
        return _without(incoming, gone) if incoming.strip(BOM + b"\r\n \t") else (owned or incoming)
    if owned.rstrip(b"\r\n") == incoming.rstrip(b"\r\n"):
        return owned
    result = owned
    for _ in range(MAX_ROUNDS):  # what is added may close an open fence: then the sections change
        merged = _merge_once(result, incoming, won, gone)
        if merged == result:
            break
        result = merged
    return result


def _without(incoming: bytes, gone: frozenset[bytes]) -> bytes:
    """The text less its entries for files that were left behind."""
    mark = BOM if incoming.startswith(BOM) else b""
    raw = split(incoming[len(mark) :])
    for unit in units(bare(raw)):
        if unit.kind == "entry" and _is_gone(unit.key, gone):
            raw[unit.start : unit.end] = [b""] * len(unit.lines)
    return mark + b"".join(raw)


def _is_gone(key: bytes, gone: frozenset[bytes]) -> bool:
    parts = key.split(b"/")
    return any(b"/".join(parts[:n]) in gone for n in range(1, len(parts) + 1)) if gone else False


def _merge_once(owned: bytes, incoming: bytes, won: frozenset[bytes], gone: frozenset[bytes]) -> bytes:
    mark = BOM if owned.startswith(BOM) else b""
    ours = Outline.of(owned[len(mark) :])
    theirs = Outline.of(incoming.removeprefix(BOM))
    edits, is_changed = _replacements(ours, theirs.units, won)
    additions = _additions(ours, theirs.units, edits, gone)
    if not is_changed and not additions:
        return owned
    return mark + compose(ours, theirs, edits, additions)


def _replacements(ours: Outline, theirs: list[Unit], won: frozenset[bytes]) -> tuple[Edits, bool]:
    """What to do to the owned entries, and whether anything but dropping duplicates is among it."""
    incoming: dict[bytes, Unit] = {}
    for unit in theirs:
        if unit.kind == "entry" and unit.key in won:
            incoming.setdefault(unit.key, unit)
    edits: Edits = {}
    is_changed = False
    seen: set[bytes] = set()
    is_certain = not has_stray_fence(ours.lines)  # that what looks like an entry is no line of code
    for unit in ours.units:
        if unit.kind != "entry":
            continue
        if unit.key in seen:
            if is_certain:
                edits[unit.start] = (unit.end, [])
            continue
        seen.add(unit.key)
        if unit.key in incoming:
            new = reindented(incoming[unit.key].lines, unit.lines[0])
            if [line.rstrip() for line in new] != [line.rstrip() for line in unit.lines]:
                edits[unit.start] = (unit.end, list(new))
                is_changed = True
    return edits, is_changed


def _additions(ours: Outline, theirs: list[Unit], edits: Edits, gone: frozenset[bytes]) -> list[Unit]:
    """The incoming units that the owned text, edits applied, does not have."""
    present = {line.strip() for line in ours.lines}
    if edits:
        present = set()
        at = 0
        while at < len(ours.lines):
            end, kept = edits.get(at, (at + 1, [ours.lines[at]]))
            present.update(line.strip() for line in kept)
            at = end
    keys = {unit.key for unit in ours.units if unit.kind == "entry"}
    found = []
    for unit in theirs:
        if unit.kind == "entry":
            if unit.key in keys or _is_gone(unit.key, gone):
                continue
            keys.add(unit.key)
        elif unit.kind == "heading" or all(line.strip() in present for line in unit.lines if line.strip()):
            continue
        present.update(line.strip() for line in unit.lines)
        found.append(unit)
    return found
