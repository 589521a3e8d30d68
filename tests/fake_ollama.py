"""An Ollama server on 127.0.0.1 that keeps the real one's rules and plays scripted answers.

    with FakeOllama([Model("qwen3:8b")], [say("Hello"), ...]) as server:
        ... OLLAMA_HOST = server.url ...
        server.chats[0]["messages"]

What a client may get wrong is answered as the real server answers it: error shapes, the 400 of a
model without tools, arguments that are not an object, a prompt that does not fit its window. Tokens
are counted as a quarter of the characters of the rendered prompt. The rules are in `ollama_rules`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fakes import End, FakeServer, Received, Reply, json_reply
from tests.ollama_rules import check_abilities, check_body, count_tokens, refuse

SUMMARISE = "You summarise the earlier part"
CREATED = "2026-11-20T10:00:00.000000Z"


@dataclass(frozen=True)
class Model:
    """One installed model. `num_ctx` is what the server gives it when nobody asks for more.

    `most` is what it really can give, whoever asks for more, and `letters` how many characters a
    token has. `native` models hand over all calls in the last
    line and let llama.cpp count their prompt.
    """

    name: str
    capabilities: Sequence[str] = ("completion", "tools")
    num_ctx: int = 4096
    trained: int = 40960
    remote_host: str = ""
    native: bool = False
    size: str = "8.2B"
    letters: float = 4
    most: int = 1_000_000
    disk: int = 1_000_000

    @property
    def full_name(self) -> str:
        """The name with its tag."""
        return self.name if ":" in self.name else f"{self.name}:latest"


@dataclass(frozen=True)
class Answer:
    """One scripted answer of `/api/chat`.

    With `status` an `error` is the whole answer. `end` says how the connection ends.
    """

    parts: Sequence[Mapping[str, Any]] = ()
    done_reason: str = "stop"
    error: str = ""
    status: int = 200
    end: End = "done"


def say(*pieces: str, **more: Any) -> Answer:
    """An answer in words, one line a piece."""
    return Answer([{"content": piece} for piece in pieces], **more)


def think(thought: str, *pieces: str, **more: Any) -> Answer:
    """Thinking in its own field, then words."""
    return Answer([{"content": "", "thinking": thought}, *({"content": p} for p in pieces)], **more)


def call(name: str, arguments: Any, call_id: str | None = None) -> Answer:
    """An answer that is one tool call; servers of old gave no id."""
    function = {"name": name, "arguments": arguments}
    item = {"id": call_id, "function": function} if call_id else {"function": function}
    return Answer([{"content": "", "tool_calls": [item]}])


def slip() -> Answer:
    """The server's parser fails on what the model wrote: a 500, though the model is to blame."""
    reason = "invalid character ']' looking for beginning of value"
    error = f"error parsing tool call: raw='{{\"query\": ]', err={reason}"
    return Answer(status=500, error=error)


class FakeOllama(FakeServer):
    """See the module. `chats` holds the accepted and refused bodies of `/api/chat`, in order.

    `answers`: the script, or a function from a request's body. `library`: what can be pulled; with
    `stalls` no pull comes further than half of its first layer. `cuts`: an older server, which cuts
    a long prompt whatever the request says of it. `summaries`: requests for one, which are answered
    beside the script.
    """

    def __init__(
        self,
        models: Iterable[Model] = (),
        answers: Iterable[Answer] | Callable[[Any], Answer] = (),
        *,
        cloud_disabled: bool = False,
        version: str = "0.33.0",
        cuts: bool = False,
        library: Iterable[Model] = (),
        stalls: bool = False,
    ) -> None:
        super().__init__(self._answer)
        self._models = {model.full_name: model for model in models}
        script = iter([] if callable(answers) else list(answers))
        self._choose = answers if callable(answers) else lambda body: next(script, None)
        self._cloud_disabled = cloud_disabled
        self._version = version
        self._cuts = cuts
        self._library = {model.full_name: model for model in library}
        self._stalls = stalls
        self._windows: dict[str, int] = {}
        self.chats: list[dict[str, Any]] = []
        self.prompt_tokens: list[int] = []
        self.summaries: list[dict[str, Any]] = []

    def __enter__(self) -> FakeOllama:
        super().__enter__()
        return self

    def _answer(self, request: Received) -> Reply:
        match (request.method, request.path.partition("?")[0]):
            case ("GET", "/"):
                return Reply([b"Ollama is running"], headers={"content-type": "text/plain"})
            case ("GET", "/api/version"):
                return json_reply({"version": self._version})
            case ("GET", "/api/status"):
                return json_reply({"cloud": {"disabled": self._cloud_disabled, "source": "env"}})
            case ("GET", "/api/tags"):
                return json_reply({"models": [tag(model) for model in self._models.values()]})
            case ("GET", "/api/ps"):
                return json_reply({"models": [self._running(name) for name in self._windows]})
            case ("POST", "/api/pull"):
                return self._pull(request.json)
            case ("DELETE", "/api/delete"):
                return self._delete(request.json)
            case ("POST", "/api/chat"):
                return self._chat(request)
        return Reply([b"404 page not found"], 404, {"content-type": "text/plain"})

    def _running(self, name: str) -> dict[str, Any]:
        entry, window = tag(self._models[name]), self._windows[name]
        memory = {"size": 6_000_000_000, "size_vram": 3_000_000_000, "context_length": window}
        return {**entry, **memory, "expires_at": "2026-11-20T10:05:00.123456789-07:00"}

    def _find(self, name: Any) -> Model | Reply:
        if not isinstance(name, str) or not name:
            return refuse(400, "model is required")
        full = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
        return self._models.get(full) or refuse(404, f"model '{name}' not found")

    def _chat(self, request: Received) -> Reply:
        body = request.json
        model = self._find(body.get("model"))
        if not body.get("messages") and isinstance(model, Model):
            return self._load(model, stays=body.get("keep_alive") != 0)
        self.chats.append(body)
        if isinstance(model, Reply):
            return model
        wrong = check_body(body)
        wrong = wrong or check_abilities(body, model.full_name, model.capabilities)
        if wrong:
            return wrong
        options = body.get("options") or {}
        window = min(options.get("num_ctx") or model.num_ctx, model.trained, model.most)
        self._windows[model.full_name] = window
        tokens = int(count_tokens(body) * 4 / model.letters)
        if tokens > window:
            if body.get("truncate") is False and not self._cuts:
                sizes = f"request ({tokens} tokens) exceeds the available context size ({window}"
                return refuse(400, f"{sizes} tokens), try increasing it")
            tokens = window // 2 + 2
        if SUMMARISE in json.dumps(body):
            self.summaries.append(self.chats.pop())
            return play(model, say("The ferry leaves from pier four [1]."), tokens)
        self.prompt_tokens.append(tokens)
        answer = self._choose(body)
        if answer is None:
            return refuse(500, "the script is over")
        return play(model, answer, tokens)

    def _load(self, model: Model, *, stays: bool) -> Reply:
        """A request without messages loads the model, or takes it out of memory."""
        self._windows |= {model.full_name: model.num_ctx}
        if not stays:
            del self._windows[model.full_name]
        return json_reply(
            last_line(model, Answer(done_reason="load" if stays else "unload"), 0, [])
        )

    def _delete(self, body: Mapping[str, Any]) -> Reply:
        name = str(body.get("model") or body.get("name") or "")
        if self._models.pop(name if ":" in name else f"{name}:latest", None) is None:
            return refuse(404, f"model '{name}' not found")
        return Reply([], 200, {"content-type": "text/plain"})

    def _pull(self, body: Mapping[str, Any]) -> Reply:
        name = str(body.get("model") or body.get("name") or "")
        model = self._library.get(name if ":" in name else f"{name}:latest")
        lines: list[dict[str, Any]] = [{"status": "pulling manifest"}]
        if model is None:
            lines.append({"error": "pull model manifest: file does not exist"})
        else:
            self._models[model.full_name] = model
            for layer, size in (("sha256:aa", 1_000_000), ("sha256:bb", 3_000_000_000)):
                told = {"status": f"pulling {layer[7:]}", "digest": layer, "total": size}
                lines += [told, {**told, "completed": size // 2}, {**told, "completed": size}]
            lines += [{"status": "verifying sha256 digest"}, {"status": "success"}]
        pieces = [json.dumps(line).encode() + b"\n" for line in lines]
        if self._stalls:
            return Reply(pieces[:3], 200, {"content-type": "application/x-ndjson"}, end="stall")
        return Reply(pieces, 200, {"content-type": "application/x-ndjson"})


def tag(model: Model) -> dict[str, Any]:
    """A model as `/api/tags` lists it."""
    entry: dict[str, Any] = {
        "name": model.full_name,
        "model": model.full_name,
        "digest": f"{sum(model.full_name.encode()):064x}",
        "size": model.disk,
        "details": {"parameter_size": model.size, "context_length": model.trained},
        "capabilities": list(model.capabilities),
    }
    if model.remote_host:
        entry |= {"remote_host": model.remote_host, "remote_model": model.name}
    return entry


def play(model: Model, answer: Answer, tokens: int) -> Reply:
    """The scripted answer in the way this kind of model gives it."""
    if answer.status >= 400:
        return refuse(answer.status, answer.error)
    parts = [dict(part) for part in answer.parts]
    held = [item for part in parts for item in part.pop("tool_calls", [])] if model.native else []
    lines = [*(chunk(model, part) for part in parts), last_line(model, answer, tokens, held)]
    pieces = [json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines]
    return Reply(pieces, headers={"content-type": "application/x-ndjson"}, end=answer.end)


def chunk(model: Model, part: Mapping[str, Any]) -> dict[str, Any]:
    """One line in the middle of a stream."""
    message = {"role": "assistant", "content": "", **part}
    return {"model": model.name, "created_at": CREATED, "message": message, "done": False}


def last_line(model: Model, answer: Answer, tokens: int, calls: list[Any]) -> dict[str, Any]:
    """The line that ends a stream, with its counts; durations are in nanoseconds."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    if calls:
        message["tool_calls"] = calls
    written = max(1, len(answer.parts))
    line = {"model": model.name, "created_at": CREATED, "message": message, "done": True}
    remote = {"remote_model": model.name, "remote_host": model.remote_host}
    return {
        **line,
        **(remote if model.remote_host else {}),
        "done_reason": answer.done_reason,
        "total_duration": 2_000_000_000,
        "load_duration": 100_000_000,
        "prompt_eval_count": tokens,
        "prompt_eval_duration": 400_000_000,
        "eval_count": written,
        "eval_duration": 500_000_000,
    }
