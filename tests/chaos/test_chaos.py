"""Whatever a provider's server does, a question ends well or in one clear error.

Every provider meets every fault, through the runner, the log and the transport as they are. After
each fault the next question of the same session is answered, and no request breaks a vendor's rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent import providers
from searchloop.agent.tools import Tool, tool
from searchloop.agent.tools.dispatcher import MOST_CALLS
from searchloop.agent.types import Limits
from tests.chaos import dialects
from tests.chaos.dialects import PAGE, Asked, Dialect
from tests.chaos.house import IMPATIENT, PATIENT, House, Stage, reply
from tests.fakes import End, Reply

PIECES = ("High water is", " at 07:40 – så er det sagt 🌊", " and at 20:05.")
ANSWER = "".join(PIECES)
NEXT = "Low water is at 13:50."
ONCE, TRIES = 1, 3
TYPE = "content-type"
EVERY = pytest.mark.parametrize("name", dialects.names())


@pytest.fixture(scope="module")
def server() -> Iterator[Stage]:
    """The server that all faults come from."""
    server = Stage()
    with server:
        yield server


@pytest.fixture
def dialect(name: str) -> Dialect:
    """The provider's wire format, with ids of its own."""
    return dialects.load(name)


@pytest.fixture
def stage(server: Stage, dialect: Dialect) -> Stage:
    """That server, as one of this provider."""
    server.aside = dialect.aside
    return server


@dataclass(frozen=True)
class Fault:
    """What the server does, and what must come of it.

    `replies` ends with what is given again and again. `ends`: "answer" = the whole answer, once;
    "failed" = one error and no answer; "either" = one of these. `requests`: how many are sent.
    """

    name: str
    replies: Callable[[Dialect], Sequence[Reply]]
    ends: str
    requests: int | None = None
    said: str = ""
    timeouts: Any = PATIENT


def good(dialect: Dialect, **more: Any) -> Reply:
    """The answer to the question, whole."""
    return reply(dialect, dialect.text(*PIECES, thinking=more.pop("thinking", "")), **more)


def first(make: Callable[[Dialect], Reply], name: str) -> Fault:
    """Once, and then all is well: the user never knows."""
    return Fault(name, lambda d: [make(d), good(d)], "answer", 2)


def always(make: Callable[[Dialect], Reply], name: str, requests: int | None = TRIES) -> Fault:
    """Every time: one error, after as many tries as make sense."""
    return Fault(name, lambda d: [make(d)], "failed", requests)


def status(number: int, **headers: str) -> Callable[[Dialect], Reply]:
    """An error answer, with these headers (`_` for `-`)."""
    fields = {key.replace("_", "-"): value for key, value in headers.items()}
    usual = {"retry-after": "1"} if number == 429 and not fields else {}
    return lambda d: d.error(number, fields or (usual if d.names_wait else {}))


def raw(data: bytes) -> Callable[[Dialect], Reply]:
    """Bytes that need not be HTTP."""
    return lambda d: Reply([data], raw=True)


def page(number: int) -> Callable[[Dialect], Reply]:
    """What a proxy shows instead of an answer."""
    html = [b"<html><body><h1>Bad gateway</h1></body></html>"]
    return lambda d: Reply(html, number, {TYPE: "text/html"})


def before(end: End) -> Callable[[Dialect], Reply]:
    """The connection ends before the first byte of an answer."""
    return lambda d: Reply(before=end)


Change = Callable[[Dialect, list[bytes]], Sequence[bytes]]


def body(
    name: str, change: Change, ends: str = "answer", requests: int | None = ONCE, **more: Any
) -> Fault:
    """The good answer, changed; then all is well."""
    own = {key: more.pop(key) for key in ("said", "timeouts") if key in more}
    return Fault(
        name,
        lambda d: [reply(d, change(d, d.text(*PIECES)), **more), good(d)],
        ends,
        requests,
        **own,
    )


def after_text(name: str, rest: Callable[[Dialect], Sequence[bytes]], **more: Any) -> Fault:
    """The answer up to its first visible piece, and then this: kept, and told."""
    return body(name, lambda d, e: [*_after_text(d, e), *rest(d)], "failed", said=PIECES[0], **more)


def _before_text(d: Dialect, events: list[bytes]) -> list[bytes]:
    """What comes before the first visible piece."""
    shown = next(i for i, event in enumerate(events) if PIECES[0].encode() in event)
    return events[:shown]


def _after_text(d: Dialect, events: list[bytes]) -> list[bytes]:
    """What comes up to and with the first visible piece."""
    return events[: len(_before_text(d, events)) + 1]


def _with(newline: bytes) -> Callable[[Dialect, list[bytes]], list[bytes]]:
    return lambda d, events: [event.replace(b"\n", newline) for event in events]


def _everywhere(event: Callable[[Dialect], bytes]) -> Any:
    return lambda d, events: [piece for each in events for piece in (event(d), each)]


def _later(seconds: float) -> str:
    return formatdate(seconds + 4_102_444_800, usegmt=True)  # in the year 2100


PASSING = (429, 500, 502, 503, 529)
LASTING = (400, 401, 403, 404, 413, 422)
FAULTS = [
    *(first(status(n), f"{n}-once") for n in PASSING),
    *(always(status(n), f"{n}-always") for n in PASSING),
    *(always(status(n), f"{n}", ONCE) for n in LASTING),
    *(replace(first(status(n), f"{n}"), ends="either", requests=None) for n in (408, 409)),
    first(status(429, retry_after="0"), "retry-after-0"),
    first(status(429, retry_after="2"), "retry-after-2"),
    first(status(503, retry_after="0.5"), "retry-after-fraction"),
    first(status(429, retry_after_ms="40"), "retry-after-ms"),
    first(status(429, retry_after=formatdate(0, usegmt=True)), "retry-after-past-date"),
    first(status(503, retry_after="soon"), "retry-after-nonsense"),
    first(status(503, retry_after="-5"), "retry-after-negative"),
    always(status(429, retry_after="3600"), "retry-after-an-hour", ONCE),
    always(status(429, retry_after=_later(0)), "retry-after-far-date", ONCE),
    always(status(503, retry_after="31"), "retry-after-twice-too-long", 2),
    always(lambda d: d.spent(), "no-credit-left", ONCE),
    first(page(502), "502-page-once"),
    always(page(502), "502-page"),
    always(page(403), "403-page", ONCE),
    always(page(200), "200-page", None),
    first(before("cut"), "closed-before-headers-once"),
    first(before("reset"), "reset-before-headers-once"),
    always(before("cut"), "closed-before-headers"),
    always(before("reset"), "reset-before-headers"),
    Fault("silent", lambda d: [Reply(before="stall")], "failed", ONCE, timeouts=IMPATIENT),
    always(raw(b"SSH-2.0-OpenSSH_9.6\r\n"), "not-http", None),
    always(raw(b"HTTP/1.1 200 OK\r\ncontent-len"), "cut-in-headers", None),
    always(lambda d: Reply([], 302, {"location": "https://elsewhere.example/"}), "moved", ONCE),
    body("empty-stream", lambda d, e: [], requests=2),
    always(lambda d: Reply([], headers={TYPE: d.content_type}), "empty-streams"),
    always(lambda d: Reply([], headers={TYPE: "application/json"}), "empty-json", None),
    always(lambda d: Reply([b"null"], headers={TYPE: "application/json"}), "null", None),
    body("no-end-before-text", _before_text, requests=2),
    body("no-end", lambda d, e: e[: -d.terminal], "failed", said=ANSWER),
    body("closed-before-text", _before_text, requests=2, end="cut"),
    body("reset-before-text", _before_text, requests=2, end="reset"),
    after_text("closed-after-text", lambda d: [], end="cut"),
    after_text("silent-after-text", lambda d: [], end="stall", timeouts=IMPATIENT),
    body("silent-before-text", _before_text, "either", None, end="stall", timeouts=IMPATIENT),
    body("trouble-before-text", lambda d, e: [*_before_text(d, e), d.trouble()], requests=2),
    after_text("trouble-after-text", lambda d: [d.trouble()]),
    always(lambda d: reply(d, [d.trouble()]), "trouble-always"),
    body("garbage-first", lambda d, e: [d.garbage, *e], "either", None),
    body("garbage-inside", lambda d, e: [*e[:-2], d.garbage, *e[-2:]], "either", None),
    body("unknown-events", _everywhere(lambda d: d.unknown)),
    body("blank-lines", _everywhere(lambda d: b"\n\n")),
    body("crlf", _with(b"\r\n")),
    body("bytes-alone", lambda d, e: [bytes([byte]) for byte in b"".join(e)]),
    body("one-piece", lambda d, e: [b"".join(e)]),
    *(
        body(f"called-{kind or 'nothing'}", lambda d, e: e, "either", None, headers={TYPE: kind})
        for kind in ("text/plain", "application/octet-stream", "application/json", "")
    ),
]
SSE_FAULTS = [
    body("cr", _with(b"\r")),
    body("comments", _everywhere(lambda d: b": keep-alive\n\n")),
    body("stray-lines", _everywhere(lambda d: b"what is this\nid: 7\n")),
    body("byte-order-mark", lambda d, e: [b"\xef\xbb\xbf", *e]),
    body("no-blank-line-at-the-end", lambda d, e: [b"".join(e).rstrip(b"\n")]),
]
AFTER_END = [
    body("garbage-last", lambda d, e: [*e, d.garbage]),
    body("hangs-after-end", lambda d, e: e, end="stall"),
    body("closed-after-end", lambda d, e: e, end="cut"),
]


def cases() -> Iterator[Any]:
    """Every fault for every provider; two of three pairs are for the torture."""
    for turn, name in enumerate(dialects.names()):
        dialect = dialects.load(name)
        more = SSE_FAULTS if "event-stream" in dialect.content_type else []
        faults = (*FAULTS, *more, *(AFTER_END if dialect.says_when else ()))
        for number, fault in enumerate(faults):
            marks = [pytest.mark.torture] * bool((number + turn) % 3)
            yield pytest.param(name, fault, id=f"{name}-{fault.name}", marks=marks)


@pytest.mark.parametrize(("name", "fault"), list(cases()))
async def test_a_question_ends(dialect: Dialect, fault: Fault, stage: Stage, home: Path) -> None:
    """In the whole answer or in one error, after as many tries as make sense; then all goes on."""
    async with House(home, dialect, stage, timeouts=fault.timeouts) as house:
        stage.script(*fault.replies(dialect))
        end = await house.ask("When is high water?")
        check_end(fault, end, len(stage.requests))
        stage.script(reply(dialect, dialect.text(NEXT)))
        after = await house.ask("And low water?")
        assert (after["reason"], after["answer"]) == ("stop", NEXT)


def check_end(fault: Fault, end: Any, sent: int) -> None:
    """What came of the question is what must come of this fault."""
    assert 1 <= sent <= TRIES
    assert fault.requests in (None, sent)
    if fault.ends == "answer" or (fault.ends == "either" and end["reason"] == "stop"):
        assert (end["reason"], end["answer"]) == ("stop", ANSWER)
        return
    assert end["reason"] in ("error", "incomplete")
    assert end["error"]
    if fault.ends == "failed":
        assert end["answer"] == fault.said
    assert ANSWER.startswith(end["answer"])
    assert not end["answer"] or sent == ONCE, "a retry after text was shown"


def half_an_end(dialect: Dialect, events: Sequence[bytes]) -> int:
    """Where a stream is cut so that its end has begun to come, and no more."""
    end = events[-dialect.terminal :]
    return len(b"".join(events)) - len(b"".join(end)) + len(end[0]) // 2


WAYS: Sequence[End] = ("done", "cut", "reset")


@EVERY
@pytest.mark.parametrize("way", WAYS)
async def test_cut_anywhere(dialect: Dialect, way: End, stage: Stage, home: Path) -> None:
    """Wherever a stream breaks off: tried again if nothing was shown, else kept and said."""
    async with House(home, dialect, stage) as house:
        for share in (0.0, 0.02, 0.2, 0.4, 0.55, 0.7, 0.85, 0.97):
            events = dialect.text(*PIECES)
            whole = b"".join(events)
            cut = whole[: min(int(len(whole) * share), half_an_end(dialect, events))]
            stage.script(reply(dialect, [cut], end=way), good(dialect))
            end = await house.ask("When is high water?")
            check_end(Fault("cut", lambda d: (), "either"), end, len(stage.requests))
            assert end["answer"], "nothing was shown, and nothing was tried again"
            stage.script(reply(dialect, dialect.text(NEXT)))
            assert (await house.ask("And low water?"))["answer"] == NEXT


@EVERY
async def test_events_that_come_twice(dialect: Dialect, stage: Stage, home: Path) -> None:
    """A repeated event is not repeated text, where events can be told apart; ends always can."""
    events = dialect.text(*PIECES)
    free = events if dialect.numbered else events[-dialect.terminal :]
    doubled = [piece for e in events for piece in ([e, e] if e in free else [e])]
    async with House(home, dialect, stage) as house:
        stage.script(reply(dialect, doubled))
        end = await house.ask("When is high water?")
        assert (end["reason"], end["answer"]) == ("stop", ANSWER)
        stage.script(reply(dialect, dialect.text(NEXT)))
        assert (await house.ask("And low water?"))["answer"] == NEXT


# --- calls ---


class Ledger:
    """A tool with an effect, and what it was really called with."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def tools(self) -> list[Tool]:
        """One tool, `note`."""

        @tool
        async def note(text: str) -> str:
            """Writes a line into the ledger."""
            self.lines.append(text)
            return f"noted {len(text)}"

        return [note]


def asks(text: str) -> Asked:
    """A good call."""
    return Asked("note", json.dumps({"text": text}, ensure_ascii=False))


BROKEN = {
    "half": '{"text": "half a li',
    "bare": "nonsense",
    "list": '["text"]',
    "number": "7",
    "not-a-number": '{"text": NaN}',
    "too-large-a-number": '{"text": "a", "more": 1e999}',
    "missing": "{}",
    "wrong-type": '{"text": [7]}',
    "too-much": '{"text": "a", "more": 1}',
    "two": '{"text": "a"}{"text": "b"}',
}


@EVERY
async def test_arguments_that_are_none(dialect: Dialect, stage: Stage, home: Path) -> None:
    """The call is not run, the model reads why, and its next, good call is."""
    ledger = Ledger()
    async with House(home, dialect, stage, tools=ledger.tools()) as house:
        for kind, arguments in BROKEN.items():
            stage.script(
                reply(dialect, dialect.calls(Asked("note", arguments))),
                reply(dialect, dialect.calls(asks(kind))),
                good(dialect),
            )
            end = await house.ask("Note it.")
            assert (end["reason"], end["answer"]) == ("stop", ANSWER), kind
            assert [r["is_error"] for r in house.results()[-2:]] == [True, False], kind
        assert ledger.lines == list(BROKEN)


@EVERY
async def test_tools_that_do_not_exist(dialect: Dialect, stage: Stage, home: Path) -> None:
    """A made-up name gets an error result; with search off that holds for `web_search` too."""
    ledger = Ledger()
    names = ["nothing_like_it", "functions.note", "note me!", "web_search"]
    async with House(home, dialect, stage, tools=ledger.tools()) as house:
        for called in names:
            made = Asked(called, '{"text": "a", "query": "tides"}')
            own = dialect.calls(made, asks(called), text="Let me see.")
            stage.script(reply(dialect, own), good(dialect))
            end = await house.ask("Note it.")
            assert (end["reason"], end["answer"]) == ("stop", ANSWER)
            assert [r["is_error"] for r in house.results()[-2:]] == [True, False]
        assert ledger.lines == names
        assert not house.app.requests


@EVERY
@pytest.mark.parametrize("way", WAYS)
async def test_a_call_that_breaks_off(dialect: Dialect, way: End, stage: Stage, home: Path) -> None:
    """Cut anywhere, a call is not run from what came of it; tried again, it runs once."""
    ledger = Ledger()
    events = dialect.calls(asks("a line that is long enough to be cut in many places"))
    whole = b"".join(events)
    last = half_an_end(dialect, events)
    async with House(home, dialect, stage, tools=ledger.tools()) as house:
        for at in [len(whole) * share // 10 for share in range(1, 10)] + [last]:
            ledger.lines.clear()
            stage.script(
                reply(dialect, [whole[: min(at, last)]], end=way),
                reply(dialect, dialect.calls(asks("whole"))),
                good(dialect),
            )
            end = await house.ask("Note it.")
            assert (end["reason"], end["answer"]) == ("stop", ANSWER)
            assert ledger.lines == ["whole"]


@EVERY
async def test_large_arguments(dialect: Dialect, stage: Stage, home: Path) -> None:
    """A megabyte arrives whole, is used once, and goes back within the rules."""
    ledger, text = Ledger(), "blåbær " * 150_000
    async with House(home, dialect, stage, tools=ledger.tools()) as house:
        stage.script(reply(dialect, dialect.calls(asks(text))), good(dialect))
        assert (await house.ask("Note it."))["answer"] == ANSWER
        assert ledger.lines == [text]


@EVERY
async def test_five_hundred_calls_at_once(dialect: Dialect, stage: Stage, home: Path) -> None:
    """As many as a step may hold are run, the others are told; all results go back together."""
    ledger = Ledger()
    lines = [f"line {number}" for number in range(500)]
    async with House(home, dialect, stage, tools=ledger.tools()) as house:
        stage.script(reply(dialect, dialect.calls(*map(asks, lines))), good(dialect))
        assert (await house.ask("Note it."))["answer"] == ANSWER
        assert sorted(ledger.lines) == sorted(lines[:MOST_CALLS])
        assert [r["is_error"] for r in house.results()].count(False) == MOST_CALLS
        assert len(house.results()) == 500
        assert len(stage.requests) == 2


@EVERY
async def test_calls_without_an_end(dialect: Dialect, stage: Stage, home: Path) -> None:
    """A model that only ever calls is stopped at the limit; asked again, it may answer."""
    ledger = Ledger()
    async with House(home, dialect, stage, tools=ledger.tools()) as house:
        rounds = [reply(dialect, dialect.calls(asks(f"round {n}"))) for n in range(9)]
        stage.script(*rounds)
        end = await house.ask("Note it.", limits=Limits(steps=4))
        assert end["reason"] == "limit"
        assert end["limit"]
        assert end["answer"]
        assert ledger.lines == [f"round {n}" for n in range(4)]
        assert len(stage.requests) == 5
        stage.script(reply(dialect, dialect.text(NEXT)))
        assert (await house.ask("Enough?"))["answer"] == NEXT


@EVERY
async def test_a_step_that_fails_after_a_tool_ran(
    dialect: Dialect, stage: Stage, home: Path
) -> None:
    """The tool is not run again, neither by the retry nor by the next question."""
    ledger = Ledger()
    async with House(home, dialect, stage, tools=ledger.tools()) as house:
        call = reply(dialect, dialect.calls(asks("once"), thinking="Note it."))
        stage.script(call, dialect.error(500))
        end = await house.ask("Note it.")
        assert end["reason"] == "error"
        assert len(stage.requests) == 1 + TRIES
        assert ledger.lines == ["once"]
        stage.script(reply(dialect, dialect.text(NEXT)))
        assert (await house.ask("Go on."))["answer"] == NEXT
        assert ledger.lines == ["once"]


# --- the provider's own search ---

SEARCHERS = [name for name in dialects.names() if dialects.load(name).searched("x")]
SEARCHING = pytest.mark.parametrize("name", SEARCHERS)


@SEARCHING
@pytest.mark.parametrize(
    ("way", "share"), [*(("cut", n / 10) for n in range(1, 11)), ("stall", 0.3), ("stall", 0.7)]
)
async def test_a_search_that_breaks_off(
    dialect: Dialect, share: float, way: End, stage: Stage, home: Path
) -> None:
    """Whatever came of it, the next question works, searching or not; nothing is said twice."""
    whole = b"".join(dialect.searched(*PIECES))
    cut = whole[: int(len(whole) * share)]
    async with House(
        home, dialect, stage, timeouts=IMPATIENT if way == "stall" else PATIENT
    ) as house:
        stage.script(reply(dialect, [cut], end=way), reply(dialect, dialect.searched(*PIECES)))
        plain, searcher = dialect.models[0], dialect.searcher
        end = await house.ask("When is high water?", model=searcher, search="native")
        assert ANSWER.startswith(end["answer"])
        assert (end["reason"] == "stop") == (end["answer"] == ANSWER and "error" not in end)
        assert all(dialect.searches(request.json) for request in stage.requests)
        for search, offered in (("native", True), ("off", False), ("native", True)):
            stage.script(reply(dialect, dialect.text(NEXT)))
            model = searcher if offered else plain
            after = await house.ask("And low water?", model=model, search=search)
            assert after["answer"] == NEXT
            assert bool(dialect.searches(stage.requests[0].json)) == offered


@pytest.mark.parametrize("name", [n for n in SEARCHERS if dialects.load(n).refuses_search()])
async def test_a_model_that_does_not_search(dialect: Dialect, stage: Stage, home: Path) -> None:
    """`auto` falls back to our own search, once and visibly; `native` says what is wrong."""
    refusal = dialect.refuses_search()
    assert refusal is not None
    async with House(home, dialect, stage) as house:
        stage.script(refusal, good(dialect))
        end = await house.ask("When is high water?", model=dialect.searcher, search="auto")
        assert (end["reason"], end["answer"]) == ("stop", ANSWER)
        assert end["search_path"].startswith("local")
        assert [e.data["code"] for e in house.events() if e.type == "notice"] == [
            "native_search_rejected"
        ]
        native, local = [request.json for request in stage.requests]
        assert dialect.searches(native)
        assert not dialect.searches(local)
        assert "web_search" in json.dumps(local["tools"])
        stage.script(refusal)
        end = await house.ask("And now?", search="native")
        assert (end["reason"], len(stage.requests)) == ("error", 1)
        stage.script(reply(dialect, dialect.text(NEXT)))
        plain = await house.ask("And low water?", model=dialect.models[0], search="off")
        assert plain["answer"] == NEXT


@SEARCHING
async def test_a_searched_answer(dialect: Dialect, stage: Stage, home: Path) -> None:
    """The answer comes with its source; the dialects of these tests are worth their name."""
    async with House(home, dialect, stage) as house:
        stage.script(reply(dialect, dialect.searched(*PIECES)))
        end = await house.ask("When is high water?", model=dialect.searcher, search="native")
        assert (end["reason"], end["answer"]) == ("stop", ANSWER)
        assert end["search_path"] == f"native:{dialect.name}"
        assert [c["url"] for c in end["citations"]] == [PAGE]


def test_every_provider_is_here() -> None:
    """Whoever adds a provider that chats over HTTP adds how its wire looks."""
    spoken = set(providers.names()) - {"builtin", "systemone"}
    assert spoken == set(dialects.names())
