"""Chat Completions: decodes a request, encodes a run.

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from searchloop.agent.types import Search, ToolCall, ToolSpec
from searchloop.protocols import fields
from searchloop.protocols.fields import Asked, Encoder, Frame, bad

_OPTIONS = {
    **{name: name for name in ("temperature", "top_p", "seed", "stop")},
    "reasoning_effort": "effort",
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), "max_tokens"),
}
_MET = (
    *("model", "messages", "stream", "stream_options", "tools", "tool_choice", "response_format"),
    *("web_search_options", "n", "logprobs", *_OPTIONS),
)
_WITHOUT_EFFECT = (
    *("user", "metadata", "store", "service_tier", "parallel_tool_calls", "prompt_cache_key"),
    *("safety_identifier", "verbosity", "prediction"),
    *("presence_penalty", "frequency_penalty", "logit_bias"),
    *("top_logprobs", "modalities", "prompt_cache_retention", "prompt_cache_options"),
    *("min_p", "top_k"),  # of chats that are also used with local servers
)
_MESSAGE = ("role", "content", "tool_calls", "tool_call_id", "refusal")
_FINISH = {"tool_calls": "tool_calls", "length": "length", "refusal": "content_filter"}


def decode(body: Mapping[str, Any]) -> Asked:
    """Reads a request. Raises ConfigError that names the field."""
    read = fields.Transcript(body, _MET, _WITHOUT_EFFECT)
    if fields.typed(body, "n", int, 1) != 1:
        raise bad("n", "one answer at a time is given.", "Leave out n.")
    if fields.typed(body, "logprobs", bool, False):
        raise bad("logprobs", "they are not given here.", "Leave it out.")
    for message in fields.listed(body.get("messages"), "messages", Mapping):
        _add(read, message)
    tools = tuple(_tool(read, tool) for tool in fields.typed(body, "tools", list, []))
    choice = fields.choice_of(body)
    if fields.kind_of(choice) == "allowed_tools":
        allowed = fields.typed(choice, "allowed_tools", dict, {})
        names = fields.listed(allowed.get("tools"), "tool_choice")
        tools = fields.allowed(tools, [_function(each).get("name") or "" for each in names])
        choice = allowed.get("mode") or "auto"
    name = _function(choice).get("name")
    kind = "tool" if fields.kind_of(choice) == "function" else fields.kind_of(choice) or str(choice)
    search: Search = "auto" if body.get("web_search_options") is not None else "off"
    tools, _ = fields.chosen(kind, name, tools, search, read.system)
    form = fields.typed(body, "response_format", dict, {})
    schema = fields.schema_of(form, form.get("json_schema"), "response_format")
    read.part(body, "stream_options", "include_usage")
    wanted = read.part(body, "web_search_options", "user_location")
    options = fields.options_of(body, _OPTIONS)
    sites = read.sites(wanted, {})
    return read.asked(tools, search, sites, options, schema, effort="reasoning_effort")


def _add(read: fields.Transcript, message: Mapping[str, Any]) -> None:
    role, content = message.get("role"), fields.content_of(message.get("content"), "messages")
    read.only(message, "messages", *_MESSAGE)
    if role in ("system", "developer"):
        read.system.append(read.texts(content, "messages"))
    elif role == "user":
        read.user(content)
    elif role == "assistant":
        calls = [
            _call(call) for call in fields.listed(message.get("tool_calls"), "messages.tool_calls")
        ]
        refused = fields.typed(message, "refusal", str, "")
        read.assistant(read.texts(content, "messages") or refused, calls)
    elif role == "tool":
        read.result(str(message.get("tool_call_id")), content)
    else:
        raise bad("messages", f"there is no role {str(role)[:40]!r}.")


def _function(holder: Any) -> Mapping[str, Any]:
    given = holder.get("function") if isinstance(holder, Mapping) else None
    return given if isinstance(given, Mapping) else {}


def _call(call: Any) -> ToolCall:
    function = _function(call)
    if not function:
        raise bad("messages.tool_calls", "only calls of functions are known.")
    return fields.call_of(call.get("id"), function.get("name"), function.get("arguments"))


def _tool(read: fields.Transcript, tool: Any) -> ToolSpec:
    function = _function(tool)
    if not function:
        raise bad("tools", "only functions are known.", "Search with web_search_options.")
    return read.tool(function.get("name"), function)


class ChatEncoder(Encoder):
    """Encodes one answer."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._head = {"id": f"chatcmpl-{token_hex(12)}", "created": int(time.time())}
        self._texts: list[str] = []  # of the steps that are over
        self._shown: list[str] = []  # of this step
        self._notes: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []

    def begin(self) -> list[Frame]:
        """See `Encoder`."""
        return [self._chunk({"role": "assistant", "content": ""})]

    def take(self, type: str, data: Mapping[str, Any]) -> list[Frame]:
        """See `Encoder`."""
        if type == "text_delta":
            self._shown.append(data["text"])
            return [self._chunk({"content": data["text"]})]
        if type == "thinking_delta":
            return [self._chunk({"reasoning_content": data["text"]})]
        if type == "message":
            return self._step(data)
        return self._end(data) if type == "run_finished" else []

    def _step(self, data: Mapping[str, Any]) -> list[Frame]:
        offset, frames = sum(map(len, self._texts)), list[Frame]()
        shown = "".join(self._shown) if self._asked.stream else data["text"]
        if data["text"] and not shown:  # a provider that does not stream
            shown = data["text"]
            frames.append(self._chunk({"content": shown}))
        self._notes += [
            {
                "type": "url_citation",
                "url_citation": {
                    "start_index": offset + mark["start"],
                    "end_index": offset + mark["end"],
                    "url": mark["url"],
                    "title": mark["title"],
                },
            }
            for mark in fields.placed(data, shown)
        ]
        self._texts.append(shown)
        self._shown.clear()
        for call in fields.theirs(data, self._wish):
            function = {"name": call["name"], "arguments": fields.compact(call["arguments"])}
            self._calls.append({"id": call["id"], "type": "function", "function": function})
            index = {"index": len(self._calls) - 1}
            frames.append(self._chunk({"tool_calls": [{**index, **self._calls[-1]}]}))
        if not self._calls and data["tool_calls"] and shown:
            self._texts.append("\n\n")
            frames.append(self._chunk({"content": "\n\n"}))
        return frames

    def _end(self, data: Mapping[str, Any]) -> list[Frame]:
        if words := self._over(data):
            told = {"message": words, "type": "server_error", "param": None}
            return [("", {"error": {**told, "code": data["error"]["code"]}})]
        frames: list[Frame] = [self._chunk({"annotations": self._notes})] if self._notes else []
        last = self._chunk({}, self._reason())[1]
        frames.append(("", {**last, "searchloop": self._extension()}))
        wanted = self._asked.body.get("stream_options")
        if isinstance(wanted, Mapping) and wanted.get("include_usage"):
            frames.append(("", {**self._chunk({})[1], "choices": [], "usage": self._usage()}))
        return frames

    def _reason(self) -> str:
        return _FINISH.get(self._why(), "stop")

    def _usage(self) -> dict[str, Any]:
        used = self._counts()
        return {
            "prompt_tokens": used["input_tokens"],
            "completion_tokens": used["output_tokens"],
            "total_tokens": used["input_tokens"] + used["output_tokens"],
            "prompt_tokens_details": {"cached_tokens": used["cached_tokens"]},
            "completion_tokens_details": {"reasoning_tokens": used["reasoning_tokens"]},
        }

    def _chunk(
        self, delta: dict[str, Any], reason: str | None = None
    ) -> tuple[str, dict[str, Any]]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        named = {"object": "chat.completion.chunk", "model": self._wish.model}
        return "", {**self._head, **named, "choices": [choice]}

    def whole(self) -> dict[str, Any]:
        """See `Encoder`."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._texts) or None}
        message |= {"refusal": None, "annotations": self._notes}
        if self._calls:
            message["tool_calls"] = self._calls
        reason = {"index": 0, "logprobs": None, "finish_reason": self._reason()}
        return {
            **self._head,
            "object": "chat.completion",
            "model": self._wish.model,
            "choices": [{**reason, "message": message}],
            "usage": self._usage(),
            "searchloop": self._extension(),
        }
