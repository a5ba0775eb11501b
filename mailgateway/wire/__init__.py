"""Mail dialogues without input or output: bytes in, events out, and back.

What stands here knows the protocols and their many dialects, and nothing of sockets, clocks or databases:
whoever holds the connection hands in what came and sends what it is given.  A breach by the peer is an
error of ``mailgateway.errors``; a breach by us is a ``Misuse``, which nobody catches.
"""


class Misuse(AssertionError):
    """Our own code asked for what the protocol does not allow; a bug, not the peer's fault, never caught."""
