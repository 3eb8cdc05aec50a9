"""A program that tests run under a tracer: one flow from its scene to its end.

python support_flow_run.py NAME FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from support_flows import FLOWS
from support_ledger_faults import LedgerFaults


def main(name: str, folder: str) -> None:
    flow = FLOWS[name](Path(folder))
    print("ready", flush=True)
    sys.stdin.read()
    with flow.under(LedgerFaults(is_flushing=True)):
        flow.work()
        flow.check_done()


if __name__ == "__main__":
    main(*sys.argv[1:])
