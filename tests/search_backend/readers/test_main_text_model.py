"""What the model sees: the sort of a page, how a block fits in, and what tells nothing."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from searchloop.search_backend.readers._html.blocks import Layout, layout, written
from searchloop.search_backend.readers._html.choose import About, chosen, once
from searchloop.search_backend.readers._html.features import same_ways
from tests.tables import each_row


def parsed(markup: str) -> Layout:
    """The blocks of a page."""
    return layout(written(LexborHTMLParser(f"<body>{markup}")))


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
