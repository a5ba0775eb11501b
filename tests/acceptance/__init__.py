"""The whole service as a process of its own, against real servers: Dovecot, aiosmtpd, swaks.

Nothing here runs on the tests' reactor: whatever waits does so in a blocking call with a deadline, and says
which condition did not come true.
"""
