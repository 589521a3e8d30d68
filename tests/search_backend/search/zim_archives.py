"""Small ZIM archives, written by libzim's own writer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from libzim.writer import Creator, Hint, Item, StringProvider

ARTICLES: Mapping[str, tuple[str, str]] = {
    "Tea": (
        "Tea",
        "<p>Tea is a drink. It is brewed from leaves.</p><p>See <a href='Green_tea'>green tea</a> "
        "and <a href='../Milk'>milk</a>, or <a href='https://tea.example/x'>the web</a>.</p>",
    ),
    "Green_tea": (
        "Green tea",
        "<p>Green tea comes from leaves that were not fermented.</p>"
        + "<p>Filler about other matters entirely.</p>" * 30
        + "<p>Sencha is a green tea of Japan that is steamed at harvest.</p>",
    ),
    "Bücher & mehr": ("Bücher & mehr", "<p>Books of paper, bound in leather.</p>"),
    "Milk": ("Milk", "<p>Milk is white.</p>"),
}


class _Article(Item):  # type: ignore[misc]
    def __init__(self, path: str, title: str, body: str) -> None:
        super().__init__()
        self.path, self.title, self.body = path, title, body

    def get_path(self) -> str:
        return self.path

    def get_title(self) -> str:
        return self.title

    def get_mimetype(self) -> str:
        return "application/pdf" if self.path.endswith(".pdf") else "text/html"

    def get_contentprovider(self) -> Any:
        head = f"<html lang=en><head><title>{self.title}</title></head>"
        return StringProvider(f"{head}<body><h1>{self.title}</h1>{self.body}</body></html>")

    def get_hints(self) -> dict[Hint, Any]:
        return {Hint.FRONT_ARTICLE: True}


def write(
    path: Path, articles: Mapping[str, tuple[str, str]] = ARTICLES, *, index: bool = True
) -> Path:
    """An archive at `path`, with or without an index of its text; "Chai" redirects to "Tea"."""
    with Creator(path).config_indexing(index, "eng") as creator:
        creator.set_mainpath(next(iter(articles)))
        for at, (title, body) in articles.items():
            creator.add_item(_Article(at, title, body))
        creator.add_redirection("Chai", "Chai", next(iter(articles)), {})
        creator.add_metadata("Title", path.stem)
        creator.add_metadata("Language", "eng")
    return path
