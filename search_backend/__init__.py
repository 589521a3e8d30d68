"""Search engines and web pages behind a small HTTP API; knows nothing of agents or models.

Others may import: api, engines, fetch, library, pages, other_apis, plugin, readers, settings,
types.
"""

if __name__ != "searchloop.search_backend":  # one identity: both names are found from the root
    raise ImportError("search_backend is a part of searchloop: import searchloop.search_backend")
