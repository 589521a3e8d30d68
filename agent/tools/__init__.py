"""Tools: what a model may ask for. What of it may run is decided in `agent.dispatcher`.

A tool is a spec for the model and a function behind it, with what the dispatcher has to know of it:
what it does to the world, who vouches for it, whose text comes out of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from agent.schema import schema_of
from agent.seams import Emit
from agent.session import Session
from agent.sources import SourceTable
from agent.types import Effect, Mode, ToolResult, ToolSpec

_BLOCKING = ThreadPoolExecutor(32, thread_name_prefix="tool")

ALLOWED: Mapping[Mode, frozenset[Effect]] = {
    "ask": frozenset({"read", "network"}),
    "plan": frozenset({"read", "network"}),
    "agent": frozenset({"read", "network", "write", "exec"}),
}
CHANGING: frozenset[Effect] = ALLOWED["agent"] - ALLOWED["ask"]
Origin = Literal["ours", "user", "mcp"]
ServerState = Literal["ready", "waiting", "failed"]


def _nothing(names: Iterable[str]) -> None:
    """Nothing is unlisted where nobody listens."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may use beside its arguments. `reveal` offers unlisted tools from now on."""

    call_id: str
    sources: SourceTable
    emit: Emit
    reveal: Callable[[Iterable[str]], None] = _nothing


Run = Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult | str]]
Preview = Callable[[Mapping[str, Any]], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A spec for the model and the function behind it. `seconds` caps one call.

    `origin` says who vouches for it: built in, a function of the library's caller, or an MCP
    server, which `server` names. `private` results are the user's own data; `untrusted` ones are
    other people's text, which the dispatcher fences unless the tool has `fenced` it. `web` marks
    what the search switch turns off. `opens` names the argument that holds a URL to be read.
    `preview` shows what a call would change, as a unified diff; it raises ToolError for a call that
    cannot be done. `suspended` says why the tool may not run until the user has looked at it.
    A tool that is not `listed` is offered once another has revealed it.
    """

    spec: ToolSpec
    run: Run
    seconds: float = 60.0
    server: str | None = None
    origin: Origin = "user"
    private: bool = False
    untrusted: bool = False
    fenced: bool = False
    web: bool = False
    opens: str | None = None
    preview: Preview | None = None
    suspended: str | None = None
    listed: bool = True


class ToolSource(Protocol):
    """Brings the tools of a turn: those of a workspace, those of MCP servers."""

    async def tools(self, session: Session) -> Sequence[Tool]:
        """What there is for this session now. Never raises for one part that is broken."""

    def servers(self, session: Session) -> Mapping[str, ServerState]:
        """Those that could bring tools for this session; `tools` waits for a `waiting` one."""

    def notices(self, session: Session) -> Sequence[Mapping[str, str]]:
        """What the user should know of them: {code, message, remedy}, each once a session."""

    def secrets(self, workspace: str | None) -> Mapping[str, str]:
        """Texts of its configuration that must not leave, by the names that people know."""

    async def aclose(self) -> None:
        """Ends what it has started."""


def definition(tool: Tool) -> str:
    """What an approval of this tool is bound to: a SHA-256 over all that its user was shown."""
    spec = tool.spec
    known = [spec.name, spec.description, dict(spec.parameters), spec.effect, tool.server]
    text = json.dumps(known, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def tool(function: Callable[..., Any] | None = None, *, effect: Effect = "read") -> Any:
    """Makes a Tool of a function: name, schema and description come from its signature.

    An `async def` runs on the loop, a plain `def` on a thread. It returns text, or anything that
    JSON can hold.
    """
    if function is None:
        return lambda f: tool(f, effect=effect)
    spec = ToolSpec(
        function.__name__, inspect.cleandoc(function.__doc__ or ""), schema_of(function), effect
    )

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult | str:
        if inspect.iscoroutinefunction(function):
            value = await function(**arguments)
        else:
            loop = asyncio.get_running_loop()
            value = await loop.run_in_executor(_BLOCKING, lambda: function(**arguments))
        return value if isinstance(value, str | ToolResult) else json.dumps(value, default=str)

    return Tool(spec, run)
