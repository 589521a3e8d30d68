"""What comes with a question beside its words.

`Instructions` are stored with the turn: system text, options and a form of the answer. Options have
one name for all providers: `temperature` (0 to 2), `top_p` (0 to 1), `seed` (a whole number),
`max_tokens` (of one answer, 1 or more) and `stop` (one to four texts that end it). The form is a
JSON Schema, draft 2020-12 unless it names another, whose references stay inside it.

A program's own context, hooks and approval handler are not stored: the library sets `CALLER` before
it starts a run, whose task inherits it; a run that another process takes over has none of it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from typing import (
    Any,
    Generic,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from searchloop.agent.errors import ConfigError
from searchloop.agent.types import Finished, Request, StreamEvent, Streams, ToolCall, ToolResult

_LONGEST_SYSTEM, _LONGEST_SCHEMA, _STOPS = 100_000, 100_000, 4
_RANGES: Mapping[str, tuple[str, float, float]] = {
    "temperature": ("a number from 0 to 2", 0, 2),
    "top_p": ("a number from 0 to 1", 0, 1),
    "seed": ("a whole number", -(2**63), 2**63 - 1),
    "max_tokens": ("a whole number from 1", 1, 10**9),
    "stop": (f"a text, or a list of at most {_STOPS} texts", 0, 0),
}
OPTIONS = tuple(_RANGES)
_WHOLE = frozenset({"seed", "max_tokens"})


@dataclass(frozen=True, slots=True)
class Instructions:
    """`system` joins the system text, `options` and `schema` are checked; see `of`."""

    system: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls,
        system: str | None = None,
        options: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Self:
        """Checks what a user gave. Raises ConfigError that names what is wrong."""
        if len(system or "") > _LONGEST_SYSTEM:
            what = f"The system text has more than {_LONGEST_SYSTEM:,} characters."
            raise ConfigError("bad_system", what, "Shorten it.")
        given = {name: _option(name, value) for name, value in (options or {}).items()}
        return cls(system, given, None if schema is None else _schema(schema))

    def as_dict(self) -> dict[str, Any]:
        """Returns them as JSON."""
        return asdict(self)


def option_from(text: str) -> tuple[str, Any]:
    """Reads `key=value`, as a user types it. Raises ConfigError."""
    name, mark, value = text.partition("=")
    if not mark:
        what = f"{text[:60]!r} is not an option."
        raise ConfigError("bad_option", what, "Write key=value, for example temperature=0.2.")
    if name == "stop":
        return name, _option(name, value)
    try:
        return name, _option(name, json.loads(value))
    except ValueError:
        return name, _option(name, value)


def _option(name: str, value: Any) -> Any:
    """Returns the value of an option, stops always as a list. Raises ConfigError."""
    if name not in _RANGES:
        what = f"There is no option {str(name)[:60]!r}."
        raise ConfigError("bad_option", what, f"Choose from {', '.join(OPTIONS)}.")
    kind, least, most = _RANGES[name]
    if name == "stop":
        texts = [value] if isinstance(value, str) else value
        listed = isinstance(texts, Sequence) and 0 < len(texts) <= _STOPS
        if listed and all(isinstance(text, str) and text for text in texts):
            return list(texts)
    elif type(value) in ((int,) if name in _WHOLE else (int, float)) and least <= value <= most:
        return value
    raise ConfigError("bad_option", f"{name} cannot be {str(value)[:60]!r}.", f"It is {kind}.")


def _schema(schema: Any) -> Mapping[str, Any]:
    """Returns a schema that a validator can work with. Raises ConfigError."""
    from jsonschema.exceptions import SchemaError  # slow to import, seldom needed
    from jsonschema.validators import validator_for

    problem = ""
    try:
        if not isinstance(schema, Mapping):
            problem = "it is not a JSON object"
        elif len(json.dumps(schema)) > _LONGEST_SCHEMA:
            problem = f"it has more than {_LONGEST_SCHEMA:,} characters"
        elif outside := _unresolved(schema):
            problem = f"its reference {outside[:200]!r} leads nowhere inside it"
        else:
            checker = validator_for(schema)
            checker.check_schema(schema)
    except SchemaError as error:
        problem = f"at {error.json_path}, {error.message[:200]}"
    except (TypeError, ValueError, RecursionError) as error:
        problem = str(error)[:200]
    if problem:
        raise ConfigError("bad_schema", f"The schema is not valid: {problem}.", "Correct it.")
    return dict(schema)


def _unresolved(schema: Mapping[str, Any]) -> str | None:
    """Returns a reference that does not lead to a place in the schema, or None."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resolver = Registry[Any]().resolver_with_root(DRAFT202012.create_resource(schema))
    for reference in _references(schema):
        try:
            if not reference.startswith("#"):
                return reference
            resolver.lookup(reference)
        except Unresolvable:
            return reference
    return None


def _references(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        own = [v for k, v in value.items() if k in ("$ref", "$dynamicRef") and isinstance(v, str)]
        return own + [found for each in value.values() for found in _references(each)]
    if isinstance(value, list):
        return [found for each in value for found in _references(each)]
    return []


def misfit(text: str, schema: Mapping[str, Any]) -> str | None:
    """Says in half a sentence why a text is not JSON that fits the schema; None if it is."""
    from jsonschema.validators import validator_for
    from referencing import Registry

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON ({error})"
    checker = validator_for(schema)(schema, registry=Registry())
    try:
        errors = sorted(
            checker.iter_errors(value), key=lambda error: (error.json_path, str(error.validator))
        )
    except RecursionError:
        return "the schema refers to itself without end"
    if not errors:
        return None
    more = f", and {len(errors) - 1} more" if errors[1:] else ""
    return f"at {errors[0].json_path}, {errors[0].message[:300]}{more}"


def bare_json(text: str) -> str:
    """Removes blanks and the code fence that a model puts around its JSON."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") + 1 : -3].strip()
    return text


PLAIN = Instructions()


T = TypeVar("T")
Reply = tuple[Literal["once", "always", "folder", "deny"], Mapping[str, Any] | None]


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
    """`approve` gets the data of an `approval_requested` and decides."""

    context: Any = None
    hooks: Hooks | None = None
    approve: Callable[[Mapping[str, Any]], Awaitable[Reply]] | None = None

    def model(self, provider: Streams) -> Streams:
        """Returns the provider with the hooks around each step."""
        return _HookedModel(provider, self.hooks) if self.hooks else provider

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


CALLER: ContextVar[Caller] = ContextVar("caller", default=Caller())  # noqa: B039 - it is frozen


class _HookedModel:
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
    for name, hint in get_type_hints(function).items():
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
