"""Slices join to the text, end where a reader would stop, and passages sit where they say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from search_backend.paging import cut, find

TEXT = st.text(st.sampled_from("ab .\n!é漢。😀"), max_size=400)


@given(TEXT, st.integers(1, 60))
def test_all_slices_joined_are_the_text(text: str, length: int) -> None:
    """Every slice moves on, none is longer than asked for, none is lost or doubled."""
    parts, offset = [], 0
    while offset < len(text):
        end = cut(text, offset, length)
        assert offset < end <= offset + length
        parts.append(text[offset:end])
        offset = end
    assert "".join(parts) == text


def test_cuts_fall_after_a_paragraph_a_sentence_or_a_word() -> None:
    """The best end within the last third of a slice is taken."""
    assert cut("One two.\n\nThree four five", 0, 12) == 10
    assert cut("One two three. Four five six", 0, 18) == 15
    assert cut("One two three four", 0, 10) == 8
    assert cut("Onetwothreefour", 0, 10) == 10


@given(TEXT, st.text(st.sampled_from("ab .\n"), min_size=1, max_size=4), st.integers(1, 200))
def test_passages_sit_where_they_say(text: str, words: str, most: int) -> None:
    """Offsets are exact, passages do not overlap, and together they respect the limit."""
    matches, count, more = find(text, words, most)
    assert sum(match.end - match.start for match in matches) <= most
    assert all(text[match.start : match.end] == match.text for match in matches)
    ends = [0, *(match.end for match in matches)]
    assert all(match.start >= end for match, end in zip(matches, ends, strict=False))
    assert bool(matches) == bool(count)
    assert more is None or more == ends[-1] > 0


def test_case_and_blanks_do_not_matter() -> None:
    """Words are found across line ends and in any case."""
    matches, count, _ = find("Intro.\nThe SEARCH\n switch decides.\nEnd.", "search  switch", 1000)
    assert count == 1
    assert "SEARCH\n switch" in matches[0].text


def test_scattered_words_are_found_in_one_paragraph() -> None:
    """Without the words in a row, a paragraph that holds all of them counts."""
    text = "Nothing here.\n\nThe switch is what decides about search.\n\nsearch only"
    matches, count, _ = find(text, "search switch", 1000)
    assert count == 1
    assert matches[0].text == "The switch is what decides about search."
