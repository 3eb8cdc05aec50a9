"""The log: events as JSON lines in one rotated file, and on standard error when somebody looks.

Never content, prompts or secrets; paths of a home only at debug level. A full disk costs log lines, never
the daemon.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, TextIO

import structlog

from memd import append
from memd.errors import DiskError
from memd.settings import Log

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class LogFile:
    """An append-only text file that is renamed away at `max_bytes`; `keep` older ones stay."""

    def __init__(self, path: bytes, settings: Log, echo: TextIO | None = None) -> None:
        self._path = path
        self._settings = settings
        self._echo = echo
        self._fd = -1
        self._size = 0

    def write(self, text: str) -> None:
        line = text.encode("utf-8", "backslashreplace")
        if self._echo is not None:
            self._echo.write(text)
        try:
            if self._fd < 0:
                self._fd, self._size = append.open_appending(self._path)
            if self._size and self._size + len(line) > self._settings.max_bytes:
                self.close()
                append.rotate(self._path, self._settings.keep)
                self._fd, self._size = append.open_appending(self._path)
            self._size += os.write(self._fd, line)
        except (OSError, DiskError):
            self.close()  # the next line tries again

    def flush(self) -> None:
        if self._echo is not None:
            self._echo.flush()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def reconfigure(self, settings: Log) -> None:
        self._settings = settings


class RecentErrors:
    """A processor that keeps the last few warnings and errors, for `memctl status`."""

    def __init__(self, keep: int = 5) -> None:
        self._keep = keep
        self.rows: list[tuple[str, str]] = []

    def __call__(self, _logger: Any, method: str, event: structlog.typing.EventDict) -> Any:
        if method in ("warning", "error", "critical"):
            words = str(event.get("message") or event.get("reason") or event.get("exception", "")).strip()
            self.rows.append(
                (str(event.get("timestamp", "")), f"{event['event']}: {words[-200:]}".rstrip(": "))
            )
            del self.rows[: -self._keep]
        return event


def configure(log_file: LogFile, level: str, recent: RecentErrors) -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            recent,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS.get(level, logging.INFO)),
        logger_factory=structlog.WriteLoggerFactory(file=log_file),  # type: ignore[arg-type]
        cache_logger_on_first_use=False,
    )


def logger() -> Any:
    return structlog.get_logger()


def echo_stream(foreground: bool) -> TextIO | None:
    """Standard error, when a person or a journal reads it."""
    if foreground or sys.stderr.isatty() or "JOURNAL_STREAM" in os.environ:
        return sys.stderr
    return None
