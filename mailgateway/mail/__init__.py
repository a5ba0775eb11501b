"""Message bytes to values and values to message bytes; pure functions of their arguments.

Nothing here knows the reactor, the database, the clock or chance.  Whatever a stranger may send is read
without raising and within bounds; whatever decides who is let in is written by hand and closed by default.
"""
