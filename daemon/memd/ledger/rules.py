"""What is not imported: by harness, by directory, and by what a checkout says of itself.

A checkout says it in `.memd.toml` (or `.ai-memory.toml`, a peer's) at its root or in any folder above
the session's directory:

    [import]
    enabled = false            # nothing that was said here

    [capture]
    ignore_paths = ["secret"]  # nothing that was said below these folders, relative to the file

A marker that cannot be read or parsed, or that says something else under `[import]`, keeps sessions out:
whoever wrote one wanted less imported, not more.
"""

from __future__ import annotations

import os
import tomllib

from memd.ledger.messages import Rules

MARKERS = (b".memd.toml", b".ai-memory.toml")
MAX_MARKER_BYTES = 64 * 1024


class Wanted:
    """Answers whether a session of a directory is imported; remembers markers by their file times."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._markers: dict[bytes, tuple[tuple[int, int], _Marker]] = {}

    def harness(self, name: str) -> bool:
        chosen = self._rules.harnesses
        return self._rules.is_enabled and (not chosen or name in chosen)

    def directory(self, cwd: str) -> bool:
        """Whether what was said in `cwd` is imported; a session that says no directory is."""
        if not cwd.startswith("/") or "\0" in cwd:
            return True
        folder = os.path.normpath(os.fsencode(cwd))
        if any(is_below(folder, ignored) for ignored in self._rules.ignored):
            return False
        at = folder
        while True:
            for name in MARKERS:
                marker = self._marker(at + b"/" + name)
                if marker is not None and not marker.allows(at, folder):
                    return False
            if at == os.path.dirname(at):
                return True
            at = os.path.dirname(at)

    def _marker(self, path: bytes) -> _Marker | None:
        try:
            facts = os.stat(path)
        except OSError:
            self._markers.pop(path, None)
            return None
        stamp = (facts.st_mtime_ns, facts.st_size)
        known = self._markers.get(path)
        if known is None or known[0] != stamp:
            known = (stamp, _read_marker(path))
            self._markers[path] = known
        return known[1]


class _Marker:
    def __init__(self, is_enabled: bool, ignored: tuple[bytes, ...] = ()) -> None:
        self._is_enabled = is_enabled
        self._ignored = ignored

    def allows(self, at: bytes, folder: bytes) -> bool:
        if not self._is_enabled:
            return False
        return not any(is_below(folder, os.path.normpath(os.path.join(at, path))) for path in self._ignored)


def _read_marker(path: bytes) -> _Marker:
    try:
        with open(path, "rb") as file:
            tables = tomllib.loads(file.read(MAX_MARKER_BYTES).decode("utf-8"))
    except (OSError, ValueError):
        return _Marker(False)
    imports, capture = tables.get("import", {}), tables.get("capture", {})
    if not isinstance(imports, dict) or not isinstance(capture, dict):
        return _Marker(False)
    if not imports.keys() <= {"enabled"}:
        return _Marker(False)  # a slip of the pen: somebody wanted something kept out
    paths = capture.get("ignore_paths", [])
    if not isinstance(paths, list) or not all(isinstance(item, str) for item in paths):
        return _Marker(False)
    return _Marker(imports.get("enabled", True) is True, tuple(os.fsencode(item) for item in paths))


def is_below(path: bytes, folder: bytes) -> bool:
    """Whether `path` is `folder` or lies in it."""
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")
