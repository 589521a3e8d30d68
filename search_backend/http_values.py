"""An engine's request and its answer as plain values: engines make and read them, nothing more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode

_JSON = json.JSONEncoder(ensure_ascii=False).encode

Method = Literal["GET", "POST"]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What to send. `url` is absolute and, with its query, ASCII. The headers may hold a key, so
    they never show up when the value is printed."""

    method: Method
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What came: names of headers in lower case, the body decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def get(
    url: str, parameters: Mapping[str, object], headers: Mapping[str, str] | None = None
) -> HttpRequest:
    """A GET whose query is `parameters`; a list gives its name once for each value."""
    joint = "&" if "?" in url else "?"
    query = urlencode(parameters, doseq=True)
    return HttpRequest("GET", f"{url}{joint}{query}", dict(headers or {}))


def post(
    url: str, value: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> HttpRequest:
    """A POST of `value` as JSON."""
    return HttpRequest(
        "POST",
        url,
        {"Content-Type": "application/json", **(headers or {})},
        _JSON(value).encode(),
    )
