"""What the Messages API refuses in a request, as far as its shape alone decides.

    check(body)

raises AssertionError with the rule that is broken. Messages of one role in a row count as one, as
they do for the server.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Block = Mapping[str, Any]

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_SEARCHES = {"web_search_20250305", "web_search_20260209", "web_search_20260318"}
_FETCHES = {
    *("web_fetch_20250910", "web_fetch_20260209", "web_fetch_20260309", "web_fetch_20260318")
}
_SHARED = {
    *("type", "name", "max_uses", "allowed_domains", "blocked_domains", "allowed_callers"),
    *("cache_control", "defer_loading", "strict", "response_inclusion"),
}
_OPTIONS = {
    "web_search": _SHARED | {"user_location"},
    "web_fetch": _SHARED | {"citations", "max_content_tokens", "use_cache", "url_sources"},
}
_TOP = {
    *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "stream"),
    *("output_config", "stop_sequences", "metadata", "service_tier", "cache_control", "container"),
    *("diagnostics", "speed", "inference_geo"),
}
_THINKING = ("thinking", "redacted_thinking")
_IN_USER = {"text", "image", "document", "search_result", "tool_result", "container_upload"}
_IMAGES = {f"image/{kind}" for kind in ("png", "jpeg", "webp", "gif")}
_NO_XHIGH = ("claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-4-6")


def check(body: Mapping[str, Any]) -> None:
    """Raises AssertionError naming the first rule that `body` breaks."""
    extra = set(body) - _TOP
    assert not extra, f"{sorted(extra)}: Extra inputs are not permitted"
    assert isinstance(body.get("model"), str), "model: Field required"
    assert body["model"], "model: may not be empty"
    limit = body.get("max_tokens")
    assert isinstance(limit, int), "max_tokens: Field required"
    assert limit > 0, "max_tokens: must be greater than 0"
    tools = list(body.get("tools") or ())
    _check_tools(tools)
    _check_choice(body, tools)
    messages = _merged(body["messages"])
    assert messages, "messages: at least one message is required"
    assert messages[0][0] == "user", 'messages: first message must use the "user" role'
    for role, blocks in messages:
        assert role in ("user", "assistant"), f"messages: unexpected role {role!r}"
        assert blocks, "messages: all messages must have non-empty content"
        for block in blocks:
            _check_block(role, block)
    _check_calls(messages)
    _check_server_calls(messages, {tool["name"] for tool in tools})
    _check_end(messages, tools)
    _check_local_results(messages, tools)
    _check_marks(body)


def _merged(messages: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Block]]]:
    merged: list[tuple[str, list[Block]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        assert blocks, "messages: all messages must have non-empty content"
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(blocks)
        else:
            merged.append((message["role"], list(blocks)))
    return merged


def _check_tools(tools: list[Block]) -> None:
    names = [tool.get("name") for tool in tools]
    assert len(set(names)) == len(names), "tools: Tool names must be unique."
    for tool in tools:
        kind = tool.get("type")
        if kind in _SEARCHES | _FETCHES:
            _check_web_tool(tool, kind)
        elif kind in (None, "custom"):
            assert _NAME.fullmatch(tool["name"]), "tools.name: String should match pattern"
            schema = tool["input_schema"]
            assert schema["type"] == "object", "input_schema.type: Input should be 'object'"
            combined = {"anyOf", "oneOf", "allOf"} & set(schema)
            assert not combined, "input_schema does not support oneOf, allOf, or anyOf at the top"
        else:
            assert re.search(r"_\d{8}$", kind), f"tools: unknown type {kind!r}"


def _check_web_tool(tool: Block, kind: str) -> None:
    name = kind.rpartition("_")[0]
    assert tool["name"] == name, f"tools.name: Input should be {name!r}"
    given = {key for key, value in tool.items() if value is not None}
    assert given <= _OPTIONS[name], f"{given - _OPTIONS[name]}: Extra inputs are not permitted"
    lists = {"allowed_domains", "blocked_domains"} & given
    assert len(lists) < 2, "only one of allowed_domains and blocked_domains may be given"
    for domain in (domain for key in lists for domain in tool[key]):
        assert "://" not in domain, "domains are written without a scheme"
        assert domain, "domains may not be empty"
        assert "*" not in domain.partition("/")[0], "a wildcard may stand in the path only"
        assert name == "web_search" or "/" not in domain, "a path never matches here"
    if "max_uses" in given:
        assert tool["max_uses"] > 0, "max_uses: must be greater than 0"
    if "user_location" in given:
        place = tool["user_location"]
        assert place["type"] == "approximate", "user_location.type"
        assert len(place) > 1, "user_location: at least one field"
        assert len(place.get("country", "GB")) == 2, "user_location.country: two letters"


def _check_choice(body: Mapping[str, Any], tools: list[Block]) -> None:
    choice = body.get("tool_choice")
    if choice is not None:
        assert choice["type"] in ("auto", "any", "tool", "none"), "tool_choice.type"
        assert tools, "tool_choice may only be specified while providing tools"
        assert choice["type"] != "none" or len(choice) == 1, "tool_choice none takes no options"
    effort = (body.get("output_config") or {}).get("effort")
    refuses = effort == "xhigh" and body["model"].startswith(_NO_XHIGH)
    assert not refuses, "This model does not support effort level 'xhigh'."


def _check_block(role: str, block: Block) -> None:
    kind = block.get("type")
    assert isinstance(kind, str), "content.type: Field required"
    if kind == "text":
        assert block["text"], "text content blocks must be non-empty"
        if role == "user":
            assert block["text"].strip(), "text content blocks must contain non-whitespace text"
            assert not block.get("citations"), "citations: not permitted in a user message"
        _check_citations(block)
    elif kind == "thinking":
        assert isinstance(block["thinking"], str), "thinking.thinking: Field required"
        assert block.get("signature"), "thinking.signature: Field required"
    elif kind == "redacted_thinking":
        assert block.get("data"), "redacted_thinking.data: Field required"
    elif kind in ("tool_use", "server_tool_use"):
        assert _ID.fullmatch(block["id"]), "id: String should match pattern"
        assert _NAME.fullmatch(block["name"]), "name: String should match pattern"
        assert isinstance(block["input"], dict), "input: Input should be a valid dictionary"
    elif kind == "web_search_tool_result":
        _check_web_result(block)
    elif kind == "search_result":
        _check_search_result(block)
    elif kind in ("image", "document"):
        _check_file(block)
    elif kind == "tool_result":
        content = block.get("content")
        inner = [] if isinstance(content, str) or content is None else content
        for each in inner:
            _check_block("user", each)
        found = [each["type"] == "search_result" for each in inner]
        assert all(found) or not any(found), "a tool_result holds search_result blocks only or none"
    if role == "user":
        assert kind in _IN_USER, f"{kind}: not permitted in a user message"
    else:
        refused = ("tool_result", "search_result", "document", "image")
        assert kind not in refused, f"{kind}: not permitted in an assistant message"


def _check_file(block: Block) -> None:
    """`ImageBlockParam` and `DocumentBlockParam` with a source in base64."""
    allowed = {"type", "source", "cache_control"}
    allowed |= {"title", "context", "citations"} if block["type"] == "document" else set()
    assert set(block) <= allowed, f"{set(block) - allowed}: Extra inputs are not permitted"
    source = block["source"]
    assert set(source) == {"type", "media_type", "data"}, "source: Extra inputs"
    assert source["type"] == "base64", "source.type"
    kinds = _IMAGES if block["type"] == "image" else {"application/pdf"}
    assert source["media_type"] in kinds, f"media_type: {source['media_type']!r}"
    assert base64.b64decode(source["data"], validate=True), "source.data: Base64 failed"
    large = block["type"] == "image" and len(source["data"]) > 5 * 2**20  # as it is sent
    assert not large, "source.base64: image exceeds 5 MB maximum"
    assert "title" not in block or 0 < len(block["title"]) <= 500, "title"


def _check_citations(block: Block) -> None:
    for note in block.get("citations") or ():
        if note["type"] == "web_search_result_location":
            assert note["encrypted_index"], "encrypted_index: Field required"
            assert note["url"], "url: Field required"


def _check_web_result(block: Block) -> None:
    content = block["content"]
    if isinstance(content, dict):
        assert content["type"] == "web_search_tool_result_error", "web_search_tool_result.content"
        assert content["error_code"], "error_code: Field required"
        return
    for row in content:
        assert row["type"] == "web_search_result", "web_search_tool_result.content"
        assert isinstance(row["encrypted_content"], str), "encrypted_content: Field required"
        assert row["encrypted_content"], "Invalid encrypted_content in search result block"


def _check_search_result(block: Block) -> None:
    assert block["source"], "search_result.source: Field required"
    assert block["title"], "search_result.title: Field required"
    assert block["content"], "search_result.content: at least one text block"
    for text in block["content"]:
        assert text["type"] == "text", "search_result.content holds text only"
        assert text["text"], "search_result.content: text may not be empty"
        assert not text.get("citations"), "search_result.content: citations are not permitted"


def _check_calls(messages: list[tuple[str, list[Block]]]) -> None:
    """Calls of ours: each answered at once, at the beginning of the next user message."""
    known: set[str] = set()
    for index, (role, blocks) in enumerate(messages):
        before = messages[index - 1][1] if index else []
        if role == "user":
            asked = [b["id"] for b in before if b["type"] == "tool_use"]
            answers = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
            first = [b["tool_use_id"] for b in blocks[: len(answers)] if "tool_use_id" in b]
            assert set(answers) <= set(asked), "unexpected `tool_use_id` found in `tool_result`"
            assert set(answers) == set(asked), "`tool_use` ids without `tool_result` blocks"
            assert len(answers) == len(set(answers)), "each tool_use must have a single result"
            assert first == answers, "tool_result blocks come first"
            continue
        for block in blocks:
            if block["type"] == "tool_use":
                assert block["id"] not in known, "`tool_use` ids must be unique"
                known.add(block["id"])
        if index == len(messages) - 1:
            asked = [b["id"] for b in blocks if b["type"] == "tool_use"]
            assert not asked, "`tool_use` ids without `tool_result` blocks"


def _check_server_calls(messages: list[tuple[str, list[Block]]], tools: set[Any]) -> None:
    """The server's calls: their result follows, or is waited for in the two places it may be."""
    known: set[str] = set()
    waiting: dict[str, str] = {}
    for index, (role, blocks) in enumerate(messages):
        if role == "user":
            if waiting:
                only = all(b["type"] == "tool_result" for b in blocks)
                assert only, f"{_lost(waiting)}: words after the results of calls"
                asked = any(b["type"] == "tool_use" for b in messages[index - 1][1])
                assert asked, f"{_lost(waiting)}: the user speaks instead"
            continue
        carried, started = set(waiting), False
        for block in blocks:
            if block["type"] == "server_tool_use":
                assert block["id"] not in known, "`server_tool_use` ids must be unique"
                known.add(block["id"])
                waiting[block["id"]] = block["name"]
            elif "tool_use_id" in block:
                done = waiting.pop(block["tool_use_id"], None)
                assert done, "a result without its `server_tool_use` block"
                late = block["tool_use_id"] in carried
                assert not (late and started), "a late result comes first"
                carried.discard(block["tool_use_id"])
                continue
            started = True
        assert not carried, _lost(dict.fromkeys(carried, "server"))
    for name in waiting.values():
        assert name in tools, f"{_lost(waiting)} but no `{name}` tool was provided"


def _lost(waiting: Mapping[str, str]) -> str:
    return f"server tool use with id {sorted(waiting)} was found without a corresponding result"


def _check_end(messages: list[tuple[str, list[Block]]], tools: list[Block]) -> None:
    for role, blocks in messages:
        last = blocks[-1]["type"]
        assert role == "user" or last not in _THINKING, "the final block cannot be `thinking`"
    role, blocks = messages[-1]
    if role == "assistant":
        server = any(b["type"] == "server_tool_use" or "tool_use_id" in b for b in blocks)
        assert server, "This model does not support assistant message prefill."
        assert tools, "the tools of a paused answer are offered again"


def _check_local_results(messages: list[tuple[str, list[Block]]], tools: list[Block]) -> None:
    blocks = [block for _, content in messages for block in _inside(content)]
    for kind in ("document", "search_result"):
        cited = [
            bool((block.get("citations") or {}).get("enabled"))
            for block in blocks
            if block["type"] == kind
        ]
        assert len(set(cited)) < 2, f"citations are enabled for all {kind} blocks or for none"
    searching = any(tool.get("type") in _SEARCHES for tool in tools)
    assert all(cited) or not searching, "with web_search citations must be enabled"


def _inside(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from block["content"]


def _check_marks(body: Mapping[str, Any]) -> None:
    system = body.get("system")
    told = system if isinstance(system, list) else []
    content = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    places = [body, *(body.get("tools") or ()), *told, *_inside(content)]
    marked = [place for place in places if place.get("cache_control")]
    assert len(marked) <= 4, "A maximum of 4 blocks with cache_control may be provided."
    for place in marked:
        assert place.get("type") not in _THINKING, "thinking blocks cannot be marked"
        assert place.get("text") != "", "cache_control cannot be set for empty text blocks"
    for block in told:
        assert block["text"], "system: text content blocks must be non-empty"
