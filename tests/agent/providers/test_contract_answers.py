"""What every provider's decoder owes: nothing half is an answer, and each fault is one sentence.

`test_codecs.py` cuts every recording in many ways; here are the bytes that no recording has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import IncompleteError, ProviderError
from searchloop.agent.providers import Provider
from searchloop.agent.providers._window import named_size
from searchloop.agent.search.citations import settle
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.transport.refusals import blamed
from searchloop.agent.types import Finished, NativeSearch, StreamEvent, TextDelta
from tests.agent.providers.vendors import (
    BY_NAME,
    CHAT,
    DONE,
    GEMINI,
    KEY,
    NATIVE,
    OLLAMA,
    OPENAI,
    USER,
    VENDORS,
    XAI,
    Vendor,
    results,
    shown,
    using,
)
from tests.fakes import End, FakeServer, Reply
from tests.recorded import REFUSALS
from tests.tables import each_row


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda v: v.name)
def test_a_cut_answer_is_none(vendor: Vendor) -> None:
    """Without its last byte a stream is no answer, wherever it broke off: nor are real answers."""
    said = vendor.wire(vendor.says("High water ", "is at ", "07:40 🌊."))
    assert vendor.finished(said.rstrip()).message.content == "High water is at 07:40 🌊."
    whole = said.rstrip() if vendor is not CHAT else said[: said.index(b'"finish_reason": "') + 18]
    cuts = [(whole, end) for end in range(0, len(whole), 1 if vendor is not XAI else 9)]
    for name in vendor.recordings if vendor is not CHAT else ():
        data = vendor.stream_of(name).rstrip()
        if data[:1] not in b"[{" or vendor is OLLAMA:  # no plain body
            cuts += [(data, end) for end in (*range(40, len(data), len(data) // 23), len(data) - 1)]
    for data, end in cuts:
        with pytest.raises(ProviderError) as caught:
            vendor.decode(data[:end])
        assert caught.value.retryable
        assert data is not whole or isinstance(caught.value, IncompleteError)


@pytest.mark.parametrize("vendor", [OPENAI, XAI, CHAT, GEMINI, OLLAMA], ids=lambda v: v.name)
def test_a_number_in_a_mark_may_be_ours(vendor: Vendor) -> None:
    """Without the provider's own search `【1†source】` and `[cite: 2]` name sources of the chat."""
    pieces = ("High water 【1†sou", "rce】 is at nine [cite", ": 2].")
    data = vendor.wire(vendor.says(*pieces))
    told = vendor.finished(data).message.content
    assert told == "High water 【1†source】 is at nine [cite: 2]."
    table = SourceTable()
    for url in ("https://a.example/", "https://b.example/"):
        table.meet(url)
    cited = settle(vendor.finished(data).message, table)
    assert cited.content == "High water [1] is at nine [2]."
    assert [c.url for c in cited.citations] == ["https://a.example/", "https://b.example/"]
    if vendor is not OLLAMA:
        own = vendor.finished(data, native_search=NativeSearch()).message.content
        assert own == "High water is at nine."


FOREIGN: dict[str, list[bytes]] = {
    "openai": [b"", b'{"status": "queued", "output": []}', b'{"status": "comp'],
    "anthropic": [b"", b'{"content": ['],
    "gemini": [b"", b"[]", b"{}", b'[{"candidates": [', b"null", GEMINI.begins("High") + DONE],
    "openai-chat": [b"", DONE, b'{"choices": [', CHAT.calls('{"day": 1}').partition(b"}}")[0]],
    "ollama": [b"", b'{"message": {}}', b'{"message": '],
}


@each_row("name", FOREIGN)
def test_bodies_that_are_no_answers(name: str) -> None:
    """An empty, half or foreign body is incomplete, not an empty answer."""
    for body in FOREIGN[name]:
        with pytest.raises(IncompleteError):
            BY_NAME[name].decode(body)


@each_row("vendor", VENDORS)
def test_a_web_page_in_place_of_an_answer(vendor: Vendor) -> None:
    """It comes with status 200 where the address is that of a site: the error says so."""
    for page in (b"<!doctype html>\n\n<title>Hi</title>\n", b"\xef\xbb\xbf <html>\r\n", b"<x/>"):
        with pytest.raises(ProviderError, match="web page") as caught:
            vendor.decode(page)
        assert (caught.value.code, "base URL" in caught.value.remedy) == ("bad_response", True)


GARBAGE: dict[str, list[bytes]] = {
    "openai": [b"[]", b'{"type":"response.completed"}'],
    "xai": [b'{"type":"response.completed"}'],
    "anthropic": [
        b"[]",
        b'{"type":"message"}',
        b'{"type":"content_block_start"}',
        b'{"type":"content_block_start","index":1,"content_block":{}}',
    ],
    "gemini": [b'{"candidates": 3}'],
    "openai-chat": [b'{"choices": 7}'],
    "ollama": [b'{"done": tru}', b"[]", b"<html>", b"\xff\xfe"],
}


BROKEN = "High water comes at 07:40, at pier four (cite"


@each_row("vendor", VENDORS)
@each_row("end", ["done", "cut", "reset"])
@each_row("tail", [b"", b"{nonsense"])
def test_the_text_before_a_fault_is_whole(vendor: Vendor, end: End, tail: bytes) -> None:
    """What might have become a mark of the vendor's is shown when the answer breaks off."""
    told: list[StreamEvent] = []

    async def listen(provider: Provider) -> None:
        async for event in provider.stream(vendor.request()):
            told.append(event)

    tail = tail if vendor is OLLAMA or not tail else b"data: " + tail + b"\n\n"
    reply = Reply([vendor.begins(BROKEN) + tail + b"\n"], end=end)
    with FakeServer([reply]) as server, pytest.raises(ProviderError):
        using(vendor.name, vendor.env(server.url), listen)
    assert "".join(e.text for e in told if isinstance(e, TextDelta)) == BROKEN
    assert not any(isinstance(e, Finished) for e in told)


@each_row("vendor", VENDORS)
def test_half_a_character_waits_for_the_other(vendor: Vendor) -> None:
    """JSON may cut a surrogate pair in two."""
    data = vendor.wire(vendor.says("High <1>", "<2> water."))
    events = vendor.decode(data.replace(b"<1>", b"\\ud83c").replace(b"<2>", b"\\udf0a"))
    assert isinstance(events[-1], Finished)
    assert shown(events) == events[-1].message.content == "High 🌊 water."


@each_row("vendor", [OPENAI, XAI])
@each_row("change", ["lost", "twice"])
def test_the_end_of_a_response_counts(vendor: Vendor, change: str) -> None:
    """Where a piece of the text was lost or came twice, the answer is as its end says."""
    events = vendor.says("High water ", "is at ", "07:40 🌊.")
    at = next(i for i, e in enumerate(events) if b'"is at "' in e)
    events[at : at + 1] = [events[at]] * (2 if change == "twice" else 0)
    assert vendor.finished(vendor.wire(events)).message.content == "High water is at 07:40 🌊."


@each_row("vendor", VENDORS)
def test_garbage_in_the_stream(vendor: Vendor) -> None:
    """An event that cannot be read is one clear error, after the text that came before it."""
    for event in (b"{nonsense", b"3", *GARBAGE[vendor.name]):
        line = event + b"\n" if vendor is OLLAMA else b"data: " + event + b"\n\n"
        data = vendor.begins("Hi") + line
        events = iter(vendor.codec.decoder(vendor.request(), "").feed(data))
        assert next(events) == TextDelta("Hi")
        with pytest.raises(ProviderError) as caught:
            list(events)
        assert caught.value.code == "bad_response"
        assert caught.value.remedy


@each_row("vendor", VENDORS)
@each_row("given, problem", [('{"a": ', "JSON"), ("[1]", ""), ('{"a": NaN}', ""), ("7", "")])
def test_arguments_that_cannot_be_read(vendor: Vendor, given: str, problem: str) -> None:
    """The call says what is wrong with it, and goes back with an object all the same."""
    message = vendor.finished(vendor.calls(given)).message
    (call,) = message.tool_calls
    assert call.problem
    assert problem in call.problem
    assert call.arguments == {}
    vendor.ask(USER, message, replace(results(message)[0], is_error=True))
    if vendor is not GEMINI:  # an object inside a string is the object
        message = vendor.finished(vendor.calls('"{\\"n\\": 1}"')).message
        assert (message.tool_calls[0].arguments, message.tool_calls[0].problem) == ({"n": 1}, None)
        told = json.dumps(vendor.ask(USER, message, *results(message))).replace("\\", "")
        assert '"n": 1' in told or '"n":1' in told


@each_row("vendor", [v for v in VENDORS if v is not OLLAMA])
@each_row("size", [1, 3, 1000])
def test_marks_of_vendors_are_gone(vendor: Vendor, size: int) -> None:
    """Citation marks that a model's training left in its text, also across pieces."""
    data = vendor.wire(vendor.says("High \ue200ci", "te\ue202turn0sea", "rch1\ue201at 07:40."))
    events = vendor.decode(data, size=size)
    end = events[-1]
    assert isinstance(end, Finished)
    assert "turn0" not in end.message.content
    assert "\ue200" not in end.message.content
    assert shown(events) == end.message.content


# What a model prints -> its thinking and its answer.
PRINTED = {
    "<think>a</think>b": ("a", "b"),
    "<seed:think>a</seed:think>b": ("a", "b"),
    "[THINK]a[/THINK]b": ("a", "b"),
    "<|channel>thought\na<channel|>b": ("a", "b"),
    "\n <think>\na\n</think>\n\nb": ("a\n", "b"),
    "<think>\n\n</think>\n\nb": ("", "b"),
    "<thinking>a </think> c</thinking>b": ("a </think> c", "b"),
    "<think>a</think> <think>c</think>b": ("ac", "b"),
    "</think>\n\nb": ("", "b"),
    "<think>a</thi": ("a</thi", ""),
    # The prompt has opened the block: only its end is printed.
    "First the timetable.\n</think>\n\nAt 07:40.": ("First the timetable.", "At 07:40."),
    "Let me see.</think>At 07:40.": ("Let me see.", "At 07:40."),
}
# Tags elsewhere, halves of them, and talk about them.
NO_THINKING = (
    *("b <think>a</think>", "Write <think> first.", "<thin", "<thinker> is a word", "  b", " \n"),
    *("The tag `</think>` ends it.\n", 'Write "</think>" here.', "Nothing follows.\n</think>\n"),
    *("```\nx</think>\ny\n```\nThat is all.", "It ends with </think> and goes on.", "<b>bold</b>"),
    "```\n<think>\n</think>\n```\nThat is the form.",
)


@each_row("vendor", [CHAT, OLLAMA])
@each_row("text", [*PRINTED, *NO_THINKING])
def test_printed_thinking(vendor: Vendor, text: str) -> None:
    """A block at the start is thinking, or what stands before a lone end; talk of it is text."""
    for pieces in ([text], list(text)):
        message = vendor.finished(vendor.wire(vendor.says(*pieces))).message
        assert (message.thinking, message.content) == PRINTED.get(text, ("", text))


PARTS = st.sampled_from(
    ["<think>", "</think>", "<thinking>", "</thinking>", "<th", "ink>", "</", "a", " ", "\n", "<"]
)


@given(st.lists(PARTS, max_size=12).map("".join), st.lists(st.integers(0, 60), max_size=6))
def test_printed_thinking_does_not_depend_on_cuts(text: str, cuts: list[int]) -> None:
    """Any content, cut anywhere, is split as when it comes in one piece; nothing is invented."""
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    for vendor in (CHAT, OLLAMA):
        cut = vendor.wire(vendor.says(*(text[a:b] for a, b in pairwise(edges))))
        found, whole = (
            vendor.finished(each).message for each in (cut, vendor.wire(vendor.says(text)))
        )
        assert (found.thinking, found.content) == (whole.thinking, whole.content)
        assert re.sub(r"\s", "", text).endswith(re.sub(r"\s", "", whole.content))


# --- errors ---


def each_of(value: Any) -> list[Any]:
    """One value or several."""
    return value if isinstance(value, list) else [value]


def refusal_of(name: str, status: int | None, body: Any, asks: Mapping[str, Any]) -> ProviderError:
    """Our error for an answer of this status and body; None is an error inside a stream."""
    vendor = BY_NAME[name]
    search = NATIVE if "native_search" in asks else None
    request = vendor.request(native_search=search, options=asks.get("options", {}))
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    if status is None:
        return vendor.codec.refused({"message": body["error"]})
    return blamed(vendor.codec.error(status, {}, data), data, request)


@each_row("row", REFUSALS)
def test_what_a_refusal_means(row: Mapping[str, Any]) -> None:
    """The vendor's cause in our words, who must act, and whether a retry helps; never a key.

    A row is for one provider or several, and for one status or several; `asks` is what the refused
    request brought, `window` the size that the words name.
    """
    for name, status in product(each_of(row["of"]), each_of(row["status"])):
        error = refusal_of(name, status, row["body"], row.get("asks", {}))
        found, means = {**error.as_dict(), "retryable": error.retryable}, dict(row["means"])
        assert (error.status, error.retry_after) == (status, means.pop("retry_after", None))
        assert {key: found[key] for key in means} == means, name
        assert error.message.endswith((".", "…"))
        assert error.remedy.endswith(".")
        assert KEY not in str(found)
        assert "window" not in row or named_size(error.message) == row["window"]


@each_row("vendor", VENDORS)
def test_keys_are_not_quoted(vendor: Vendor) -> None:
    """A server's words that repeat a key, ours or another, are cleaned and short; so are pages."""
    keys = "Bearer abc.defghi, sk-proj-abcdefghi, AIzaabcdefghi and ?key=abcdefghi"
    own = "" if vendor is OLLAMA else KEY  # it has none
    for text in (f"You sent {own} {keys}. " + "x" * 1000, "x" * 225 + " sk-proj-abcdefghi"):
        found = vendor.codec.error(400, {}, json.dumps({"error": {"message": text}}).encode())
        assert "defghi" not in found.message
        assert not own or own not in found.message
        assert len(found.message) < 400
    page = vendor.codec.error(500, {}, json.dumps({"error": "<html><h1>No</h1>"}).encode())
    assert "<" not in page.message
    assert KEY not in repr(vendor.codec) + vendor.codec.url(vendor.request())


@each_row("vendor", VENDORS)
def test_the_server_decides_about_retries(vendor: Vendor) -> None:
    """`x-should-retry` wins over the status, but for money; both headers name a delay."""
    error = vendor.codec.error
    assert error(400, {"x-should-retry": "true"}, b"{}").retryable
    assert not error(500, {"x-should-retry": "false"}, b"{}").retryable
    limited = error(429, {"retry-after": "7"}, b"{}")
    assert (limited.code, limited.retryable, limited.retry_after) == ("rate_limited", True, 7)
    assert error(503, {"retry-after-ms": "1500"}, b"{}").retry_after == 1.5
    assert vendor is OLLAMA or not error(402, {"x-should-retry": "true"}, b"{}").retryable
