"""The configuration file with all that can be said about it, the patterns of secrets included.

`memd.settings` knows types and bounds; what a pattern may be, the sanitiser knows.
"""

from __future__ import annotations

import re

from memd import settings
from memd.errors import ConfigError
from memd.settings import Settings

# source  PostgreSQL 15, "Connection Strings": words, or an address with user:password@ or ?password=
_password = re.compile(r"(?:^|[\s?&])(?:ssl)?password\s*=|^\w+://[^/?@]*:[^/?@]*@", re.IGNORECASE)


def parse(text: bytes, path: str) -> Settings:
    """The settings in a TOML file. raises ConfigError naming file, line, key and what is wrong"""
    found = settings.parse(text, path)
    redaction = found.redaction
    if redaction.extra_patterns or redaction.allowlist:
        from memd.ledger.sanitiser import BadEntry, check_settings  # megabytes that few settings need

        try:
            check_settings(redaction.extra_patterns, redaction.allowlist)
        except BadEntry as reason:
            line = settings.line_of_entry(text.decode("utf-8"), "redaction", reason.key, reason.number)
            raise ConfigError(f"{path}:{line}: redaction.{reason}", remedy=reason.remedy) from None
    if has_password(found.ledger.connection):
        line = settings.line_of(text.decode("utf-8"), "ledger", "connection")
        raise ConfigError(
            f"{path}:{line}: ledger.connection holds a password, which memd does not keep",
            remedy="Put it into ~/.pgpass (mode 0600), or use a service file or a client certificate.",
        )
    return found


def has_password(connection: str) -> bool:
    """Whether words for libpq, or an address, hold a password."""
    return _password.search(connection) is not None
