"""Tools that a model may call, one module each, and the dispatcher that runs them.

Others may import: backend, dispatcher, open_page, present_plan, web_search, workspace.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, get_args, overload

from searchloop.agent.calls.caller import NOBODY, Caller, Context, context_of
from searchloop.agent.calls.schema import schema_of
from searchloop.agent.log.session import Session
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.types import Effect, Emit, Mode, ToolResult, ToolSpec
from searchloop.analysis.told import one_of

_BLOCKING = ThreadPoolExecutor(32, thread_name_prefix="tool")

ALLOWED: Mapping[Mode, frozenset[Effect]] = {
    "ask": frozenset({"read", "network"}),
    "plan": frozenset({"read", "network"}),
    "agent": frozenset({"read", "network", "write", "exec"}),
}
CHANGING: frozenset[Effect] = ALLOWED["agent"] - ALLOWED["ask"]
Origin = Literal["ours", "user", "mcp"]
ServerState = Literal["ready", "waiting", "failed"]
P = ParamSpec("P")
R = TypeVar("R")


Ask = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]


async def nobody(words: str, schema: Mapping[str, Any]) -> None:
    """Answers no question: nobody is there."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The context of a call. `reveal` offers unlisted tools, by name, from now on.

    `ask` puts a question to the user, with the JSON Schema of the answer; None is a no.
    """

    call_id: str
    sources: SourceTable
    emit: Emit
    reveal: Callable[[Iterable[str]], None] = lambda names: None
    caller: Caller = NOBODY
    ask: Ask = nobody


ToolFunction = Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolResult | str]]
Preview = Callable[[Mapping[str, Any]], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A spec for the model and the function behind it. `seconds` caps one call.

    `origin` says who vouches for it: built in, a function of the library's caller, or an MCP
    server, which `server` names. `private` results are the user's own data; `untrusted` ones are
    other people's text, which the dispatcher fences unless the tool has `fenced` it. `web` marks
    what the search switch turns off. `opens` names the argument that holds a URL to be read.
    `stays` tells whether a call reaches nothing beyond this machine; no text of others decides it.
    `preview` shows what a call would change, as a unified diff; it raises ToolError for a call that
    cannot be done. `suspended` says why the tool may not run until the user has looked at it.
    A tool that is not `listed` is offered once another has revealed it. `needs` is the type of the
    caller's context without which it cannot run.

        tool(stock).spec.parameters
    """

    spec: ToolSpec
    run: ToolFunction
    seconds: float = 60.0
    server: str | None = None
    origin: Origin = "user"
    private: bool = False
    untrusted: bool = False
    fenced: bool = False
    web: bool = False
    opens: str | None = None
    stays: Callable[[Mapping[str, Any]], Awaitable[bool]] | None = None
    preview: Preview | None = None
    suspended: str | None = None
    listed: bool = True
    needs: Any = None


@dataclass(frozen=True, slots=True)
class FunctionTool(Tool, Generic[P, R]):
    """A tool made of a function; a program may go on calling that."""

    function: Callable[P, R] = field(kw_only=True)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


class ToolSource(Protocol):
    """Brings the tools of a turn, such as those of a workspace or of MCP servers.

    A subclass that needs no servers has to define `tools` only.
    """

    async def tools(self, session: Session) -> Sequence[Tool]:
        """Returns the tools for this session now. Never raises for one part that is broken."""

    def servers(self, session: Session) -> Mapping[str, ServerState]:
        """Returns the servers that could bring tools; `tools` waits for a `waiting` one."""
        return {}

    def notices(self, session: Session) -> Sequence[Mapping[str, str]]:
        """Returns notices for the user: {code, message, remedy}, each once a session."""
        return ()

    def secrets(self, workspace: str | None) -> Mapping[str, str]:
        """Returns texts of its configuration that must not leave, by the names people know."""
        return {}

    async def aclose(self) -> None:
        """Ends what it has started."""
        return


def object_schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """Returns the JSON Schema of an object with these properties and no others."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def text_schema(description: str) -> dict[str, str]:
    """Returns the JSON Schema of a string."""
    return {"type": "string", "description": description}


def definition(tool: Tool) -> str:
    """Returns a SHA-256 over all that the user sees of a tool; an approval holds for it alone."""
    spec = tool.spec
    known = [spec.name, spec.description, dict(spec.parameters), spec.effect, tool.server]
    text = json.dumps(known, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@overload
def tool(function: Callable[P, R], *, effect: Effect = "read") -> FunctionTool[P, R]: ...


@overload
def tool(*, effect: Effect = "read") -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(function: Any = None, *, effect: Effect = "read") -> Any:
    """Makes a Tool of a function: name, schema and description come from its signature.

    An `async def` runs on the loop, a plain `def` on a thread. It returns text, or anything that
    JSON can hold. A parameter has any type that pydantic reads from JSON: text, numbers, lists,
    dates, enums, dataclasses, models; one of type `Context` gets the caller's. `effect` says what
    it does: "read", "network", or "write" and "exec", which need mode `agent` and an approval.
    Raises TypeError for a parameter that JSON cannot hold, and for what is no function or effect.

        @tool(effect="write")
        def order(item: str, count: Annotated[int, "In boxes of ten"] = 1) -> str:
            "Order an item from the supplier."
            return f"{count} of {item} are ordered."
    """
    if effect not in ALLOWED["agent"]:
        raise TypeError(f"tool() has no effect {effect!r}. {one_of(effect, get_args(Effect))}")
    if function is None:
        return lambda f: tool(f, effect=effect)
    if not inspect.isroutine(function):
        raise TypeError(f"tool() takes a function or a method, not {function!r:.80}")
    own, awaited = context_of(function), inspect.iscoroutinefunction(function)
    schema, read = schema_of(function)
    spec = ToolSpec(function.__name__, inspect.cleandoc(function.__doc__ or ""), schema, effect)

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult | str:
        given = read(arguments)
        if own:
            given[own[0]] = Context(context.caller.context, context.call_id)
        if awaited:
            value = await function(**given)
        else:
            loop = asyncio.get_running_loop()
            value = await loop.run_in_executor(_BLOCKING, lambda: function(**given))
        return value if isinstance(value, str | ToolResult) else json.dumps(value, default=str)

    return FunctionTool(spec, run, needs=own and own[1], function=function)
