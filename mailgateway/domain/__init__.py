"""The rules: what is allowed, what follows from what, and when.

Pure functions and frozen values; no I/O, no SQL, no clock and no chance.  Rows are handed in as values, so
the rules never ask for one, and time is an argument.
"""
