"""POST /api/web-search in a fraction of what the framework takes for any request.

Only good answers come from here; whatever is to be refused goes the ordinary way and is refused
there, in one place.
"""

from __future__ import annotations

import json
from functools import lru_cache

from search_backend import payload
from search_backend.errors import SearchBackendError
from search_backend.search import Chain
from search_backend.types import Query, SearchAnswer

PATH = "/api/web-search"
# As the rest of the API writes it.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class ShortWay:
    """Searches of `chain`. Both methods give the body of the answer, or None for what is not
    theirs."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    def at_hand(self, path: str, body: bytes) -> bytes | None:
        """What is in memory. Never waits."""
        asked = _asked(body) if path == PATH else None
        try:
            answer = self._chain.kept(*asked) if asked else None
        except SearchBackendError:
            return None
        return _written(answer)

    def worked_out(self, path: str, body: bytes) -> bytes | None:
        """What the search comes to; takes as long as that does."""
        asked = _asked(body) if path == PATH else None
        try:
            answer = self._chain.search(*asked) if asked else None
        except SearchBackendError:
            return None
        return _written(answer)


def _written(answer: SearchAnswer | None) -> bytes | None:
    return None if answer is None else (_JSON(answer.as_json()) + "\n").encode()


@lru_cache(maxsize=512)
def _asked(body: bytes) -> tuple[Query, str | None] | None:
    """What a body asks for; None for one that is to be refused, which is not done here."""
    try:
        return payload.web_search(payload.parse_object(body))
    except SearchBackendError:
        return None
