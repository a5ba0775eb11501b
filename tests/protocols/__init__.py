"""Tests of the Twisted protocols: in memory with a clock, and over loopback with TLS."""
