"""Responses, of OpenAI and Open Responses: decodes a request, encodes a run.

https://platform.openai.com/docs/api-reference/responses, https://www.openresponses.org
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from secrets import token_hex
from typing import Any

from searchloop.agent.tools.backend import error_words
from searchloop.agent.types import ANYWHERE, NativeSearch, Search, ToolCall, ToolSpec
from searchloop.protocols import fields
from searchloop.protocols.fields import Asked, Encoder, Frame, bad
from searchloop.protocols.kept import Kept

_OPTIONS = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens"}
_MET = (
    *("model", "input", "instructions", "stream", "store", "previous_response_id", "tools"),
    *("tool_choice", "text", "include", "background", "reasoning", *_OPTIONS),
)
_WITHOUT_EFFECT = (
    *("user", "metadata", "service_tier", "parallel_tool_calls", "prompt_cache_key"),
    *("safety_identifier", "truncation", "stream_options", "client_metadata"),
    *("prompt_cache_retention", "max_tool_calls", "top_logprobs", "presence_penalty"),
    *("frequency_penalty", "context_management", "prompt_cache_options"),
)
_SEARCH = "web_search"  # the types of the search tool begin so, some with a date
_OWN = ("function", "custom")  # kinds of a client's own tools
# What an answer repeats of its request, and what stands there where nothing was said.
_REPEATED: Mapping[str, Any] = {
    **dict.fromkeys(("instructions", "max_output_tokens", "max_tool_calls", "user")),
    **dict.fromkeys(("previous_response_id", "prompt_cache_key", "safety_identifier")),
    "temperature": 1.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "parallel_tool_calls": True,
    "store": True,
    "tool_choice": "auto",
    "truncation": "disabled",
    "metadata": {},
}
_SOURCES = "web_search_call.action.sources"  # of `include`
_CUT = {"length": "max_output_tokens", "refusal": "content_filter"}
_SPACE = "__"  # between a namespace and the name of its tool, for the model


def decode(body: Mapping[str, Any], kept: Kept | None = None) -> Asked:
    """Reads a request, which may name a response or an item that is kept.

    Raises ConfigError that names the field.
    """
    read = fields.Transcript(body, _MET, _WITHOUT_EFFECT)
    if body.get("background"):
        raise bad("background", "answers are given while the client waits.", "Leave it out.")
    kept = kept or Kept()
    name = fields.typed(body, "previous_response_id", str, "")
    before = kept.take(name)[0] if name else ()
    read.messages = list(before)
    read.remember(before)
    given = body.get("input")
    question = [{"role": "user", "content": given}] if isinstance(given, str) else given
    for item in fields.listed(question, "input", Mapping):
        named = item.get("type") == "item_reference"
        _add(read, kept.item(str(item.get("id"))) if named else item)
    if instructions := fields.typed(body, "instructions", str, ""):
        read.system.insert(0, instructions)
    tools, search, sites = _tools(read, fields.typed(body, "tools", list, []))
    tools, search = _chosen(fields.choice_of(body), tools, search, read.system)
    form = read.part(body, "text", "format").get("format") or {}
    thinking = read.part(body, "reasoning", "effort")
    options = fields.options_of(body, _OPTIONS) | fields.options_of(thinking, fields.EFFORT)
    schema = fields.schema_of(form, form, "text.format")
    included = fields.listed(body.get("include"), "include", str)
    read.ignored += [f"include.{name}" for name in included if name != _SOURCES]
    own = {"whole": len(before), "keep": fields.typed(body, "store", bool, True)}
    return read.asked(tools, search, sites, options, schema, effort="reasoning.effort", **own)


def _add(read: fields.Transcript, item: Mapping[str, Any]) -> None:
    kind, role = item.get("type", "message"), item.get("role")
    if kind == "message":
        content = fields.content_of(item.get("content"), "input")
        if role == "user":
            read.user(content)
        elif role in ("system", "developer"):
            read.system.append(read.texts(content, "input"))
        elif role == "assistant":
            read.assistant(read.texts(content, "input"))
        else:
            raise bad("input", f"there is no role {str(role)[:40]!r}.")
    elif kind in ("function_call", "custom_tool_call"):
        read.assistant("", [_call(item)])
    elif kind in ("function_call_output", "custom_tool_call_output"):
        read.result(str(item.get("call_id")), fields.content_of(item.get("output"), "input"))
    elif kind in ("reasoning", "web_search_call", "compaction"):
        read.ignored.append(f"input.{kind}")
    else:
        raise bad("input", f"an item of type {str(kind)[:40]!r} cannot be read here.")


def _call(item: Mapping[str, Any]) -> ToolCall:
    name = str(item.get("name") or "")
    if space := item.get("namespace"):
        name = f"{space}{_SPACE}{name}"
    given = item.get("arguments")
    if item.get("type") == "custom_tool_call":
        given = {"input": str(item.get("input") or "")}
    return fields.call_of(item.get("call_id"), name, given)


def _tools(
    read: fields.Transcript, given: Sequence[Any]
) -> tuple[tuple[ToolSpec, ...], Search, NativeSearch]:
    sites = ANYWHERE
    search: Search = "off"
    for tool in given:
        if fields.kind_of(tool).startswith(_SEARCH):
            search = "auto" if fields.typed(tool, "external_web_access", bool, True) else "offline"
            sites = read.sites(tool, read.part(tool, "filters", *fields.FILTERS))
            read.only(tool, "tools", "type", "external_web_access", "filters", "user_location")
    return tuple(read.tool(name, tool) for name, _, tool in _own(given)), search, sites


def _own(tools: Sequence[Any]) -> Iterator[tuple[Any, dict[str, Any], Mapping[str, Any]]]:
    """Yields a client's own tools: the name that the model has, that of a call, and the tool.

    Raises ConfigError for a tool that is neither its own nor a search.
    """
    for tool in tools:
        kind = fields.kind_of(tool)
        spaced = kind == "namespace"
        for own in fields.listed(tool.get("tools"), "tools") if spaced else [tool]:
            if fields.kind_of(own) in _OWN:
                parts = [each.get("name") for each in ((tool, own) if spaced else (own,))]
                whole = _SPACE.join(parts) if all(isinstance(p, str) for p in parts) else None
                yield whole, dict(zip(("name", "namespace"), reversed(parts), strict=False)), own
            elif spaced or not kind.startswith(_SEARCH):
                kind = fields.kind_of(own)
                raise bad("tools", f"a tool of type {kind[:40]!r} is not offered here.")


def _chosen(
    choice: Any, tools: tuple[ToolSpec, ...], search: Search, system: list[str]
) -> tuple[tuple[ToolSpec, ...], Search]:
    kind, name = fields.kind_of(choice) or str(choice), None
    if kind == "allowed_tools":
        given = fields.listed(choice.get("tools"), "tool_choice", Mapping)
        rest = [tool for tool in given if not fields.kind_of(tool).startswith(_SEARCH)]
        tools = fields.allowed(tools, [tool.get("name") or fields.kind_of(tool) for tool in rest])
        search = search if len(rest) < len(given) else "off"
        kind = str(choice.get("mode") or "auto")
    elif kind.startswith(_SEARCH):
        kind, name = "tool", fields.SEARCH_TOOL
    elif kind in _OWN:
        kind, name = "tool", choice.get("name")
    return fields.chosen(kind, name, tools, search, system)


class ResponsesEncoder(Encoder):
    """Encodes one answer; items are closed before the next begins."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self.id = f"resp_{token_hex(24)}"
        self._made = int(time.time())
        self._output: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None  # the last item of the output, while it grows
        self._shown: list[str] = []  # of that item
        self._before: list[dict[str, Any]] = []  # earlier texts of this step
        self._number = 0
        self._own = {
            name: (named, fields.kind_of(tool) == "custom")
            for name, named, tool in _own(asked.body.get("tools") or ())
        }
        self._sources = _SOURCES in (asked.body.get("include") or ())

    def begin(self) -> list[Frame]:
        """See `Encoder`."""
        started = self._response("in_progress")
        return [
            self._frame("response.created", response=started),
            self._frame("response.in_progress", response=started),
        ]

    def take(self, type: str, data: Mapping[str, Any]) -> list[Frame]:
        """See `Encoder`."""
        if type == "text_delta":
            return self._text(data["text"])
        if type == "thinking_delta":
            return self._thinking(data["text"])
        if type in ("search_started", "search_finished", "page_opened"):
            return self._search(type, data)
        if type == "message":
            return self._step(data)
        return self._end(data) if type == "run_finished" else []

    def _text(self, text: str) -> list[Frame]:
        frames = list[Frame]()
        if self._open is None or self._open["type"] != "message":
            frames += self._begin("message", "msg", role="assistant", content=[])
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            frames.append(self._at("response.content_part.added", content_index=0, part=part))
        self._shown.append(text)
        frames.append(
            self._at("response.output_text.delta", content_index=0, delta=text, logprobs=[])
        )
        return frames

    def _thinking(self, text: str) -> list[Frame]:
        frames = list[Frame]()
        if self._open is None or self._open["type"] != "reasoning":
            frames += self._begin("reasoning", "rs", summary=[])
            part = {"type": "summary_text", "text": ""}
            added = "response.reasoning_summary_part.added"
            frames.append(self._at(added, summary_index=0, part=part))
        self._shown.append(text)
        named = "response.reasoning_summary_text.delta"
        frames.append(self._at(named, summary_index=0, delta=text))
        return frames

    def _search(self, type: str, data: Mapping[str, Any]) -> list[Frame]:
        if type == "search_finished" and self._open and self._open["type"] == "web_search_call":
            return self._found(data)
        frames = self._close()
        opened = type == "page_opened"
        action: dict[str, Any] = {"type": "search", "query": data.get("query", "")}
        if opened:
            action = {"type": "open_page", "url": data["url"]}
        frames += self._begin("web_search_call", "ws", action=action)
        named = "response.web_search_call."
        frames += [self._at(f"{named}{state}") for state in ("in_progress", "searching")]
        return frames if type == "search_started" else frames + self._found(data)

    def _found(self, data: Mapping[str, Any]) -> list[Frame]:
        item = self._open or {}
        item["status"] = "completed" if data["status"] in ("ok", "empty") else "failed"
        if "query" in data:
            item["action"]["query"] = data["query"]
        return [self._at("response.web_search_call.completed"), *self._close()]

    def _step(self, data: Mapping[str, Any]) -> list[Frame]:
        frames = list[Frame]()
        is_text = self._open is not None and self._open["type"] == "message"
        if data["text"] and not is_text and not self._before:
            frames += self._close() + self._text(data["text"])
            is_text = True
        before, shown = [part["text"] for part in self._before], "".join(self._shown)
        text, marks = fields.parted(data, before, shown if is_text else "", as_shown=not is_text)
        for part, found in zip(self._before, marks, strict=False):
            part["annotations"] = [_note(mark) for mark in found]
        if is_text:
            frames += self._told(text, marks[-1])
        frames += self._close()
        self._before.clear()
        for call in fields.theirs(data, self._wish):
            frames += self._handed(call)
        return frames

    def _told(self, text: str, marks: Sequence[Mapping[str, Any]] = ()) -> list[Frame]:
        """Ends a text in its final form, with its annotations."""
        frames, notes = list[Frame](), list(map(_note, marks))
        for index, note in enumerate(notes):
            where = {"content_index": 0, "annotation_index": index, "annotation": note}
            frames.append(self._at("response.output_text.annotation.added", **where))
        part = {"type": "output_text", "text": text, "annotations": notes, "logprobs": []}
        done = {"content_index": 0, "text": text, "logprobs": []}
        frames.append(self._at("response.output_text.done", **done))
        frames.append(self._at("response.content_part.done", content_index=0, part=part))
        assert self._open is not None
        self._open["content"] = [part]
        return frames

    def _handed(self, call: Mapping[str, Any]) -> list[Frame]:
        named, free = self._own[call["name"]]
        asked = {"call_id": call["id"], **named}
        kind, field = ("custom_tool_call", "input") if free else ("function_call", "arguments")
        text = (
            str(call["arguments"].get("input", "")) if free else fields.compact(call["arguments"])
        )
        frames = self._begin(kind, "ctc" if free else "fc", **asked, **{field: ""})
        done = {field: text} if free else {field: text, "name": asked["name"]}
        frames.append(self._at(f"response.{kind}_{field}.delta", delta=text))
        frames.append(self._at(f"response.{kind}_{field}.done", **done))
        assert self._open is not None
        self._open[field] = text
        return frames + self._close()

    def _begin(self, type: str, prefix: str, **own: Any) -> list[Frame]:
        frames = self._close()
        item = {"id": f"{prefix}_{token_hex(24)}", "type": type, "status": "in_progress", **own}
        self._output.append(item)
        self._open, self._shown = item, []
        where = {"output_index": len(self._output) - 1, "item": dict(item)}
        return [*frames, self._frame("response.output_item.added", **where)]

    def _close(self) -> list[Frame]:
        """Ends the item that grows."""
        if self._open is None:
            return []
        item, frames, shown = self._open, list[Frame](), "".join(self._shown)
        if item["type"] == "reasoning":
            part = {"type": "summary_text", "text": shown}
            named = "response.reasoning_summary_"
            frames.append(self._at(f"{named}text.done", summary_index=0, text=shown))
            frames.append(self._at(f"{named}part.done", summary_index=0, part=part))
            item["summary"] = [part]
        elif item["type"] == "message" and not item["content"]:  # a search, a thought or the end
            frames += self._told(shown)
            self._before += item["content"]
        if item["status"] == "in_progress":
            item["status"] = "completed"
        self._open = None
        where = {"output_index": len(self._output) - 1, "item": dict(item)}
        return [*frames, self._frame("response.output_item.done", **where)]

    def _end(self, data: Mapping[str, Any]) -> list[Frame]:
        if self._open and data["reason"] == "error":  # it broke off
            search = self._open["type"] == "web_search_call"
            self._open["status"] = "failed" if search else "incomplete"
        frames = self._close()
        if self._sources:
            self._add_sources(data["sources"])
        if self._over(data):
            return [*frames, self._frame("response.failed", response=self.whole())]
        cut = self._incomplete()
        named = "response.incomplete" if cut else "response.completed"
        return [*frames, self._frame(named, response=self.whole())]

    def _add_sources(self, sources: Sequence[Mapping[str, Any]]) -> None:
        found = [{"type": "url", "url": source["url"]} for source in sources]
        for item in self._output:
            if item["type"] == "web_search_call" and item["action"]["type"] == "search":
                item["action"] = {**item["action"], "sources": found}

    def _incomplete(self) -> dict[str, str] | None:
        reason = _CUT.get(self._why())
        return {"reason": reason} if reason else None

    def whole(self) -> dict[str, Any]:
        """See `Encoder`."""
        cut = self._incomplete()
        status = "failed" if self.error else "incomplete" if cut else "completed"
        used = self._counts()
        usage = {
            "input_tokens": used["input_tokens"],
            "input_tokens_details": {
                "cached_tokens": used["cached_tokens"],
                "cache_write_tokens": 0,
            },
            "output_tokens": used["output_tokens"],
            "output_tokens_details": {"reasoning_tokens": used["reasoning_tokens"]},
            "total_tokens": used["input_tokens"] + used["output_tokens"],
        }
        failed = {"code": "server_error", "message": error_words(self.error)}
        return {
            **self._response(status),
            "usage": usage,
            "error": failed if self.error else None,
            "completed_at": None if self.error else int(time.time()),
            "incomplete_details": cut,
            "searchloop": self._extension(),
        }

    def _response(self, status: str) -> dict[str, Any]:
        body, ignored = self._asked.body, {*_WITHOUT_EFFECT, *self._asked.ignored}
        given = {n: v for n, v in body.items() if n not in ignored and v is not None}
        repeated = {name: given.get(name, else_) for name, else_ in _REPEATED.items()}
        effort = None if "reasoning.effort" in ignored else self._wish.options.get("effort")
        kind = fields.kind_of(repeated["tool_choice"])
        if kind in ("auto", "none", "required"):  # in the words that all readers know
            repeated["tool_choice"] = kind
        elif kind.startswith(_SEARCH):
            repeated["tool_choice"] = "required"
        return {
            **repeated,
            **dict.fromkeys(("error", "incomplete_details", "usage", "completed_at")),
            "id": self.id,
            "object": "response",
            "created_at": self._made,
            "status": status,
            "background": False,
            "model": self._wish.model,
            "output": list(self._output),
            "reasoning": {"effort": effort, "summary": None},
            "tools": self._tools(),
            "service_tier": "default",
            "text": {"format": (body.get("text") or {}).get("format") or {"type": "text"}},
            "top_logprobs": 0,
        }

    def _tools(self) -> list[dict[str, Any]]:
        """Returns the tools as the model had them, whose spaces have gone into their names."""
        tools: list[dict[str, Any]] = []
        if self._wish.search != "off":
            tools.append({"type": "web_search"})
        for spec in self._wish.tools:
            known = {"name": spec.name, "description": spec.description}
            schema = {"type": "function", "parameters": spec.parameters, "strict": False}
            tools.append(known | ({"type": "custom"} if self._own[spec.name][1] else schema))
        return tools

    def _at(self, type: str, **more: Any) -> Frame:
        """Returns an event about the item that grows."""
        assert self._open is not None
        where = {"item_id": self._open["id"], "output_index": len(self._output) - 1}
        return self._frame(type, **where, **more)

    def _frame(self, type: str, **data: Any) -> Frame:
        self._number += 1
        return type, {"type": type, "sequence_number": self._number - 1, **data}


def _note(mark: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a mark as an annotation."""
    note = {"type": "url_citation", "url": mark["url"], "title": mark["title"]}
    return {**note, "start_index": mark["start"], "end_index": mark["end"]}
