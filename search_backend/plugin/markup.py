"""Takes the rows of an answer out of HTML or XML, for engines whose site has no other form.

A parser may take time that no length of an answer bounds, so this belongs into a process that may
be killed: an engine gives selectors, and reads the texts that they found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

MOST_ROWS = 100  # of an answer; no engine is asked for more than a quarter of that
MOST_TEXT = 20_000  # characters of one text in it


@dataclass(frozen=True, slots=True)
class Markup:
    """Where an answer has its results: `row` selects each, `fields` names what is in one.

    A field is the text of the first element that its selector finds, or of its attribute behind an
    "@". `empty` selects what a page without results shows.
    """

    row: str
    fields: Mapping[str, str]
    empty: str

    def as_json(self) -> dict[str, Any]:
        """Returns the arguments that make it anew."""
        return asdict(self)


def rows_in(body: bytes, markup: Markup) -> list[dict[str, str]] | None:
    """Returns the fields of each row, [] where the page says that it found nothing, or None."""
    tree = LexborHTMLParser(body)
    rows = [
        {name: _text(row, where) for name, where in markup.fields.items()}
        for row in tree.css(markup.row)[:MOST_ROWS]
    ]
    return rows if rows or tree.css_matches(markup.empty) else None


def _text(row: LexborNode, where: str) -> str:
    selector, _, attribute = where.partition("@")
    found = row.css_first(selector)
    if found is None:
        return ""
    text = found.attributes.get(attribute) if attribute else found.text()
    return (text or "")[:MOST_TEXT]
