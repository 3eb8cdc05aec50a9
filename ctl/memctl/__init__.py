"""memctl: the command that people and lifecycle hooks call."""
