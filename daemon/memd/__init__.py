"""memd: the daemon. Only the version lives here, so that asking for it imports nothing."""

__version__ = "0.1.0"
