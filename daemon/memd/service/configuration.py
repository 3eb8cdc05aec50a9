"""The settings in force: read at start and on request; a broken file keeps the last good ones running."""

from __future__ import annotations

from memctl.paths import shown
from memd import settings
from memd.errors import ConfigError
from memd.ledger import configured


class Configuration:
    """`current` always holds; `error` says what is wrong with the file on disk, if anything."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.current = settings.Settings()
        self.error = ""
        self.source = ""
        self.was_good = False  # whether the file has been understood since the start; absent is understood
        self.read()

    def is_mended(self) -> bool:
        """Whether the file was broken when it was read, and would be understood now."""
        return bool(self.error) and Configuration(self.path).error == ""

    def read(self) -> bool:
        """Look at the file again; whether the settings in force are what it says."""
        try:
            with open(self.path, "rb") as file:
                text = file.read()
        except FileNotFoundError:
            self.current, self.error = settings.Settings(), ""
            self.source = f"{shown(self.path)} (absent: defaults)"
            self.was_good = True
            return True
        except OSError as reason:
            self.error = f"{shown(self.path)}: cannot be read: {reason.strerror or reason}"
            return False
        self.source = shown(self.path)
        try:
            self.current, self.error = configured.parse(text, shown(self.path)), ""
        except ConfigError as reason:
            self.error = str(reason)
            return False
        self.was_good = True
        return True
