"""Tests of the embedded mailbox: its servers against independent clients, and its person against them."""
