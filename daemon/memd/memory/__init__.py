"""Agent-owned memory: one folder for an agent, a link to it in every login."""
