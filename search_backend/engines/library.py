"""The library engine: search in the user's folders, pages read before, and our own docs."""

from __future__ import annotations

from searchloop.search_backend.engines import Access, Engine
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.types import Query, SearchResult

SETTINGS = (
    Setting("SEARCHLOOP_EMBEDDINGS", "Find by meaning, too: an embedding model, such as bge-m3"),
    Setting("EMBEDDINGS_BASE_URL", "Its server (default: port 11434 on this machine)"),
    Setting("EMBEDDINGS_API_KEY", "Key for the server of the embedding model", secret=True),
)


def search(query: Query, access: Access) -> list[SearchResult]:
    """Returns the best passages of the local index, without a network."""
    hits = access.library.search(
        query.text, query.max_results, query.folders, by_meaning=not query.offline
    )
    return [SearchResult(hit.title, hit.url, hit.snippet, source="library") for hit in hits]


def how(access: Access) -> str:
    """Returns what the hits are found by, if they are found by more than words."""
    return access.library.meaning.told() if access.library.meaning else ""


ENGINE = Engine(
    "library",
    "Library (local documents)",
    search,
    remote=False,
    settings=SETTINGS,
    how=how,
)
