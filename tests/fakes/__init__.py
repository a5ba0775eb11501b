"""Peers that follow a script, for tests."""
