"""Moves bytes to and from model providers; no other folder opens such connections.

`pool` alone imports the HTTP library.

Others may import: exchange, refusals, sse, transport, trust.
"""
