"""Which blocks of a page are right: what a model that chooses main text is fitted to."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from bench.extraction_labels import right_blocks
from searchloop.search_backend.readers._html.blocks import layout, written

STORY = "The harbour was built in three stages, and each of them took longer than planned."
OTHER = "Nobody who saw the old pier would have guessed that a ship of this size could land."


def right(markup: str, truth: str) -> list[str]:
    """The texts of the blocks that are right."""
    page = layout(written(LexborHTMLParser(markup)))
    chosen = right_blocks(page, truth)
    return [block.text for block, is_right in zip(page.blocks, chosen, strict=True) if is_right]


def test_a_menu_that_shares_a_word_with_the_text_is_wrong() -> None:
    """Each word of the right text is used once, and long blocks come first."""
    menu = "<ul><li>harbour</li><li>ship</li></ul>"
    found = right(f"{menu}<p>{STORY}</p><p>{OTHER}</p>{menu}", f"{STORY}\n{OTHER}")
    assert found == [STORY, OTHER]


def test_of_two_equal_blocks_the_one_among_right_ones_is_right() -> None:
    """A teaser that repeats a paragraph stands among other teasers."""
    teasers = "".join(f"<p>Read what we said about matter number {n} last year.</p>" for n in "123")
    page = f"<div>{teasers}<p>{OTHER}</p>{teasers}</div><div><p>{STORY}</p><p>{OTHER}</p></div>"
    tree = layout(written(LexborHTMLParser(page)))
    assert right_blocks(tree, f"{STORY} {OTHER}") == [False] * 7 + [True, True]


def test_a_short_heading_of_the_text_is_right() -> None:
    """It is in the right text besides the paragraphs."""
    found = right(f"<h2>Stages</h2><p>{STORY}</p><h2>Menu</h2>", f"Stages\n\n{STORY}")
    assert found == ["Stages", STORY]


def test_a_page_without_right_text_has_no_right_block() -> None:
    """So is a block without a word, and an empty page has none at all."""
    assert right(f"<p>{STORY}</p><p>***</p>", "") == []
    assert right("", STORY) == []
