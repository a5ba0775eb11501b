"""The HTTP door, driven in memory: the real site, the real flows, a real SQLite."""
