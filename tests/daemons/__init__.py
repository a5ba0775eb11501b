"""Tests of the loops: machines with a clock in hand, and no sockets."""
