"""Parse markup within bounds: of its length, of its elements, of how deep they nest.

What these bounds leave is parsed in a process that is killed when a page takes too long.
"""

from __future__ import annotations

import re
from itertools import islice

from selectolax.lexbor import LexborHTMLParser

MOST_BYTES = 6 * 2**20
MOST_CHARACTERS = 2_000_000
# A parsed element and what is made of it take some 700 bytes.
MOST_ELEMENTS = 60_000
# Whoever asks what is around each element pays for their depth once more.
DEEPEST = 256

_START = re.compile("<[a-zA-Z]")
# All but those that tell of the page, and formulas.
_SCRIPT = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"
    r"|<script(?=[\s/>])(?![^>]{0,200}(?:ld\+json|math/tex))[^>]*+>?.*?(?:</script[^>]*+>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
# Where scripts run, an open frame ends with the <noscript> around it; here it would take the rest
# of the page for its own.
_OPEN_FRAME = re.compile(r"(<noscript[^<>]*+>\s*+<iframe[^<>]*+>)(?=\s*+</noscript)")
# What an element shows instead of its own content, the innermost first.
_SHADOW = re.compile(
    r"(?i)<template\s[^<>]*shadowrootmode[^<>]*>([^<]*+(?>(?:<(?!/?template[\s>])[^<]*+)*))</template>"
)


def parsed(html: str) -> tuple[LexborHTMLParser, bool]:
    """The tree of the markup within the bounds, and whether there was more."""
    if len(html) > MOST_CHARACTERS:
        # Most of so long a page is scripts as a rule, and its text may stand behind them.
        html = _SCRIPT.sub(" ", html)
    cut = len(html) > MOST_CHARACTERS
    html = _OPEN_FRAME.sub(r"\1</iframe>", html[:MOST_CHARACTERS])
    for _ in range(9 * ("shadowrootmode" in html)):
        html = _SHADOW.sub(r"<shadow-root>\1</shadow-root>", html)
    if html.count("<") > MOST_ELEMENTS:
        for first in islice(_START.finditer(html), MOST_ELEMENTS, MOST_ELEMENTS + 1):
            html, cut = html[: first.start()], True
    tree = LexborHTMLParser(html)
    if html.count("<") > DEEPEST:
        _flatten(tree)
    return tree, cut


def _flatten(tree: LexborHTMLParser) -> None:
    """Leaves of what lies too deep the text alone."""
    depths: dict[int, int] = {}
    for node in tree.css("*"):
        around = node.parent
        above = depths.get(around.mem_id, 0) if around is not None else 0
        if above < DEEPEST:
            depths[node.mem_id] = above + 1
        elif around is not None:  # with all its children it leaves the tree
            for unread in around.css("script,style,template"):
                unread.remove()
            text = around.text(deep=True, separator=" ")
            for child in [*around.iter(include_text=True)]:
                child.remove()
            around.insert_child(text)
