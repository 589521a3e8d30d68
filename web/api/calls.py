"""Calls, replies, checked bodies, and the bridge from a handler's thread to the server's loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from searchloop.agent.errors import (
    AgentError,
    ConfigError,
    Conflict,
    ProviderError,
    StoreError,
    ToolError,
)
from searchloop.agent.run.undo import delete_session
from searchloop.agent.text import is_shallow
from searchloop.analysis.schema_check import problems_with
from searchloop.compose import Services
from searchloop.web.api.openapi import Whose
from searchloop.web.api.schemas import SCHEMAS
from searchloop.web.asgi import Header, Scope, Send
from searchloop.web.gate import Refusal, refuse
from searchloop.web.gate.access import Person

T = TypeVar("T")
_WAIT = 60.0  # seconds that a thread waits for the loop
_DEEPEST = 100  # levels of JSON
_NOT_FOUND = (
    *("no_session", "no_turn", "no_plan", "no_agent", "no_pull", "no_server", "no_summary"),
    *("no_tool", "no_attachment", "no_project", "no_program", "no_mermaid"),
)
_STATUS: Mapping[str, int] = {
    **dict.fromkeys(_NOT_FOUND, 404),
    "operators_only": 403,
    "method_not_allowed": 405,
    **dict.fromkeys(("busy", "nothing_to_approve", "agent_exists", "chats_undecided"), 409),
    **dict.fromkeys(("question_too_long", "attachment_too_large"), 413),
}
_KINDS: Mapping[type[AgentError], int] = {
    ConfigError: 400,
    ToolError: 400,
    Conflict: 409,
    ProviderError: 502,
    StoreError: 503,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A handler's answer: data for JSON, text or bytes of another kind, or a file to save."""

    data: Any = None
    status: int = 200
    file: str | None = None
    kind: str = "application/json"
    cookie: bytes = b""  # a Set-Cookie line


@dataclass(frozen=True, slots=True)
class Call:
    """A request as a handler sees it: path parameters, query, checked body, and who asks."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]
    person: Person = field(default_factory=Person)
    host: str = ""
    language: str = "en"  # `lang` of the query, or one that the client accepts

    @property
    def session(self) -> str:
        """The session in the path."""
        return self.path["id"]


Handler = Callable[[Call], Reply]


class LoopBridge:
    """Runs coroutines on the server's loop, where the runner lives, for handlers on threads."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Names the loop, once it runs."""
        self._loop = loop

    def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` there and waits for its result. Raises StoreError when it takes a minute."""
        if self._loop is None:
            work.close()
            raise StoreError("not_ready", "The server is still starting.", "Try again in a second.")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(_WAIT)
        except TimeoutError as error:
            future.cancel()
            words = f"searchloop did not get to this within {_WAIT:g} s."
            raise StoreError("overloaded", words, "Try again in a moment.") from error

    def do(self, work: Callable[[], T]) -> T:
        """Calls a plain function there and waits for its result."""

        async def call() -> T:
            return work()

        return self(call())


class Handlers:
    """The handlers of one part of the API. `_on_loop` runs coroutines of the runner."""

    def __init__(self, services: Services, on_loop: LoopBridge) -> None:
        self._services, self._log = services, services.log
        self._on_loop = on_loop

    def _delete_session(self, session: str) -> None:
        """Stops a session's run, then deletes everything of it. Raises Conflict if it is gone."""
        services = self._services
        self._on_loop(services.runner.cancel(session))
        parts = services.log, services.settings, services.backend
        self._on_loop(delete_session(*parts, session))


def status_of(error: AgentError) -> int:
    """Returns the HTTP status for this error."""
    known = next((status for kind, status in _KINDS.items() if isinstance(error, kind)), 500)
    return _STATUS.get(error.code, known)


async def refuse_error(
    error: AgentError, scope: Scope, send: Send, headers: tuple[Header, ...] = ()
) -> None:
    """Sends an error with its status."""
    told = (status_of(error), error.code, error.message, error.remedy, headers)
    await refuse(Refusal(*told), scope, send)


def check_right(whose: Whose, person: Person) -> None:
    """Raises ConfigError if a route concerns the whole server and is not for this person."""
    if (whose == "operator" and person.name) or (whose == "admin" and not person.admin):
        what = "This concerns the whole server, so it is not for everybody who uses it."
        remedy = "Ask the person who runs the server."
        raise ConfigError("operators_only", what, remedy)


def parse_number(text: str) -> int | None:
    """Returns the whole number that a part of an address names, or None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None


def checked_body(schema: str | None, raw: bytes) -> dict[str, Any]:
    """Parses a request's body. Raises ConfigError saying how it differs from the named schema."""
    if schema is None:
        return {}
    return checked(parse_json(raw) if raw.strip() else {}, schema)


def checked(value: Any, schema: str, where: str = "") -> dict[str, Any]:
    """Returns a copy of an object. Raises ConfigError saying how it differs from the schema."""
    problem = problems_with(value, SCHEMAS[schema], where)
    if problem:
        words = f"The request is not right: {problem}"
        raise ConfigError("bad_request", words, "GET /api/openapi.json describes every request.")
    return dict(value)


def parse_json(raw: bytes) -> Any:
    """Parses strict JSON: UTF-8, no NaN, no repeated keys, not too deep, no lone surrogates."""
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
        if not is_shallow(value, _DEEPEST):
            raise RecursionError
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        why = "it is compressed, or no whole UTF-8 text" if isinstance(error, UnicodeError) else why
        words = f"The body is not valid JSON: {why[:200]}."
        raise ConfigError("bad_json", words, "Send one JSON object.") from error
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
