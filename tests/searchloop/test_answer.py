"""How an answer shows itself: printed, at a prompt, in a notebook; nothing in it is alive."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from searchloop import Answer, Usage
from searchloop.agent.types import Citation, Mark, Source
from tests.tables import each_row

HOSTILE = (
    "<script>alert(1)</script>",
    "![x](https://evil.example/leak.png)",
    '<img src="https://evil.example/x" onerror="alert(1)">',
    "[click](javascript:alert(1))",
    "\x1b]0;owned\x07\x1b[2J",
    "\u202etxt.exe",
)


def answer(text: str, title: str = "Bridges", url: str = "https://a.example/") -> Answer[None]:
    """One citation, at its first characters."""
    mark = Mark((0, min(3, len(text))), None, "supported", "It was built in 1932.")
    cited = (Citation(1, url, title, (mark,)),)
    sources = (Source(url, title, "cited", 1),)
    return Answer(text, "stop", cited, sources, Usage(), "local:recorded", "s-1")


def test_print_shows_text_sources_and_verdicts() -> None:
    """What a person wants to see."""
    assert str(answer("It opened in 1932 [1].")) == (
        "It opened in 1932 [1].\n\n[1] Bridges https://a.example/\n    The source says so"
    )
    assert str(Answer("Hello.", "stop", (), (), Usage(), "off", "s-1")) == "Hello."


def test_repr_is_one_short_line() -> None:
    """At a prompt, in a log, in a failed assertion."""
    shown = repr(answer("word " * 5000))
    assert len(shown) < 120
    assert shown.startswith("<Answer 'word word")
    assert "\n" not in repr(answer("a\nb\n\nc"))


@each_row("evil", HOSTILE)
@each_row("place", ["text", "title", "url"])
def test_nothing_of_it_is_alive(evil: str, place: str) -> None:
    """Neither markup, nor an image of another server, nor a control of the terminal."""
    shown = answer(**{"text": "Yes [1].", place: evil})  # type: ignore[arg-type]
    html, printed = shown._repr_html_(), str(shown)
    assert not re.search(r"<(?:script|img)|\son\w+=|href=\"javascript|src=", _unescaped_tags(html))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", printed)


def _unescaped_tags(html: str) -> str:
    """The tags alone."""
    return " ".join(re.findall(r"<[^>]*>", html))


@given(st.text(max_size=200), st.text(max_size=50), st.text(max_size=50))
def test_anything_can_be_shown(text: str, title: str, url: str) -> None:
    """Whatever a model or a page wrote, no face of the answer fails."""
    shown = answer(text, title, url)
    for made in (str(shown), repr(shown), shown._repr_html_()):
        assert isinstance(made, str)


def test_two_answers_in_a_notebook_do_not_share_anchors() -> None:
    """A mark leads to its own source."""
    first, second = answer("One [1].")._repr_html_(), answer("Two [1].")._repr_html_()
    ids = [re.findall(r'id="([^"]+)"', each) for each in (first, second)]
    assert len({*ids[0], *ids[1]}) == 2
