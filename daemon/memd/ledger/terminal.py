"""What a terminal may be shown of a text that somebody else wrote.

Everything that prints a transcript, a path or a title to people goes through `strip_terminal`: a control
sequence in it could rewrite the screen, set a title, fill the clipboard or show a text in another order
than it has. Pure.
"""

from __future__ import annotations

import re

# Bidirectional controls: marks, embeddings, overrides, isolates
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TOUCHED = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}\ud800-\udfff]")

# A string sequence (OSC, DCS, SOS, PM, APC) goes only when it is closed: a terminal would wait for the rest
# and swallow what follows, a reader should see it. No part of it crosses another introducer, so that many
# open ones cost no more than their length
_REMOVED = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9b-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-OQ-WYZ\\`-~]"
    f"|[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def strip_terminal(text: str) -> str:
    """`text` with only what is safe to print: newlines and tabs, and no other control.

    Removed are NULs and all other C0 and C1 controls, escape sequences (CSI; OSC with hyperlinks, titles
    and clipboard; DCS, SOS, PM, APC) and bidirectional controls. A lone surrogate becomes U+FFFD, so the
    result can be encoded. Linear; stripping twice changes nothing more.
    """
    if _TOUCHED.search(text) is None:
        return text
    return _SURROGATE.sub("\ufffd", _REMOVED.sub("", text))
