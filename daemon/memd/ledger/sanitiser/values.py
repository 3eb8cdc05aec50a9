"""Whether a value that stands where secrets stand is one: not a word, a variable, a type or a placeholder."""

from __future__ import annotations

import re
from typing import Literal

from memd.ledger.sanitiser.words import is_identifier, is_wordy

Kind = Literal["password", "secret", "token", "key", "label"]
Style = Literal["quoted", "environment", "listed", "bare"]

JUDGED = 256  # a value is judged by its first characters
_PASS_PHRASE_CHARS = 12

_NUMBER = re.compile(r"[-+~<>=^]*(?:0[xXbBoO])?[0-9][0-9_.,:/TZ+%-]*[A-Za-z%]{0,3}\Z", re.ASCII)
_IDENTIFIER = re.compile(
    r"[@$]{0,2}[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|->|::|\?\.|-|/|:)[A-Za-z0-9_]+)*[?!]?\Z", re.ASCII
)
_REPEATED = re.compile(r"(.)\1*\Z", re.S)
_NAMES_ITSELF = re.compile(r"pass|pwd|secret|token|key|cred|auth", re.I)
_MARKS = re.compile(r"[!@#%^&*+~?].*[A-Za-z0-9]")
_INNER_MARK = re.compile(r"[A-Za-z0-9][!@#$%^~][A-Za-z0-9]")
_CODE = re.compile(r"[{}()\[\]<>|\\\s]")
_CHAIN = re.compile(r"=[^=]")
_NAMED_ALIKE = re.compile(
    r"(?:[a-z0-9_](?:Pass|Password|Secret|Token|Key|Credentials?)|(?:[_.]|\b)key|[_.]token)[0-9]?\Z"
)
_PROSE = re.compile(
    r"\b(?:must|be|is|are|at|least|required|characters|enter|your|not|should|for|invalid|the|of)\b"
)
_PATH = re.compile(
    r"(?:~?/(?:home|usr|etc|var|tmp|opt|root|run|users|dev|mnt|srv|proc|sys|data|apps?|src|s?bin|lib|private|secrets|"
    r"workspaces?|path|volumes|nix|build|work|code|repos?|projects?|documents)(?:/|\Z)"
    r"|~/|\.{1,2}[/\\]|[A-Z]:[\\/]|\\\\|file:|[\w.-]+/[\w./-]+\.[a-z]{1,5}\Z)",
    re.IGNORECASE | re.ASCII,
)
_REFERENCE = re.compile(
    r"""(?:
        \$\{ | \$\( | \{\{ | \{% | <% | %\( | \#\{ | @\{ | \\\( | \{[A-Za-z_0-9.]*\}     # a template
      | \$[A-Za-z_][A-Za-z0-9_.>\[\]'-]*\Z | %[A-Za-z_][A-Za-z0-9_]*%\Z | %[sdrvq]\Z      # a variable
      | <[^<>]*>? | \[[A-Z_ a-z-]*\]\Z | \*{3,} | .*\*{3,}\Z | \[REDACTED                 # <your-key>, ***
      | (?:os|process|env|environ|secrets|vars|var|local|self|this|config|settings|args|opts|options|params|
           request|req|ctx|data|event|props|state|module|import|steps|inputs|github|Deno|Bun|ENV|System|Env)
        (?:\.|\[|->|\?\.|::)
      | (?:getenv|env|ENV|getattr|lookup|require|await|async|new|lambda|function|return|typeof|if|not)
        \b(?:[ (\[.:]|\Z)
      | (?:arn:aws|op://|vault:|ref\+|ssm:|secretsmanager:|projects/|keyring:|sops|ENC\[|!vault|env:|https?://|data:)
    )""",
    re.X,
)
_STAND_IN = re.compile(
    r"""(?:
        (?:your|you|my|our|the|some|any|a|an|insert|enter|replace|put|add|change|fake|dummy|sample|example|test|use|
           paste)[-_ .][-_ .A-Za-z]*
      | (?:your|my)(?:api|auth|access|secret|password|token|key|client|private)[-_ .A-Za-z]*
      | .*(?:placeholder|change[-_ ]?(?:me|this|it)|redacted|xxxx|\*\*\*|\.\.\.|…|[-_ ]here|todo|not[-_ ]?set)
        [^A-Za-z]*
    )\Z""",
    re.X | re.I,
)
_WORDS = """
none null nil true false undefined unset empty string str bytes bytearray optional required unknown
default secretstr credential credentials anonymous disabled enabled object buffer boolean integer number
example hidden masked missing invalid forbidden redacted function callable literal varchar password
passwort passphrase passwd secret token postgres localhost
"""
_STAND_IN_WORDS = frozenset(_WORDS.split())


def is_reference(value: str) -> bool:
    """Whether `value` points at a secret or hides it: `${VAR}`, `<your-key>`, `os.environ[...]`, `***`."""
    value = value[:JUDGED]
    return _REFERENCE.match(value) is not None or _REPEATED.match(value) is not None


def is_placeholder(value: str) -> bool:
    """Whether `value` only stands for a secret: a reference, `None`, `changeme`, `your key here`."""
    return (
        is_reference(value)
        or value.lower().rstrip("0123456789") in _STAND_IN_WORDS
        or _STAND_IN.match(value) is not None
    )


def is_secret_value(value: str, kind: Kind, style: Style) -> bool:
    """Whether what is assigned to a name that promises a secret is a secret.

    value   its first `JUDGED` characters are enough
    kind    password, secret, token; key (`api_key`), label (any other name that ends in key)
    style   quoted; environment (`NAME=value`, nothing between); listed (`"name", "value"`, prose); else bare
    """
    if style == "bare" and (_CHAIN.search(value) or _NAMED_ALIKE.search(value)):
        return False  # `a = b = c`, `key = newKey`
    is_weak = kind not in ("password", "secret")
    if len(value) < (8 if is_weak or style == "listed" else 6):
        return False
    if _PATH.match(value) or (is_weak and _CODE.search(value)) or is_placeholder(value):
        return False
    if _NUMBER.match(value) and (is_weak or style == "bare") and not (kind == "password" and value.isdigit()):
        return False
    if " " in value or not value.isascii():
        return not is_weak and _is_pass_phrase(value)
    has_digit = any("0" <= c <= "9" for c in value)
    if is_wordy(value) and (style in ("listed", "bare") or not _MARKS.search(value)):
        return (
            not is_weak and style not in ("listed", "bare") and (has_digit or not _NAMES_ITSELF.search(value))
        )
    if style == "listed":
        return has_digit
    if style == "bare":
        return not is_identifier(value) and (
            has_digit
            or (not is_weak and len(value) >= 8)
            or _IDENTIFIER.match(value) is not None
            or _INNER_MARK.search(value) is not None
        )
    return True


def _is_pass_phrase(value: str) -> bool:
    """Words with blanks, or letters beyond ASCII: a pass phrase, unless it reads like a label on a form."""
    if " " not in value:
        return any("0" <= c <= "9" for c in value)
    return (
        len(value) >= _PASS_PHRASE_CHARS
        and value.isascii()
        and value == value.lower()
        and value.count(" ") >= 3
        and all(c.isalnum() or c in " -" for c in value)
        and _NAMES_ITSELF.search(value) is None
        and _PROSE.search(value) is None
    )
