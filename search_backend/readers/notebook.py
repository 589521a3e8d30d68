"""Jupyter notebooks: words, code and the text of its output, cell by cell.

Spec: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from searchloop.search_backend.readers import Reader
from searchloop.search_backend.readers._html.parts.code import fenced
from searchloop.search_backend.readers._html.whole import file_name
from searchloop.search_backend.text.clean import COLOURS, cleaned, decode, one_line
from searchloop.search_backend.text.passages import title_of
from searchloop.search_backend.types import Page

_MOST_OUTPUT = 20_000  # characters of one output: some print for hours


def read(body: bytes, url: str, charset: str | None) -> Page:
    """Returns the notebook as Markdown; the title is its first heading."""
    text = decode(body, charset)
    try:
        found = "\n\n".join(filter(None, _cells(json.loads(text))))
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError):
        found = ""
    found = found or text  # one that is damaged or empty is shown as it stands
    found, unseen = cleaned(found)
    title = one_line(title_of(found, file_name(url)))
    return Page(url, url, title, found.strip(), invisible=unseen)


def _cells(notebook: Mapping[str, Any]) -> Iterator[str]:
    language = str(notebook.get("metadata", {}).get("kernelspec", {}).get("language", ""))
    for cell in notebook["cells"]:
        source = _joined(cell.get("source", ""))
        if cell.get("cell_type") != "code":
            yield source
        elif source.strip():
            yield fenced(source.strip("\n"), language)
        for output in cell.get("outputs", ()):
            said = COLOURS.sub("", _output(output))[:_MOST_OUTPUT].strip("\n")
            yield fenced(said, "") if said.strip() else ""


def _output(output: Mapping[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"{output.get('ename', '')}: {output.get('evalue', '')}"
    return _joined(output.get("text") or output.get("data", {}).get("text/plain", ""))


def _joined(lines: object) -> str:
    return "".join(map(str, lines)) if isinstance(lines, list) else str(lines)


def knows(body: bytes) -> bool:
    """True for an object with the fields that each notebook has."""
    return body[:64].lstrip().startswith(b"{") and b'"nbformat"' in body and b'"cells"' in body


READER = Reader(frozenset({"application/x-ipynb+json"}), frozenset({".ipynb"}), read, knows)
