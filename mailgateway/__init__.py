"""mailgateway: connects a mailbox with running coding-agent sessions."""

__version__ = "0.1.0"
