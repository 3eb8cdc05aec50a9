"""What runs: the socket, the watcher, the healing. The only package that knows all the others."""

import sys

# structlog takes rich for its development console wherever it finds it: four megabytes a daemon never uses
sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
