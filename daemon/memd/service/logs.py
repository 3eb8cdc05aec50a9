"""The log: events as JSON lines in one rotated file, and on standard error when somebody looks.

Never content, prompts or secrets; paths of a home only at debug level. A full disk costs log lines, never
the daemon, and neither does a standard error that nobody reads, or that is gone.
"""

from __future__ import annotations

import logging
import os
import select
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
        self._is_cut = False  # the last line ends in the middle

    def write(self, text: str) -> None:
        line = text.encode("utf-8", "backslashreplace")
        self._say(line)
        try:
            if self._fd < 0:
                self._open()
            if self._size and self._size + len(line) > self._settings.max_bytes:
                self.close()
                append.rotate(self._path, self._settings.keep)
                self._open()
            self._put(b"\n" + line if self._is_cut else line)
        except (OSError, DiskError):
            self.close()  # the next line tries again

    def _open(self) -> None:
        self._fd, self._size = append.open_appending(self._path)
        self._is_cut = self._size > 0 and os.pread(self._fd, 1, self._size - 1) != b"\n"

    def _put(self, line: bytes) -> None:
        left = memoryview(line)
        try:
            while left:
                count = os.write(self._fd, left)
                self._size += count
                left = left[count:]
        finally:
            self._is_cut = bool(left) and (self._is_cut or len(left) < len(line))

    def _say(self, line: bytes) -> None:
        """On standard error, as far as it takes it at once: a pipe that nobody empties must stop nothing."""
        if self._echo is None:
            return
        try:
            if select.select([], [self._echo], [], 0)[1]:
                is_long = len(line) > select.PIPE_BUF
                os.write(self._echo.fileno(), line[: select.PIPE_BUF - 1] + b"\n" if is_long else line)
        except (BrokenPipeError, ValueError):
            self._echo = None  # nobody is there any more
        except OSError:
            return  # that line is in the file

    def flush(self) -> None:
        """Nothing is held back."""

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
