"""Secrets out of everything that is kept: found by the form of a key or by the place it stands in.

`Sanitiser.scrub` first, `cut` second, on whole record texts. Pure: no files, no clock.
"""

from memd.ledger.sanitiser.custom import BadEntry
from memd.ledger.sanitiser.cutting import LIMIT_BYTES, cut
from memd.ledger.sanitiser.gates import as_bytes
from memd.ledger.sanitiser.marks import Mark
from memd.ledger.sanitiser.scrub import Sanitiser, check_settings
from memd.ledger.sanitiser.table import SHAPES, TYPES

__all__ = [
    "LIMIT_BYTES",
    "SHAPES",
    "TYPES",
    "BadEntry",
    "Mark",
    "Sanitiser",
    "as_bytes",
    "check_settings",
    "cut",
]
