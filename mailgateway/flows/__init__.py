"""Use cases: one function is one transaction is one outcome.

A flow gathers the rows, lets ``domain`` decide, writes, and returns what happened; after the commit it rings
the bell.  Every door (HTTP, the watcher, the sender) comes through here, so the same act is written once.
Flows know neither sockets nor status numbers; what they need of the outside they declare in ``ports``.
"""
