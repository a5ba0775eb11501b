"""Loops: the only things that live long, each a Twisted service with a beginning and an end.

They join protocols (bytes) with flows (transactions) and decide nothing about mail themselves.
"""
