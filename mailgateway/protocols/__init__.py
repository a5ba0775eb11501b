"""What moves bytes between mail servers and us: sockets, TLS, deadlines; it decides nothing.

Each protocol wraps a dialogue of ``wire`` and offers coroutines.  It knows neither mail nor questions nor the
database; a daemon joins it with a flow.
"""
