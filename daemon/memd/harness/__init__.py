"""What memd knows about coding agents: one pure module each."""
