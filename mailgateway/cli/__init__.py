"""The command ``mailgateway``: what people and agents type.

Each verb is a module of its own, imported when it is called, so that no verb pays for another.  Nothing is
decided here: verbs ask the service, or the operator's tools, and say what came of it.
"""
