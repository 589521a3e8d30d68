"""Web search over several engines: the chain, the schedule by which it asks, and its limits.

Others may import: chain.
"""
