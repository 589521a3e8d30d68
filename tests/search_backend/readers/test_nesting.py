"""The names of tags are read in a short way and in a long one; both say the same."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from searchloop.search_backend.readers._html.bounds import MARK, clear_names
from tests.tables import each_row

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


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join))
def test_only_what_can_be_read_in_one_way_is_read_the_short_way(markup: str) -> None:
    """Tags that are all clear are those that a reading with an eye to quotes finds."""
    names = clear_names(markup)
    if names is not None:
        assert names == [name for name, _ in MARK.findall(markup) if name]


@each_row(
    "markup",
    [
        *("<div ='x><i>'>", '<a b="c"="d e=">">', '<a b=c"d e=">">', "<a / ='>'>", "<a <b>"),
        *("<a b='", "a < b", "<p " + "a " * 200 + ">", "<p" + " a=b" * 200 + ">", "<a 'b='c'>"),
    ],
)
def test_what_could_be_read_in_two_ways_is_not_clear(markup: str) -> None:
    """Strange quotes, signs left alone and very many attributes."""
    assert clear_names("<p>x</p>" + markup) is None
