"""The codec of `/api/chat`, and the decoder of its answers: bytes in, events out.

Each line is a JSON object; any of them may hold tool calls. A proxy that does not stream sends one.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from searchloop.agent.calls.as_text import Found, rescue
from searchloop.agent.errors import ProviderError
from searchloop.agent.providers._answer import (
    Calls,
    PrintedText,
    ShownAnswer,
    thought,
    without_late_thinking,
)
from searchloop.agent.providers._codec import CodecBase, DecoderBase
from searchloop.agent.providers._wire import count, member, text_in
from searchloop.agent.providers.ollama.config import Config
from searchloop.agent.providers.ollama.errors import explain, worded
from searchloop.agent.providers.ollama.request import (
    PROVIDER,
    VERSION,
    encode_request,
    encode_tools,
)
from searchloop.agent.transport.refusals import Refusal
from searchloop.agent.types import (
    Finished,
    Message,
    ProviderData,
    Request,
    StopReason,
    StreamEvent,
    Usage,
)


class OllamaDecoder(DecoderBase[ShownAnswer]):
    """See `Decoder`; a line is an event."""

    lines = True

    def __init__(self, codec: OllamaCodec, request: Request) -> None:
        super().__init__(codec)
        self._request = request
        self._answer = ShownAnswer()
        self._printed = PrintedText(self._answer, request.tools, marks=False)
        self._calls = Calls()

    def _read(self, event: Any) -> Iterable[StreamEvent]:
        out: list[StreamEvent] = []
        message = event.get("message")
        if type(message) is dict:
            thinking, content = message.get("thinking"), message.get("content")
            if thinking and type(thinking) is str:
                out += thought(self._answer.think(thinking))
            if content and type(content) is str:
                self._printed.add(content, out)
            if raw := message.get("tool_calls"):
                for item in raw if isinstance(raw, list) else [raw]:
                    self._called(item)
        if event.get("done") is True:
            self._finish(event, out)
        return out

    def _held(self) -> str:
        return self._printed.held()

    def _finish(self, chunk: dict[str, Any], out: list[StreamEvent]) -> None:
        self._finished = True
        self._printed.end(out)
        details = read_details(chunk)
        message = self._answer.message((), (), (), None, details)
        message = message if message.thinking else without_late_thinking(message)
        if not self._calls.made and (written := self._written(message)):
            details["calls"] = "text"
            for name, given in written:
                self._calls.add("", name, given)
        calls = tuple(self._calls.made.values())
        request = self._request
        made = ProviderData(PROVIDER, request.model, VERSION, ()) if message.thinking else None
        message = replace(message, tool_calls=calls, provider_data=made)
        stop: StopReason = "length" if chunk.get("done_reason") == "length" else "stop"
        usage = Usage(count(chunk, "prompt_eval_count"), count(chunk, "eval_count"))
        out.append(Finished(message, "tool_calls" if calls else stop, usage))

    def _called(self, item: Any) -> None:
        """Adds a call. An id that is missing or taken in this answer is replaced."""
        function, call_id = member(item, "function"), text_in(item, "id")
        call_id = "" if call_id in self._calls.made else call_id
        self._calls.add(call_id, member(function, "name"), member(function, "arguments"))

    def _written(self, message: Message) -> list[Found]:
        """Returns the calls printed as text, or those in the thinking of an answer without text."""
        found = self._printed.written.calls
        if not found and not message.content.strip():
            found = rescue(message.thinking, self._request.tools)[1]
        return found


_DURATIONS = {
    "load_duration": "load_ms",
    "prompt_eval_duration": "prompt_ms",
    "eval_duration": "eval_ms",
}


def read_details(chunk: dict[str, Any]) -> dict[str, Any]:
    """Returns times in milliseconds, tokens per second, and the host that the model ran on."""
    details: dict[str, Any] = {}
    for key, name in _DURATIONS.items():
        nanoseconds = count(chunk, key)
        if nanoseconds is not None:
            details[name] = round(nanoseconds / 1e6, 3)
    tokens, spent = count(chunk, "eval_count"), details.get("eval_ms")
    if tokens and spent:
        details["tokens_per_second"] = round(tokens * 1000 / spent, 2)
    for key in ("remote_model", "remote_host"):
        if isinstance(chunk.get(key), str) and chunk[key]:
            details[key] = chunk[key]
    return details


class OllamaCodec(CodecBase):
    """See `Codec`. `installed` lists the models, for the error of an unknown one."""

    api = "Ollama"

    def __init__(self, config: Config, installed: Callable[[], Sequence[str]] = tuple) -> None:
        self.endpoint = config.address
        self._config = config
        self._installed = installed

    def url(self, request: Request) -> str:
        return self.endpoint.address("api/chat")

    def headers(self) -> Mapping[str, str]:
        return {"accept": "application/x-ndjson", **self._config.headers}

    def encode(self, request: Request) -> bytes:
        # There is no tool_choice: `answer_now` lists no tools at all.
        listed = b"" if request.answer_now else encode_tools(request.tools)
        return encode_request(request, self._config, listed)

    def decoder(self, request: Request, content_type: str = "") -> OllamaDecoder:
        return OllamaDecoder(self, request)

    def classify(self, details: Mapping[str, Any], refusal: Refusal) -> ProviderError:
        return worded(details, refusal.status, self._config, self._installed())

    def explain(self, error: ProviderError) -> ProviderError:
        return explain(error, self._config)
