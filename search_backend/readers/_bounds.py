"""Bound markup before any parser sees it: building a deep tree costs time quadratic in its depth.

One pass over the tags counts open elements and leaves out those beyond a depth that no real page
has. Elements that close by themselves are not counted. Open formatting elements have a bound of
their own, because a parser repeats them in every paragraph that follows.
"""

from __future__ import annotations

import re

MOST_CHARACTERS = 2_000_000
DEEPEST = 256
MOST_FORMATTING = 24
# Attributes beyond this length are data, never text.
LONGEST_TAG = 10_000

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,30})(?=[\s/>])")
_SELF_CLOSING = (
    "area base br col embed hr img input link meta param source track wbr "
    "p li dt dd tr td th thead tbody tfoot option optgroup colgroup html head body"
)
_NEVER_OPEN = frozenset(_SELF_CLOSING.split())
_REPEATED = "a b big code em font i nobr s small strike strong tt u"
_FORMATTING = frozenset(_REPEATED.split())


def bounded(html: str) -> tuple[str, bool]:
    """The markup within the bounds, and whether it was longer than the cap."""
    cut = len(html) > MOST_CHARACTERS
    html = html[:MOST_CHARACTERS]
    if html.count("<") <= DEEPEST:
        return html, cut
    kept: list[str] = []
    position = 0
    for start in _excess(html):
        end = html.find(">", start, start + LONGEST_TAG)
        kept.append(html[position:start])
        position = end + 1 if end >= 0 else start + 1
    kept.append(html[position:])
    return "".join(kept), cut


def _excess(html: str) -> list[int]:
    """Where the tags stand that would go too deep."""
    excess: list[int] = []
    open_tags: dict[str, int] = {}
    left_out: dict[str, int] = {}
    depth = formatting = 0
    for match in _TAG.finditer(html):
        closing, name = match[1], match[2].lower()
        if name in _NEVER_OPEN:
            continue
        if not closing:
            full = formatting >= MOST_FORMATTING if name in _FORMATTING else depth >= DEEPEST
            if full:
                left_out[name] = left_out.get(name, 0) + 1
                excess.append(match.start())
                continue
            open_tags[name] = open_tags.get(name, 0) + 1
            if name in _FORMATTING:
                formatting += 1
            else:
                depth += 1
        elif left_out.get(name):
            left_out[name] -= 1
            excess.append(match.start())
        elif open_tags.get(name):
            open_tags[name] -= 1
            if name in _FORMATTING:
                formatting -= 1
            else:
                depth -= 1
    return excess
