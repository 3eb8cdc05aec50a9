"""The page of `memctl report`: one file that holds its data and loads nothing.

What the data says is text of others, titles above all. It stands in the page as JSON that can end neither the
element it is in nor a comment, and the page's script makes text nodes of it only. The policy allows its
own style and script, by their digests, and nothing else: no request, no inline handler, no other script.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources

MARK = b"<!doctype html>\n<!-- memd:report:v1 -->\n"
"""How every page begins: a file that begins so may be written over."""

SCRIPTS = ("base.js", "activity.js", "timeline.js", "sessions.js", "rest.js", "main.js")

_HARMLESS = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page(document: str) -> bytes:
    """document: the JSON of `memctl report --json`"""
    style = _part("style.css")
    # one function round all of them: no name of theirs is seen by anything else
    script = '"use strict";\n(() => {\n' + "\n".join(_part(name) for name in SCRIPTS) + "})();\n"
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}';"
        " base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "style": style, "script": script, "data": embedded(document)}
    made = _PLACE.sub(lambda found: parts[found[1]], _part("page.html")).encode()
    assert made.startswith(MARK)
    return made


def embedded(document: str) -> str:
    """JSON as it may stand in a script element: the same value, without a sign that HTML reads."""
    return document.translate(_HARMLESS)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _part(name: str) -> str:
    return (resources.files("memctl") / "report_page" / name).read_text("utf-8")
