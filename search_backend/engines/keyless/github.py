"""GitHub: public repositories.

https://docs.github.com/en/rest/search/search; ten searches a minute are allowed without a key.
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import Row, joined
from searchloop.search_backend.engines.keyless import polite, site_engine
from searchloop.search_backend.types import Query


def ask(query: Query) -> dict[str, object]:
    """A search in names, descriptions and topics."""
    return {"q": query.text, "per_page": query.max_results}


def fields(row: Row) -> tuple[object, ...]:
    """The date is that of the last push."""
    stars = joined("", row.get("stargazers_count"))
    about = joined(" ", row.get("description"), stars and f"({stars} stars)")
    return row.get("html_url"), row.get("full_name"), about, row.get("pushed_at")


ENGINE = site_engine(
    *("github", "GitHub", "GET /search/repositories"),
    ("GITHUB_API_BASE_URL", "https://api.github.com"),
    ask,
    "items",
    fields,
    headers=lambda keys: polite(keys) | {"Accept": "application/vnd.github+json"},
    rate=1 / 6,
    kinds=("repository",),
    sites=("github.com",),
)
