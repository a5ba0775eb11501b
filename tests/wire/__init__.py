"""Tests of the dialogues without input or output."""
