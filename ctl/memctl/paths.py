"""Where things live, as the hook path defines it, for everybody who may import more than that."""

from __future__ import annotations

from memctl.hook import (
    HEADER_BYTES,
    MAX_HOOK_BYTES,
    MAX_JSON_BYTES,
    MAX_TEXT_BYTES,
    SOCKET_LIMIT,
    computed_address,
    computed_socket,
    config_dir,
    data_dir,
    find_socket,
    frame,
    home_dir,
    is_private,
    published_path,
    state_dir,
)

WRITABLE = (
    "memd keeps its files below your home: make it writable, or let HOME, or XDG_DATA_HOME and "
    "XDG_STATE_HOME, name folders that are."
)

__all__ = [
    "HEADER_BYTES",
    "MAX_HOOK_BYTES",
    "MAX_JSON_BYTES",
    "MAX_TEXT_BYTES",
    "SOCKET_LIMIT",
    "WRITABLE",
    "agents_path",
    "computed_address",
    "computed_socket",
    "config_dir",
    "config_path",
    "data_dir",
    "find_socket",
    "frame",
    "home_dir",
    "is_private",
    "log_path",
    "published_path",
    "shown",
    "state_dir",
]


def config_path() -> bytes:
    return config_dir() + b"/config.toml"


def agents_path() -> bytes:
    """The enrolled agent homes."""
    return data_dir() + b"/agents.json"


def log_path() -> bytes:
    """Where a daemon that no service manager started writes its log."""
    return state_dir() + b"/memd.log"


def shown(path: bytes) -> str:
    """A path for people: never fails, never prints a control character."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
