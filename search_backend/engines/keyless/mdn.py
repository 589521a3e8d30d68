"""MDN Web Docs: HTML, CSS, JavaScript, HTTP and the APIs of browsers.

The search of its own pages; it is not documented for others, so its answers may change.
https://github.com/mdn/rumba, https://developer.mozilla.org/api/v1/search
"""

from __future__ import annotations

from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.engines.keyless import CONTACT, polite
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, Setting, get
from searchloop.search_backend.plugin.answers import base, checked, result, rows, usable
from searchloop.search_backend.types import Query, SearchResult

TITLE = "MDN Web Docs"
BASE = "https://developer.mozilla.org"
SETTINGS = (CONTACT, Setting("MDN_BASE_URL", "Another server of MDN", BASE))
LOCALES = {"de": "de", "es": "es", "fr": "fr", "ja": "ja", "ko": "ko", "pt": "pt-BR", "ru": "ru"}


def request(query: Query, keys: Keys) -> HttpRequest:
    """A search in the language of the question, if MDN has it, and in English."""
    locale = (LOCALES | {"zh": "zh-CN"}).get((query.language or "").lower())
    parameters = {"q": query.text, "locale": [*([locale] if locale else []), "en-US"]}
    return get(base(keys, "MDN_BASE_URL", BASE) + "/api/v1/search", parameters, polite(keys))


def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
    """documents[]; `mdn_url` is a path."""
    found = rows(checked(response, TITLE), "documents", title=TITLE)
    made = (result("mdn", _page(r.get("mdn_url")), r.get("title"), r.get("summary")) for r in found)
    return usable(made, TITLE)


def _page(path: object) -> str | None:
    is_path = isinstance(path, str) and path.startswith("/") and not path.startswith("//")
    return f"{BASE}{path}" if is_path else None


ENGINE = Engine(
    "mdn",
    TITLE,
    applies=frozenset({"language"}),
    wire=Wire(request, parse),
    settings=SETTINGS,
    rate=1.0,
    kinds=("web",),
    sites=("developer.mozilla.org",),
    untested=True,
)
