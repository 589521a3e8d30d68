"""Builds the members of a request to OpenAI beside its input.

Spec: https://platform.openai.com/docs/api-reference/responses/create
"""

from __future__ import annotations

from typing import Any

from searchloop.agent.providers._common import hashed_id
from searchloop.agent.providers._options import SAMPLING, is_strict, sampling, text_format
from searchloop.agent.types import NativeSearch, Request, ToolSpec


def head(request: Request, thinks: bool) -> dict[str, Any]:
    """Returns the members that stay the same while a conversation goes on."""
    include = []
    if request.native_search is not None:
        include.append("web_search_call.action.sources")
    if thinks:
        # Other models refuse the whole request when it is asked for.
        include.append("reasoning.encrypted_content")
    tools = [_search_tool(request.native_search)] if request.native_search is not None else []
    tools += [_function(tool) for tool in request.tools]
    session = request.session_id or ""
    members = {
        "model": request.model,
        "store": False,
        "stream": True,
        "stream_options": {"include_obfuscation": False},
        "include": include,
        "prompt_cache_key": session if len(session) <= 64 else hashed_id(session, ""),
        "instructions": request.system,
        "tools": tools,
    }
    return {key: value for key, value in members.items() if value not in ([], "", None)}


def tail(request: Request) -> dict[str, Any]:
    """Returns the members that may differ from step to step."""
    last: dict[str, Any] = {}
    if request.answer_now and (request.tools or request.native_search is not None):
        last["tool_choice"] = "none"
    if request.max_output_tokens is not None:
        last["max_output_tokens"] = request.max_output_tokens
    last |= sampling(request, SAMPLING) | text_format(request)
    if request.native_search is not None and request.native_search.max_searches is not None:
        last["max_tool_calls"] = request.native_search.max_searches
    return last


def _search_tool(search: NativeSearch) -> dict[str, Any]:
    tool: dict[str, Any] = {"type": "web_search"}
    lists = {"allowed_domains": search.allowed_domains, "blocked_domains": search.blocked_domains}
    filters = {name: [_domain(d) for d in listed] for name, listed in lists.items() if listed}
    if filters:
        tool["filters"] = filters
    if search.context_size:
        tool["search_context_size"] = search.context_size
    # Left out, it would mean a user in the United States.
    tool["user_location"] = {"type": "approximate"}
    if search.country:
        tool["user_location"]["country"] = search.country
    if not search.external_access:
        tool["external_web_access"] = False
    return tool


def _domain(text: str) -> str:
    """Strips scheme and path, which the filters refuse."""
    return text.strip().partition("://")[2].partition("/")[0] or text.strip().partition("/")[0]


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": is_strict(tool.parameters),
    }
