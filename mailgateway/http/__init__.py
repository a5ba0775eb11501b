"""The HTTP door: guards and limits in front, one table of routes, JSON at both ends.

A route's function parses what was asked, calls one flow, and says what came of it; it decides nothing.
``api.make_site`` gives the factory that a port or a unix socket listens with, ``doors.Doors`` is everything
it needs.  Only ``problems`` knows which status belongs to which error.
"""
