"""How Kiro CLI is started: two engines behind one name.

    kiro-cli [options] [chat]           the second engine
    kiro-cli --v3 [options] [chat]      the third, also chosen by `--mode ...` and `--agent-engine v3`
    kiro-cli [options] COMMAND ...      the first word that is no option and no value of one
    --resume-id ID                      a UUID for the second engine, `sess_` and a UUID for the third

An engine cannot resume what the other one wrote. `--no-interactive` keeps its sessions in yet another store,
so it is none of memd's. The third engine has no word for a run without questions: its `permissions.yaml`
decides. It wrote its sessions below `~/.kiro` whatever `KIRO_HOME` said; one that lies there is resumed
without the variable.

    source  descriptions of Kiro CLI 2.16, read 2026-12; the program was not run
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memd.harness.arguments import HELP, NO_SESSION, Grammar, Scan, appended, inserted, names, scan
from memd.harness.kiro_records import V2, V3
from memd.harness.launching import Argv, Intent, Launch, Said

_SELECTORS = ("--resume", "-r", "--resume-id", "--resume-picker", "--list")
_PASSING = (
    *HELP, "--help-all", "--version", "-V", *NO_SESSION, "--no-interactive", "--list-sessions", "-l",
    "--list-models", "--delete-session", "-d",
)  # fmt: skip
_UTILITIES = names(
    "acp agent dashboard debug diagnostic doctor help init inline integrations issue launch login logout mcp "
    "profile quit restart settings setup theme translate update user whoami"
)
_TRUST = "--trust-all-tools"
_ENGINES = {"v2": V2, "v3": V3}
_GRAMMAR = Grammar(
    valued=names("--agent --resume-id --mode --agent-engine"),
    optional=names("--trust-tools --delete-session -d"),
    switches=names("--v3 --resume -r --resume-picker --list -a -v --verbose") | {_TRUST, *_PASSING},
)
_ID = re.compile(r"(sess_)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def engine_of(session: str) -> str:
    """The engine whose sessions have ids of this form; empty: no engine's."""
    form = _ID.fullmatch(session)
    return "" if form is None else V3 if form[1] else V2


def read(native: Sequence[str]) -> Said:
    found = scan(native, _GRAMMAR)
    named = found.value("--agent-engine")
    session = found.value("--resume-id")
    return Said(
        is_passing=found.is_torn
        or found.has(*_PASSING)
        or found.command(_UTILITIES) is not None
        or (found.has("--agent-engine") and named not in _ENGINES),
        has_selector=found.has(*_SELECTORS),
        session=session if engine_of(session) else "",
        flavor=_said(found),
    )


def _said(found: Scan) -> str:
    if found.has("--v3", "--mode"):
        return V3
    return _ENGINES.get(found.value("--agent-engine"), "")


def compose(native: Sequence[str], intent: Intent) -> Argv:
    found = scan(native, _GRAMMAR)
    session = intent.session
    said = _said(found)
    named = engine_of(session or found.value("--resume-id"))
    engine = said or intent.flavor or named or V2
    notices: list[str] = []
    if session and engine_of(session) != engine:
        session = ""
        notices.append("Kiro begins a new session: the linked one is not of the engine that is started")
    arguments: tuple[str, ...] = tuple(native)
    if session:
        arguments = appended(arguments, ("--resume-id", session))
    if intent.is_yolo and engine == V3:
        notices.append("--yolo is left out: permissions.yaml says what Kiro's third engine may do unasked")
    elif intent.is_yolo and not _has_trust(found):
        arguments = appended(arguments, (_TRUST,))
    if engine == V3 and said != V3:
        arguments = inserted(arguments, 0, ("--v3",))
    is_home = bool(session) and engine == V3 and intent.is_usual
    return Argv(
        arguments=arguments,
        session=session,
        unset=("KIRO_HOME",) if is_home else (),
        notices=tuple(notices),
    )


def _has_trust(found: Scan) -> bool:
    """Whether the arguments say themselves which tools are trusted, be it fewer."""
    return found.has(_TRUST, "-a") or any(flag.name.startswith("--trust-tools") for flag in found.flags)


LAUNCH = Launch(
    executables=("kiro-cli",),
    is_pooled=True,
    variables=("KIRO_HOME",),
    words={"kiro-v2": V2, "kiro-cli-v2": V2, "kiro-v3": V3, "kiro-cli-v3": V3},
    read=read,
    compose=compose,
)
