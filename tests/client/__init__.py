"""Tests of the blocking client, against a small stand-in of the service."""
