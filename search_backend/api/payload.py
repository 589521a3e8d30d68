"""Checks requests and makes typed values of them: "5" is no number, an unknown key is an error."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from searchloop.analysis.schema_check import problems_with
from searchloop.search_backend.api.schemas import ANY_TIME, ASKED, MOST_FILE
from searchloop.search_backend.fetch.host_check import Rules, parse_rules
from searchloop.search_backend.pages.open_page import DEFAULT_LENGTH
from searchloop.search_backend.text.clean import one_line
from searchloop.search_backend.types import Owner, Query, SearchBackendError

DEFAULT_RESULTS = 8
_CODE = re.compile("[A-Za-z]{2}")


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


def web_search(data: Mapping[str, Any]) -> tuple[Query, str | None, Owner]:
    """Returns the query, the engine asked for by name, and the chat. Raises BadRequest."""
    values = _checked(data, "WebSearch")
    rules, when = _rules(values), values.get("time_range")
    query = Query(
        text=one_line(values["query"], len(values["query"])),
        max_results=values.get("max_results") or DEFAULT_RESULTS,
        allowed_domains=rules.allowed,
        blocked_domains=rules.blocked,
        time_range=None if when == ANY_TIME else when,
        country=_name(values, "country"),
        language=_name(values, "language"),
        safe_search=values.get("safe_search"),
        folders=tuple(values.get("folders", ())),
        offline=values.get("offline", False),
    )
    return query, _name(values, "engine"), _chat(values)


def forget(data: Mapping[str, Any]) -> str:
    """Returns the chat that is to be forgotten. Raises BadRequest."""
    return str(_checked(data, "Forget")["chat"])


def open_page(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `Pages.open_page`. Raises BadRequest."""
    values = _checked(data, "OpenPage")
    return {
        "url": values["url"].strip(),
        "find": values.get("find"),
        "offset": values.get("offset"),
        "max_length": values.get("max_length") or DEFAULT_LENGTH,
        "rules": _rules(values),
        "reader": _name(values, "reader"),
        "chat": _chat(values),
        "offline": values.get("offline", False),
    }


def read_file(data: Mapping[str, Any]) -> tuple[str, str, bytes]:
    """Returns name, media type and content of a file to read. Raises BadRequest."""
    values = _checked(data, "ReadFile")
    try:
        body = b64decode(values["data"], validate=True)
    except ValueError:
        raise BadRequest("data is not base64.", "Send the bytes in base64 (RFC 4648).") from None
    if len(body) > MOST_FILE:
        remedy = "Send the part that matters."
        raise BadRequest(f"The file is larger than {MOST_FILE // 2**20} MB.", remedy, "too_large")
    return values.get("name") or "file", values.get("media_type") or "", body


def _chat(values: Mapping[str, Any]) -> Owner:
    return Owner(values.get("chat", ""), values.get("temporary", False))


def _name(values: Mapping[str, Any], key: str) -> str | None:
    return values[key].strip().lower() if key in values else None


def _rules(values: Mapping[str, Any]) -> Rules:
    names = ("allowed_domains", "blocked_domains")
    return Rules(*(parse_rules(values.get(name, ()), name) for name in names))


def _checked(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns the values of a body that fits its schema. Raises BadRequest."""
    # null is the same as leaving a key out.
    values = {key: _plain(value) for key, value in data.items() if value is not None}
    problem = problems_with(values, ASKED[name])
    for key in () if problem else values:
        if isinstance(values[key], str) and not one_line(values[key]):
            problem = f"{key} is empty."
        elif key in ("country", "language") and not _CODE.fullmatch(values[key]):
            problem = f"{key} is not a code of two letters, as in ISO 3166 and 639."
    if problem:
        remedy = "Correct it, or leave it out; GET /api/openapi.json describes every request."
        raise BadRequest(f"The request is not right: {problem}", remedy)
    return values


def _plain(value: Any) -> Any:
    """Returns a value without lone surrogates; 5.0 is a whole number in JSON."""
    if isinstance(value, list):
        return [_plain(one) if isinstance(one, str) else one for one in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _no_constant(name: str) -> None:
    raise ValueError(name)
