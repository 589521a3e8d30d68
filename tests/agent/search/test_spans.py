"""Spans: offsets of every kind end up on the link that they mean, and inside the text."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from searchloop.agent.search.citations import locate, widen, without_tracking
from searchloop.agent.types import Span
from tests.tables import each_row

URL = "https://tides.example/today?utm_source=openai"
LINK = f"([tides.example]({URL}))"
TEXT = f"Høy 🌊🌊 water at nine {LINK}. Low at three."
START, END = TEXT.index(LINK), TEXT.index(LINK) + len(LINK)
TWICE = f"one {LINK} and two {LINK}"
SECOND = TWICE.rindex(LINK)
BARE = f"see {without_tracking(URL)} now"
LAST = BARE.index(" now")
WET = "Water is wet."


def units(at: int) -> int:
    """A code-point offset in UTF-16 units."""
    return len(TEXT[:at].encode("utf-16-le")) // 2


@each_row(
    ("text", "told", "meant"),
    [
        (TEXT, (START, END), (START, END)),
        (TEXT, (units(START), units(END)), (START, END)),
        *((TEXT, nonsense, (START, END)) for nonsense in ((START + 400, END + 400), (-5, -1))),
        (TEXT, (0, 0), (START, END)),
        (BARE, (4, LAST - 1), (4, LAST)),  # an end that is the last character
        (TWICE, (6, 9), (4, 4 + len(LINK))),
        (TWICE, (SECOND + 3, SECOND + 5), (SECOND, len(TWICE))),
        (WET, (0, 8), (0, 8)),  # a provider that marks the claim itself, within the text
        (WET, (-3, 99), (0, 13)),
        (WET, (20, 30), None),
    ],
)
def test_all_ways_of_counting(text: str, told: Span, meant: Span | None) -> None:
    """Code points, UTF-16 units and nonsense all find the link, and of several the nearest."""
    assert locate(text, *told, URL) == meant


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
