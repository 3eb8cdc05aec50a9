"""Private-key blocks: PEM, OpenSSH, PGP and PuTTY, whole or cut off, on lines, in strings or in source code.

A block is its BEGIN line and what follows as long runs of base64 with little between them: line ends,
escapes, quotes, the commas of an array, what a viewer puts before each line. A BEGIN line with no run
after it (a program that looks for keys) is no block. Every walk either takes what it has read into the
block or gives up after a bounded number of characters, so the whole is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memd.ledger.sanitiser.shape import Shape, Span, token

_BLANK = r"(?: |%20|\+|\\{1,8}u0020)"
_BEGIN = re.compile(
    rf"-----?{_BLANK}?BEGIN{_BLANK}(?:[A-Z0-9]{{2,12}}{_BLANK}){{0,4}}PRIVATE{_BLANK}KEY(?:{_BLANK}BLOCK)?{_BLANK}?-----?"
    r"|Private-Lines: [0-9]{1,4}",
    re.ASCII,
)
_END = re.compile(
    rf"END{_BLANK}(?:[A-Z0-9]{{2,12}}{_BLANK}){{0,4}}PRIVATE{_BLANK}KEY(?:{_BLANK}BLOCK)?{_BLANK}?-{{0,5}}"
)
_HEADER = re.compile(r"[\s\\\"'nr]{0,8}(?:Proc-Type|DEK-Info|Comment|Version|Charset|Hash|Subject):")
_RUN = re.compile(r"[A-Za-z0-9+/=]+")
_FOREIGN = re.compile(r"[(){}\[\]]")

LONG = 16  # characters of a run that words do not have between two blanks in a key's neighbourhood
MAX_GAP = 64  # characters between two runs
MAX_SHORT = 4  # short runs in a row: a line number, the `n` of an escape, the last line
MAX_SHORT_IN_HEADER = 40


def _block_end(text: str, at: int) -> int:
    """Where the block that begins before `at` ends; `at` itself when nothing of a key follows."""
    end = previous = at
    allowed = MAX_SHORT_IN_HEADER if _HEADER.match(text, at) else MAX_SHORT
    short = 0
    while run := _RUN.search(text, previous, previous + MAX_GAP + LONG):
        if run.start() - previous > MAX_GAP or _FOREIGN.search(text, previous, run.start()):
            break
        closing = _END.match(text, run.start())
        if closing and end > at:
            return closing.end()
        run = _RUN.match(text, run.start()) or run  # the search was bounded, the run is not
        if run.end() - run.start() >= LONG:
            end, short, allowed = run.end(), 0, MAX_SHORT
        else:
            short += 1
            if short > allowed:
                break
        previous = run.end()
    return end


def find_blocks(text: str) -> Iterator[Span]:
    position = 0
    while begin := _BEGIN.search(text, position):
        position = _block_end(text, begin.end())
        if position > begin.end():
            yield begin.start(), position


BLOCK = Shape(
    type="private_key",
    find=find_blocks,
    gate=r"PRIVATE(?: |%20|\+|\\+u0020)KEY|Private-Lines:",
    literals=("PRIVATE", "Private-Lines:"),
    family="any",
    made_up="-----BEGIN RSA PRIV"
    + "ATE KEY-----\n{b64:64}\n{b64:64}\n{b64:40}==\n-----END RSA PRIV"
    + "ATE KEY-----",
)

# The beginnings of BEGIN lines of private keys, encoded once more: kubeconfig, CI variables
ENCODED = token(
    "private_key",
    r"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJ|BFQyBQUklW|BFTkNSWVBU|BPUEVOU1NI|BEU0EgUFJJ|BQR1AgUFJJ)[A-Za-z0-9+/=]{16,}",
    ("LS0tLS1CRUdJTi",),
    "LS0tLS1CRUdJTi" + "BSU0EgUFJJ{b64:300}",
    family="base64",
    is_bound=False,
)

SHAPES: tuple[Shape, ...] = (BLOCK, ENCODED)
