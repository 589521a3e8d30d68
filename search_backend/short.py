"""Searches and the sign of life in a fraction of what the framework takes for any request.

Only good answers come from here; whatever is to be refused goes the ordinary way and is refused
there, in one place. A backend that gives nothing else need not even load the framework.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from search_backend import openapi, payload
from search_backend.errors import SearchBackendError
from search_backend.search import Chain
from search_backend.types import Query, SearchAnswer

SEARCH = ("POST", "/api/web-search")
HEALTH = ("GET", "/api/health")
# As the rest of the API writes it.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class ShortWay:
    """Both methods give the body of the answer, or None for what is not theirs."""

    def __init__(self, chain: Chain | None) -> None:
        """`chain` is None where whoever searches is to be looked at first."""
        self._chain = chain

    def at_hand(self, method: str, path: str, body: bytes) -> bytes | None:
        """What is in memory. Never waits."""
        if (method, path) == HEALTH:
            return _written(openapi.health())
        asked = _asked(body) if (method, path) == SEARCH else None
        try:
            answer = self._chain.kept(*asked) if asked and self._chain else None
        except SearchBackendError:
            return None
        return _found(answer)

    def worked_out(self, method: str, path: str, body: bytes) -> bytes | None:
        """What the search comes to; takes as long as that does."""
        asked = _asked(body) if (method, path) == SEARCH else None
        try:
            answer = self._chain.search(*asked) if asked and self._chain else None
        except SearchBackendError:
            return None
        return _found(answer)


def _found(answer: SearchAnswer | None) -> bytes | None:
    return None if answer is None else _written(answer.as_json())


def _written(value: dict[str, Any]) -> bytes:
    return (_JSON(value) + "\n").encode()


@lru_cache(maxsize=512)
def _asked(body: bytes) -> tuple[Query, str | None] | None:
    """What a body asks for; None for one that is to be refused, which is not done here."""
    try:
        return payload.web_search(payload.parse_object(body))
    except SearchBackendError:
        return None
