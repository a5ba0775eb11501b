"""Twisted protocols: they move bytes and keep deadlines, and decide nothing about mail."""
