"""The configuration file: every key, its type, bounds, default and meaning, and how mistakes are named.

One place says it all: the Structs below validate, `memctl config --show` prints them.
"""

from __future__ import annotations

import re
import tomllib
from typing import Annotated, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from memd.errors import ConfigError

Place = Annotated[str, Meta(pattern=r"^~?/")]


class Memory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    heal: Annotated[
        bool, Meta(description="repair memory links by itself; false: only when `memctl heal` asks")
    ] = True
    config_homes: Annotated[
        tuple[Place, ...],
        Meta(description="further config homes of Claude Code, absolute or beginning with ~/"),
    ] = ()
    rescan_s: Annotated[
        float,
        Meta(
            ge=1,
            le=3600,
            description="seconds between two looks at everything while no system events come (else 15 times)",
        ),
    ] = 4.0
    inject: Annotated[
        Literal["auto", "always", "never"],
        Meta(description="whether agents get the shared memory at their start; auto: when it is in use"),
    ] = "auto"


class Import(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    enabled: Annotated[
        bool,
        Meta(description="follow the session stores of agents; false: private mode, nothing is imported"),
    ] = True
    harnesses: Annotated[
        tuple[str, ...], Meta(description="only these (claude, codex, ...); an empty list means all")
    ] = ()
    ignore_paths: Annotated[
        tuple[Place, ...], Meta(description="directories whose sessions are not imported, absolute or ~/...")
    ] = ()


class Redaction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    extra_patterns: Annotated[
        tuple[str, ...], Meta(description="regular expressions of further secrets that must not be kept")
    ] = ()
    allowlist: Annotated[
        tuple[str, ...], Meta(description="texts that are no secrets although they look like one")
    ] = ()


class LedgerStore(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    engine: Annotated[
        Literal["sqlite", "postgresql"],
        Meta(description="where the ledger is kept: on this machine, or on a server that several share"),
    ] = "sqlite"
    connection: Annotated[
        str,
        Meta(
            max_length=2000,
            description="how to reach the server, in libpq's words (service=memd); never with a password",
        ),
    ] = ""
    schema: Annotated[
        str, Meta(pattern=r"^[a-z_][a-z0-9_]{0,62}$", description="the schema that holds the ledger's tables")
    ] = "memd"


class Watch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    mode: Annotated[
        Literal["auto", "poll"], Meta(description="auto: system events, and looking where they fail")
    ] = "auto"
    step_ms: Annotated[
        int, Meta(ge=5, le=1000, description="milliseconds between two looks at the event queue")
    ] = 50


class Log(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="the least serious event written")
    ] = "info"
    max_bytes: Annotated[
        int, Meta(ge=10_000, le=1_000_000_000, description="size at which the log file is rotated")
    ] = 5_000_000
    keep: Annotated[int, Meta(ge=1, le=50, description="rotated log files kept")] = 3


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    memory: Memory = Memory()
    imports: Import = msgspec.field(default=Import(), name="import")
    redaction: Redaction = Redaction()
    ledger: LedgerStore = LedgerStore()
    watch: Watch = Watch()
    log: Log = Log()


def parse(text: bytes, path: str) -> Settings:
    """The settings in a TOML file.

    raises ConfigError naming file, line, key and what is allowed
    """
    try:
        words = text.decode("utf-8")
    except UnicodeDecodeError as reason:
        line = text.count(b"\n", 0, reason.start) + 1
        raise ConfigError(f"{path}:{line}: the file is not UTF-8") from None
    try:
        tables = tomllib.loads(words)
    except tomllib.TOMLDecodeError as reason:
        found = re.search(r"at line (\d+)", str(reason))
        line = int(found[1]) if found else words.rstrip("\n").count("\n") + 1  # else "at end of document"
        raise ConfigError(f"{path}:{line}: not valid TOML: {reason}") from None
    _refuse_unknown(tables, words, path)
    try:
        return msgspec.convert(tables, Settings)
    except msgspec.ValidationError as reason:
        message, _, place = str(reason).partition(" - at `$.")
        dotted = place.rstrip("`").partition("[")[0]
        section, _, key = dotted.partition(".")
        raise ConfigError(
            f"{path}:{line_of(words, section, key)}: {dotted}: {message}; {_allowed(section, key)}"
        ) from None


def _refuse_unknown(tables: dict[str, object], words: str, path: str) -> None:
    sections = _sections()
    for title, table in tables.items():
        if title not in sections:
            raise ConfigError(
                f"{path}:{line_of(words, title, '')}: [{title}] is not a section; "
                f"there are {', '.join(f'[{name}]' for name in sections)}"
            )
        if not isinstance(table, dict):
            continue
        known = sections[title].__struct_fields__
        for key in table:
            if key not in known:
                raise ConfigError(
                    f"{path}:{line_of(words, title, key)}: {title}.{key} is not a key; "
                    f"[{title}] takes {', '.join(known)}"
                )


def _sections() -> dict[str, type[msgspec.Struct]]:
    """The sections as the file names them."""
    hints = get_type_hints(Settings)
    names = zip(Settings.__struct_encode_fields__, Settings.__struct_fields__, strict=True)
    return {written: hints[field] for written, field in names}


def section(settings: Settings, name: str) -> msgspec.Struct:
    """The settings of a section, by the name that the file gives it."""
    fields = dict(zip(Settings.__struct_encode_fields__, Settings.__struct_fields__, strict=True))
    found = getattr(settings, fields[name])
    assert isinstance(found, msgspec.Struct)
    return found


def _allowed(section: str, key: str) -> str:
    for name, kind, _default, _meaning in every_key():
        if name == f"{section}.{key}":
            return f"allowed: {kind}"
    return f"[{section}] is a section with keys of its own"


def line_of(words: str, section: str, key: str) -> int:
    """The line a key stands on, else its section's, else 1. tomllib does not tell."""
    current, of_section = "", 1
    for number, line in enumerate(words.split("\n"), 1):
        if header := re.match(r"\s*\[\s*\"?([^\]\"]+?)\"?\s*\]", line):
            current = header[1].strip()
            if current == section:
                of_section = number
            continue
        name = re.match(r"\s*([\w.\"'-]+)\s*=", line)
        if name is None:
            continue
        dotted = name[1].replace('"', "").replace("'", "")
        full = f"{current}.{dotted}" if current else dotted
        if full == f"{section}.{key}" or (not key and full.partition(".")[0] == section):
            return number
    return of_section


def line_of_entry(words: str, section: str, key: str, number: int) -> int:
    """The line on which the entry of that number (from 0 on) of a list of strings begins, else its key's.

    words  of a file that was read without complaint
    """
    line = line_of(words, section, key)
    rest = "\n".join(words.split("\n")[line - 1 :])
    for count, found in enumerate(_ENTRY.finditer(rest, rest.find("[", rest.find("=")) + 1)):
        if count == number:
            return line + rest.count("\n", 0, found.start("text"))
    return line


_ENTRY = re.compile(
    r"""(?:[\s,]|\#[^\n]*)*  # what may stand between two of them
    (?P<text>
      \"{3} (?:[^\\]|\\.)*? \"{3,5} | \'{3} .*? \'{3,5}
    | \"(?!\"\") (?:[^"\\\n]|\\.)* \" | \'(?!\'\') [^'\n]* \'
    | [^\s,\]\#"']+
    )""",
    re.VERBOSE | re.DOTALL,
)


def every_key() -> list[tuple[str, str, object, str]]:
    """Every key: its dotted name, what it takes, its default, its meaning."""
    rows: list[tuple[str, str, object, str]] = []
    for title, kind in _sections().items():
        hints = get_type_hints(kind, include_extras=True)
        defaults = kind()
        for name in kind.__struct_fields__:
            base, meta = get_args(hints[name])
            rows.append((f"{title}.{name}", _takes(base, meta), getattr(defaults, name), meta.description))
    return rows


def _takes(base: object, meta: Meta) -> str:
    if get_origin(base) is Literal:
        return " or ".join(f'"{choice}"' for choice in get_args(base))
    if get_origin(base) is tuple:
        is_places = get_args(base)[0] is Place
        return "a list of paths, absolute or beginning with ~/" if is_places else "a list of strings"
    if base is bool:
        return "true or false"
    word = {int: "a whole number", float: "a number"}.get(base, "a string")  # type: ignore[call-overload]
    bounds = [f"from {meta.ge}"] if meta.ge is not None else []
    if meta.le is not None:
        bounds.append(f"to {meta.le}")
    return " ".join([word, *bounds])


def render(settings: Settings, source: str) -> str:
    """The whole configuration as TOML with comments: what holds now, what each key takes and means."""
    out = [f"# {source}"]
    current = ""
    for dotted, takes, default, meaning in every_key():
        name, _, key = dotted.partition(".")
        if name != current:
            current = name
            out += ["", f"[{name}]"]
        value = getattr(section(settings, name), key)
        out.append(f"# {meaning}")
        out.append(f"# takes {takes}; default {_toml(default)}")
        out.append(f"{key} = {_toml(value)}")
    return "\n".join(out) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        return msgspec.json.encode(value).decode()
    return str(value)
