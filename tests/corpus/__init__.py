"""Mails as programs and servers write them, each with its right reading, and what measures a reader."""
