"""The faces at /v1 and /mcp: other programs ask the running server by protocols of their own.

A request is decoded by its protocol's codec, run, and encoded again, as server-sent events or as
one object. A client that leaves stops its run.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from searchloop.agent.errors import AgentError, ConfigError, ProviderError
from searchloop.agent.text import tokens
from searchloop.protocols import chat_completions, messages, responses
from searchloop.protocols.fields import Asked, Encoder, Frame
from searchloop.protocols.programs import Program
from searchloop.protocols.runs import SUFFIXES, ClientRuns, Ready, Wish
from searchloop.protocols.tools import MCP_PATH, ClientTools
from searchloop.web.api.calls import parse_json
from searchloop.web.asgi import EVENTS, Receive, Scope, Send, answer, as_json, more, unless_left
from searchloop.web.gate import PERSON, Refusal

_ONE = re.compile(r"/v1/responses/([\w-]+)")
# Ollama's API is not served; its clients read an error as a text.
_UNSERVED = re.compile(r"/api/(?:tags|chat|show|generate|embed|pull|ps|version)(?:/.*)?")
_PRODUCT = re.compile(r"[\w.-]{1,40}(?:/[\w.+-]{1,20})?")
_log = logging.getLogger(__name__)


class _Face(NamedTuple):
    """A protocol: how a request is read, and how an answer is written."""

    decode: Callable[[Mapping[str, Any]], Asked]
    encoder: Callable[[Asked], Encoder]


_CHAT = _Face(chat_completions.decode, chat_completions.ChatEncoder)
_RESPONSES = _Face(responses.decode, responses.ResponsesEncoder)
_MESSAGES = _Face(messages.decode, messages.MessagesEncoder)
_FACES = {
    "/v1/chat/completions": _CHAT,
    "/v1/responses": _RESPONSES,
    "/v1/messages": _MESSAGES,
}
_STATUS = {"no_response": 404, "unknown_provider": 404, "unknown_model": 404, "no_model": 404}
_STATUS |= {"search_off": 403, "not_allowed": 403, "program_budget": 429, "stopped": 503}
_STATUS |= {"always_searches": 400, "not_found": 404, "bad_method": 405, "rate_limited": 429}
_NO_USE = ((b"x-should-retry", b"false"),)  # clients ask again after 429
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def is_client_path(path: str) -> bool:
    """Tells the paths of other programs."""
    return path == MCP_PATH or path.startswith("/v1/") or bool(_UNSERVED.fullmatch(path))


def refusal_body(path: str, refusal: Refusal) -> dict[str, Any] | None:
    """Returns the gate's refusal in the shape of the protocol at this path."""
    if not is_client_path(path) or path == MCP_PATH:
        return None
    words = f"{refusal.message} {refusal.remedy}".strip()
    return _error(path, refusal.status, refusal.code, words, None)


def _error(path: str, status: int, code: str, words: str, param: str | None) -> dict[str, Any]:
    if path.startswith("/v1/messages"):
        kind = _KINDS.get(status) or ("api_error" if status >= 500 else _KINDS[400])
        return {"type": "error", "error": {"type": kind, "message": words}, "request_id": None}
    if path.startswith("/api/"):
        return {"error": words}
    kind = "invalid_request_error" if status < 500 else "server_error"
    if status == 429:
        kind = "insufficient_quota" if code == "program_budget" else "rate_limit_error"
    return {"error": {"message": words, "type": kind, "param": param, "code": code}}


async def answer_program(runs: ClientRuns, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers one request of a program with what a user's services may do."""
    if scope["path"] == MCP_PATH:
        if scope["method"] != "POST":
            await answer(send, 405, b"", ((b"allow", b"POST"),))  # nothing is sent unasked
            return
        from searchloop.protocols.mcp import over_http  # most servers get no such request

        await over_http(ClientTools(runs, scope[PERSON].program), scope, receive, send)
        return
    try:
        await _answer(runs, scope, receive, send)
    except AgentError as error:
        status = _STATUS.get(error.code, 400 if isinstance(error, ConfigError) else 502)
        param = getattr(error, "param", None)
        body = _error(scope["path"], status, error.code, str(error), param)
        await answer(send, status, body, _NO_USE if error.code == "program_budget" else ())


async def _answer(runs: ClientRuns, scope: Scope, receive: Receive, send: Send) -> None:
    method, path, program = scope["method"], scope["path"], scope[PERSON].program
    if path == "/v1/models" and method == "GET":
        await answer(send, 200, await _models(runs, program))
    elif path.startswith("/v1/models/") and method == "GET":
        name, listed = path.removeprefix("/v1/models/"), (await _models(runs, program))["data"]
        if not (found := next((row for row in listed if row["id"] == name), None)):
            raise ConfigError("not_found", f"There is no model {name[:200]}.", "GET /v1/models.")
        await answer(send, 200, found)
    elif path == "/" and method == "HEAD":
        await answer(send, 200, b"")
    elif (found := _ONE.fullmatch(path)) and method in ("GET", "DELETE"):
        kept = runs.kept(program)
        whole = kept.take(found[1])[1]
        if b"stream=true" in scope["query_string"]:
            raise ConfigError("bad_request", "A kept response is no stream.", "Leave stream out.")
        if method == "DELETE":
            kept.forget(found[1])
            whole = {"id": found[1], "object": "response", "deleted": True}
        await answer(send, 200, whole)
    elif path == "/v1/messages/count_tokens" and method == "POST":
        wish = replace(messages.decode(await _body(receive)).wish, program=program)
        await answer(send, 200, {"input_tokens": _counted((await runs.ready(wish)).wish)})
    elif (face := _FACES.get(path)) and method == "POST":
        who = {"client": _client(scope), "program": program}
        await _run(runs, face, await _body(receive), who, receive, send)
    else:
        what = f"{method} {path[:200]} is not served here."
        raise ConfigError("not_found", what, "Ask by POST /v1/chat/completions, for example.")


async def _run(
    runs: ClientRuns,
    face: _Face,
    body: Mapping[str, Any],
    who: Mapping[str, Any],
    receive: Receive,
    send: Send,
) -> None:
    kept = runs.kept(who["program"])
    asked = responses.decode(body, kept) if face is _RESPONSES else face.decode(body)
    ready = await runs.ready(replace(asked.wish, **who))
    asked = asked._replace(ignored=(*asked.ignored, *ready.ignored))
    encoder = face.encoder(asked)
    stream = _Stream(send, done=face is not _MESSAGES) if asked.stream else None
    if not await unless_left(_pumped(runs, ready, encoder, stream), receive):
        return
    if isinstance(encoder, responses.ResponsesEncoder) and asked.wish.keep:
        kept.put(encoder.id, ready.messages, encoder.whole())
    if stream:
        await stream.end()
    elif error := encoder.error:
        raise ProviderError(error["code"], error["message"], error.get("remedy", ""))
    else:
        await answer(send, 200, encoder.whole())


def _client(scope: Scope) -> str:
    """Returns the name that a program gives itself, such as `claude-cli/2.1`."""
    said = next((value for name, value in scope["headers"] if name == b"user-agent"), b"")
    found = _PRODUCT.match(said.decode("latin-1"))
    return found[0] if found else "unknown"


async def _pumped(runs: ClientRuns, ready: Ready, encoder: Encoder, stream: _Stream | None) -> bool:
    """Encodes a run to its end, each piece as it comes."""
    async with runs.answer(ready) as events:
        if stream:
            await stream.send(encoder.begin())
        async for batch in events:
            frames = [frame for happened in batch for frame in encoder.take(*happened)]
            if stream and (frames or not batch):
                await stream.send(frames)
    return True


class _Stream:
    """Sends frames as server-sent events."""

    def __init__(self, send: Send, *, done: bool) -> None:
        self._send, self._done, self._begun = send, done, False

    async def send(self, frames: list[Frame]) -> None:
        """Sends what happened at once as one piece; of nothing a comment, which clients skip."""
        await self._piece("".join(_event(name, data) for name, data in frames) or ": \n\n")

    async def end(self) -> None:
        """Ends the stream, by the word that all but Messages have for it."""
        await self._piece("data: [DONE]\n\n" if self._done else "")
        await self._send({"type": "http.response.body", "body": b""})

    async def _piece(self, text: str) -> None:
        if not self._begun:
            self._begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        await self._send(more(text.encode("utf-8", "replace")))


def _event(name: str, data: dict[str, Any]) -> str:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {as_json(data)}\n\n"


async def _body(receive: Receive) -> dict[str, Any]:
    """Returns the JSON object of a body, which the gate has read. Raises ConfigError."""
    body = parse_json((await receive()).get("body", b""))
    if not isinstance(body, dict):
        raise ConfigError("bad_json", "The body is no JSON object.", "Send an object.")
    return body


async def _models(runs: ClientRuns, program: Program | None) -> dict[str, Any]:
    """Lists the models, each also with the suffixes that ask for a search."""
    names = ["default", *(model.id for model in await runs.models(program))]
    ids = [f"{name}{suffix}" for name in names for suffix in ("", *SUFFIXES)]
    owned = {"object": "model", "created": 0, "owned_by": "searchloop", "type": "model"}
    rows = [{"id": id, **owned, "display_name": id} for id in ids]
    ends = {"first_id": ids[0], "last_id": ids[-1]}
    return {"object": "list", "data": rows, "has_more": False, **ends}


def _counted(wish: Wish) -> int:
    """Estimates the tokens of a request: a model's own counting is not asked for."""
    parts = [wish.system, *(m.content for m in wish.messages)]
    parts += [as_json([t.name, t.description, t.parameters]) for t in wish.tools]
    return sum(map(tokens, parts)) + 4 * len(wish.messages)
