"""The codec of `/api/chat`, and the decoder of its answers: bytes in, events out.

Each line is a JSON object; any of them may hold tool calls. A proxy that does not stream sends one
document instead, perhaps over several lines; the decoder reads it at the end.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from searchloop.agent.calls.arguments import read_arguments
from searchloop.agent.calls.as_text import rescue
from searchloop.agent.errors import IncompleteError, ProviderError
from searchloop.agent.providers._answer import (
    PrintedText,
    ShownAnswer,
    thought,
    without_late_thinking,
)
from searchloop.agent.providers.ollama.config import Config
from searchloop.agent.providers.ollama.errors import NOT_OLLAMA, explain, provider_error, read_fault
from searchloop.agent.providers.ollama.request import (
    PROVIDER,
    VERSION,
    encode_request,
    encode_tools,
    shape_of,
)
from searchloop.agent.transport.exchange import NdjsonSplitter, guarded
from searchloop.agent.transport.refusals import sentence, with_wishes
from searchloop.agent.types import (
    Finished,
    Message,
    ProviderData,
    Request,
    StopReason,
    StreamEvent,
    ToolCall,
    ToolSpec,
    Usage,
)

WHOLE_LIMIT = 16 * 1024 * 1024
_raw_decode = json.JSONDecoder().raw_decode


class OllamaDecoder:
    """See `Decoder`. `fault` makes the error of an error line."""

    def __init__(self, request: Request, fault: Callable[[dict[str, Any]], ProviderError]) -> None:
        self._request = request
        self._fault = fault
        self._lines = NdjsonSplitter()
        self._document = bytearray()
        self._begun = False
        self._answer = ShownAnswer()
        self._printed = PrintedText(self._answer, request.tools, marks=False)
        self._calls: dict[str, ToolCall] = {}
        self._finished = False

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        return guarded(_unreadable, self._feed, data)

    def close(self) -> Iterable[StreamEvent]:
        return guarded(_unreadable, self._close)

    def _feed(self, out: list[StreamEvent], data: bytes) -> None:
        for line in self._lines.feed(data):
            if self._finished:
                return
            if self._document:
                self._document += line
                if len(self._document) > WHOLE_LIMIT:
                    raise _unreadable(line)
                continue
            try:
                chunk = parse_line(line)
            except (ValueError, RecursionError) as error:
                if self._begun or not line.startswith(b"{"):
                    raise _unreadable(line) from error
                self._document += line  # one document over several lines
            else:
                self._chunk(chunk, line, out)

    def _close(self, out: list[StreamEvent]) -> None:
        rest = bytes(self._document) + b"".join(self._lines.close())
        if rest and not self._finished:
            try:
                chunk = json.loads(rest)
            except (ValueError, RecursionError) as error:
                raise (_incomplete() if rest.startswith(b"{") else _unreadable(rest)) from error
            self._chunk(chunk, rest, out)
        if not self._finished:
            raise _incomplete()

    def _chunk(self, chunk: Any, line: bytes, out: list[StreamEvent]) -> None:
        if type(chunk) is not dict:
            raise _unreadable(line)
        self._begun = True
        if chunk.get("error"):
            raise self._fault(chunk)
        message = chunk.get("message")
        if type(message) is dict:
            thinking, content = message.get("thinking"), message.get("content")
            if thinking and type(thinking) is str:
                out += thought(self._answer.think(thinking))
            if content and type(content) is str:
                self._printed.add(content, out)
            if raw := message.get("tool_calls"):
                for item in raw if isinstance(raw, list) else [raw]:
                    call = read_call(item, self._calls)
                    self._calls[call.id] = call
        if chunk.get("done") is True:
            self._finish(chunk, out)

    def _finish(self, chunk: dict[str, Any], out: list[StreamEvent]) -> None:
        self._finished = True
        self._printed.end(out)
        details = read_details(chunk)
        message = self._answer.message((), (), (), None, details)
        message = message if message.thinking else without_late_thinking(message)
        if written := self._written(message):
            details["calls_as_text"] = True
        calls = (*self._calls.values(), *written)
        request = self._request
        made = ProviderData(PROVIDER, request.model, VERSION, ()) if message.thinking else None
        message = replace(message, tool_calls=calls, provider_data=made)
        stop: StopReason = "length" if chunk.get("done_reason") == "length" else "stop"
        usage = Usage(_count(chunk.get("prompt_eval_count")), _count(chunk.get("eval_count")))
        out.append(Finished(message, "tool_calls" if calls else stop, usage))

    def _written(self, message: Message) -> list[ToolCall]:
        """Returns the calls printed as text, or those in the thinking of an answer without text."""
        found = self._printed.written.calls
        if not found and not message.content.strip():
            found = rescue(message.thinking, self._request.tools)[1]
        if self._calls:
            return []
        return [ToolCall(f"call_{uuid.uuid4().hex}", name, given) for name, given in found]


def parse_line(line: bytes) -> Any:
    """Parses one JSON value without blanks around it. Raises ValueError."""
    text = line.decode()  # half the cost of `json.loads` on bytes, which guesses the encoding
    value, end = _raw_decode(text)
    if end != len(text):
        raise ValueError("more than one value in a line")
    return value


def read_call(item: Any, taken: Container[str]) -> ToolCall:
    """Reads one call. Replaces an id that is missing or already taken in this answer."""
    item = item if isinstance(item, dict) else {}
    function = item.get("function")
    function = function if isinstance(function, dict) else {}
    given, name = item.get("id"), function.get("name")
    usable = isinstance(given, str) and given and given not in taken
    arguments, problem = read_arguments(function.get("arguments"))
    if not isinstance(name, str) or not name:
        name, problem = "", "The call names no tool."
    return ToolCall(given if usable else f"call_{uuid.uuid4().hex}", name, arguments, problem)


_DURATIONS = {
    "load_duration": "load_ms",
    "prompt_eval_duration": "prompt_ms",
    "eval_duration": "eval_ms",
}


def read_details(chunk: dict[str, Any]) -> dict[str, Any]:
    """Returns times in milliseconds, tokens per second, and the host that the model ran on."""
    details: dict[str, Any] = {}
    for key, name in _DURATIONS.items():
        nanoseconds = _count(chunk.get(key))
        if nanoseconds is not None:
            details[name] = round(nanoseconds / 1e6, 3)
    tokens, spent = _count(chunk.get("eval_count")), details.get("eval_ms")
    if tokens and spent:
        details["tokens_per_second"] = round(tokens * 1000 / spent, 2)
    for key in ("remote_model", "remote_host"):
        if isinstance(chunk.get(key), str) and chunk[key]:
            details[key] = chunk[key]
    return details


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _incomplete() -> IncompleteError:
    what = "Ollama's answer broke off before it was finished."
    remedy = "Ask again; if it happens twice, look at the server's log (it may be out of memory)."
    return IncompleteError("incomplete", what, remedy, retryable=True)


def _unreadable(line: bytes = b"") -> ProviderError:
    shown = sentence(line.decode("utf-8", "replace")[:80]) or "a web page."
    what = f"The answer is not what Ollama sends: {shown}"
    return ProviderError("bad_response", what, NOT_OLLAMA)


Style = Literal["calls", "envelope", "words"]


class OllamaCodec:
    """See `Codec`. `installed` lists the models, for the error of an unknown one.

    `style`: calls of the server, an envelope (a JSON object that names a tool), or words alone.
    """

    def __init__(
        self, config: Config, installed: Callable[[], Sequence[str]] = tuple, style: Style = "calls"
    ) -> None:
        self._config = config
        self._style = style
        self._installed = installed
        self._headers = {"accept": "application/x-ndjson", **config.headers}
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def url(self, request: Request) -> str:
        return f"{self._config.address.base}/api/chat"

    def headers(self) -> Mapping[str, str]:
        return self._headers

    def encode(self, request: Request) -> bytes:
        # There is no tool_choice: `answer_now` lists no tools at all.
        if self._style != "calls":
            shape = shape_of(request.tools) if self._style == "envelope" else None
            return encode_request(request, self._config, b"", True, shape)
        if self._tools[0] is not request.tools:
            self._tools = request.tools, encode_tools(request.tools)
        listed = b"" if request.answer_now else self._tools[1]
        return encode_request(request, self._config, listed)

    def decoder(self, request: Request, content_type: str) -> OllamaDecoder:
        return OllamaDecoder(request, self._fault)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        fault = read_fault(body, status)
        return with_wishes(provider_error(fault, self._config, self._installed()), headers)

    def explain(self, error: ProviderError) -> ProviderError:
        return explain(error, self._config)

    def _fault(self, line: dict[str, Any]) -> ProviderError:
        return provider_error(read_fault(line), self._config, self._installed())
