"""The tools of a request: functions as they are, and the server's own search and page reading.

Newer versions of the server's tools may be run from code that the model writes; what is read that
way is not cited, so they are offered for direct calls only.

Spec: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool
"""

from __future__ import annotations

import re
from typing import Any

from agent.providers.anthropic.catalog import BASIC, FETCH_TOKENS, FETCHES, Model
from agent.types import NativeSearch, ToolSpec

CACHED = {"type": "ephemeral"}
_BAD_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_NOT_ON_TOP = frozenset({"anyOf", "oneOf", "allOf"})  # refused there; the tool checks by itself
_COUNTRY = re.compile(r"[A-Za-z]{2}")


def tool_name(name: str) -> str:
    """A name as the API takes it."""
    return _BAD_NAME.sub("_", name)[:64] or "unknown"


def function_tool(tool: ToolSpec) -> dict[str, Any]:
    """A function of ours. Its schema is not enforced: that would refuse many that are fine."""
    return {
        "name": tool_name(tool.name),
        "description": tool.description,
        "input_schema": {
            "type": "object",
            **{key: value for key, value in tool.parameters.items() if key not in _NOT_ON_TOP},
        },
    }


def server_tools(search: NativeSearch, model: Model, official: bool) -> list[dict[str, Any]]:
    """The search, and beside it the reading of pages where live pages are allowed."""
    tools = [_search(search, (model.search or BASIC[0]) if official else BASIC[0])]
    if search.external_access and model.fetch:
        tools.append(_fetch(search, model.fetch if official else BASIC[1]))
    return tools


def _search(search: NativeSearch, version: str) -> dict[str, Any]:
    tool: dict[str, Any] = {"type": version, "name": "web_search", **_direct(version)}
    if search.max_searches is not None:
        tool["max_uses"] = max(1, search.max_searches)
    tool |= _domains(search, paths=True)
    country = (search.country or "").strip()
    if _COUNTRY.fullmatch(country):
        tool["user_location"] = {"type": "approximate", "country": country.upper()}
    return tool


def _fetch(search: NativeSearch, version: str) -> dict[str, Any]:
    return {
        "type": version,
        "name": "web_fetch",
        **_direct(version),
        "max_uses": FETCHES,
        "max_content_tokens": FETCH_TOKENS[search.context_size or "medium"],
        "citations": {"enabled": True},
        **_domains(search, paths=False),
    }


def _direct(version: str) -> dict[str, Any]:
    return {} if version in BASIC else {"allowed_callers": ["direct"]}


def _domains(search: NativeSearch, *, paths: bool) -> dict[str, list[str]]:
    """Allowed or blocked, never both: of the allowed ones those that are not blocked."""
    allowed = _tidy(search.allowed_domains, paths)
    blocked = _tidy(search.blocked_domains, paths)
    if allowed:
        return {"allowed_domains": [d for d in allowed if d not in blocked] or allowed}
    return {"blocked_domains": blocked} if blocked else {}


def _tidy(domains: tuple[str, ...], paths: bool) -> list[str]:
    """Without scheme and, where a path would match nothing, without path; each once."""
    found: dict[str, None] = {}
    for domain in domains:
        text = domain.strip().rpartition("://")[2].rstrip("/")
        host, slash, path = text.partition("/")
        found[f"{host}{slash}{path}" if paths else host] = None
    return [domain for domain in found if domain]
