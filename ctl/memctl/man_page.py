"""The manual page memctl(1), made from the parsers of all commands. The same text on every machine.

    PYTHONPATH=daemon:ctl python -m memctl.man_page > man/memctl.1

source  man(7), groff 1.22
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from memctl import cli
from memd import __version__

EXIT = (
    (64, "words that are off"),
    (65, "what was named is not there, or data is bad"),
    (69, "memd is not running, or does not answer"),
    (73, "a file or folder cannot be made"),
    (74, "input or output failed"),
    (75, "somebody else has what is needed; try again"),
    (77, "memd refuses, because it could cost something"),
    (78, "the configuration is not understood"),
)

FILES = (
    ("~/.config/memd/config.toml", "the configuration; `memctl config --show` explains every key"),
    ("~/.local/share/memd/", "the ledger, enrolled agents, saved checkouts, the hook that agents run"),
    ("~/.local/state/memd/", "log and journal"),
    (".memd.toml", "in a checkout: its workspace and project, and what is not imported"),
)

ENVIRONMENT = (
    ("MEMD_SOCKET", "where memd listens, instead of the usual place"),
    ("XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME, XDG_RUNTIME_DIR", "instead of the folders above"),
    ("CLAUDE_CONFIG_DIR", "the login of Claude Code in use; other agents' own variables count as well"),
    ("MEMD_IGNORE_MARKER", "1: as if there were no .memd.toml"),
    ("NO_COLOR", "no colours"),
    ("MEMD_RUN_ID, MEMD_WORKSTREAM_ID", "set for an agent that was started by `memctl run`"),
)

ABOUT = """memd is a daemon that gives coding agents one memory and one line of work: it links an agent's
memory into every login, keeps a searchable ledger of what all agents said, and lets one agent go on where
another one stopped. memctl is its command."""


def page() -> str:
    """The page as man(7) has it."""
    out = [
        f'.TH MEMCTL 1 "" "memd {__version__}" "memd"',
        '.\\" Made from the parsers by memctl.man_page: do not edit.',
        ".SH NAME",
        f"memctl {_text('-')} one memory, and one line of work, for every coding agent",
        ".SH SYNOPSIS",
        ".B memctl",
        ".I COMMAND",
        "[...]",
        ".SH DESCRIPTION",
        _text(ABOUT.replace("\n", " ")),
        ".PP",
        _text("`memctl COMMAND --help` tells of a command what this page tells of all."),
    ]
    for title, group in cli.GROUPS:
        out.append(f".SH {_text(title.upper())}")
        for name, _, meaning in group:
            out += _command(name, meaning)
    out += [".SH EXIT STATUS", _text("0 when all went well; `run` ends with the status of the agent.")]
    for number, meaning in EXIT:
        out += [".TP", f"{number}", _text(meaning)]
    for heading, rows in (("FILES", FILES), ("ENVIRONMENT", ENVIRONMENT)):
        out.append(f".SH {heading}")
        for word, meaning in rows:
            out += [".TP", f".I {_text(word)}", _text(meaning)]
    return "\n".join(out) + "\n"


def _command(name: str, meaning: str) -> Iterator[str]:
    yield f".SS {_text(f'memctl {name}')}"
    found = _sub(cli.parser_of(name), name)
    yield from _parser(found, f"memctl {name}", meaning)


def _parser(parser: argparse.ArgumentParser, prog: str, meaning: str) -> Iterator[str]:
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not nested:
        yield from _synopsis(parser, prog)
    yield _text(_sentence(_filled(parser)) if parser.description else _sentence(meaning))
    for action in parser._actions:
        if action in nested or action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        yield ".TP"
        yield _words(action)
        yield _text(_help(action))
    for action in nested:
        says = {one.dest: one.help or "" for one in action._choices_actions}
        for word, sub in action.choices.items():
            yield ".PP"
            yield from _parser(sub, f"{prog} {word}", says.get(word, ""))


def _filled(parser: argparse.ArgumentParser) -> str:
    """The description; what is laid out by hand stays in its lines."""
    text = parser.description or ""
    if parser.formatter_class is not argparse.RawDescriptionHelpFormatter:
        return text
    head, _, rest = text.partition("\n\n")
    return f"{head}\0{rest}"


def _synopsis(parser: argparse.ArgumentParser, prog: str) -> Iterator[str]:
    """The command and what it takes, on a line that is filled."""
    if parser.usage:
        yield f".B {_text(' '.join(parser.usage.split()))}"
        yield ".br"
        return
    parts = [_bold(prog)]
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        taken = _words(action, is_short=True)
        if action.nargs in ("*", "+"):
            taken += " ..."
        is_needed = action.required if action.option_strings else action.nargs not in ("?", "*")
        parts.append(taken if is_needed else f"[{taken}]")
    yield " ".join(parts)
    yield ".br"


def _words(action: argparse.Action, *, is_short: bool = False) -> str:
    """An option with its value, or what stands for a word."""
    value = ""
    if action.nargs != 0:
        value = str(action.metavar or ("|".join(map(str, action.choices or ())) or action.dest.upper()))
    if not action.option_strings:
        return f"\\fI{_text(value)}\\fR"
    options: Sequence[str] = action.option_strings[-1:] if is_short else action.option_strings
    shown = ", ".join(_bold(option) for option in options)
    return f"{shown} \\fI{_text(value)}\\fR" if value else shown


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace("%%", "%")
    if action.choices and not isinstance(action, argparse._SubParsersAction):
        text += f" ({', '.join(map(str, action.choices))})"
    return text.strip()


def _sub(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found = action.choices[name]
            assert isinstance(found, argparse.ArgumentParser)
            return found
    raise AssertionError(name)


def _sentence(text: str) -> str:
    """As a sentence; behind a NUL come lines that stay as they are."""
    text, _, laid_out = text.partition("\0")
    if laid_out:
        return f"{_sentence(text)}\n.nf\n{laid_out}\n.fi"
    flat = " ".join(text.split())
    flat = flat[:1].upper() + flat[1:]
    return flat if flat.endswith((".", "?", ":")) else flat + "."


def _bold(text: str) -> str:
    return f"\\fB{_text(text)}\\fR"


def _text(text: str) -> str:
    """The text with nothing in it that roff would take for its own."""
    made = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{made}" if made.startswith(".") else made


if __name__ == "__main__":
    sys.stdout.write(page())
