"""What the model sees: the sort of a page, how a block fits in, and what tells nothing."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from searchloop.search_backend.readers._html.blocks import Layout, layout, roles, written
from searchloop.search_backend.readers._html.choose import (
    GENRES,
    MANY,
    About,
    alike,
    best_run,
    chosen,
    context,
    genre,
    model,
    once,
    page_names,
)
from searchloop.search_backend.readers._html.features import columns, same_ways, wrappers
from tests.tables import each_row

MARKUP = st.lists(
    st.sampled_from(
        ["<div class=a>", "</div>", "<p>", "<li><a href=/x>", "</a>", "<h2>", "two words ", "<td>"]
    ),
    max_size=40,
).map("".join)


def parsed(markup: str) -> Layout:
    """The blocks of a page."""
    return layout(written(LexborHTMLParser(f"<body>{markup}")))


@given(MARKUP, st.integers(0, 9))
def test_every_block_gets_every_feature(markup: str, seed: int) -> None:
    """Whatever the page, no column is short and no number is missing, with odds of any kind."""
    page = parsed(f"start {markup}")
    count = len(page.blocks)
    odds = [((at * 7 + seed) % 10 + 0.5) / 10.5 for at in range(count)]
    ways = same_ways(page.boxes)
    found = columns(page, odds, ways, (0.0,) * 8) + context(page, odds, ways, range(count))
    found += roles(page, wrappers(page))
    assert {len(column) for column in found} == {count}
    assert all(value == value for column in found for value in column)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(1, 61)), min_size=1, max_size=8),
)
def test_the_best_run_is_the_best_of_all_runs(blocks: list[tuple[float, float]]) -> None:
    """No other run of blocks has more main text over the rest; a page without any gives 0."""
    odds, weights = [odd for odd, _ in blocks], [weight for _, weight in blocks]
    gains = [(odd - 0.5) * weight for odd, weight in blocks]
    best = max(
        [0.0, *(sum(gains[low:high]) for low, high in combinations(range(len(blocks) + 1), 2))]
    )
    first, last, gain = best_run(odds, weights)
    assert gain == pytest.approx(best)
    if gain:
        assert sum(gains[first : last + 1]) == pytest.approx(best)


def test_the_sort_of_a_page_is_told_by_its_names_and_address() -> None:
    """Odds of all sorts sum to one, and the names of a forum make it one."""
    weights = {"": [0.0] * len(GENRES), "host forum": [0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0]}
    names = page_names(parsed("<div class=post-list>x</div>"), "https://forum.example/t/hi/4", 3)
    assert {".post", ".list", "host forum", "/t", "/hi", "/#", "/ 3", "kind 3"} <= names
    odds = genre(names, weights)
    assert sum(odds) == pytest.approx(1.0)
    assert max(odds) == odds[GENRES.index("forum")] > 0.5
    assert genre({"kind 0"}, weights) == pytest.approx([1 / len(GENRES)] * len(GENRES))


@pytest.mark.parametrize("url", ["", "x", "http://[bad", "library://docs/a.md", "https://e/\n"])
def test_any_address_will_do(url: str) -> None:
    """An address tells little or nothing, but it is never in the way."""
    assert "kind 0" in page_names(parsed("x"), url, 0)


def test_what_holds_the_whole_page_tells_no_block_from_another() -> None:
    """Names around nearly all words do not count, however bad: body, and a wrapper in it."""
    text = "<p>The harbour was built in three stages, and each is described here at length.</p>"
    for names in ("", "class='footer sidebar comments related modal'"):
        page = parsed(f"<div {names}><main>{text * 8}</main><nav><a href=/>Home</a></nav></div>")
        assert wrappers(page)[:3] == [True, True, True]
        assert not wrappers(page)[3]
        found = chosen(page, About(1, "https://example.org/blog/harbour"))
        assert found == list(range(8))


def test_a_page_of_very_many_blocks_keeps_its_text() -> None:
    """A long article keeps its text and loses its menu all the same."""
    text = "<p>The harbour was built in three stages, and each is described here at length.</p>"
    menu = "<nav><ul><li><a href=/>Home</a><li><a href=/shop>Shop</a></ul></nav>"
    page = parsed(f"{menu}<main><article>{text * 2000}</article></main>")
    found = chosen(page, About(1, "https://example.org/blog/harbour"))
    assert found == list(range(2, 2002))


def test_blocks_of_which_the_first_look_is_sure_are_not_looked_at_again() -> None:
    """All are, on a page where it is sure of no text: there only the second tells them apart."""
    page = parsed("<p>the first text</p><p>another text</p><p>a third text</p>")
    for scores, again in (([3.0, -3.0, 1.0], 1), ([-3.0, -4.0, -5.0], 3), ([3.0, 3.0, -9.0], 0)):
        first, looks = iter(scores), iter([0.0] * again)
        by = dataclasses.replace(
            model(),
            first=lambda *_, scores=first: next(scores),
            second=lambda *_, looks=looks: next(looks),
        )
        chosen(page, About(1, "https://example.org/blog/harbour"), by)
        assert list(looks) == []


@each_row("before", ["", "<h1>The harbour</h1>"])
@each_row("words", [8, 30])
@each_row("frame", ["main", "div", "article"])
def test_a_thousand_equal_blocks_are_all_kept(before: str, words: int, frame: str) -> None:
    """The end of a long text is no less a part of it than its beginning."""
    text = "".join(f"<p>Stage {n} {'of the harbour ' * (words // 3)}</p>" for n in range(1000))
    page = parsed(f"{before}<{frame}>{text}</{frame}>")
    found = chosen(page, About(0, "https://example.org/harbour"))
    begun = len(page.blocks) - 1000
    assert found[-1000:] == list(range(begun, begun + 1000))


@given(st.lists(st.floats(-9, 9), min_size=MANY, max_size=MANY + 5), st.floats(-9, 9))
def test_many_blocks_in_like_places_have_one_score(scores: list[float], other: float) -> None:
    """Theirs is their mean; a block elsewhere, and few of a kind, keep their own."""
    page = parsed("<p>two words</p>" * len(scores) + "<h2>a heading</h2>")
    ways = same_ways(page.boxes)
    found = alike(page, [*scores, other], ways)
    assert found[-1] == other
    assert found[:-1] == pytest.approx([sum(scores) / len(scores)] * len(scores), abs=1e-9)
    few = parsed("<p>two words</p>" * (MANY - 1))
    own = scores[: MANY - 1]
    assert alike(few, own, same_ways(few.boxes)) == own


def test_what_part_of_a_page_a_block_lies_in() -> None:
    """Comments below a text are known by their names however deep; what holds the whole page
    makes no part of it."""
    page = parsed(
        "<div class='article sidebar'><div class=post-body><p>eight words of text that say "
        "what is</p></div><ul class=comments-list><li><div class=x><p>two words</p></div></ul>"
    )
    found = roles(page, wrappers(page))
    comments, aside, body = found[0], found[2], found[6]
    assert (list(comments), list(aside), list(body)) == ([0, 1], [0, 0], [1, 0])
    assert [column[0] for column in found[7:]] == [0.2, 0, 0, 0, 0, 0, 0.8]


COMMENT = (
    "<li class='comment depth-1'><div class=comment-body><cite>Reader {0}</cite><p>I walked along "
    "the quay in year {0} and nobody there knew of any stages at all.</p></div></li>"
)


def test_comments_below_a_short_article_are_no_part_of_it() -> None:
    """Even when they are most of the page."""
    text = "<p>The harbour was built in three stages, and each is described here at length.</p>"
    page = parsed(
        f"<main><article class=post><h1>The harbour</h1><div class=entry-content>{text * 9}</div>"
        "</article><div id=comments class=comments-area><h2>Comments</h2><ol class=comment-list>"
        + "".join(COMMENT.format(n) for n in range(20))
        + "</ol></div></main>"
    )
    found = chosen(page, About(1, "https://example.org/blog/harbour"))
    kept = [page.blocks[at].text for at in found]
    assert sum("three stages" in text for text in kept) == 9
    assert not any("the quay" in text for text in kept)


def test_what_a_page_says_in_two_places_is_kept_once() -> None:
    """A copy for small screens goes; what repeats itself in like places stays, as do cells, code
    and short lines."""
    words = "The harbour of {} was built in three stages."
    text = "".join(f"<p>{words.format(name)}</p>" for name in ("Aden", "Bari", "Cork", "Aden"))
    again = f"<td>{words.format('Bari')}</td><td><p>{words.format('Cork')}</p></td>"
    kept = f"{text}<p>It took long.</p><table><tr>{again}</table><pre>{words.format('Bari')}</pre>"
    copy = f"<blockquote>{words.format('Cork')}</blockquote><div class=mobile>{text}</div>"
    page = parsed(f"<main>{kept}<p>{words.format('Doha')}</p>{copy}<b>It took long.</b></main>")
    found = once(page, list(range(len(page.blocks))), same_ways(page.boxes))
    assert found == [*range(9), len(page.blocks) - 1]
    assert once(page, [13, 14], same_ways(page.boxes)) == [13, 14]


def test_the_model_that_is_shipped_fits_the_features() -> None:
    """All sorts have a weight, and cuts are shares."""
    found = model()
    assert {len(row) for row in found.genres.values()} == {len(GENRES)}
    assert all(0 < cut < 1 for cut in found.cut)
