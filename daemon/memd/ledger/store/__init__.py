"""Where the ledger is kept: the interface, and the engine of one machine. All SQL is in this package."""
