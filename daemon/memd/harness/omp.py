"""OMP (oh-my-pi): where its sessions lie. What is in them is `memd.harness.pi_tree`.

    <agent dir>/sessions/<bucket>/<time>_<session>.jsonl             a session
    <agent dir>/sessions/<bucket>/<time>_<session>/<agent>.jsonl     its sub-agents', at any depth

The first 256 bytes are a title that is rewritten in place. OMP also rewrites whole files, to take out large
outputs and to make a branch last; entries keep their ids and times then.

    source  OMP 18.2.3, read 2026-11
"""

from __future__ import annotations

from memd.harness.model import Adapter, Environment, Store
from memd.harness.omp_hooks import HOOKS
from memd.harness.omp_launch import LAUNCH
from memd.harness.pi_tree import begin, identify, parse

TITLE_BYTES = 256
_PATTERNS = ("*.jsonl", "**/*.jsonl")


def stores(environment: Environment) -> tuple[Store, ...]:
    """Every place where sessions of one environment may be.

    A profile, `XDG_DATA_HOME` and a configuration folder of another name each move them, and which of them
    holds depends on folders that exist: so all are looked at. `PI_CODING_AGENT_DIR` is for the default
    profile only; a session folder that is named goes before everything.
    """
    variables, home = environment.variables, environment.home
    chosen = variables.get("PI_CODING_AGENT_SESSION_DIR")
    if chosen:
        return (_store(chosen),)
    config = home + b"/" + (variables.get("PI_CONFIG_DIR") or b".omp").strip(b"/")
    data = variables.get("XDG_DATA_HOME", b"").rstrip(b"/")
    profile = variables.get("OMP_PROFILE", variables.get("PI_PROFILE", b""))
    is_default = not profile or profile == b"default"
    agent = variables.get("PI_CODING_AGENT_DIR") if is_default else b""
    roots = [(agent or config + b"/agent").rstrip(b"/") + b"/sessions"]
    if data and not agent:
        roots.append(data + b"/omp/sessions")
    found = [_store(root) for root in dict.fromkeys(roots)]
    found.append(_profiles(config + b"/profiles", "*/agent/sessions/"))
    if data:
        found.append(_profiles(data + b"/omp/profiles", "*/sessions/"))
    if not is_default:
        found.reverse()  # the profile that was named is among the last two
    return tuple(found)


def _store(root: bytes) -> Store:
    return Store(root=root.rstrip(b"/") or b"/", patterns=_PATTERNS, head=TITLE_BYTES)


def _profiles(root: bytes, below: str) -> Store:
    return Store(root=root, patterns=tuple(below + pattern for pattern in _PATTERNS), head=TITLE_BYTES)


ADAPTER = Adapter(
    name="omp",
    title="OMP",
    aliases=("oh-my-pi",),
    stores=stores,
    identify=identify,
    begin=begin,
    parse=parse,
    launch=LAUNCH,
    hooks=HOOKS,
)
