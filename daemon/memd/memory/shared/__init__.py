"""The memory folder that agents of different makers share, and the local store that stands in for it."""
