"""Exports say what the check of each place found, and show the passage as text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

from searchloop.agent.log.events import Event, event_of
from searchloop.agent.log.session import Session
from searchloop.render.export import as_json, html, markdown
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
    text = markdown(SESSION, events())
    notes = dict(re.findall(r"^\[\^(\d)\]: (.*(?:\n    - .*)*)$", text, re.M))
    assert notes["1"].splitlines() == [
        f"Tides <{url(1)}>",
        "    - Ebb is “at six sharp” → “Low water is at six sharp.” "
        "(These words stand in the source, by words)",
        "    - Flood comes “at noon” → “at noon” (These words are not in the source, by words; "
        "nearest there: “The flood is at one.”)",
    ]
    assert notes["4"] == f"Parking <{url(4)}> (Not read here, only found)"
    for n, verdict, _, _, passage in PLACES:
        assert WORDS[verdict] in notes[str(n)]
        assert passage in notes[str(n)]


def test_a_page_carries_each_verdict_and_its_passage() -> None:
    """The same sentences as in Markdown, under the answer."""
    page = unescape(html(SESSION, events()))
    for n, verdict, _, _, passage in PLACES:
        (line,) = re.findall(rf'<li id="t1-{n}".*</li>', page)
        assert WORDS[verdict] in line
        assert passage in line
    assert not set("*|") & set(page.partition("<h2>")[2]), "no signs of Markdown"


def test_a_rating_stands_beside_who_answered() -> None:
    """The last one that was given; taken back, there is none."""
    given = [Event(n, "turn_rated", {"turn": 1, "rating": r}, 0.0) for n, r in ((3, 1), (4, -1))]
    back = Event(5, "turn_rated", {"turn": 1, "rating": 0}, 0.0)
    for rated, told in (([], ""), (given[:1], "Good answer"), (given, "Poor answer")):
        for render in (markdown, html):
            said = render(SESSION, [*events(), *rated])
            assert [word in said for word in ("Good answer", "Poor answer")] == [
                word == told for word in ("Good answer", "Poor answer")
            ]
            assert "answer</p>" not in render(SESSION, [*events(), *rated, back])


def test_an_answer_that_names_none_of_its_pages_says_so() -> None:
    """In one sentence below it; one that read nothing has nothing to name."""
    read = {"n": 1, "url": url(1), "title": "Tides", "state": "opened"}
    told = "This answer read 1 page and names none."
    for sources, times in (([read], 1), ([{**read, "state": "found"}], 0)):
        ended = events(citations=[], sources=sources)
        assert [render(SESSION, ended).count(told) for render in (markdown, html)] == [times] * 2


def test_json_has_the_fields_as_they_are() -> None:
    """The passage stays Markdown: programs read it."""
    told = json.loads(as_json(SESSION, events()))["events"][-1]
    marks = [(c["n"], *m.values()) for c in told["citations"] for m in c["marks"]]
    assert [(n, verdict, quote, passage) for n, _, quote, verdict, passage, *_ in marks] == [
        place[:4] for place in PLACES
    ]


def test_what_was_never_checked_has_no_verdict() -> None:
    """A log from before there were verdicts keeps its quotes and says no more."""
    mark = {"span": [22, 25], "quote": "so", "verified": True}
    old = [{**answer()["citations"][0], "marks": [mark]}]
    for text in (markdown(SESSION, events(citations=old)), html(SESSION, events(citations=old))):
        assert "“so”" in text
        assert not [words for words in WORDS.values() if words in text]


def test_a_page_lists_every_source_and_marks_each_place() -> None:
    """Cited ones with their number, others with what was done with them; each place has a sign."""
    found = {"url": "https://other.example/", "title": "Other", "state": "opened"}
    page = html(SESSION, events(sources=[*answer()["sources"], found]))
    assert re.findall(r'href="#t1-(\d)" title="[^"]+">\[\d\] (.)</a>', page) == [
        *(("1", "”"), ("1", "✗"), ("2", "✓"), ("2", "≠"), ("3", "?"), ("4", "○"))
    ]
    assert re.search(r"Other</bdi>.*<small>read</small>", page)
    assert "What the marks mean" in page


def test_a_page_holds_nothing_of_this_computer() -> None:
    """No folder of a file that was cited, and no words of a failure, which may name anything."""
    place = "library://notes//home/someone/secret/diary.md"
    source = {"n": 1, "url": place, "title": "secret/diary.md", "state": "cited"}
    mark = {"span": [5, 8], "quote": None, "verdict": "quoted", "passage": "Dear diary"}
    cited = {**source, "quote": None, "verified": True, "spans": [[5, 8]], "marks": [mark]}
    why = {"code": "x", "message": "http://10.0.0.7:11434 said /home/someone", "remedy": ""}
    more = {"text": "Words[1]", "citations": [cited], "sources": [source], "error": why}
    [asked, ended] = events(**more)
    ended = Event(2, ended.type, {**ended.data, "reason": "error"}, 0.0)
    page = html(SESSION, [asked, ended])
    assert "diary.md" in page
    assert "Dear diary" in page
    assert "no search · The answer failed</p>" in page
    for secret in ("secret", "someone", "10.0.0.7", "library:"):
        assert secret not in page, secret


def test_a_page_runs_nothing_and_asks_nobody() -> None:
    """Hostile text in every field stays text; the policy allows its own style and no more."""
    evil = "</title></style><script>alert(1)</script><img src=//e.ex onerror=x>\" onload='x"
    unseen = "\x1b\u202e\u2066\U000e0041"
    told = evil + unseen
    source = {"n": 1, "url": f"https://e.example/{evil}", "title": told, "state": "cited"}
    mark = {"span": [0, 4], "quote": told, "verdict": "unclear", "passage": told}
    cited = {**source, "quote": evil, "verified": None, "spans": [[0, 4]], "marks": [mark]}
    session = Session("a", evil, "m:x", "ask", "off", "off", None, 0.0, 0.0, 1, False)
    more = {"text": f"Here {evil}", "citations": [cited], "sources": [source], "search_path": evil}
    [asked, ended] = events(**more)
    files = [{"name": evil, "media_type": "image/png", "size": 1, "digest": "0" * 64}]
    asked = Event(1, "user_message", {"text": evil, "attachments": files}, 0.0)
    page = html(session, [asked, ended])
    assert not set(unseen) & set(page)
    seen = _Tags()
    seen.feed(page)
    assert not seen.tags & {"script", "img", "iframe", "link", "object", "form", "base", "svg"}
    assert not {name for name in seen.attributes if name.startswith("on") or name == "style"}
    assert all(value.startswith(("https://", "#")) for value in seen.links)
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


class _Tags(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes a tag."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
