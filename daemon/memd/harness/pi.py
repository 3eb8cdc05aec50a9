"""Pi: where its sessions lie. What is in them is `memd.harness.pi_tree`.

    <agent dir>/sessions/<bucket>/<time>_<session>.jsonl     a bucket is a directory's path with dashes
    <session dir>/<time>_<session>.jsonl                     where one is named, there are no buckets

Different directories give one bucket the same name, and ids need not be UUIDs nor be unique over buckets: the
header's `cwd` decides. Files are appended to, but for a file of an older version, which is rewritten once.

    source  Pi 1.6.0, read 2026-11
"""

from __future__ import annotations

from memd.harness.model import Adapter, Environment, Store
from memd.harness.pi_hooks import HOOKS
from memd.harness.pi_launch import LAUNCH
from memd.harness.pi_tree import begin, identify, parse


def stores(environment: Environment) -> tuple[Store, ...]:
    """The sessions of one environment; `--session-dir` is the same as the variable."""
    chosen = environment.variables.get("PI_CODING_AGENT_SESSION_DIR")
    agent = environment.variables.get("PI_CODING_AGENT_DIR") or environment.home + b"/.pi/agent"
    root = chosen or agent.rstrip(b"/") + b"/sessions"
    return (Store(root=root.rstrip(b"/") or b"/", patterns=("*.jsonl", "*/*.jsonl")),)


ADAPTER = Adapter(
    name="pi",
    title="Pi",
    stores=stores,
    identify=identify,
    begin=begin,
    parse=parse,
    launch=LAUNCH,
    hooks=HOOKS,
)
