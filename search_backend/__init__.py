"""Search engines and web pages behind a small HTTP API; knows nothing of agents or models.

Others may import: api, cache, engines, fetch, library, pages, other_apis, plugin, readers,
settings, types.
"""
