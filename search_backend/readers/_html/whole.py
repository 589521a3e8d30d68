"""All that some markup shows, as a page: for documents that hold no navigation to leave out."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from searchloop.search_backend.readers._html import about as _about
from searchloop.search_backend.readers._html.blocks import layout, written
from searchloop.search_backend.readers._html.bounds import parsed
from searchloop.search_backend.readers._html.markdown import markdown
from searchloop.search_backend.readers._html.parts.visible import show
from searchloop.search_backend.text.clean import cleaned, one_line
from searchloop.search_backend.types import Page


def whole_page(markup: str, url: str, title: str = "") -> Page:
    """Returns everything that is shown of some HTML as Markdown, and its links."""
    tree, cut = parsed(markup)
    metadata = _about.metadata(tree, url)
    show(tree)
    body = written(tree)
    shown = layout(body)
    text, unseen = cleaned(markdown(shown, range(len(shown.blocks)), metadata.base))
    links = _about.links(metadata, tree, url)
    return Page(url, url, one_line(title), text, links, cut=cut, invisible=unseen)


def file_name(url: str) -> str:
    """Returns the last part of an address, which names a document without a title."""
    return PurePosixPath(unquote(urlsplit(url).path)).name
