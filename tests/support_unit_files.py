"""Reads unit files back the way systemd does, for the lines an install writes.

source  systemd.syntax(7), systemd.unit(5), systemd.service(5) "Command lines", systemd 252
"""

from __future__ import annotations

import re

ESCAPES = {
    "a": 7,
    "b": 8,
    "f": 12,
    "n": 10,
    "r": 13,
    "t": 9,
    "v": 11,
    "\\": 92,
    '"': 34,
    "'": 39,
    "s": 32,
}


def settings(text: str) -> dict[str, list[str]]:
    """Every `Section.Key` with its values in order."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in re.split("[\n\r]", text):
        line = line.strip(" \t")
        if not line or line[0] in "#;":
            continue
        assert not line.endswith("\\"), "a backslash at the end would join the next line"
        if line.startswith("["):
            section = line.strip("[]")
            continue
        key, _, value = line.partition("=")
        found.setdefault(f"{section}.{key}", []).append(value)
    return found


def words(value: str) -> list[bytes]:
    """The words of a value: quotes removed, C escapes decoded; refuses what systemd refuses."""
    made: list[bytes] = []
    at = 0
    while at < len(value):
        if value[at] in " \t":
            at += 1
            continue
        word = bytearray()
        quote = ""
        while at < len(value) and (quote or value[at] not in " \t"):
            char = value[at]
            if char == "\\":
                size, byte = _escape(value[at + 1 :])
                word += byte
                at += 1 + size
                continue
            if quote:
                if char == quote:
                    quote = ""
                else:
                    word += char.encode()
            elif char in "\"'":
                quote = char
            else:
                word += char.encode()
            at += 1
        assert not quote, "a quote is never closed"
        made.append(bytes(word))
    return made


def _escape(rest: str) -> tuple[int, bytes]:
    if rest[:1] == "x":
        return 3, bytes([int(rest[1:3], 16)])
    if re.match("[0-7]{3}", rest):
        return 3, bytes([int(rest[:3], 8)])
    return 1, bytes([ESCAPES[rest[0]]])


def specifiers(word: bytes) -> bytes:
    """`%%` is a percent sign; nothing else may stand in what an install wrote."""
    assert not re.search(rb"%[^%]", word.replace(b"%%", b"")), word
    assert word.replace(b"%%", b"").count(b"%") == 0, word
    return word.replace(b"%%", b"%")


def command(value: str) -> list[bytes]:
    """The argv of an `ExecStart=`; a literal path is checked as systemd checks it."""
    argv = [specifiers(word) for word in words(value)]
    program = argv[0]
    assert program.startswith(b"/"), program
    assert not re.search(b"[\\x01-\\x1f\\x7f\"'\\\\]", program), "systemd: contains special characters"
    assert not any(re.search(rb"(?<!\$)(\$\$)*\$(?!\$)", word) for word in argv), "a variable would expand"
    return [program, *(word.replace(b"$$", b"$") for word in argv[1:])]


def through_shell(argv: list[bytes]) -> tuple[list[bytes], dict[bytes, bytes]]:
    """What runs in the end and the variables set for it: `/bin/sh` gets its words for `printf %b`."""
    if argv[0] != b"/bin/sh":
        return argv, {}
    plain = [re.sub(rb"\\0([0-7]{3})", lambda m: bytes([int(m.group(1), 8)]), word) for word in argv[4:]]
    end = plain.index(b"--")
    return plain[end + 1 :], dict(item.split(b"=", 1) for item in plain[:end])  # type: ignore[misc]


def environment(values: list[str]) -> dict[bytes, bytes]:
    """The variables of `Environment=` lines; refuses values that systemd drops."""
    found = {}
    for value in values:
        for word in words(value):
            name, _, text = specifiers(word).partition(b"=")
            assert not re.search(b"[\\x00-\\x08\\x0b-\\x1f\\x7f]", text), "control characters are refused"
            text.decode("utf-8")
            found[name] = text
    return found
