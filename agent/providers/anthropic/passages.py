"""Our own search results and pages as `search_result` blocks, which the model cites by itself.

The smallest thing that can be cited is one text block, so a page is cut into passages. All blocks
of a result must be of this kind, so notes go inside; a result of another layout stays plain text.

Spec: https://platform.claude.com/docs/en/build-with-claude/search-results
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from searchloop.agent.types import Message

_PASSAGE = 500  # characters that a passage has at least, if the page goes on
_FENCE = re.compile(r"\n?<<[^<>\n]{1,80}>>\s*\Z")
_CITE_AS = re.compile(r"\s{0,9}Cite (?:it|them) as \[\w+\]\.?")

Block = dict[str, Any]


def passages(message: Message) -> list[Block] | None:
    """Returns the blocks for a tool result, or None if it is no list of sources."""
    details = message.details
    if details.get("status", "ok") != "ok":
        return None
    if details.get("kind") == "search":
        return _results(message.content, details)
    if details.get("kind") == "page":
        return _page(message.content, details)
    return None


def _results(content: str, details: Mapping[str, Any]) -> list[Block] | None:
    rows = details.get("results")
    if not isinstance(rows, list) or not rows:
        return None
    starts: list[tuple[int, int]] = []
    for row in rows:
        found = _entry(content, row, starts[-1][1] if starts else 0)
        if found is None:
            return None
        starts.append(found)
    blocks = []
    for row, (_, begin), (end, _) in zip(
        rows, starts, [*starts[1:], (len(content), 0)], strict=True
    ):
        text = _FENCE.sub("", content[begin:end]).strip()
        blocks.append(_block(row["url"], row.get("title"), [text]))
    return blocks


def _entry(content: str, row: Any, at: int) -> tuple[int, int] | None:
    """Finds where the entry of a row begins, and where its text begins after the address."""
    if not isinstance(row, Mapping) or not isinstance(row.get("url"), str):
        return None
    head = f"\n[{row.get('n')}] "
    start = content.find(head, at)
    if start < 0:
        return None
    address = f"\n{row['url']}\n"
    begin = content.find(address, start + len(head) - 1)
    # A text that repeats the address could pass itself off as what another source says.
    if begin < 0 or content.count(address) > 1:
        return None
    return start, begin + len(address)


def _page(content: str, details: Mapping[str, Any]) -> list[Block] | None:
    url, extent = details.get("url"), details.get("text")
    if not isinstance(url, str) or not isinstance(extent, list | tuple) or len(extent) != 2:
        return None
    start, end = extent
    texts = _cut(content[start:end])
    if not texts:
        return None
    note = _note(content[:start], url)
    return [_block(url, details.get("title"), [note, *texts] if note else texts)]


def _note(head: str, url: str) -> str:
    """Returns the lines before the page that say how much of it this is."""
    lines = [_CITE_AS.sub("", line).strip() for line in head.splitlines()]
    kept = [line for line in lines if line and line != url and line[0] not in "[<"]
    return f"({' '.join(kept)})" if kept else ""


def _cut(text: str) -> list[str]:
    """Cuts the page into passages of whole paragraphs, or lines where it has none."""
    found: list[str] = []
    size = _PASSAGE
    for paragraph in text.split("\n\n" if "\n\n" in text else "\n"):
        if not paragraph.strip():
            continue
        if size >= _PASSAGE:
            found.append(paragraph)
            size = len(paragraph)
        else:
            found[-1] = f"{found[-1]}\n\n{paragraph}"
            size += len(paragraph)
    return found


def _block(url: str, title: Any, texts: list[str]) -> Block:
    name = title if isinstance(title, str) and title.strip() else url
    return {
        "type": "search_result",
        "source": url,
        "title": name,
        "content": [{"type": "text", "text": text or name} for text in texts],
        "citations": {"enabled": True},
    }
