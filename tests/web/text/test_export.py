"""Exports say what the check of each place found, and show the passage as text."""

from __future__ import annotations

import json
import re
from typing import Any

from searchloop.agent.log.events import Event, event_of
from searchloop.agent.log.session import Session
from searchloop.web.text.export import as_json, html, markdown
from tests.six_verdicts import PLACES, WORDS, answer, url

SESSION = Session("a", "Tides", "m:x", "ask", "off", "off", None, 0.0, 0.0, 1, False)


def events(**more: Any) -> list[Event]:
    """A question and its answer."""
    said = {**answer(), **more}
    ended = {**said, "answer": said["text"], "reason": "stop", "search_path": "off", "model": "m"}
    asked = Event(1, "user_message", {"text": "When?"}, 0.0)
    return [asked, event_of(2, "run_finished", ended, 0.0)]


def test_footnotes_carry_each_verdict_and_its_passage() -> None:
    """Each place in words, with the source's own text without signs of Markdown."""
    notes = dict(re.findall(r"^\[\^(\d)\]: (.*)$", markdown(SESSION, events()), re.M))
    assert notes["1"] == (
        f"Tides <{url(1)}> “Low water is at six sharp.” (These words stand in the source); "
        "“at noon” (These words are not in the source; nearest there: “The flood is at one.”)"
    )
    assert notes["4"] == f"Parking <{url(4)}> (Not read here, only found)"
    for n, verdict, _, _, passage in PLACES:
        assert WORDS[verdict] in notes[str(n)]
        assert passage in notes[str(n)]


def test_a_page_carries_each_verdict_and_its_passage() -> None:
    """The same sentences as in Markdown, under the answer."""
    page = html(SESSION, events())
    for n, verdict, _, _, passage in PLACES:
        (line,) = re.findall(rf'<p id="t1-{n}">.*</p>', page)
        assert WORDS[verdict] in line
        assert passage in line
    assert not set("*|") & set(page.partition("<h2>")[2]), "no signs of Markdown"


def test_json_has_the_fields_as_they_are() -> None:
    """The passage stays Markdown: programs read it."""
    told = json.loads(as_json(SESSION, events()))["events"][-1]
    marks = [(c["n"], *m.values()) for c in told["citations"] for m in c["marks"]]
    assert [(n, verdict, quote, passage) for n, _, quote, verdict, passage, _ in marks] == [
        place[:4] for place in PLACES
    ]


def test_what_was_never_checked_has_no_verdict() -> None:
    """A log from before there were verdicts keeps its quotes and says no more."""
    mark = {"span": [22, 25], "quote": "so", "verified": True}
    old = [{**answer()["citations"][0], "marks": [mark]}]
    for text in (markdown(SESSION, events(citations=old)), html(SESSION, events(citations=old))):
        assert "“so”" in text
        assert not [words for words in WORDS.values() if words in text]
