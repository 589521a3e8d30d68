"""HTML of which nothing is beside the point: all that is shown of it."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from search_backend.clean import cleaned
from search_backend.readers import _about
from search_backend.readers._blocks import layout, written
from search_backend.readers._bounds import bounded
from search_backend.readers._hidden import remove_hidden
from search_backend.readers._markdown import markdown
from search_backend.types import Page


def whole(markup: str, url: str) -> Page:
    """The page without a title, with its links."""
    markup, cut = bounded(markup)
    tree = LexborHTMLParser(markup)
    told = _about.told(tree)
    remove_hidden(tree)
    body = written(tree)
    shown = layout(body)
    text, unseen = cleaned(markdown(shown, range(len(shown.blocks)), url))
    links = _about.links(tree, told, body, url)
    return Page(url, url, "", text, links, cut=cut, invisible=unseen)
