"""Messages, of Anthropic: decodes a request, encodes a run.

https://docs.claude.com/en/api/messages
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

from searchloop.agent.types import ANYWHERE, NativeSearch, Search, ToolSpec
from searchloop.protocols import fields
from searchloop.protocols.fields import Asked, Encoder, Frame, bad

_OPTIONS = {
    **{name: name for name in ("temperature", "top_p", "max_tokens")},
    "stop_sequences": "stop",
}
_MET = (
    *("model", "messages", "system", "stream", "tools", "tool_choice", "output_config"),
    *("output_format", *_OPTIONS),
)
# Betas change what a vendor's own server does. They are met or ignored as the vendor does.
_WITHOUT_EFFECT = (
    *("metadata", "service_tier", "container", "context_management", "thinking"),
    *("betas", "mcp_servers", "top_k", "cache_control", "inference_geo", "speed", "diagnostics"),
    *("user_profile_id", "workspace_id"),
)
_SEARCH = "web_search_20"  # the type of the search tool begins so, its date follows
_SITES = ("type", "name", "max_uses", "user_location", *fields.FILTERS)
# Parts of an answer that are not sent again: thoughts, and searches, which are kept.
_OURS = ("thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result")
_QUOTED = 150  # characters of a cited passage
_STOP = {"tool_calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}


def decode(body: Mapping[str, Any]) -> Asked:
    """Reads a request. Raises ConfigError that names the field."""
    read = fields.Transcript(body, _MET, _WITHOUT_EFFECT)
    if system := read.texts(fields.content_of(body.get("system"), "system"), "system"):
        read.system.append(system)
    for message in fields.listed(body.get("messages"), "messages", Mapping):
        _add(read, message)
    if not read.messages:
        raise bad("messages", "at least one message is needed.", "Send a question.")
    tools, search, sites = _tools(read, fields.typed(body, "tools", list, []))
    choice = fields.typed(body, "tool_choice", dict, {}) or {"type": "auto"}
    read.only(choice, "tool_choice", "type", "name")
    kind = {"any": "required"}.get(fields.kind_of(choice), fields.kind_of(choice))
    tools, search = fields.chosen(kind, choice.get("name"), tools, search, read.system)
    more = read.part(body, "output_config", "format", "effort")
    options = fields.options_of(body, _OPTIONS) | fields.options_of(more, fields.EFFORT)
    form = more.get("format") or fields.typed(body, "output_format", dict, {})
    schema = fields.schema_of(form, form, "output_config.format" if more else "output_format")
    return read.asked(tools, search, sites, options, schema, effort="output_config.effort")


def _add(read: fields.Transcript, message: Mapping[str, Any]) -> None:
    role, given = message.get("role"), message.get("content")
    parts = fields.parts_of(given, "messages")
    if role == "system":
        read.system.append(read.texts(fields.content_of(parts, "messages"), "messages"))
    elif role == "user":
        results = [part for part in parts if fields.kind_of(part) == "tool_result"]
        for part in results:
            given = fields.content_of(part.get("content"), "messages.tool_result")
            read.result(str(part.get("tool_use_id")), given, is_error=bool(part.get("is_error")))
        rest = [part for part in parts if fields.kind_of(part) != "tool_result"]
        if rest or not results:
            read.user(fields.content_of(rest, "messages"))
    elif role == "assistant":
        calls, rest = [], []
        for part in parts:
            if fields.kind_of(part) == "tool_use":
                calls.append(fields.call_of(part.get("id"), part.get("name"), part.get("input")))
            elif (kind := fields.kind_of(part)) in _OURS:
                read.ignored.append(f"messages.{kind}")
            else:
                rest.append(part)
        read.assistant(read.texts(fields.content_of(rest, "messages"), "messages", ""), calls)
    else:
        raise bad("messages", f"there is no role {str(role)[:40]!r}.")


def _tools(
    read: fields.Transcript, given: Sequence[Any]
) -> tuple[tuple[ToolSpec, ...], Search, NativeSearch]:
    specs, sites = list[ToolSpec](), ANYWHERE
    search: Search = "off"
    for tool in given:
        kind = fields.kind_of(tool)
        if kind.startswith(_SEARCH):
            search, sites = "auto", read.sites(tool, tool)
            read.only(tool, "tools", *_SITES)
        elif isinstance(tool, Mapping) and kind in ("", "custom"):
            specs.append(read.tool(tool.get("name"), tool))
        else:
            raise bad("tools", f"a tool of type {kind[:40]!r} is not offered here.")
    return tuple(specs), search, sites


class MessagesEncoder(Encoder):
    """Encodes one answer; a block is closed before the next begins."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._id = f"msg_{token_hex(12)}"
        self._blocks: list[dict[str, Any]] = []
        self._open = False
        self._grown: list[str] = []  # of the block that is open
        self._before: list[dict[str, Any]] = []  # earlier texts of this step
        self._searches: list[tuple[str, str]] = []  # query and id of those under way

    def begin(self) -> list[Frame]:
        """See `Encoder`."""
        message = {**self._message(), "usage": self._usage()}
        return [_frame("message_start", message=message)]

    def take(self, type: str, data: Mapping[str, Any]) -> list[Frame]:
        """See `Encoder`."""
        if type == "text_delta":
            return self._grow("text", "text", data["text"])
        if type == "thinking_delta":
            return self._grow("thinking", "thinking", data["text"])
        if type == "search_started":
            return self._searching(data)
        if type == "search_finished":
            failed = data["status"] not in ("ok", "empty")
            if failed or str(data["by"]).startswith("native"):
                return self._found(data["query"], (), failed=failed)
        if type == "tool_result" and data["details"].get("kind") == "search":
            rows = data["details"].get("results") or ()
            return [] if data["is_error"] else self._found(data["details"]["query"], rows)
        if type == "message":
            return self._step(data)
        return self._end(data) if type == "run_finished" else []

    def _grow(self, type: str, field: str, text: str) -> list[Frame]:
        frames = list[Frame]()
        if not self._open or self._blocks[-1]["type"] != type:
            signed = {"signature": ""} if type == "thinking" else {}
            frames += self._begin({"type": type, field: "", **signed})
        self._grown.append(text)
        frames.append(self._delta({"type": f"{type}_delta", field: text}))
        return frames

    def _searching(self, data: Mapping[str, Any]) -> list[Frame]:
        frames, query = self._close(), str(data["query"])
        self._searches.append((query, f"srvtoolu_{token_hex(12)}"))
        use = {"type": "server_tool_use", "id": self._searches[-1][1], "name": "web_search"}
        frames += self._begin({**use, "input": {}})
        self._blocks[-1]["input"] = {"query": query}
        json = fields.compact({"query": query})
        frames.append(self._delta({"type": "input_json_delta", "partial_json": json}))
        return frames + self._close()

    def _found(
        self, query: str, rows: Sequence[Mapping[str, Any]], *, failed: bool = False
    ) -> list[Frame]:
        """Adds the result of the search for this query, of the first one where none is for it."""
        frames = list[Frame]() if self._searches else self._searching({"query": query})
        use = next((each for each in self._searches if each[0] == query), self._searches[0])
        self._searches.remove(use)
        content: Any = [
            {
                "type": "web_search_result",
                "url": row["url"],
                "title": row["title"],
                "encrypted_content": _opaque(row["url"]),
                "page_age": None,
            }
            for row in rows
        ]
        if failed:
            content = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
        block = {"type": "web_search_tool_result", "tool_use_id": use[1], "content": content}
        return [*frames, *self._begin(block), *self._close()]

    def _step(self, data: Mapping[str, Any]) -> list[Frame]:
        frames = list[Frame]()
        is_text = self._open and self._blocks[-1]["type"] == "text"
        if data["text"] and not is_text and not self._before:
            frames += self._grow("text", "text", data["text"])
            is_text = True
        frames += self._cited(data, self._blocks[-1:] if is_text else [])
        frames += self._close()
        self._before.clear()
        for call in fields.theirs(data, self._wish):
            use = {"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}}
            frames += self._begin(use)
            json = fields.compact(call["arguments"])
            frames.append(self._delta({"type": "input_json_delta", "partial_json": json}))
            self._blocks[-1]["input"] = call["arguments"]
            frames += self._close()
        return frames

    def _cited(self, data: Mapping[str, Any], own: Sequence[dict[str, Any]]) -> list[Frame]:
        """Adds a citation for each mark of the step, and tells those of the text that ends."""
        texts, grown = [block["text"] for block in self._before], "".join(self._grown)
        as_shown = self._asked.stream or not own
        last, marks = fields.parted(data, texts, grown if own else "", as_shown=as_shown)
        for block, found in zip([*self._before, *own], marks, strict=False):
            if found:
                block["citations"] = [_citation(mark) for mark in found]
        told = list[Frame]()
        for block in own:
            block["text"] = last
            self._grown.clear()
            for each in block.get("citations", ()):
                told.append(self._delta({"type": "citations_delta", "citation": each}))
        return told

    def _end(self, data: Mapping[str, Any]) -> list[Frame]:
        frames = self._close()
        if words := self._over(data):
            return [*frames, _frame("error", error={"type": "api_error", "message": words})]
        delta = {"stop_reason": self._reason(), "stop_sequence": None, "container": None}
        more = {"usage": self._usage(), "searchloop": self._extension()}
        ended = _frame("message_delta", delta=delta, **more)
        return [*frames, ended, _frame("message_stop")]

    def _begin(self, block: dict[str, Any]) -> list[Frame]:
        frames = self._close()
        self._blocks.append(block)
        self._open, self._grown = True, []
        where = {"index": len(self._blocks) - 1, "content_block": dict(block)}
        return [*frames, _frame("content_block_start", **where)]

    def _close(self) -> list[Frame]:
        if not self._open:
            return []
        self._open = False
        frames, kind = list[Frame](), self._blocks[-1]["type"]
        if self._grown:
            self._blocks[-1][kind] = "".join(self._grown)
            self._before += self._blocks[-1:] if kind == "text" else []
        if kind == "thinking":
            frames.append(self._delta({"type": "signature_delta", "signature": ""}))
        return [*frames, _frame("content_block_stop", index=len(self._blocks) - 1)]

    def _delta(self, delta: dict[str, Any]) -> Frame:
        return _frame("content_block_delta", index=len(self._blocks) - 1, delta=delta)

    def _reason(self) -> str:
        return _STOP.get(self._why(), "end_turn")

    def _usage(self) -> dict[str, Any]:
        used = self._counts()
        return {
            "input_tokens": used["input_tokens"],
            "output_tokens": used["output_tokens"],
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": used["cached_tokens"],
            "server_tool_use": {
                "web_search_requests": used["searches"],
                "web_fetch_requests": used["pages"],
            },
        }

    def _message(self) -> dict[str, Any]:
        known = {"id": self._id, "type": "message", "role": "assistant", "content": []}
        ended = {"stop_reason": None, "stop_sequence": None, "container": None}
        return {**known, "model": self._wish.model, **ended}

    def whole(self) -> dict[str, Any]:
        """See `Encoder`."""
        ended = {"content": self._blocks, "stop_reason": self._reason()}
        more = {"usage": self._usage(), "searchloop": self._extension()}
        return {**self._message(), **ended, **more}


def _citation(mark: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a mark as a citation."""
    cited = str(mark["quote"] or mark["passage"] or "")[:_QUOTED]
    known = {"cited_text": cited, "url": mark["url"], "title": mark["title"]}
    index = _opaque(f"{mark['start']}-{mark['end']}")
    return {"type": "web_search_result_location", **known, "encrypted_index": index}


def _opaque(text: str) -> str:
    """Returns a text in the place of what only the vendor can read."""
    return base64.b64encode(text.encode()).decode()


def _frame(type: str, **data: Any) -> Frame:
    return type, {"type": type, **data}
