"""What a page or a text costs grows with its size and has a bound, whatever it holds."""

from __future__ import annotations

import pytest
from selectolax.lexbor import LexborHTMLParser

from bench.page_cost import PAGES, TEXTS, WORK
from searchloop.search_backend.readers._html.bounds import parsed
from searchloop.search_backend.readers._html.hidden import remove_hidden
from searchloop.search_backend.readers._html.styles import MOST_STEPS, Cascade
from tests.growth import grows_too_fast
from tests.tables import each_row


@pytest.mark.parametrize("name", PAGES)
def test_the_cost_of_a_page_grows_with_its_size(name: str) -> None:
    """A construct at four times the size costs about four times as much, or has met its bound."""
    assert not grows_too_fast(WORK["a page"], PAGES[name](8), PAGES[name](32))


# A third of the texts for each work, so that every text is in the suite for several of them; all
# of them for all are torture, being seconds of work.
SOME = [(name, list(TEXTS)[number % 3 :: 3]) for number, name in enumerate(WORK)]
ALL = [pytest.param(name, list(TEXTS), marks=pytest.mark.torture) for name in WORK]


@pytest.mark.parametrize(("name", "texts"), [*SOME, *ALL])
def test_the_cost_of_a_text_grows_with_its_size(name: str, texts: list[str]) -> None:
    """Neither a text of a page nor one of a model makes patterns look at it again and again."""
    WORK[name]("warm " * 50)
    sizes = {unit: 8_000 // len(unit) for unit in texts}
    slow = [
        unit
        for unit, size in sizes.items()
        if grows_too_fast(WORK[name], unit * size, unit * size * 4)
    ]
    assert slow == []


def steps(markup: str) -> int:
    """The steps that hiding costs in a page."""
    return MOST_STEPS - remove_hidden(parsed(markup)[0]).left


@each_row("name", PAGES)
def test_the_steps_of_a_page_grow_with_its_size(name: str) -> None:
    """Twice as many rules that look at the neighbours of twice as many elements are eight times
    the steps; nothing grows faster."""
    small, large = (steps(PAGES[name](size)) for size in (3, 6))
    assert large <= max(9 * small, 20_000)


def test_rules_times_elements_are_bounded() -> None:
    """Hundreds of rules that each mean hundreds of elements use up the budget and no more."""
    page = f"<style>{'p{color:#fff}' * 230}</style>{'<p>x ' * 900}"
    tree = LexborHTMLParser(page)
    assert 0 <= remove_hidden(tree, Cascade(tree, steps=20_000)).left < 2_000
    assert tree.body is not None
    assert tree.body.text(strip=True) == ""


def test_what_costs_too_much_counts_for_nothing_and_styles_still_count() -> None:
    """A rule that is too dear hides nothing; simple rules, styles and attributes do."""
    dear = "".join(f"h1~p:nth-child({i}n+7) ~ p.dear{{opacity:0}}" for i in range(1, 651))
    page = (
        f"<style>{dear}.k{{display:none}}</style><h1>Shown</h1>{'<p>x ' * 3_000}"
        "<p class=dear>kept<p class=k>gone<p style=display:none>gone<p hidden>gone"
    )
    tree = LexborHTMLParser(page)
    assert remove_hidden(tree).left >= 0
    assert tree.body is not None
    text = tree.body.text()
    assert "kept" in text
    assert "gone" not in text


def test_a_step_that_costs_more_than_is_left_is_not_made() -> None:
    """It is not charged either, so that cheaper ones are still made."""
    cascade = Cascade(LexborHTMLParser("<p>x"), steps=10)
    assert [cascade.pay(price) for price in (4, 7, 6, 1)] == [True, False, True, False]
