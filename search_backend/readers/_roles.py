"""What part of a page an element says it is, by the words that page makers use for such parts.

A first guess weighs every name by itself. These few say the same on nearly all sites, so the
forests see them one by one: comments are furniture below an article, not in a forum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from search_backend.readers._blocks import Layout

# The number of the first role.
COMMENTS = 0
_COMMENTS = (
    ".comment .comments .commentlist .commenttext .reply .replies .disqus .respond .discussion "
    ".usercomments i=comment"
)
_RELATED = (
    ".related .relatedposts .recommended .recommendations .recommend .recirc .popular .trending "
    ".teaser .teasers .suggested .similar .latest .mostread .outbrain .taboola .upsell .crosssell "
    ".also"
)
_ASIDE = "aside .sidebar .rail .widget .widgets .widgetarea .secondary .complementary"
_MENU = (
    "nav header footer .nav .menu .navbar .navigation .breadcrumb .breadcrumbs .megamenu .submenu "
    ".dropdown .header .footer r=navigation r=banner r=contentinfo"
)
_OFFER = (
    ".newsletter .subscribe .signup .promo .promotion .ad .ads .advert .advertisement .sponsored "
    ".cta .paywall .banner .popup .modal .cookie"
)
_AUTHOR = ".author .bio .byline .authorbox .share .social .sharing .tags .meta"
_BODY = (
    "i=articlebody .articlebody .entry .postcontent .storybody .prose .richtext .rte .markdown "
    ".postbody .articlecontent"
)
_ROLES = tuple(
    frozenset(words.split())
    for words in (_COMMENTS, _RELATED, f"{_ASIDE} r=complementary", _MENU, _OFFER, _AUTHOR, _BODY)
)
# Two words that say together what those of a body say alone.
_OF_TEXT = frozenset((".article", ".story", ".post", ".news", ".blog"))
_WHOLE = frozenset((".body", ".content", ".text", ".copy", ".main"))
_BITS = [[float(mask >> at & 1) for at in range(len(_ROLES))] for mask in range(1 << len(_ROLES))]


def roles(page: Layout, wrapped: Sequence[bool]) -> list[Sequence[float]]:
    """One column a role: whether a block lies inside such a part; then one a role: the share of the
    page's words that do. `wrapped` tells the boxes that hold nearly all of the page."""
    masks = _masks(page, wrapped)
    words = dict[int, int]()
    for block in page.blocks:
        mask = masks[block.box]
        words[mask] = words.get(mask, 0) + block.words
    total, count = sum(words.values()), len(page.blocks)
    found = zip(*[_BITS[masks[block.box]] for block in page.blocks], strict=True)
    shares = [
        sum(part for mask, part in words.items() if mask >> at & 1) / total
        for at in range(len(_ROLES))
    ]
    return [*found, *([share] * count for share in shares)]


def _masks(page: Layout, wrapped: Sequence[bool]) -> list[int]:
    """For each box a bit for each role that it or a box around it has."""
    masks: list[int] = []
    for box, is_wrapper in zip(page.boxes, wrapped, strict=True):
        own = 0 if is_wrapper else _mask(box.names)
        masks.append(own | masks[box.parent] if box.parent >= 0 else own)
    return masks


@lru_cache(maxsize=4096)
def _mask(names: tuple[str, ...]) -> int:
    """A bit for each role that these names tell."""
    mask = sum(1 << at for at, words in enumerate(_ROLES) if not words.isdisjoint(names))
    if not (_OF_TEXT.isdisjoint(names) or _WHOLE.isdisjoint(names)):
        mask |= 1 << len(_ROLES) - 1
    return mask
