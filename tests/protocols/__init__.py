"""Tests of the protocols, over transports in memory and a clock that stands still."""
