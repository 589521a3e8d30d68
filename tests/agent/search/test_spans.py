"""Spans: offsets of every kind end up on the link that they mean, and inside the text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from searchloop.agent.search.citations import locate, widen, without_tracking

URL = "https://tides.example/today?utm_source=openai"
LINK = f"([tides.example]({URL}))"
TEXT = f"Høy 🌊🌊 water at nine {LINK}. Low at three."
START, END = TEXT.index(LINK), TEXT.index(LINK) + len(LINK)


def units(at: int) -> int:
    """A code-point offset in UTF-16 units."""
    return len(TEXT[:at].encode("utf-16-le")) // 2


@pytest.mark.parametrize(
    ("start", "end"),
    [(START, END), (units(START), units(END)), (START + 400, END + 400), (-5, -1), (0, 0)],
)
def test_all_ways_of_counting(start: int, end: int) -> None:
    """Code points, UTF-16 units and nonsense all find the link."""
    assert locate(TEXT, start, end, URL) == (START, END)


def test_an_end_that_is_the_last_character() -> None:
    """A range one short of the address is one that includes its end."""
    text = f"see {without_tracking(URL)} now"
    end = text.index(" now") - 1
    assert locate(text, 4, end, URL) == (4, end + 1)


def test_the_nearest_of_several_links() -> None:
    """The same page cited twice: each citation keeps its own place."""
    text = f"one {LINK} and two {LINK}"
    second = text.rindex(LINK)
    assert locate(text, 6, 9, URL) == (4, 4 + len(LINK))
    assert locate(text, second + 3, second + 5, URL) == (second, len(text))


def test_a_claim_without_a_link() -> None:
    """A provider that marks the claim itself is believed, within the text."""
    assert locate("Water is wet.", 0, 8, URL) == (0, 8)
    assert locate("Water is wet.", -3, 99, URL) == (0, 13)
    assert locate("Water is wet.", 20, 30, URL) is None


@given(st.text(max_size=40), st.integers(-9, 99), st.integers(-9, 99), st.booleans())
def test_never_out_of_range(text: str, start: int, end: int, linked: bool) -> None:
    """Whatever comes in, a span is a non-empty range of the text."""
    text = f"{text}{URL}" if linked else text
    span = locate(text, start, end, URL)
    assert span is None or 0 <= span[0] < span[1] <= len(text)
    if linked:
        assert span is not None
        assert URL in text[slice(*span)]


@given(st.text(max_size=40), st.integers(0, 40))
@example("First claim. Second claim. Third", 26)
def test_the_sentence_before(text: str, at: int) -> None:
    """A citation without a link of its own covers the claim it follows: the sentence before a place
    is a non-empty range, or there is none."""
    span = widen(text, min(at, len(text)))
    assert span is None or 0 <= span[0] < span[1] <= at
    if text.startswith("First claim. Second"):
        assert span is not None
        assert text[slice(*span)] == "Second claim."
