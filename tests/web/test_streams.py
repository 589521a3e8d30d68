"""Event streams: nothing lost, nothing twice, nothing forged, and encoded once."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import StoreError
from searchloop.agent.log.events import Event
from searchloop.compose import Services
from searchloop.render.markdown import render
from searchloop.web.gate import Access, Gate
from searchloop.web.stream.streams import Streams
from searchloop.web.stream.view import FrameCache, PageView, encode_event
from tests import six_verdicts
from tests.web.house import (
    ANSWER,
    PORT,
    SOURCE,
    TOKEN,
    allowed,
    answer_events,
    changed,
    frames,
    living,
    make_house,
    request,
)


def until(seq: int) -> Callable[[bytes], bool]:
    """Whether the event with this number has come."""
    return lambda body: f"id: {seq}\n".encode() in body


def session_of(house: Services) -> str:
    """A new session's id."""
    return house.log.create_session(model="m:x").id


def served(streams: Streams, session: str) -> Any:
    """An application that answers with the events of a session alone."""
    return lambda scope, receive, send: streams.serve(session, scope, receive, send)


async def test_a_stream_replays_what_is_stored(tmp_path: Path) -> None:
    """The log comes as it was written, numbered, without the provider's opaque blocks. A client
    that comes back gets what follows its last event; its header is newer than the address."""
    house = make_house(tmp_path)
    session = session_of(house)
    house.log.append(session, [("user_message", {"text": "hé\n\ndata: x"}), *answer_events()])
    path = f"/api/sessions/{session}/events"
    async with living(house) as app:
        answer = await request(app, "GET", path, enough=until(3))
        for query, headers in (("?after=1", {}), ("?after=0", {"last-event-id": "1"})):
            late = await request(app, "GET", path + query, allowed(**headers), enough=until(3))
            assert [event["seq"] for event in frames(late.body)] == [2, 3]
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.body.startswith(b"retry: 1000\n\n")
    got = frames(answer.body)
    assert [(e["seq"], e["type"]) for e in got] == [
        *((1, "user_message"), (2, "message"), (3, "run_finished"))
    ]
    assert got[0]["text"] == "hé\n\ndata: x"
    assert set(got[0]) == {"seq", "type", "at", "text"}
    assert b"OPAQUE" not in answer.body
    assert "blocks" not in got[1]


async def test_a_stream_shows_what_happens_while_it_is_open(tmp_path: Path) -> None:
    """Every follower gets every event once and in order, stored or live, from any thread."""
    house = make_house(tmp_path)
    session = session_of(house)
    async with living(house) as app:
        path = f"/api/sessions/{session}/events"
        following = [
            asyncio.create_task(request(app, "GET", path, enough=until(40))) for _ in range(20)
        ]
        for i in range(20):
            await asyncio.to_thread(house.log.append, session, [("notice", {"message": str(i)})])
            house.log.append(session, [("text_delta", {"text": "x"})])
            await asyncio.sleep(0)
        for answer in await asyncio.gather(*following):
            assert [event["seq"] for event in frames(answer.body)] == list(range(1, 41))


async def test_a_stream_that_cannot_be_is_refused_as_json(tmp_path: Path) -> None:
    """A wrong number, view or session is said in words, not in an endless stream."""
    house = make_house(tmp_path)
    session = session_of(house)
    async with living(house) as app:
        for target, status, code in (
            *((f"{session}/events?after={n}", 400, "bad_after") for n in ("x", "-1", "%D9%A3")),
            (f"{session}/events?after={'9' * 19}", 400, "bad_after"),
            (f"{session}/events?view=raw", 400, "bad_view"),
            ("nobody/events", 404, "no_session"),
        ):
            answer = await request(app, "GET", f"/api/sessions/{target}")
            assert (answer.status, answer.error["code"]) == (status, code)
            assert answer.error["remedy"]


async def test_a_stream_says_that_it_is_alive(tmp_path: Path) -> None:
    """A comment now and then, so that a dropped connection is noticed on both sides."""
    house = make_house(tmp_path)
    app = served(Streams(house.log, heartbeat=0.01), session_of(house))
    answer = await request(app, "GET", "/", enough=lambda body: body.count(b":\n\n") >= 3)
    assert answer.body.count(b"\n:\n\n") >= 2


async def test_the_end_of_a_session_or_of_the_server_ends_the_streams(tmp_path: Path) -> None:
    """Nobody has to wait for a page left open; who asks again is told that the session is gone.
    Prometheus gets the number of followers."""
    house = make_house(tmp_path)
    paths = [f"/api/sessions/{session_of(house)}" for _ in range(2)]
    async with living(house) as app:
        following = []
        for path in paths:
            opened = asyncio.Event()
            asked = request(app, "GET", f"{path}/events", opened=opened)
            following.append(asyncio.create_task(asked))
            await opened.wait()
        counted = await request(app, "GET", "/metrics")
        assert counted.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert b"\nsearchloop_followers 2.0\n" in counted.body
        assert (await request(app, "DELETE", paths[0])).status == 204
        assert (await following[0]).status == 200
        assert (await request(app, "GET", f"{paths[0]}/events")).status == 404
    answer = await following[1]
    assert (answer.status, answer.body) == (200, b"retry: 1000\n\n")


def test_an_event_is_encoded_once(tmp_path: Path) -> None:
    """All who follow get the same bytes object."""
    event = Event(7, "notice", {"message": "é"}, 1.5)
    kept = FrameCache()
    first = kept.of("s", event)
    assert kept.of("s", Event(7, "notice", {"message": "é"}, 1.5)) is first
    assert kept.of("t", event) is not first


@given(
    st.text(st.characters(codec=None), max_size=80), st.text('\r\n:daitenv \u2028{}"', max_size=40)
)
def test_no_text_forges_a_frame(text: str, tail: str) -> None:
    """Whatever a model says stays inside the JSON of its one event."""
    data = {"type": "text_delta", "seq": 3, "at": 0.0, "text": text + tail}
    encoded = encode_event(data)
    encoded.decode()
    head, _, rest = encoded.partition(b"\ndata: ")
    assert head == b"id: 3"
    assert rest.endswith(b"\n\n")
    assert b"\n" not in rest[:-2]
    assert b"\r" not in rest
    assert json.loads(rest) == data


def page_state(events: list[dict[str, Any]]) -> tuple[str, list[Any]]:
    """What a page shows after these events: the last text and its blocks."""
    text, blocks = "", list[Any]()
    for event in events:
        if event["type"] in ("user_message", "run_started"):
            text, blocks = "", []
        elif event["type"] == "text_delta":
            text += event["text"]
            blocks = changed(blocks, event["change"])
        elif event["type"] == "message":
            text, blocks = event["text"], event["blocks"]
    return text, blocks


@given(
    text=st.text(alphabet="a*_`#- \n[1]|", min_size=1, max_size=80),
    pages=st.lists(
        st.tuples(st.integers(0, 5), st.lists(st.integers(1, 3), max_size=6)),
        min_size=2,
        max_size=3,
    ),
)
def test_a_page_shows_the_same_however_it_followed(
    text: str, pages: list[tuple[int, list[int]]]
) -> None:
    """Live or late, at once or in pieces, after a reconnect or not, beside others that share what
    was rendered: text and blocks agree."""
    result = {"call_id": "c", "name": "t", "is_error": False, "content": "", "sources": [SOURCE]}
    stored = [("user_message", {"text": "q"}), ("tool_result", result)]
    stored += [("text_delta", {"text": sign}) for sign in text]
    events = [Event(n, kind, data, 0.0) for n, (kind, data) in enumerate(stored, 1)]
    shared = FrameCache()
    for seen, sizes in pages:
        before, page = PageView("s", shared), PageView("s", shared)
        had = [frames(data)[0] for _, data in before.frames(events[:seen])]
        page.skip(events[:seen])
        edges = [*itertools.accumulate(sizes, initial=seen), max(len(events), seen + sum(sizes))]
        for start, end in itertools.pairwise(edges):
            had += [frames(data)[0] for _, data in page.frames(events[start:end])]
        blocks = json.loads(json.dumps(render(text, sources=[SOURCE])))
        assert page_state(had) == (text, blocks)


def paged(*stored: tuple[str, dict[str, Any]], after: int = 0) -> list[dict[str, Any]]:
    """What a page gets of these events, after so many that it has."""
    events = [Event(n, kind, data, 0.0) for n, (kind, data) in enumerate(stored, 1)]
    view = PageView("s", FrameCache())
    view.skip(events[:after])
    return [frames(data)[0] for _, data in view.frames(events[after:])]


def test_the_page_view_adds_blocks() -> None:
    """The message and the end of the run carry what their text reads as; passages come as text."""
    asked, answered = ("user_message", {"text": "q"}), answer_events()
    delta = paged(asked, ("text_delta", {"text": "It *is"}))[1]
    assert delta["change"] == [0, {"t": "p", "c": ["It *is"]}]
    _, message, finished = paged(asked, *answered)
    blocks = [{"t": "p", "c": ["It is ", {"t": "cite", "a": {"n": "1", "m": "0"}}, "."]}]
    assert (message["text"], message["blocks"]) == (ANSWER, blocks)
    assert "blocks" not in finished, "the page has them"
    assert "answer" not in finished
    assert "OPAQUE" not in str(message)
    said = {**answered[0][1], **six_verdicts.answer()}
    for citations, passage in (
        (paged(asked, ("message", said))[1]["citations"], 4),
        (said["citations"], 3),  # programs get their Markdown, from the plain view
    ):
        had = [mark["passage"] or "" for cited in citations for mark in cited["marks"]]
        assert had == [place[passage] or "" for place in six_verdicts.PLACES]
    # The sources of a whole session may be linked to, also by a page that came back late.
    linked = {**answered[0][1], "text": f"[x]({SOURCE['url']})", "citations": [], "sources": []}
    (message,) = paged(asked, *answered, ("message", linked), after=3)
    assert message["blocks"][0]["c"][0]["a"] == {"href": SOURCE["url"]}


async def test_a_long_growing_text_leaves_the_loop_free(tmp_path: Path) -> None:
    """A list that never ends is rendered beside the loop, and the page still agrees at the end."""
    house = make_house(tmp_path)
    session = session_of(house)
    text = "".join(f"- item *number* {i}\n" for i in range(600))
    path, opened = f"/api/sessions/{session}/events?view=page", asyncio.Event()
    async with living(house) as app:
        asked = request(app, "GET", path, enough=until(3), opened=opened)
        following = asyncio.create_task(asked)
        await opened.wait()
        for part in (text[:9000], text[9000:9500], text[9500:]):
            house.log.append(session, [("text_delta", {"text": part})])
        assert page_state(frames((await following).body)) == (text, render(text))


async def test_a_log_that_fails_ends_the_stream(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A reader that cannot read says so in the log and closes; the client comes back later."""
    house = make_house(tmp_path)
    session = session_of(house)
    house.log.append(session, [("notice", {"message": "a"})])

    class Failing(type(house.log)):  # type: ignore[misc]
        async def follow(self, session_id: str, after: int = 0) -> Any:
            yield self.read(session_id)
            raise StoreError("disk_full", "The disk is full.", "Free some space.")

    app = served(Streams(Failing(tmp_path / "sessions.sqlite3")), session)
    answer = await request(Gate(app, Access(PORT, TOKEN)), "GET", "/x")
    assert frames(answer.body)[0]["seq"] == 1
    assert "The disk is full." in caplog.text
