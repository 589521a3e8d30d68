"""Tools: what may run in which mode, and whatever goes wrong becomes a result."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from searchloop.agent.errors import ToolError
from searchloop.agent.log.events import result_data
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool, tool
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.tools.dispatcher import CallGuard, Fence, Toolset
from searchloop.agent.tools.open_page import open_page
from searchloop.agent.tools.web_search import web_search
from searchloop.agent.types import Effect, Mode, NativeSearch, ToolCall, ToolResult
from tests.agent.guard.guarding import guard, made
from tests.agent.scripted import Memory, SearchApp, call, found, page
from tests.tables import each_row


@tool
async def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    return text * times


@tool
def thread_name() -> str:
    """A plain function, which may block."""
    return threading.current_thread().name


@tool
async def broken(how: str) -> Any:
    """Fails in the way it is told."""
    if how == "cancelled":
        raise asyncio.CancelledError
    if how == "tool error":
        raise ToolError("closed", "The shop is closed.", "Come back at nine.")
    if how == "half a character":
        return "a\ud83d"
    if how == "circle":
        circle: list[Any] = []
        circle.append(circle)
        return circle
    if how == "stall":
        await asyncio.Event().wait()
    raise RuntimeError("out of tea")


def run(
    *made: ToolCall,
    tools: tuple[Tool, ...] = (echo, broken, thread_name),
    mode: Mode = "ask",
    table: SourceTable | None = None,
    memory: Memory | None = None,
    checked: CallGuard | None = None,
) -> list[ToolResult]:
    """The results of these calls."""
    toolset = Toolset(tools, mode, SourceTable() if table is None else table, guard=checked)
    return asyncio.run(toolset.call_all(made, memory or Memory()))


@each_row(
    ("mode", "effect", "runs"),
    [
        ("ask", "read", True),
        ("ask", "network", True),
        ("ask", "write", False),
        ("ask", "exec", False),
        ("plan", "read", True),
        ("plan", "write", False),
        ("plan", "exec", False),
        ("agent", "write", True),
        ("agent", "exec", True),
    ],
)
def test_the_mode_decides_below_the_model(mode: Mode, effect: Effect, runs: bool) -> None:
    """A tool whose effect the mode forbids is not offered, and naming it anyway does not run it."""
    act, ran = made(effect=effect)
    offered = Toolset([act], mode, SourceTable()).specs
    (result,) = run(call("act"), tools=(act,), mode=mode)
    assert (bool(offered), bool(ran), result.is_error) == (runs, runs, not runs)
    assert runs or f"not allowed in {mode} mode" in result.content


def test_the_first_tool_of_one_name_counts() -> None:
    """The model is offered the name once."""
    made = [replace(echo, spec=echo.spec._replace(description=each)) for each in "abc"]
    assert Toolset(made, "ask", SourceTable()).specs == (made[0].spec,)


def test_results_come_in_call_order() -> None:
    """Calls run together: the first to be asked is answered first, even if it is the last done."""
    turns: list[str] = []
    second_done = asyncio.Event()

    @tool
    async def slow() -> str:
        """Waits for the other."""
        await second_done.wait()
        turns.append("slow")
        return "slow"

    @tool
    async def quick() -> str:
        """Lets the other go on."""
        turns.append("quick")
        second_done.set()
        return "quick"

    memory = Memory()
    results = run(call("slow", 1), call("quick", 2), tools=(slow, quick), memory=memory)
    assert turns == ["quick", "slow"]
    assert [(r.call_id, r.content) for r in results] == [("call-1", "slow"), ("call-2", "quick")]
    assert [d["call_id"] for d in memory.of("tool_result")] == ["call-2", "call-1"]
    assert [d["effect"] for d in memory.of("tool_call")] == ["read", "read"]


@each_row(
    ("made", "words"),
    [
        (call("nothing"), "There is no tool called 'nothing'. Tools you can call: broken, echo"),
        (call("echo"), "'text' is missing"),
        (call("echo", text=["a"]), "text must be a string, not an array"),
        (call("echo", text="a", times="two"), "times must be a whole number, not a string"),
        (call("ecco"), "Did you mean echo?"),
        (call("echo"), "It takes text (string, required), times (integer)."),
        (call("echo", text="a", colour="red"), "there is no 'colour'; it takes text, times"),
        (replace(call("echo", text="a"), problem="cut off"), "could not be read: cut off"),
        (call("broken", how="x"), "broken failed: RuntimeError: out of tea"),
        (call("broken", how="tool error"), "The shop is closed. Come back at nine."),
        (call("broken", how="cancelled"), "something in it was cancelled"),
        (call("broken", how="circle"), "ValueError"),
    ],
)
def test_whatever_goes_wrong_is_a_result(made: ToolCall, words: str) -> None:
    """Unknown name, bad arguments, exceptions: an error result in words, and the others go on."""
    alone = run(made)
    together = run(replace(made, id="x"), call("echo", text="fine"))
    assert alone[0].is_error
    assert words in alone[0].content
    assert [r.is_error for r in together] == [True, False]


def test_a_stalled_tool_is_given_up() -> None:
    """A call that gives nothing within its time is answered with that."""
    quick = replace(broken, seconds=0.01)
    (result,) = run(call("broken", how="stall"), tools=(quick,))
    assert result.is_error
    assert "no result within 0.01 seconds" in result.content


def test_half_a_character_is_mended() -> None:
    """What a tool returns can always be sent on."""
    (result,) = run(call("broken", how="half a character"))
    assert result.content == "a\ufffd"


def test_a_blocking_function_runs_on_a_thread() -> None:
    """A plain `def` does not stop the loop."""
    (result,) = run(call("thread_name"))
    assert result.content.startswith("tool")


@pytest.mark.parametrize("together", [False, True])
async def test_a_stop_reaches_a_tool_and_is_not_lost_in_it(together: bool) -> None:
    """Cancelling ends the run even if the tool swallows its cancellation."""
    started = asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Will not be stopped."""
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "I go on"
        return "never"

    made = (call("stubborn", 1), call("echo", 2, text="x"))[: 2 if together else 1]
    toolset = Toolset((stubborn, echo), "ask", SourceTable())
    memory = Memory()
    task = asyncio.create_task(toolset.call_all(made, memory))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "call-1" not in [d["call_id"] for d in memory.of("tool_result")]


def web(app: SearchApp) -> tuple[Tool, Tool]:
    """Both web tools on this backend."""
    backend, fence = LocalBackend(app), Fence("mark")
    return web_search(backend, fence), open_page(backend, fence)


def opened(answer: Any, url: str = "https://a.example/") -> tuple[ToolResult, SourceTable, Memory]:
    """What becomes of opening an address that the chat has met."""
    table, memory = SourceTable(), Memory()
    table.see([url])
    tools = web(SearchApp({"/api/open-page": answer}))
    (result,) = run(call("open_page", url=url), tools=tools, table=table, memory=memory)
    return result, table, memory


def test_search_results_are_numbered_and_fenced() -> None:
    """The model reads numbers, titles and addresses inside a fence; the table has the same."""
    rows = found("https://a.example/", "https://b.example/")
    rows["results"][1]["invisible"] = 3
    app = SearchApp({"/api/web-search": rows})
    table, memory = SourceTable(), Memory()
    (result,) = run(
        call("web_search", query=" tide  tables "), tools=web(app), table=table, memory=memory
    )
    assert "[2] Page https://b.example/" in result.content
    assert result.content.count("mark") == 2
    assert [s.n for s in result.sources] == [1, 2]
    assert table.met("https://b.example/")
    assert app.requests == [("/api/web-search", {"query": "tide tables", "max_results": 6})]
    (finished,) = memory.of("search_finished")
    assert (finished["by"], finished["status"], finished["results"]) == ("local:tin", "ok", 2)
    assert finished["invisible"] == 3


def test_a_backend_in_trouble_is_told() -> None:
    """An error answer of the backend reaches the model in its words, and the log as a failure."""
    trouble = {"error": {"code": "busy", "message": "Too many.", "remedy": "Wait."}}
    app = SearchApp({"/api/web-search": trouble}, status="503 Busy")
    memory = Memory()
    (result,) = run(call("web_search", query="x"), tools=web(app), memory=memory)
    assert (result.is_error, result.content) == (True, "Too many. Wait.")
    assert memory.of("search_finished")[0]["status"] == "error"


@pytest.mark.parametrize("reader", ["local", "elsewhere"])
def test_who_was_told_an_address_is_told(reader: str) -> None:
    """A page that a service read is marked in the log, as is what nobody could see in it."""
    answer = {**page("text")({"url": "https://a.example/"}), "reader": reader, "invisible": 7}
    *_, memory = opened(answer)
    assert memory.of("page_opened")[0].get("reader", "local") == reader
    assert memory.of("page_opened")[0]["invisible"] == 7


def test_pages_are_held_to_the_options_of_the_turn() -> None:
    """The turn's domains go along with each page, and no argument replaces them."""
    app = SearchApp({"/api/open-page": page("text")})
    table = SourceTable()
    table.see(["https://a.example/"])
    options = NativeSearch(allowed_domains=("a.example",), blocked_domains=("b.a.example",))
    tools = (open_page(LocalBackend(app), Fence("mark"), options),)
    made = call("open_page", url="https://a.example/")
    run(made, tools=tools, table=table)
    ((_, asked),) = app.requests
    assert asked["allowed_domains"] == ["a.example"]
    assert asked["blocked_domains"] == ["b.a.example"]


SPELLED = (
    "https://asked.example/a?utm_source=secret&b=1",
    "HTTPS://ASKED.example:443/a?b=1",
    "https://asked.example./a?&&&&b=1",
    "https://asked.example/a?b=1#secret",
    "  https://asked.example/a?b=1 ",
)


@pytest.mark.parametrize("url", SPELLED)
def test_a_page_is_opened_as_it_was_met(url: str) -> None:
    """Spellings of one address differ in what a model could write into them: none of it leaves."""
    app = SearchApp({"/api/open-page": page("text", links=["https://linked.example/"])})
    table = SourceTable()
    table.see(["https://asked.example/a?b=1"])
    checked = guard(table, approve="never")
    (opened,) = run(call("open_page", url=url), tools=web(app), table=table, checked=checked)
    assert not opened.is_error
    assert [asked["url"] for _, asked in app.requests] == ["https://asked.example/a?b=1"]
    assert table.met("https://linked.example/")


def test_a_page_is_kept_where_it_stands() -> None:
    """`details.text` gives the page's own words inside the fence, to check quotes against."""
    result, table, _ = opened(page("Wörter <<mark end>> und mehr"))
    start, end = result_data(result)["details"]["text"]
    assert result.content[start:end] == table.text("https://a.example/")
    assert [(s.n, s.state) for s in result.sources] == [(1, "opened")]


def test_no_text_can_close_its_fence() -> None:
    """Each fence has a mark that nobody can know before."""
    marks = {Fence().mark for _ in range(50)}
    assert len(marks) == 50
    assert all(len(mark) >= 12 for mark in marks)


def test_a_step_of_many_calls_is_bounded() -> None:
    """Every call gets an answer; those beyond the hundredth are refused, not run."""
    act, ran = made(effect="read")
    calls = [call("act", n, text=str(n)) for n in range(130)]
    results = run(*calls, tools=(act,))
    assert [r.call_id for r in results] == [c.id for c in calls]
    assert {one["text"] for one in ran} == {*map(str, range(100))}
    assert [r.is_error for r in results] == [False] * 100 + [True] * 30
