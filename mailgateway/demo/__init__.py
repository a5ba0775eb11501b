"""The main job on an embedded mailbox: a mail server, a person's mail program and a session, on loopback.

Policy: everything that the service sees is real, the sockets, the logins, the bytes; only the mail server and
the person are ours, and they are built of stock Twisted, so that the service is not shown on its own code.
The demo touches no network, no home directory and no mailbox of anybody, and leaves nothing behind.

It knows the service from outside only: a settings file, a process, and the client of the API.
"""
