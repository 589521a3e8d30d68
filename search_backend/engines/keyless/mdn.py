"""MDN Web Docs: HTML, CSS, JavaScript, HTTP and the APIs of browsers.

The search of its own pages; it is not documented for others, so its answers may change.
https://github.com/mdn/rumba, https://developer.mozilla.org/api/v1/search
"""

from __future__ import annotations

from searchloop.search_backend.engines._json import Row, lower
from searchloop.search_backend.engines.keyless import site_engine
from searchloop.search_backend.types import Query

BASE = "https://developer.mozilla.org"
LOCALES = {"de": "de", "es": "es", "fr": "fr", "ja": "ja", "ko": "ko", "pt": "pt-BR", "ru": "ru"}


def ask(query: Query) -> dict[str, object]:
    """A search in the language of the question, if MDN has it, and in English."""
    locale = (LOCALES | {"zh": "zh-CN"}).get(lower(query.language) or "")
    return {"q": query.text, "locale": [*([locale] if locale else []), "en-US"]}


def fields(row: Row) -> tuple[object, ...]:
    """`mdn_url` is a path."""
    path = row.get("mdn_url")
    is_path = isinstance(path, str) and path.startswith("/") and not path.startswith("//")
    return f"{BASE}{path}" if is_path else None, row.get("title"), row.get("summary")


ENGINE = site_engine(
    *("mdn", "MDN Web Docs", "GET /api/v1/search"),
    ("MDN_BASE_URL", BASE),
    ask,
    "documents",
    fields,
    applies=frozenset({"language"}),
    rate=1.0,
    kinds=("web",),
    sites=("developer.mozilla.org",),
    untested=True,
)
