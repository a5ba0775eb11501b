"""Dialogues without I/O: bytes in, events and bytes out, the socket is somebody else's."""
