"""The codec of `/api/chat`, and the decoder of its answers: bytes in, events out.

Each line is a JSON object; any of them may hold tool calls. A proxy that does not stream sends one
document instead, perhaps over several lines; the decoder reads it at the end.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from searchloop.agent.calls.arguments import read_arguments
from searchloop.agent.calls.as_text import TextCalls, rescue
from searchloop.agent.errors import IncompleteError, ProviderError
from searchloop.agent.providers._thinking import ThinkSplitter, split_late
from searchloop.agent.providers.ollama.config import Config
from searchloop.agent.providers.ollama.errors import NOT_OLLAMA, explain, provider_error, read_fault
from searchloop.agent.providers.ollama.request import (
    PROVIDER,
    VERSION,
    encode_request,
    encode_tools,
    shape_of,
)
from searchloop.agent.search.vendor_marks import Seen
from searchloop.agent.transport.exchange import NdjsonSplitter, guarded
from searchloop.agent.transport.refusals import sentence, with_wishes
from searchloop.agent.types import (
    Finished,
    Message,
    ProviderData,
    Request,
    StopReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolSpec,
    Usage,
)

WHOLE_LIMIT = 16 * 1024 * 1024
_raw_decode = json.JSONDecoder().raw_decode


class OllamaDecoder:
    """See `Decoder`. `fault` makes the error of an error line."""

    def __init__(
        self, request: Request, content_type: str, fault: Callable[[dict[str, Any]], ProviderError]
    ) -> None:
        self._request = request
        self._fault = fault
        self._lines = NdjsonSplitter()
        self._document: bytearray | None = None
        self._may_be_document = "ndjson" not in content_type
        self._content = ThinkSplitter()
        self._written = TextCalls(request.tools)
        self._seen = Seen()
        self._offers = bool(request.tools)
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[ToolCall] = []
        self._finished = False

    def feed(self, data: bytes) -> Iterable[StreamEvent]:
        return guarded(_unreadable, self._feed, data)

    def close(self) -> Iterable[StreamEvent]:
        return guarded(_unreadable, self._close)

    def _feed(self, out: list[StreamEvent], data: bytes) -> None:
        for line in self._lines.feed(data):
            self._line(line, out)

    def _close(self, out: list[StreamEvent]) -> None:
        for line in self._lines.close():
            self._line(line, out, last=True)
        if self._document is not None and not self._finished:
            self._last_line(bytes(self._document), out)
        if not self._finished:
            raise _incomplete()

    def _line(self, line: bytes, out: list[StreamEvent], last: bool = False) -> None:
        if self._document is not None:
            self._document += line
            if len(self._document) > WHOLE_LIMIT:
                raise _unreadable(line)
        elif last:
            self._last_line(line, out)
        elif not self._finished:
            try:
                chunk = parse_line(line)
            except (ValueError, RecursionError) as error:
                if not (self._may_be_document and line.startswith(b"{")):
                    raise _unreadable(line) from error
                self._document = bytearray(line)
                return
            self._chunk(chunk, line, out)

    def _last_line(self, line: bytes, out: list[StreamEvent]) -> None:
        """Reads the end of the bytes: a line without its newline, or a piece of one."""
        if self._finished:
            return
        try:
            chunk = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise (_incomplete() if line.startswith(b"{") else _unreadable(line)) from error
        self._chunk(chunk, line, out)

    def _chunk(self, chunk: Any, line: bytes, out: list[StreamEvent]) -> None:
        if type(chunk) is not dict:
            raise _unreadable(line)
        self._may_be_document = False
        if chunk.get("error"):
            raise self._fault(chunk)
        message = chunk.get("message")
        if type(message) is dict:
            thought, content = message.get("thinking"), message.get("content")
            if thought and type(thought) is str:
                self._thinking.append(thought)
                out.append(ThinkingDelta(thought))
            if content and type(content) is str:
                if self._content.passing:
                    self._say(content, out)
                else:
                    self._keep(self._content.feed(content), out)
            if message.get("tool_calls"):
                self._add_calls(message["tool_calls"])
        if chunk.get("done") is True:
            self._finish(chunk, out)

    def _keep(self, deltas: Iterable[TextDelta | ThinkingDelta], out: list[StreamEvent]) -> None:
        for delta in deltas:
            if type(delta) is TextDelta:
                self._say(delta.text, out)
            else:
                self._thinking.append(delta.text)
                out.append(delta)

    def _say(self, content: str, out: list[StreamEvent]) -> None:
        """Shows text of the answer, except what may be a call printed as text."""
        self._show(self._written.feed(content) if self._offers else content, out)

    def _show(self, text: str, out: list[StreamEvent]) -> None:
        if text := self._seen.feed(text):
            self._text.append(text)
            out.append(TextDelta(text))

    def _add_calls(self, raw: Any) -> None:
        taken = {call.id for call in self._calls}
        taken.update(call.id for m in self._request.messages for call in m.tool_calls)
        for item in raw if isinstance(raw, list) else [raw]:
            call = read_call(item, taken)
            taken.add(call.id)
            self._calls.append(call)

    def _finish(self, chunk: dict[str, Any], out: list[StreamEvent]) -> None:
        self._finished = True
        self._keep(self._content.close(), out)
        self._show(self._written.close(), out)
        if rest := self._seen.close():
            self._text.append(rest)
            out.append(TextDelta(rest))
        text, thinking = "".join(self._text), "".join(self._thinking)
        if not thinking:
            thinking, text = split_late(text)
        details = read_details(chunk)
        if self._add_written(text, thinking):
            details["calls_as_text"] = True
        made = ProviderData(PROVIDER, self._request.model, VERSION, ()) if thinking else None
        stop: StopReason = "length" if chunk.get("done_reason") == "length" else "stop"
        message = Message(
            role="assistant",
            content=text,
            thinking=thinking,
            tool_calls=tuple(self._calls),
            details=details,
            provider_data=made,
        )
        usage = Usage(_count(chunk.get("prompt_eval_count")), _count(chunk.get("eval_count")))
        out.append(Finished(message, "tool_calls" if self._calls else stop, usage))

    def _add_written(self, text: str, thinking: str) -> bool:
        """Adds the calls printed as text, or those in the thinking of an answer without text."""
        if self._calls:
            return False
        written = self._written.calls
        if not written and not text.strip():
            written = rescue(thinking, self._request.tools)[1]
        for name, arguments in written:
            self._calls.append(ToolCall(f"call_{uuid.uuid4().hex}", name, arguments))
        return bool(written)


def parse_line(line: bytes) -> Any:
    """Parses one JSON value without blanks around it. Raises ValueError."""
    text = line.decode()  # half the cost of `json.loads` on bytes, which guesses the encoding
    value, end = _raw_decode(text)
    if end != len(text):
        raise ValueError("more than one value in a line")
    return value


def read_call(item: Any, taken: set[str]) -> ToolCall:
    """Reads one call. Replaces an id that is missing or already used in this session."""
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
    "total_duration": "total_ms",
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
        return OllamaDecoder(request, content_type, self._fault)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        fault = read_fault(body, status)
        return with_wishes(provider_error(fault, self._config, self._installed()), headers)

    def explain(self, error: ProviderError) -> ProviderError:
        return explain(error, self._config)

    def _fault(self, line: dict[str, Any]) -> ProviderError:
        return provider_error(read_fault(line), self._config, self._installed())
