"""What stock Twisted's mail clients do wrong, each fault as a small program.

These tests pass as long as the fault is there.  When one fails after an upgrade, Twisted has mended
something: look whether our own code for it can go, and change ``docs/decisions``.  Nothing here tests
mailgateway.
"""
