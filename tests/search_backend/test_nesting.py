"""How deep a page nests is counted in a short way and in a long one; both say the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_backend.readers._nesting import (
    DEEPEST,
    MARK,
    MOST_FORMATTING,
    clear_names,
    nests_little,
    stays_within,
)

_TAGS = ("div", "/div", "a", "/a", "b", "/b", "svg", "/svg", "path", "/path", "LI", "/ul", "UL")
_PIECES = (
    *(
        "<div>",
        "</div>",
        "<a href=/x?a=1>",
        "</a>",
        '<b title="a>b">',
        "</b>",
        "<br/>",
        "<!--",
        "-->",
    ),
    *("<p class='", "'", '"', "=", " ", ">", "<", "/", "<script>x</script>", "<style>", "</style>"),
    *("<i ", "a=", "b", "<x-y a='<'>", "<!doctype html>", "<div =", "a ="),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(_TAGS), max_size=12),
    st.lists(st.sampled_from(_TAGS), max_size=12),
    st.integers(0, 300),
    st.integers(8_001, 9_000),
)
def test_pairs_taken_out_change_nothing(
    before: list[str], unit: list[str], repeats: int, length: int
) -> None:
    """Tags in any order, repeated, among very many more that are ended at once."""
    names = before * 3 + unit * repeats + ["i", "/i"] * (length // 2 + 1)
    assert nests_little(names) == stays_within(names, {}, DEEPEST, MOST_FORMATTING)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join))
def test_only_what_can_be_read_in_one_way_is_read_the_short_way(markup: str) -> None:
    """Tags that are all clear are those that a reading with an eye to quotes finds."""
    names = clear_names(markup)
    if names is not None:
        assert names == [name for name, _ in MARK.findall(markup) if name]


@pytest.mark.parametrize(
    "markup",
    [
        *("<div ='x><i>'>", '<a b="c"="d e=">">', '<a b=c"d e=">">', "<a / ='>'>", "<a <b>"),
        *("<a b='", "a < b", "<p " + "a " * 200 + ">", "<p" + " a=b" * 200 + ">", "<a 'b='c'>"),
    ],
)
def test_what_could_be_read_in_two_ways_is_not_clear(markup: str) -> None:
    """Strange quotes, signs left alone and very many attributes."""
    assert clear_names("<p>x</p>" + markup) is None
