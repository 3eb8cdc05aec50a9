"""Hooks in the settings of agents: where they go, what they are, put in, taken out, looked after."""
