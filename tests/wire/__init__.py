"""Tests of the dialogues without I/O."""
