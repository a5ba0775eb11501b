"""People's pages: what they see of questions, sessions and mails, and how they log in to see it.

Klein finds the page, Jinja2 writes it, htmx and a few lines of ours keep it up to date; all of it works
without scripts, too.  Loaded when the first person comes (``http.pages``).
"""
