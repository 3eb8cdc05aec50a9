"""What runs: the socket, the watcher, the healing. The only package that knows all the others."""

import sys


def _import_structlog_alone() -> None:
    """Import structlog as if rich were not there: four megabytes for a console that no daemon has."""
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]


_import_structlog_alone()
