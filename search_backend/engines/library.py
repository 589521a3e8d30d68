"""The library engine: search in the user's folders, pages read before, and our own docs."""

from __future__ import annotations

from searchloop.search_backend.engines import Access, Engine
from searchloop.search_backend.types import Query, SearchResult


def search(query: Query, access: Access) -> list[SearchResult]:
    """Returns the best passages of the local index, without a network."""
    hits = access.library.search(query.text, query.max_results, query.folders)
    return [SearchResult(hit.title, hit.url, hit.snippet, source="library") for hit in hits]


ENGINE = Engine("library", "Library (local documents)", search, remote=False)
