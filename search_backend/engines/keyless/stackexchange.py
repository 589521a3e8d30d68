"""Stack Exchange: questions and answers of Stack Overflow, its largest site.

https://api.stackexchange.com/docs/advanced-search; 300 requests a day are allowed without a key.
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import Row, joined
from searchloop.search_backend.engines.keyless import site_engine
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A search for questions by relevance."""
    fixed = {"site": "stackoverflow", "order": "desc", "sort": "relevance"}
    return {"q": query.text, **fixed, "pagesize": query.max_results}


def fields(row: Row) -> tuple[object, ...]:
    """The snippet says if there is an answer."""
    answers, score = (joined("", row.get(name)) for name in ("answer_count", "score"))
    told = joined(", ", answers and f"{answers} answers", score and f"score {score}")
    tags = row.get("tags")
    about = joined("; ", told, joined(", ", *tags) if isinstance(tags, list) else "")
    return row.get("link"), row.get("title"), about, row.get("creation_date")


ENGINE = site_engine(
    *("stackexchange", "Stack Exchange", "GET /search/advanced"),
    ("STACKEXCHANGE_BASE_URL", "https://api.stackexchange.com/2.3"),
    ask,
    "items",
    fields,
    rate=1.0,
    kinds=("programming",),
    sites=("stackoverflow.com", "stackexchange.com", "superuser.com", "serverfault.com"),
)
