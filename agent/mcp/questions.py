"""Questions of a server to the user in the middle of a call (MCP "elicitation").

Newer servers answer a call with what they need to know, and get the same call again with it; older
ones send a request of their own. Only forms are shown: an address that a server wants opened is
declined. So is, with an error that says why, the use of the user's model ("sampling").

Spec: https://modelcontextprotocol.io/specification/draft/client/elicitation
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from searchloop.agent.calls.instructions import Instructions
from searchloop.agent.errors import ConfigError, ToolError
from searchloop.agent.mcp.definitions import Unusable, plain_schema
from searchloop.agent.mcp.server import line
from searchloop.agent.tools import Ask

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult, ElicitResult

_ROUNDS = 10  # of one call
_PAUSE = 0.25  # seconds before a call is repeated that asks nothing
_WORDS, _FIELD = 1000, 200  # characters
_MOST = 40  # fields of one question


async def called(
    client: Client, tool: str, arguments: Mapping[str, Any], questions: Questions
) -> CallToolResult:
    """Calls a tool, as often as its questions are answered. Raises ToolError."""
    from mcp import types
    from pydantic import TypeAdapter

    either: Any = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
    params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
    for _ in range(_ROUNDS):
        # `call_tool` would check results against the server's own schema, with regular
        # expressions of the server's choice.
        request = types.CallToolRequest(params=params)
        result: Any = await client.session.send_request(request, either)
        if isinstance(result, types.CallToolResult):
            return result
        answers = {}
        for name, wanted in (result.input_requests or {}).items():
            if not isinstance(wanted, types.ElicitRequest):
                raise questions.refusal(wanted.method)
            answers[name] = await questions.asked(wanted.params)
        if not answers:
            await asyncio.sleep(_PAUSE)
        update = {"input_responses": answers, "request_state": result.request_state}
        params = params.model_copy(update=update)
    words = f"{questions.server} asked more than {_ROUNDS} times in one call."
    raise ToolError("mcp_bad_answer", words, "Go on without it.")


class Questions:
    """Those of one call."""

    def __init__(self, server: str, ask: Ask) -> None:
        self.server, self._ask = server, ask
        self._open = set[asyncio.Future[Any]]()
        self._over = False

    async def asked(self, params: Any) -> ElicitResult:
        """Returns the user's answer, or that there is none."""
        from mcp.types import ElicitResult

        if params.mode != "form":
            return self.no()
        try:
            schema = plain_schema(params.requested_schema)
            Instructions.of(None, {}, schema)  # whose patterns take no time
        except (Unusable, ConfigError):
            return self.no()
        if len(schema["properties"]) > _MOST:
            return self.no()
        fields = "; ".join(_field(*each) for each in schema["properties"].items())
        words = f"{self.server} asks: {line(params.message, _WORDS)} {fields}".strip()
        waiting = asyncio.ensure_future(self._ask(words, schema))
        self._open.add(waiting)
        try:
            answer = await waiting
        except asyncio.CancelledError:
            if not self._over:
                raise
            answer = None  # the call is over
        return self.no() if answer is None else ElicitResult(action="accept", content=dict(answer))

    def no(self) -> ElicitResult:
        """Returns the answer of somebody who gives none."""
        from mcp.types import ElicitResult

        return ElicitResult(action="decline")

    def refusal(self, method: str) -> ToolError:
        """Returns the error of a call that wants something else than an answer."""
        wants = "the use of your model" if method.startswith("sampling") else line(method, 80)
        what = f"{self.server} wants {wants} for this, which searchloop does not lend to servers."
        return ToolError("mcp_refused", what, "Go on without it.")

    def close(self) -> None:
        """Ends the questions that are open."""
        self._over = True
        for each in self._open:
            each.cancel()


def _field(name: str, its: Mapping[str, Any]) -> str:
    """Describes a field: its name, what it is, and what may be chosen."""
    about = its.get("description") or its.get("title") or ""
    one = its.get("items") or its
    arms = one.get("oneOf") or one.get("anyOf") or ()
    named = [f"{arm.get('const')}: {arm.get('title')}" for arm in arms if "const" in arm]
    chosen = ", ".join(map(str, one.get("enum") or named))
    return line(f"{name}: {about} {f'({chosen})' if chosen else ''}", _FIELD)
