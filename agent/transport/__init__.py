"""Moves bytes to and from model providers; no other folder opens such connections.

Others may import: exchange, pool, refusals, transport, trust.
"""
