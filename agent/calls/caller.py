"""What a program gives with a question and nothing stores: a context, hooks, an approval handler.

The library passes a `Caller` to the run that it starts. A run that another process takes over has
none of it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from searchloop.agent.errors import ConfigError
from searchloop.agent.types import Finished, Request, StreamEvent, Streams, ToolCall, ToolResult

T = TypeVar("T")
Decision = Literal["once", "always", "folder", "deny"]
Reply = tuple[Decision, Mapping[str, Any] | None]
Approval = bool | Decision | Mapping[str, Any]
ApprovalHandler = Callable[[Any], Approval | Awaitable[Approval]]


@dataclass(frozen=True, slots=True)
class Context(Generic[T]):
    """What a tool gets that has a parameter of this type; the model does not see the parameter.

    `value` is the `context=` of the question or of the agent, `call_id` names the call. A question
    without a context of type `T` raises ConfigError before anything is sent.

        @tool
        def stock(item: str, shop: Context[Shop]) -> int:
            "How many of an item there are."
            return shop.value.count(item)

        agent.ask("How many bolts?", context=Shop())
    """

    value: T
    call_id: str = ""


class Hooks:
    """Is told before and after each step of the model and each call of a tool; override what you
    need, as `def` or `async def`.

    A plain `def` runs on the agent's loop: keep it short. An error that a hook raises ends the
    answer, but for a ToolError of `before_tool`.

        class Log(Hooks):
            def before_tool(self, call):
                print(call.name, dict(call.arguments))

        Agent(hooks=Log())
    """

    def before_model(self, request: Request) -> Awaitable[Request | None] | Request | None:
        """May return another request, of which `system` and `messages` are used."""

    def after_model(self, request: Request, finished: Finished) -> Awaitable[None] | None:
        """Gets the request, and `finished`: the whole message, why it ended, and its usage."""

    def before_tool(self, call: ToolCall) -> Awaitable[None] | None:
        """Comes after the approval; raise ToolError, in words for the model, to refuse the call."""

    def after_tool(
        self, call: ToolCall, result: ToolResult
    ) -> Awaitable[ToolResult | None] | ToolResult | None:
        """May return another result; a tool that raised has none."""


class Caller(NamedTuple):
    """`approve` gets the data of an `approval_requested` and decides.

    `question` asks the user what a tool wants to know: a `UserQuestions` of the run.
    """

    context: Any = None
    hooks: Hooks | None = None
    approve: Callable[[Mapping[str, Any]], Awaitable[Reply]] | None = None
    question: Callable[..., Awaitable[Mapping[str, Any] | None]] | None = None

    def tool(self, tool: T) -> T:
        """Returns an `agent.tools.Tool` with the hooks around each call."""
        hooks, inner = self.hooks, tool
        if hooks is None:
            return tool

        async def run(arguments: Mapping[str, Any], context: Any) -> ToolResult:
            own: Any = inner
            call = ToolCall(context.call_id, own.spec.name, arguments)
            await settled(hooks.before_tool(call))
            value = await own.run(arguments, context)
            result = ToolResult(call.id, call.name, value) if isinstance(value, str) else value
            changed: ToolResult | None = await settled(hooks.after_tool(call, result))
            return changed or result

        return replace(tool, run=run)  # type: ignore[type-var]


NOBODY = Caller()


class HookedModel:
    """A provider with the hooks around each step."""

    def __init__(self, provider: Streams, hooks: Hooks) -> None:
        self._provider, self._hooks = provider, hooks

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        wanted: Request | None = await settled(self._hooks.before_model(request))
        if wanted:  # the search switch, tools and limits are not a hook's
            request = replace(request, system=wanted.system, messages=wanted.messages)
        async with aclosing(self._provider.stream(request)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    await settled(self._hooks.after_model(request, event))
                yield event


async def settled(value: Any) -> Any:
    """Awaits a value where it can be awaited."""
    return await value if inspect.isawaitable(value) else value


async def called(function: Callable[..., Any], *args: Any) -> Any:
    """Calls a function of the program: an `async def` here, a plain one on a thread."""
    if inspect.iscoroutinefunction(inspect.unwrap(function)):
        return await function(*args)
    return await settled(await asyncio.to_thread(function, *args))


def context_of(function: Callable[..., Any]) -> tuple[str, Any] | None:
    """Returns the parameter of a function that takes the context, and the type that it needs."""
    try:
        hints = get_type_hints(function)
    except NameError as error:
        what = f"{function.__name__}: a type of it is not known where it is made: {error}"
        raise TypeError(what) from None
    for name, hint in hints.items():
        if name != "return" and Context in (hint, get_origin(hint)):
            return name, next(iter(get_args(hint)), object)
    return None


def check_context(name: str, needs: Any, context: Any) -> None:
    """Raises ConfigError if a tool `needs` another type than that of the context."""
    kind, fits = get_origin(needs) or needs, context is not None
    if needs is not Any and isinstance(kind, type) and not getattr(kind, "_is_protocol", False):
        fits = isinstance(context, kind)
    if fits:
        return
    wanted = getattr(needs, "__name__", str(needs))
    got = "none" if context is None else f"a {type(context).__name__}"
    what = f"The tool {name} needs a context of type {wanted}, and there is {got}."
    raise ConfigError("wrong_context", what, "Pass it as context=... with the question or Agent.")


def handled_by(handler: ApprovalHandler) -> Callable[[Mapping[str, Any]], Awaitable[Reply]]:
    """Returns the handler with its answers as decisions."""

    async def decide(request: Mapping[str, Any]) -> Reply:
        said: Approval = await called(handler, request)
        if isinstance(said, Mapping):
            return "once", said
        return ("once" if said else "deny") if isinstance(said, bool) else said, None

    return decide
