"""Slices join to the text, end where a reader would stop, and passages sit where they say."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.text.slices import cut, find, occurrences
from tests.growth import check_growth
from tests.tables import each_row

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


@each_row(
    ("text", "words", "found"),
    [
        ("in İstanbul", "istanbul", "İstanbul"),
        ("ISTANBUL", "İstanbul", "ISTANBUL"),
        ("DIYARBAKIR", "diyarbakır", "DIYARBAKIR"),
        ("ΟΔΟΣ", "οδος", "ΟΔΟΣ"),
        ("a\u3000b\xa0c", "A b C", "a\u3000b\xa0c"),
        ("1. (a+)+$ [x]", "(A+)+$ [X]", "(a+)+$ [x]"),
    ],
)
def test_letters_that_are_the_same_in_another_case_are_found(
    text: str, words: str, found: str
) -> None:
    """Also the dots of Turkish, the last letter of Greek words; the place is that of the text."""
    before = "x" * 500 + " \n\n"
    start = len(before) + text.index(found)
    assert occurrences(before + text, words) == [(start, start + len(found))]
    matches, count, _ = find(before + text, words, 1000)
    assert count == 1
    assert found in matches[0].text


@given(st.text(st.sampled_from("aAb  \n\tſıİ"), max_size=60))
def test_every_word_of_a_text_is_found_where_it_stands(text: str) -> None:
    """Written as it is or in capitals, and no two places overlap."""
    for word in text.split():
        for words in (word, word.upper()):
            spans = occurrences(text, words)
            assert spans[0][0] <= text.index(word)
            assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))


def test_a_letter_that_has_two_in_another_case_is_found_in_its_paragraph() -> None:
    """Words in a row are compared letter by letter; a paragraph with all of them still counts."""
    matches, count, _ = find("Nothing.\n\nDie Straße am Fluß.\n\nEnd.", "STRASSE", 1000)
    assert (count, matches[0].text) == (1, "Die Straße am Fluß.")


@pytest.mark.parametrize(
    ("piece", "words"),
    [("a ", "a " * 249 + "b"), ("a", "a" * 499 + "b")],
)
def test_no_text_makes_finding_slow(piece: str, words: str) -> None:
    """A page that repeats itself costs what its length costs."""
    check_growth(lambda text: find(text, words, 1000), piece * (100_000 // len(piece)))


def test_scattered_words_are_found_in_one_paragraph() -> None:
    """Without the words in a row, a paragraph that holds all of them counts."""
    text = "Nothing here.\n\nThe switch is what decides about search.\n\nsearch only"
    matches, count, _ = find(text, "search switch", 1000)
    assert count == 1
    assert matches[0].text == "The switch is what decides about search."
