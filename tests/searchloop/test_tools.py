"""What the caller brings along: tools with a context, hooks, handlers of approvals."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from searchloop import (
    Agent,
    AnswerError,
    AsyncAgent,
    ConfigError,
    Context,
    Hooks,
    Request,
    StoreError,
    Tool,
    ToolCall,
    ToolError,
    ToolResult,
    events,
    tool,
)
from searchloop.agent.types import Finished
from searchloop.testing import RecordedSearch, ScriptedModel, call, offline
from tests.agent.mcp.served import hostile, write
from tests.searchloop.both_faces import FACES, opened
from tests.tables import each_row


@dataclass
class Shop:
    """A context."""

    stock: dict[str, int]


class Counts(Protocol):
    """A context by its shape."""

    stock: dict[str, int]


def stock(item: str, shop: Context[Shop]) -> int:
    """How many of an item there are."""
    return shop.value.stock[item]


async def later(item: str, shop: Context[Shop]) -> str:
    """The same on the loop, with the name of the call."""
    return f"{shop.value.stock[item]} {shop.call_id[:5]}"


def any_shape(item: str, shop: Context[Counts]) -> int:
    """A protocol says what it needs."""
    return shop.value.stock[item]


def bare(item: str, shop: Context) -> int:  # type: ignore[type-arg]
    """Without a type, any context does."""
    return int(shop.value.stock[item])


@FACES
@pytest.mark.parametrize(
    ("function", "result"), [(stock, "12"), (later, "12 call_"), (any_shape, "12"), (bare, "12")]
)
def test_a_tool_gets_the_context_it_asks_for(
    face: str, function: Callable[..., Any], result: str, tmp_path: Path
) -> None:
    """The model neither sees the parameter nor can fill it."""
    name = function.__name__
    turns = (call(name, item="bolt", shop="mine"), call(name, item="bolt"), "12.")
    with opened(face, tmp_path, *turns, tools=[function]) as agent:
        got = list(agent.stream("How many?", context=Shop({"bolt": 12})))
        (spec,) = agent.model.requests[0].tools
    results = [e for e in got if isinstance(e, events.ToolResult)]
    assert list(spec.parameters["properties"]) == ["item"]
    assert [r.is_error for r in results] == [True, False]
    assert results[1].content == result


@FACES
def test_each_question_has_its_own_context(face: str, tmp_path: Path) -> None:
    """The agent's holds where a question brings none."""
    turns = [turn for _ in range(2) for turn in (call("stock", item="bolt"), "Ok.")]
    with opened(face, tmp_path, *turns, tools=[stock], context=Shop({"bolt": 1})) as agent:
        agent.ask("a")
        agent.ask("b", context=Shop({"bolt": 2}))
        results = [r.messages[-1].content for r in agent.model.requests[1::2]]
    assert results == ["1", "2"]


@FACES
@pytest.mark.parametrize("context", [None, {"bolt": 12}])
def test_a_wrong_context_is_told_before_anything_is_sent(
    face: str, context: object, tmp_path: Path
) -> None:
    """With the tool, the type it needs, and what there is."""
    with opened(face, tmp_path, "x", tools=[stock]) as agent:
        with pytest.raises(ConfigError, match="stock needs a context of type Shop"):
            agent.ask("hi", context=context)
        with pytest.raises(ConfigError, match="stock needs a context of type Shop"):
            list(agent.stream("hi", context=context))
        assert (agent.model.requests, agent.log.sessions()) == ([], [])


class Told(Hooks):
    """Keeps what it is told, in order."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def before_model(self, request: Request) -> None:
        """A plain function."""
        self.seen.append(f"asks {len(request.messages)}")

    async def after_model(self, request: Request, finished: Finished) -> None:
        """A coroutine."""
        self.seen.append(finished.stop_reason)

    async def before_tool(self, call: ToolCall) -> None:
        """With the arguments that run."""
        self.seen.append(f"{call.name} {dict(call.arguments)}")

    def after_tool(self, call: ToolCall, result: ToolResult) -> None:
        """With the whole result."""
        self.seen.append(result.content)


@FACES
def test_hooks_are_told_of_each_step_and_call(face: str, tmp_path: Path) -> None:
    """Of the caller's tools and of the built-in ones alike."""
    told, search = Told(), RecordedSearch({"https://a.example/": "Bolts."})
    turns = (call("stock", item="bolt"), call("web_search", query="bolts"), "12.")
    options = {"tools": [stock], "hooks": told, "context": Shop({"bolt": 12})}
    with opened(face, tmp_path, *turns, search_backend=search, **options) as agent:
        agent.ask("How many?", search="local")
    assert told.seen[:5] == ["asks 1", "tool_calls", "stock {'item': 'bolt'}", "12", "asks 3"]
    assert told.seen[6] == "web_search {'query': 'bolts'}"
    assert told.seen[-1] == "stop"
    assert search.queries == ["bolts"]


class Changes(Hooks):
    """Changes what it may, and tries what it may not."""

    def before_model(self, request: Request) -> Request:
        """The switch and the tools stay."""
        return replace(request, system=request.system + " In verse.", tools=(), model="other")

    def before_tool(self, call: ToolCall) -> None:
        """No nuts."""
        if call.arguments["item"] == "nut":
            raise ToolError("no_nuts", "Nuts are not for sale.")

    def after_tool(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Hides the number."""
        return replace(result, content="some")


@FACES
def test_hooks_change_refuse_and_replace(face: str, tmp_path: Path) -> None:
    """System text and results may be replaced, calls refused; the rest is not theirs."""
    turns = ([call("stock", item="bolt"), call("stock", item="nut")], "Some.")
    options = {"tools": [stock], "hooks": Changes(), "context": Shop({"bolt": 1, "nut": 2})}
    with opened(face, tmp_path, *turns, **options) as agent:
        agent.ask("How many?")
        first, second = agent.model.requests
    assert first.system.endswith("In verse.")
    assert (first.model, [t.name for t in first.tools]) == ("default", ["stock"])
    assert [m.content for m in second.messages[-2:]] == ["some", "Nuts are not for sale."]


class Stops(Hooks):
    """Ends the answer."""

    def before_model(self, request: Request) -> None:
        """Out of money."""
        raise StoreError("no_credit", "The account is empty.", "Fill it.")


@FACES
def test_an_error_of_a_hook_ends_the_answer(face: str, tmp_path: Path) -> None:
    """In its own words."""
    with opened(face, tmp_path, "x", hooks=Stops()) as agent, pytest.raises(AnswerError) as caught:
        agent.ask("hi")
    assert (caught.value.code, caught.value.remedy) == ("no_credit", "Fill it.")
    assert agent.model.requests == []


def _order() -> tuple[Tool, list[int]]:
    made: list[int] = []

    @tool(effect="write")
    def order(count: int) -> str:
        """Orders bolts."""
        made.append(count)
        return "Ordered."

    return order, made


async def _coroutine(asked: events.ApprovalRequested) -> bool:
    return asked.arguments["count"] < 50


HANDLERS: list[tuple[Callable[[events.ApprovalRequested], Any], list[int]]] = [
    (lambda asked: asked.name == "order", [20, 20]),
    (lambda asked: False, []),
    (lambda asked: "once", [20, 20]),
    (lambda asked: "deny", []),
    (lambda asked: {"count": 5}, [5, 5]),
    (_coroutine, [20, 20]),
]


@FACES
@pytest.mark.parametrize(("handler", "made"), HANDLERS, ids=range(len(HANDLERS)))
def test_a_handler_decides(
    face: str,
    handler: Callable[[events.ApprovalRequested], bool | Awaitable[bool]],
    made: list[int],
    tmp_path: Path,
) -> None:
    """A yes, a no, a decision, or other arguments; plain or as a coroutine."""
    order, ordered = _order()
    turns = (call("order", count=20), "Done.", call("order", count=20), "Done.")
    with opened(face, tmp_path, *turns, tools=[order], mode="agent", approve=handler) as agent:
        agent.ask("Order bolts.")
        kinds = [event.type for event in agent.stream("Order bolts.")]
        assert kinds.index("approval_requested") < kinds.index("approval_decided")
    assert ordered == made


@FACES
def test_always_is_asked_once_a_chat(face: str, tmp_path: Path) -> None:
    """The same call runs again without a question; another one does not."""
    order, ordered = _order()
    asked: list[int] = []

    def handler(request: events.ApprovalRequested) -> str:
        asked.append(request.arguments["count"])
        return "always"

    turns = [turn for n in (1, 1, 2) for turn in (call("order", count=n), "Done.")]
    with opened(face, tmp_path, *turns, tools=[order], mode="agent", approve=handler) as agent:
        chat = agent.chat()
        for _ in range(3):
            chat.ask("Order bolts.")
    assert (asked, ordered) == ([1, 2], [1, 1, 2])


@FACES
def test_a_broken_handler_runs_nothing(face: str, tmp_path: Path) -> None:
    """It fails closed, and the answer says that it failed."""
    order, ordered = _order()

    def handler(request: events.ApprovalRequested) -> bool:
        return bool(request.arguments["colour"])

    turns = (call("order", count=20), "Done.")
    options = {"tools": [order], "mode": "agent", "approve": handler}
    with (
        opened(face, tmp_path, *turns, **options) as agent,
        pytest.raises(AnswerError, match="KeyError") as caught,
    ):
        agent.ask("Order bolts.")
    assert (caught.value.code, ordered) == ("internal", [])


def test_without_a_handler_nothing_that_changes_runs(tmp_path: Path) -> None:
    """The default declines; the program itself calls the function as it is."""
    order, ordered = _order()
    turns = (call("order", count=20), "Not done.")
    with opened("Agent", tmp_path, *turns, tools=[order], mode="agent") as agent:
        assert agent.ask("Order bolts.").text == "Not done."
    assert ordered == []
    assert (order(count=20), order.spec.name) == ("Ordered.", "order")


@pytest.mark.parametrize("way", ["plain", "async", "stream", "awaited"])
def test_a_tool_may_ask_an_agent(way: str, tmp_path: Path) -> None:
    """A plain function and one that awaits may; a coroutine that blocks is told, and not stuck."""
    inner = AsyncAgent(offline(tmp_path / "inner"), model=ScriptedModel("Inside."))

    def plain() -> str:
        """Asks on a thread."""
        return str(agent.ask("Inner?").text)

    async def blocks() -> str:
        """Asks on the agent's own loop."""
        if way == "stream":
            return "".join(agent.stream("Inner?").text())
        return str(agent.ask("Inner?").text)

    async def awaits() -> str:
        """Asks another agent."""
        return (await inner.ask("Inner?")).text

    function = {"plain": plain, "awaited": awaits}.get(way, blocks)
    own = ("Inside.",) if way == "plain" else ()
    turns = (call(function.__name__), *own, lambda request: request.messages[-1].content)
    with opened("Agent", tmp_path, *turns, tools=[function]) as agent:
        said = agent.ask("Outer?").text
    asyncio.run(inner.aclose())
    assert said == "Inside." if way in ("plain", "awaited") else "wait for itself" in said


@FACES
def test_a_program_brings_mcp_servers(face: str, tmp_path: Path) -> None:
    """They take the place of the user's file, and nothing is written; one that fails is named."""
    write(tmp_path, {"other": hostile()})
    works = {**hostile(), "command": Path(sys.executable), "effect": "read"}
    given = {"a": works, "b": {"command": "/nowhere", "args": (), "effect": "read"}}
    with opened(face, tmp_path, call("mcp_a_echo", text="5"), "5.", "6.", mcp=given) as agent:
        stream = agent.stream("How much is 2 and 3?")
        got, answers = list(stream), [stream.answer, agent.ask("And 4?")]
        offered = {tool.name.split("_")[1] for tool in agent.model.requests[0].tools}
    assert ["you said 5" in e.content for e in got if isinstance(e, events.ToolResult)] == [True]
    (told,) = [e for e in got if isinstance(e, events.Notice)]
    assert "'b'" in told.message
    assert [told.message in notice for answer in answers for notice in answer.notices] == [True] * 2
    assert offered == {"a"}
    assert [p.name for p in tmp_path.glob("mcp*")] == ["mcp.json"]


@each_row(
    "given",
    [{"comand": "x"}, {"command": "x", "url": "http://x.test"}, {"command": "${NONE}"}, "x"],
)
def test_a_server_that_cannot_be_used_is_named(given: Any, tmp_path: Path) -> None:
    """When the agent is made, as every other part."""
    with pytest.raises(ConfigError, match=r"MCP server 'a'(.|\n)*command"):
        Agent(offline(tmp_path), mcp={"a": given})
