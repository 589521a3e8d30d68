"""Checks requests and makes typed values of them: "5" is no number, an unknown key is an error."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from searchloop.analysis.schemas import Schema
from searchloop.search_backend.api.schemas import ANY_TIME, ASKED, MOST_FILE
from searchloop.search_backend.fetch.host_check import Rules, parse_rules
from searchloop.search_backend.pages.open_page import DEFAULT_LENGTH
from searchloop.search_backend.text.clean import one_line
from searchloop.search_backend.types import Owner, Query, SearchBackendError

DEFAULT_RESULTS = 8


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
    known = ASKED[name]["properties"]
    for key in data:
        if key not in known:
            raise BadRequest(f"Unknown key {key[:60]!r}.", f"Known keys: {', '.join(known)}.")
    for needed in ASKED[name]["required"]:
        if data.get(needed) is None:
            raise BadRequest(f"{needed} is missing.", f"Send {needed} as a text.")
    # null is the same as leaving a key out.
    return {key: _value(key, value, known[key]) for key, value in data.items() if value is not None}


def _value(name: str, value: Any, schema: Schema) -> Any:
    kind, leave = schema["type"], f"or leave {name} out."
    if words := schema.get("enum"):
        if value not in words:
            raise BadRequest(f"{name} is not one of {', '.join(words)}.", f"Send one, {leave}")
    elif kind == "boolean":
        if not isinstance(value, bool):
            raise BadRequest(f"{name} is neither true nor false.", f"Send one, {leave}")
    elif kind == "integer":
        return _whole(name, value, schema["minimum"], schema["maximum"])
    elif kind == "array":
        if not isinstance(value, list):
            raise BadRequest(f"{name} is not a list of texts.", f'Send ["text"], {leave}')
        if len(value) > (most := schema.get("maxItems", len(value))):
            raise BadRequest(f"{name} has more than {most} entries.", f"Shorten {name}.")
        return [_text(f"{name}[{at}]", one, schema["items"]) for at, one in enumerate(value)]
    else:
        return _text(name, value, schema)
    return value


def _whole(name: str, value: Any, least: int, most: int) -> int:
    # 5.0 is a whole number in JSON; True is one to Python only.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        what = f"{name} is not a whole number from {least} to {most}."
        raise BadRequest(what, f"Send such a number, or leave {name} out.")
    return value


def _text(name: str, value: Any, schema: Schema) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"{name} is not a text.", f"Send {name} as a JSON string.")
    if "minLength" in schema and not one_line(value):
        raise BadRequest(f"{name} is empty.", f"Send {name} with at least one character.")
    if len(value) > (most := schema.get("maxLength", len(value))):
        what = f"{name} has {len(value)} characters of at most {most}."
        raise BadRequest(what, f"Shorten {name}.")
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        standard = "3166" if name == "country" else "639"
        what = f"{name} is not a code of two letters."
        raise BadRequest(what, f"Send {name} as in ISO {standard}, e.g. de.")
    return value.encode("utf-8", "replace").decode("utf-8")


def _no_constant(name: str) -> None:
    raise ValueError(name)
