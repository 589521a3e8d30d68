"""What every codec owes, over every recording there is, however the bytes are cut.

A provider is tested by its recordings, which are found by folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchloop.agent import providers
from searchloop.agent.errors import AgentError
from searchloop.agent.search.citations import without_tracking
from searchloop.agent.search.vendor_marks import strip
from searchloop.agent.types import (
    Finished,
    Message,
    NativeSearch,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
)
from tests.agent.providers.vendors import BY_NAME, FERRY, NATIVE, USER, Vendor, results
from tests.recorded import OURS, exchanges, recordings, row_id
from tests.tables import each_row

SIZES = (1, 2, 3, 7, 64)
SMALL = 60_000  # bytes; larger recordings are cut in fewer ways


def wire(answer: Mapping[str, Any]) -> tuple[bytes, str]:
    """The bytes of a recorded answer, and their content type; a day is named, or it would pass."""
    text, kind = answer.get("text"), "application/json"
    if text is None:
        text = json.dumps(answer.get("body"), ensure_ascii=False)
    else:
        kind = "application/x-ndjson" if answer["framing"] == "ndjson" else "text/event-stream"
    if answer.get("framing") == "payload-lines":
        text = "".join(f"data: {line}\n\n" for line in text.splitlines() if line.strip())
    return text.replace("2 days ago", "April 3, 2026").encode(), kind


def endpoint(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2].rpartition(":")[2]


def found() -> Iterator[Any]:
    """Every recorded answer to a chat request of every provider.

    Our own recordings say which endpoint a provider uses; the larger set holds others too.
    """
    for name in providers.names():
        folder = name.replace("-", "_")
        ours = (OURS / folder).glob("*.json")
        used = {endpoint(e["request"]["url"]) for path in ours for e in exchanges(path)}
        for path in recordings(folder):
            for number, exchange in enumerate(exchanges(path)):
                request = exchange.get("request") or {}
                if not request.get("url") or (
                    request["method"] == "POST" and endpoint(request["url"]) in used
                ):
                    yield pytest.param(name, exchange, id=f"{name}-{row_id(path, number)}")


def asked(vendor: Vendor, exchange: Mapping[str, Any]) -> dict[str, Any]:
    """The model and the search of a recorded request, beside a tool of ours."""
    body = (exchange.get("request") or {}).get("body") or {}
    kinds = [t.get("type", "") for t in body.get("tools") or () if isinstance(t, dict)]
    searches = vendor.searches or "web_search_options" in body or any(":" in k for k in kinds)
    search = NativeSearch() if searches else None
    return {"model": body.get("model") or vendor.model, "native_search": search, "tools": (FERRY,)}


def decode(
    vendor: Vendor, exchange: Mapping[str, Any], size: int, *before: Message
) -> list[StreamEvent | AgentError]:
    """The events of a recording cut into pieces of `size` bytes; an error is the last of them."""
    data, _ = wire(exchange["response"])
    headers = {key.lower(): value for key, value in exchange["response"]["headers"].items()}
    if (status := exchange["response"].get("status") or 200) >= 400:
        return [vendor.codec.error(status, headers, data)]
    request = vendor.request(*(before or (USER,)), **asked(vendor, exchange))
    decoder = vendor.codec.decoder(request, "")
    events: list[StreamEvent | AgentError] = []
    try:
        for start in range(0, len(data), size):
            events.extend(decoder.feed(data[start : start + size]))
        events.extend(decoder.close())
    except AgentError as error:
        events.append(error)
    return events


def comparable(events: list[StreamEvent | AgentError], sent: str) -> list[object]:
    """Contents of events, which compare where messages and errors do not; without minted ids."""
    return [_contents(event, sent) for event in events]


def _contents(event: StreamEvent | AgentError, sent: str) -> object:
    if isinstance(event, AgentError):
        return event.as_dict()
    if not isinstance(event, Finished):
        return event
    text = repr(replace(event, message=replace(event.message, encoded={})))
    for number, call in enumerate(event.message.tool_calls):
        text = text if call.id in sent else text.replace(call.id, f"minted {number}")
    return text


RECORDINGS = list(found())


@pytest.mark.parametrize(("name", "exchange"), RECORDINGS)
def test_events_do_not_depend_on_the_cuts(name: str, exchange: Mapping[str, Any]) -> None:
    """Every recording gives the same events at every chunk size."""
    sent = wire(exchange["response"])[0]
    whole = comparable(decode(BY_NAME[name], exchange, len(sent) or 1), sent.decode())
    for size in SIZES if len(sent) < SMALL else SIZES[3:]:
        assert comparable(decode(BY_NAME[name], exchange, size), sent.decode()) == whole


@each_row(("name", "exchange"), RECORDINGS)
def test_the_end_agrees_with_the_stream(name: str, exchange: Mapping[str, Any]) -> None:
    """One end, last: its text is what was shown, its citations lie in it and are its sources."""
    *events, last = decode(BY_NAME[name], exchange, 1 << 20)
    assert not any(isinstance(event, Finished | AgentError) for event in events)
    if isinstance(last, AgentError):
        assert last.code
        assert last.message
        return
    assert isinstance(last, Finished)
    message = last.message
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == message.content
    assert "".join(e.text for e in events if isinstance(e, ThinkingDelta)) == message.thinking
    assert (last.stop_reason == "tool_calls") == bool(message.tool_calls)
    assert strip(message.content) == message.content
    check_citations(message)
    if exchange["response"].get("status", 200) == 200 and not message.details.get("paused"):
        for model in (BY_NAME[name].model, BY_NAME[name].other):
            for search in {None, NATIVE if BY_NAME[name].searches else None}:
                told = (message, *results(message), USER)
                BY_NAME[name].ask(USER, *told, model=model, native_search=search)


def check_citations(message: Message) -> None:
    """Numbers, ranges, links and sources of one message."""
    assert [citation.n for citation in message.citations] == [*range(1, len(message.citations) + 1)]
    starts = [citation.spans[0] for citation in message.citations if citation.spans]
    assert starts == sorted(starts)
    known = {source.url: source for source in message.sources}
    for citation in message.citations:
        assert known[citation.url].n == citation.n
        assert known[citation.url].state == "cited"
        link = without_tracking(citation.url)
        for start, end in citation.spans:
            assert 0 <= start < end <= len(message.content)
            assert link not in message.content or link in message.content[start:end]


def test_each_provider_is_held_to_the_contract() -> None:
    """A new one that writes describes its wire format in `vendors.py` and brings recordings."""
    assert set(BY_NAME) == set(providers.names()) - {"builtin", "systemone"}
    assert {row.values[0] for row in RECORDINGS} == set(BY_NAME)


ODD = (None, "x", {"a": 1}, LookupError)  # for each field; of these others one for each
ODDER = (True, 7, 1.5, [1])
STREAMS = [row for row in RECORDINGS if (row.values[1]["response"].get("status") or 200) < 400]
Path = tuple[str | int, ...]


def events_of(data: bytes, kind: str) -> list[bytes]:
    """The events of a body, or the one document that it is."""
    if kind == "application/json":
        return [data]
    gap = b"\n" if "ndjson" in kind else b"\n\n"
    return [e + gap for e in data.replace(b"\r\n", b"\n").split(gap) if e.strip()]


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """The way to each member and item of a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield (*at, key)
        if isinstance(inner, dict | list):
            yield from paths(inner, (*at, key))


def with_odd(event: bytes, path: Path, odd: Any) -> bytes:
    """An event in which `odd` stands at a place; an exception takes what is there away."""
    head, brace, text = event.partition(b"{")
    value = holder = json.loads(brace + text)
    for key in path[:-1]:
        holder = holder[key]
    if odd is LookupError:
        del holder[path[-1]]
    else:
        holder[path[-1]] = odd
    return head + json.dumps(value).encode() + text[len(text.rstrip()) :]


def fields() -> Iterator[Any]:
    """Each field of each format where it comes first: recording, number of the event, path.

    Two vendors of one class of decoders have one format.
    """
    seen = set[object]()
    for row in STREAMS:
        name, exchange = row.values
        for number, event in enumerate(events_of(*wire(exchange["response"]))):
            with suppress(ValueError):
                value = json.loads(event[event.index(b"{") :])
                for path in paths(value):
                    kind = type(BY_NAME[name].codec.decoder(BY_NAME[name].request(), ""))
                    shape = (kind, value.get("type"), *(k for k in path if isinstance(k, str)))
                    if shape not in seen:
                        seen.add(shape)
                        yield pytest.param(name, exchange, number, path, id=f"{name}-{path}")


def check_odd(name: str, data: bytes) -> None:
    """The body is an answer that can be sent back, or our error."""
    vendor = BY_NAME[name]
    with suppress(AgentError):
        last = vendor.finished(data, tools=(FERRY,))
        message, counts = last.message, last.usage[:6]
        assert all(count is None or type(count) is int for count in counts)
        assert (last.stop_reason == "tool_calls") == bool(message.tool_calls)
        check_citations(message)
        for search, told in ((None, ()), (NATIVE if vendor.searches else None, results(message))):
            vendor.codec.encode(vendor.request(USER, message, *told, USER, native_search=search))


@each_row(("name", "exchange", "number", "path"), list(fields()))
def test_a_field_that_is_odd_or_gone(
    name: str, exchange: Mapping[str, Any], number: int, path: Path
) -> None:
    """No field of a server makes a session that cannot go on, or a count that is none."""
    data, kind = wire(exchange["response"])
    events = events_of(data, kind)
    for odd in (*ODD, ODDER[len(repr(path)) % len(ODDER)]):
        changed = with_odd(events[number], path, odd)
        check_odd(name, b"".join((*events[:number], changed, *events[number + 1 :])))


@given(st.sampled_from(STREAMS), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_events_that_are_lost_repeated_or_moved(row: Any, random: Random) -> None:
    """The same holds in whatever order they come."""
    name, exchange = row.values
    data, kind = wire(exchange["response"])
    events = events_of(data, kind)
    at = random.randrange(len(events))
    event = events.pop(at)
    for _ in range(random.randrange(3)):
        events.insert(random.randrange(len(events) + 1), event)
    check_odd(name, b"".join(events))
