"""Values assigned to names that promise a secret: `DB_PASSWORD=...`, `"apiKey": "..."`, `--token ...`.

The finder stops at each word that such names end in, reads the name to the left, how a value is attached
to the right, and the value; `values` decides whether that is a secret. Attached means (all of it also
escaped, percent-encoded or with HTML entities):

    assigned    NAME = value, NAME: value, "NAME": "value", NAME => value, obj["NAME"] = "value"
    annotated   NAME: type = "value"
    paired      "name": "NAME", "value": "value"; name="NAME" value="value"; - name: NAME, then value: value
    listed      ("NAME", "value"), NAME("value"), | NAME | value |
    tagged      <NAME>value</NAME>
    given       --NAME value, ENV NAME value
    told        the NAME is value
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from memd.ledger.sanitiser.anchors import ASSIGN, BLANK, QUOTE, folded
from memd.ledger.sanitiser.shape import TOKEN_CHARS, Finder, Shape, Span
from memd.ledger.sanitiser.values import JUDGED, Kind, Style, is_secret_value

MAX_NAME = 64
GIVING = (b"env ", b"setx ", b"set -x ", b"set -gx ")  # after these a value follows a name without any sign
MAX_QUOTED = 65536

_NAME_CHARS = "".join(TOKEN_CHARS) + "."
_FLAGS = re.ASCII | re.IGNORECASE
_SUFFIX = r"(?:[_-]?[0-9]{1,3}|_base)"
_LINE = r"(?:\r?\n|\\{1,8}r\\{1,8}n|\\{1,8}n)"
_GAP = rf"(?:[ \t]|{_LINE}){{0,40}}"
_OPEN = rf"(?:(?:[brfu@$]{{1,2}}(?=[\"']))?(?P<open>{QUOTE}))"

_ASSIGNED = re.compile(
    rf"(?P<closed>{QUOTE}?\]?[!?]?{BLANK}{{0,16}})(?P<sign>{ASSIGN})(?P<blank>{BLANK}{{0,16}})(?:\s{{0,40}}{_OPEN})?",
    _FLAGS,
)
_TYPE = r"[&A-Z_][A-Z0-9_.|\[\]&]{0,40}(?: \| None)?"
_ANNOTATED = re.compile(rf"{QUOTE}?[!?]?[ ]?:[ ]?{_TYPE}[ ]?=[ ]?{_OPEN}", _FLAGS)
_PAIRED = re.compile(
    rf"(?:{QUOTE}[ ]?[,;]?)?{_GAP}{QUOTE}?value{QUOTE}?{BLANK}{{0,8}}{ASSIGN}{BLANK}{{0,8}}{_OPEN}?", _FLAGS
)
_LISTED = re.compile(
    rf"(?:{QUOTE}[ ]?,{_GAP}(?={QUOTE})|\([ ]?(?=[\"'])|{QUOTE}?[ ]{{1,40}}\|[ ]){_OPEN}?", _FLAGS
)
_TAGGED = re.compile(r">(?P<value>[^<>\r\n]{1,1024})</", re.ASCII)
_GIVEN = re.compile(rf"(?:{BLANK}{{1,8}}|{QUOTE},{_GAP}(?={QUOTE})){_OPEN}?", _FLAGS)
_TOLD = re.compile(rf"[ ](?:is|was)[ :]{{1,3}}{_OPEN}?", _FLAGS)

_BARE = re.compile(r"(?:[^\s\x1b\"'`<>(){}\[\],;&|\\]|\\{1,8}/)++", re.ASCII)
_REST = re.compile(r"[;&|,][^\s\"'`=:\\(){}<>\[\]]++(?=\s|\Z)", re.ASCII)

# The same for RE2, without bounds and without looking ahead: whatever the finder accepts, this matches
_GATE_GAP = r"(?:[ \t\r\n]|\\+[rn])*"
_GATE_ATTACHED = (
    rf"(?:{QUOTE}?\]?[!?]?{BLANK}*{ASSIGN}(?:%20|[ \t\r\n\f\v])*"
    rf"|{QUOTE}?[!?]?[ ]?:[ ]?{_TYPE.replace('{0,40}', '*')}[ ]?=[ ]?"
    rf"|(?:{QUOTE}[ ]?[,;]?)?{_GATE_GAP}{QUOTE}?value{QUOTE}?{BLANK}*{ASSIGN}{BLANK}*"
    rf"|{QUOTE}[ ]?,{_GATE_GAP}|\([ ]?|{QUOTE}?[ ]+\|[ ]|[ ](?:is|was)[ :]+)"
)
_GATE_VALUE = rf"(?:[^\s\"'`<>(){{}}\[\],;&|][^\s\"'`<>(){{}}\[\]]{{5}}|[bfru@$]{{0,2}}{QUOTE}[^\n]{{6}})"
_GATE_TAGGED = r">[^<>\r\n]{6}"

_STRONG = """
api access secret private auth account shared master encrypt encryption encoding signing sign license
licence service subscription storage webhook app application consumer client deploy deployment admin
server rest integration ingest ingestion write session hmac jwt aes rsa cipher crypt preshared psk wallet
root vault unseal recovery openai anthropic gemini google aws azure github stripe
"""
_DULL = """
public pub primary foreign sort partition cache routing idempotency dedup dedupe translation object group
lookup index range hash row map metric host registry i18n message label composite natural surrogate
unique cursor
"""
_DULL_OF_TOKENS = """
pad eos bos unk sep cls mask stop special page pagination
"""
_STRONG_KEYS = tuple(_STRONG.split())
_DULL_KEYS = tuple(_DULL.split())
_DULL_TOKENS = tuple(_DULL_OF_TOKENS.split())


def _stem(head: str) -> str:
    """What a name begins with, without the sign before its last word."""
    return head.lower().removesuffix("_").removesuffix("-").removesuffix(".")


def _is_password(head: str, word: str) -> bool:
    """`pass` alone is a test that passed: it counts only as the last part of a longer name."""
    is_last_part = head[-1:] in ("_", "-") or (word[0] == "P" and head[-1:].islower())
    return is_last_part or word.rstrip("0123456789_-").lower() != "pass"


def _is_token(head: str, _word: str) -> bool:
    return not _stem(head).endswith(_DULL_TOKENS)


def _is_api_key(head: str, _word: str) -> bool:
    return _stem(head).endswith(_STRONG_KEYS)


def _is_other_key(head: str, _word: str) -> bool:
    stem = _stem(head)
    return (
        head[-1:] in ("_", "-") and len(stem.strip("-_")) > 0 and not stem.endswith(_STRONG_KEYS + _DULL_KEYS)
    )


def _is_any(_head: str, _word: str) -> bool:
    return True


def _quoted_end(text: str, start: int, opening: str) -> int:
    """Where a value that began with `opening` ends; a line end or the bound when nothing closes it."""
    limit = min(len(text), start + MAX_QUOTED)
    quote = opening[-1]
    depth = len(opening) - 1
    if quote not in "\"'`":  # an encoded quote: its like closes it
        end = text.find(opening, start, limit)
    else:
        at = end = text.find(quote, start, limit)
        while at >= 0:
            before = text[max(start, at - 16) : at]
            slashes = len(before) - len(before.rstrip("\\"))
            if slashes <= depth or (depth == 0 and slashes % 2 == 0):
                end = at - min(slashes, depth)
                break
            at = end = text.find(quote, at + 1, limit)
    line = text.find("\n", start, limit if end < 0 else end)
    if line >= 0:
        return line
    return end if end >= 0 else limit


def _is_environment(text: str, name_at: int, name: str, match: re.Match[str]) -> bool:
    """Whether `NAME=value` stands where a value is meant as it is written: .env, shells, queries, ODBC."""
    if match["sign"].lower() not in ("=", "%3d") or match["closed"] or match["blank"]:
        return False
    if name.upper() == name or name.startswith("--"):
        return True
    before = text[max(0, name_at - 3) : name_at]
    return before[-1:] in ("?", "&", ";") or before.lower() == "%26"


def _is_given(text: str, name_at: int, name: str) -> bool:
    """Whether a value may follow the name after a blank: `--token X`, `ENV TOKEN X` of a Dockerfile."""
    return name.startswith("-") or folded(text[max(0, name_at - 8) : name_at]).endswith(GIVING)


def _attached(text: str, name_at: int, at: int, name: str) -> tuple[re.Match[str], Style] | None:
    """How a value is attached to the name that ends at `at`: the match that ends where the value begins."""
    if match := _ASSIGNED.match(text, at):
        if match["open"]:
            return match, "quoted"
        if annotated := _ANNOTATED.match(text, at):
            return annotated, "quoted"
        return match, "environment" if _is_environment(text, name_at, name, match) else "bare"
    if match := _PAIRED.match(text, at):
        return match, "quoted" if match["open"] else "bare"
    if _is_given(text, name_at, name) and (match := _GIVEN.match(text, at)):
        return match, "bare"
    if match := _LISTED.match(text, at) or _TOLD.match(text, at):
        return match, "listed"
    return None


class _Values:
    """The values of one text. A run without quotes is read once, however many names stand in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._run: Span = (0, 0)

    def span(self, name_at: int, at: int, name: str) -> tuple[int, int, Style] | None:
        """Where the value of the name between `name_at` and `at` stands, and how it is written."""
        text = self._text
        before = text[max(0, name_at - 1) : name_at]
        if before in ("<", ":") and (tagged := _TAGGED.match(text, at)):
            return (*tagged.span("value"), "quoted")
        if before in (":", "/") and text[at : at + 1] == ":":  # a resource's path: `arn:aws:...:secret:name`
            return None
        found = _attached(text, name_at, at, name)
        if found is None:
            return None
        match, style = found
        start = match.end()
        if match["open"]:
            return start, _quoted_end(text, start, match["open"]), style
        end = self._bare_end(start)
        if end == start or (style != "environment" and text[end : end + 1] in ("(", "[", "{", "<")):
            return None
        if rest := _REST.match(text, end):  # `Tr0ub4dor&3`: what no key of a query follows
            end = rest.end()
        tail = text[max(start, end - 8) : end]
        return start, end - len(tail) + len(tail.rstrip(".:")), style

    def _bare_end(self, start: int) -> int:
        if not self._run[0] <= start < self._run[1]:
            match = _BARE.match(self._text, start)
            self._run = match.span() if match is not None else (start, start)
        return self._run[1]


def _finder(ending: str, kind: Kind, promises: Callable[[str, str], bool]) -> Finder:
    # On bytes, which begin with the word as it is written: many times faster than a choice of cases
    name_end = re.compile(
        rf"(?:{ending}){_SUFFIX}?(?![a-z0-9_]|-[a-z])(?=[\s\"'`\\\]!?=:,(|>&%])".encode(),
    )

    def find(text: str) -> Iterator[Span]:
        values = _Values(text)
        for name in name_end.finditer(folded(text)):
            at, end = name.span()
            head = text[max(0, at - MAX_NAME) : at]
            head = head[len(head.rstrip(_NAME_CHARS)) :]
            word = text[at:end]
            if not promises(head, word):
                continue
            found = values.span(at - len(head), end, head + word)
            if found is None:
                continue
            start, stop, style = found
            if is_secret_value(text[start : min(stop, start + JUDGED)], kind, style):
                yield start, stop

    return find


def _row(
    type: str,
    kind: Kind,
    endings: tuple[str, ...],
    made_up: str,
    promises: Callable[[str, str], bool] = _is_any,
    before: str = "",
) -> Shape:
    """endings begin with the word that all of them share, the first literal of the row"""
    word = min(endings, key=len)
    tails = sorted((ending.removeprefix(word) for ending in endings), key=len, reverse=True)
    ending = f"{word}(?:{'|'.join(tails)})"
    given = rf"(?:-|(?:env|setx|set -g?x)[ ])[A-Z0-9_.-]*{ending}{_SUFFIX}?(?:{BLANK}+|{QUOTE},{_GATE_GAP})"
    named = rf"{before}{ending}{_SUFFIX}?"
    gate = rf"(?i)(?:(?:{named}{_GATE_ATTACHED}|{given}){_GATE_VALUE}|{named}{_GATE_TAGGED})"
    return Shape(type, _finder(ending, kind, promises), gate, (word, *endings), "assigned", made_up)


_PASS = ("pass", "password", "passwd", "passwort", "passphrase", "pass_phrase", "passcode")
_CREDENTIAL = ("cred", "creds", "credential", "credentials")

SHAPES: tuple[Shape, ...] = (
    _row("password", "password", _PASS, "DB_PASSWORD={alnum:20}", _is_password),
    _row("password", "password", ("pwd",), "Server=db;Uid=app;Pwd={alnum:16};"),
    _row("secret", "secret", ("secret",), 'client_secret = "{alnum:32}"'),
    _row("token", "token", ("token",), 'MISTRAL_TOKEN: "{alnum:32}"', _is_token),
    _row("credential", "token", _CREDENTIAL, 'credentials = "{alnum:32}"'),
    _row("api_key", "key", ("key",), "COHERE_API_KEY={alnum:40}", _is_api_key, "[a-z][.]?-?_?"),
    _row("key", "label", ("key",), 'UPLOAD_KEY="{alnum:40}"', _is_other_key, "[_-]"),
)
