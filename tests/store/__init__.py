"""Tests of the store: one conformance suite on each database, and what only SQLite does."""
