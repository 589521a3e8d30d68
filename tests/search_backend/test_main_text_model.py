"""What the model sees: the sort of a page, how a block fits in, and what tells nothing."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from search_backend.readers._blocks import Layout, layout, written
from search_backend.readers._choose import MOST_FOR_SECOND, About, chosen, model, once
from search_backend.readers._context import best_run, context
from search_backend.readers._features import columns, same_ways, wrappers
from search_backend.readers._genre import GENRES, genre, page_names

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
    found = columns(page, odds, ways, (0.0,) * 8) + context(page, odds, ways)
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
        found = chosen(page, About(1, "https://example.org/blog/harbour")).blocks
        assert found == list(range(8))


def test_a_page_of_very_many_blocks_is_chosen_from_by_the_first_look() -> None:
    """A long article keeps its text and loses its menu all the same."""
    text = "<p>The harbour was built in three stages, and each is described here at length.</p>"
    menu = "<nav><ul><li><a href=/>Home</a><li><a href=/shop>Shop</a></ul></nav>"
    page = parsed(f"{menu}<main><article>{text * MOST_FOR_SECOND}</article></main>")
    found = chosen(page, About(1, "https://example.org/blog/harbour")).blocks
    assert found == list(range(2, MOST_FOR_SECOND + 2))


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
