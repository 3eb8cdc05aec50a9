"""Managed workstreams: one line of work over many sessions of many harnesses, one run at a time."""
