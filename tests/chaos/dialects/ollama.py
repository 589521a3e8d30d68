"""Ollama's `/api/chat` as a server speaks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.chaos.dialects import KEY, Asked, Dialect, dump, parsed
from tests.fakes import Reply, json_reply
from tests.ollama_rules import check

_WORDS = {
    401: "unauthorized",
    404: "model 'qwen3:8b' not found",
    413: "request body too large",
    503: "server busy, please try again.  maximum pending requests exceeded",
}


class Ollama(Dialect):
    """See `Dialect`."""

    name = "ollama"
    models = ("qwen3:8b", "llama3.2:3b")
    searcher = models[0]
    content_type = "application/x-ndjson"
    unknown = b'{"model": "m", "new_kind": {"x": [1]}, "done": false}\n'
    garbage = b"{nonsense\n"

    def settings(self, url: str) -> dict[str, str]:
        return {"OLLAMA_HOST": url.replace("://", f"://me:{KEY}@"), "OLLAMA_API_KEY": KEY}

    def check(self, body: Mapping[str, Any], path: str) -> None:
        check(body)

    def conversation(self, body: Mapping[str, Any]) -> list[Any]:
        """Without thinking, which is dropped when the turn is over."""
        return [{k: v for k, v in m.items() if k != "thinking"} for m in body["messages"]]

    def searches(self, body: Mapping[str, Any]) -> list[str]:
        return []

    def aside(self, method: str, path: str) -> Any:
        about = {
            "/api/tags": {"models": [self._listed(name) for name in self.models]},
            "/api/ps": {"models": []},
            "/api/version": {"version": "0.33.0"},
            "/api/status": {"cloud": {"disabled": False}},
        }
        return about.get(path)

    def _listed(self, name: str) -> dict[str, Any]:
        able = ["completion", "tools", "thinking"]
        details = {"context_length": 262_144}
        return {"name": name, "model": name, "capabilities": able, "details": details}

    def text(self, *pieces: str, thinking: str = "") -> list[bytes]:
        lines = [_line(thinking=thinking)] if thinking else []
        return [*lines, *(_line(content=piece) for piece in pieces), _last()]

    def calls(self, *asked: Asked, text: str = "", thinking: str = "") -> list[bytes]:
        lines = [_line(thinking=thinking)] if thinking else []
        lines += [_line(content=text)] if text else []
        return [*lines, *map(self._call, asked), _last()]

    def _call(self, asked: Asked) -> bytes:
        function = {"name": asked.name, "arguments": parsed(asked.arguments)}
        return _line(tool_calls=[{"id": f"call_{next(self._ids)}", "function": function}])

    def cut_short(self, asked: Asked) -> list[bytes]:
        """What was written of the call is not a call yet; it comes as text or not at all."""
        return [_line(content="I will look"), _last("length")]

    def trouble(self) -> bytes:
        text = f"llama runner process has terminated: exit status 2 ({KEY})"
        return dump({"error": text}) + b"\n"

    def error(self, status: int, headers: Mapping[str, str] | None = None) -> Reply:
        return json_reply({"error": _WORDS.get(status, f"no, not with {KEY}")}, status, headers)

    def spent(self) -> Reply:
        return json_reply({"error": "you have reached your weekly usage limit"}, 429)


def _line(done: bool = False, **message: Any) -> bytes:
    whole = {"role": "assistant", "content": "", **message}
    return dump({"model": "qwen3:8b", "message": whole, "done": done}) + b"\n"


def _last(reason: str = "stop") -> bytes:
    message = {"role": "assistant", "content": ""}
    counts = {"prompt_eval_count": 9, "eval_count": 5, "eval_duration": 500_000_000}
    ends = {"model": "qwen3:8b", "message": message, "done": True, "done_reason": reason}
    return dump({**ends, **counts}) + b"\n"
