"""Documents of this machine with addresses of a scheme of their own, such as SCHEME://NAME/PATH.

Readers resolve links the way the web does, which programs do for web addresses only. So a document
is read as if it stood at https://NAME.SCHEME.invalid/PATH (a name that nobody can have, RFC 6761),
and its links are turned back afterwards: those to the same archive can be opened like any result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from search_backend.fetched import Fetched
from search_backend.reading import read_fetched
from search_backend.types import Page

# The document at an address of the shelf's scheme. Raises SearchBackendError.
Shelf = Callable[[str], Fetched]


def web_form(scheme: str, name: str, path: str) -> str:
    """The stand-in for SCHEME://NAME/PATH. `name` is a host label, `path` percent-encoded."""
    return f"https://{name}.{scheme}.invalid/{path}"


def read_shelved(fetched: Fetched, url: str, scheme: str) -> Page:
    """The page in a document of this shelf, with the addresses that it has there."""
    page = read_fetched(fetched)
    stand_in = re.compile(rf"https://([a-z0-9_-]+)\.{re.escape(scheme)}\.invalid/")

    def own(text: str) -> str:
        return stand_in.sub(rf"{scheme}://\1/", text)

    links = tuple(own(link) for link in page.links)
    return replace(page, url=url, final_url=own(page.final_url), text=own(page.text), links=links)
