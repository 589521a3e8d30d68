"""Request bodies: strict JSON, checked against the published schemas."""

from __future__ import annotations

import json
from typing import Any

from agent.errors import ConfigError
from agent.schema import problems_with
from web.openapi import ROUTES
from web.schemas import BODIES

_DEEPEST = 100  # levels of JSON
BODY_OF = {(method, path): body for method, path, _, body, *_ in ROUTES}


def checked_body(method: str, path: str, raw: bytes) -> dict[str, Any]:
    """The body of a request to a route, or ConfigError saying what is wrong with it."""
    name = BODY_OF[method, path]
    if name is None:
        return {}
    body = parse_json(raw) if raw.strip() else {}
    problem = problems_with(body, BODIES[name])
    if problem:
        words = f"The request is not right: {problem}"
        raise ConfigError("bad_request", words, "GET /api/openapi.json describes every request.")
    return dict(body)


def parse_json(raw: bytes) -> Any:
    """Strict JSON: UTF-8, no NaN, no repeated keys, not too deep, no broken characters."""
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_once, parse_constant=_refuse)
        _measure(value)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(
            "bad_json", f"The body is not valid JSON: {why[:200]}.", "Send one JSON object."
        ) from error
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _measure(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise RecursionError
