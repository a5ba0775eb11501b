"""The use cases, on a true database in memory."""
