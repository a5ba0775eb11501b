"""Tests of the pure mail layer: what is read, who is let in, what leaves."""
