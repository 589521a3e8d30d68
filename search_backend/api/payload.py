"""Checks requests and makes typed values of them: "5" is no number, an unknown key is an error."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from searchloop.search_backend.fetch.host_check import Rules, parse_rules
from searchloop.search_backend.pages.open_page import DEFAULT_LENGTH, LONGEST_SLICE
from searchloop.search_backend.types import (
    MOST_RESULTS,
    Chat,
    Query,
    SafeSearch,
    SearchBackendError,
    TimeRange,
)

ANY_TIME = "all"  # what people write for no time range
LONGEST_QUERY = 2_000
LONGEST_URL = 8_192
LONGEST_FIND = 500
MOST_FILE = 20 * 2**20  # bytes of a file that is read
LONGEST_CHAT = 100
MOST_FOLDERS, LONGEST_FOLDER = 20, 4_096
DEFAULT_RESULTS = 8
TIME_RANGES = ("d", "w", "m", "y")
SAFE_SEARCHES = ("off", "moderate", "strict")

Check = Callable[[str, Any], Any]


class BadRequest(SearchBackendError):
    """The request is malformed; the caller must change it."""

    def __init__(self, message: str, remedy: str, code: str = "bad_request") -> None:
        super().__init__(code, message, remedy)


def parse_object(body: bytes) -> dict[str, Any]:
    """Returns the JSON object in a request's body. Raises BadRequest."""
    try:
        data = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise BadRequest("The body is not valid JSON.", "Send a JSON object.") from None
    if not isinstance(data, dict):
        raise BadRequest("The body is not a JSON object.", "Send an object: {...}.")
    return data


def web_search(data: Mapping[str, Any]) -> tuple[Query, str | None, Chat]:
    """Returns the query, the engine asked for by name, and the chat. Raises BadRequest."""
    values = _checked(
        data,
        {
            "query": _text(LONGEST_QUERY),
            "max_results": _number(1, MOST_RESULTS),
            "allowed_domains": _domains,
            "blocked_domains": _domains,
            "time_range": _one_of((*TIME_RANGES, ANY_TIME)),
            "country": _code,
            "language": _code,
            "safe_search": _one_of(SAFE_SEARCHES),
            "engine": _text(100),
            "folders": _folders,
            **_FOR,
            "explain": _flag,
        },
        needed="query",
    )
    when = values.get("time_range")
    query = Query(
        text=" ".join(values["query"].split()),
        max_results=values.get("max_results") or DEFAULT_RESULTS,
        allowed_domains=values.get("allowed_domains") or (),
        blocked_domains=values.get("blocked_domains") or (),
        time_range=None if when == ANY_TIME else cast("TimeRange | None", when),
        country=values.get("country"),
        language=values.get("language"),
        safe_search=cast("SafeSearch | None", values.get("safe_search")),
        folders=values.get("folders") or (),
    )
    engine = values.get("engine")
    return query, engine.strip().lower() if engine else None, _chat(values)


def forget(data: Mapping[str, Any]) -> str:
    """Returns the chat that is to be forgotten. Raises BadRequest."""
    return str(_checked(data, {"chat": _text(LONGEST_CHAT)}, needed="chat")["chat"])


def _chat(values: Mapping[str, Any]) -> Chat:
    return Chat(values.get("chat", ""), values.get("temporary", False))


def open_page(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `Pages.open_page`. Raises BadRequest."""
    values = _checked(
        data,
        {
            "url": _text(LONGEST_URL),
            "find": _text(LONGEST_FIND),
            "offset": _number(0, 2**53),
            "max_length": _number(1, LONGEST_SLICE),
            "allowed_domains": _domains,
            "blocked_domains": _domains,
            "reader": _text(100),
            **_FOR,
        },
        needed="url",
    )
    reader = values.get("reader")
    return {
        "url": values["url"].strip(),
        "find": values.get("find"),
        "offset": values.get("offset"),
        "max_length": values.get("max_length") or DEFAULT_LENGTH,
        "rules": Rules(values.get("allowed_domains") or (), values.get("blocked_domains") or ()),
        "reader": reader.strip().lower() if reader else None,
        "chat": _chat(values),
    }


def read_file(data: Mapping[str, Any]) -> tuple[str, str, bytes]:
    """Returns name, media type and content of a file to read. Raises BadRequest."""
    checks = {"name": _text(300), "media_type": _text(200), "data": _text(2 * MOST_FILE)}
    values = _checked(data, checks, needed="data")
    try:
        body = b64decode(values["data"], validate=True)
    except ValueError:
        raise BadRequest("data is not base64.", "Send the bytes in base64 (RFC 4648).") from None
    if len(body) > MOST_FILE:
        remedy = "Send the part that matters."
        raise BadRequest(f"The file is larger than {MOST_FILE // 2**20} MB.", remedy, "too_large")
    return values.get("name") or "file", values.get("media_type") or "", body


def _checked(data: Mapping[str, Any], checks: Mapping[str, Check], needed: str) -> dict[str, Any]:
    for key in data:
        if key not in checks:
            raise BadRequest(f"Unknown key {key[:60]!r}.", f"Known keys: {', '.join(checks)}.")
    if data.get(needed) is None:
        raise BadRequest(f"{needed} is missing.", f"Send {needed} as a text.")
    # null is the same as leaving a key out.
    return {key: checks[key](key, value) for key, value in data.items() if value is not None}


def _text(most: int) -> Check:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise BadRequest(f"{name} is not a text.", f"Send {name} as a JSON string.")
        if not value.strip():
            raise BadRequest(f"{name} is empty.", f"Send {name} with at least one character.")
        if len(value) > most:
            raise BadRequest(
                f"{name} has {len(value)} characters of at most {most}.", f"Shorten {name}."
            )
        return value.encode("utf-8", "replace").decode("utf-8")

    return check


def _number(least: int, most: int) -> Check:
    def check(name: str, value: Any) -> int:
        # 5.0 is a whole number in JSON; True is one to Python only.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise BadRequest(
                f"{name} is not a whole number from {least} to {most}.",
                f"Send such a number, or leave {name} out.",
            )
        return value

    return check


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadRequest(f"{name} is neither true nor false.", f"Send one, or leave {name} out.")
    return value


def _domains(name: str, value: Any) -> tuple[str, ...]:
    return parse_rules(_texts(name, value, "example.org"), name)


def _folders(name: str, value: Any) -> tuple[str, ...]:
    folders = _texts(name, value, "notes")
    if len(folders) > MOST_FOLDERS:
        raise BadRequest(f"{name} has more than {MOST_FOLDERS} entries.", f"Shorten {name}.")
    return tuple(_text(LONGEST_FOLDER)(name, each) for each in folders)


def _texts(name: str, value: Any, example: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadRequest(f"{name} is not a list of texts.", f'Send a list: ["{example}"].')
    return value


def _one_of(words: Sequence[str]) -> Check:
    def check(name: str, value: Any) -> str:
        if value not in words:
            raise BadRequest(
                f"{name} is not one of {', '.join(words)}.",
                f"Send one of them, or leave {name} out.",
            )
        return str(value)

    return check


def _code(name: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z]{2}", value):
        raise BadRequest(
            f"{name} is not a code of two letters.",
            f"Send {name} as in ISO {'3166' if name == 'country' else '639'}, e.g. de.",
        )
    return value.lower()


# Which chat asks: what it brings is stored under its name, and nothing of a temporary one.
_FOR: Mapping[str, Check] = {"chat": _text(LONGEST_CHAT), "temporary": _flag}


def _no_constant(name: str) -> None:
    raise ValueError(name)
