"""SQL: the only place that knows tables, statements and transactions.

One module per table family; each function takes the open transaction (``Tx``) first and does one thing to
its rows.  What to do and when is said by ``flows``; what is allowed is said by ``domain``.  Nothing here
knows mail, HTTP or a protocol.
"""
