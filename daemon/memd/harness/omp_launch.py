"""How OMP is started."""

from __future__ import annotations

from memd.harness.launching import Launch

LAUNCH: Launch | None = None
