"""The rules, as functions of their arguments."""
