"""The export of LibreChat: a chat a file, its messages as a list or as a tree.

    {conversationId, title, messages | messagesTree: [{messageId, parentMessageId, isCreatedByUser,
     text, content?: [{type: text, text} | {type: think, think} | {type: tool_call, tool_call}],
     createdAt, model, files?: [{filename}], children?: [...],
     attachments?: [{web_search: {turn, organic: [{link, title}], topStories, references}}]}]}

A mark is U+E202 and `turn0search1`: search 0, its second result. The letters of the mark may stand
as an escape. Read off https://github.com/danny-avila/LibreChat, client/src and packages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from searchloop.imports.chats import (
    ImportedChat,
    Node,
    Page,
    Unknown,
    attach,
    clean,
    dicts,
    moment,
    page,
)

ORIGIN = "LibreChat"
_LISTS = {"search": "organic", "news": "topStories", "ref": "references"}
_SIGN = r"(?:\\ue20[0-6]|[\ue200-\ue206])(?:turn\d{1,4}[a-z]{3,6}\d{1,4})?"
_MARKS = re.compile(rf"{_SIGN}(?:[ \t]{{0,9}}{_SIGN})*")
_MARK = re.compile(r"turn(\d+)([a-z]+)(\d+)")


def read(item: Mapping[str, Any], unknown: Unknown) -> ImportedChat | None:
    """Returns the chat of an object, or None if it is none of this kind."""
    given = item.get("messagesTree", item.get("messages"))
    if "conversationId" not in item or not isinstance(given, list):
        return None
    nodes: dict[str, Node] = {}
    last: str | None = None
    waiting: list[tuple[dict[str, Any], str | None]] = [(e, None) for e in [*dicts(given)][::-1]]
    while waiting:
        each, above = waiting.pop()
        parent, name = clean(each.get("parentMessageId")), clean(each.get("messageId"))
        name = name if name and name not in nodes else f"message-{len(nodes)}"
        nodes[name] = _node(Node(name, parent or above or last), each, unknown)
        waiting += [(child, name) for child in [*dicts(each.get("children"))][::-1]]
        last = name
    times = [node.at for node in nodes.values() if node.at]
    newest = max(nodes.values(), key=lambda node: (node.at, node.id == last), default=None)
    return ImportedChat(
        ORIGIN,
        clean(item.get("conversationId")),
        clean(item.get("title")),
        created=min(times, default=0.0),
        nodes=nodes,
        current=newest.id if newest else None,
    )


def _node(node: Node, given: Mapping[str, Any], unknown: Unknown) -> Node:
    node.role = "user" if given.get("isCreatedByUser") else "assistant"
    node.at, node.model = moment(given.get("createdAt")), clean(given.get("model"))[:100]
    pages = _pages(given)
    node.pages = [each for its in pages.values() for each in its if each[0]]
    node.parts = _cited(clean(given.get("text")), pages)
    for part in dicts(given.get("content")):
        kind = clean(part.get("type"))
        said = part.get(kind)
        said = clean(said.get("value") if isinstance(said, dict) else said)
        if kind == "think":
            node.thinking += said
        elif kind in ("text", "error"):
            node.parts += [*(["\n\n"] if any(node.parts) else []), *_cited(said, pages)]
        else:
            call = part.get("tool_call")
            name = clean(call.get("name")) if isinstance(call, dict) else ""
            if name != "web_search":
                unknown[name[:40] or kind[:40] or "part"] += 1
    attach(node, (each.get("filename") for each in dicts(given.get("files"))), unknown)
    return node


def _pages(given: Mapping[str, Any]) -> dict[tuple[int, str], list[Page]]:
    """Returns the pages that were found, by search and kind; one that is none keeps its place."""
    found: dict[tuple[int, str], list[Page]] = {}
    for each in dicts(given.get("attachments")):
        searched = each.get("web_search")
        if isinstance(searched, dict) and isinstance(turn := searched.get("turn", 0), int):
            for kind, its in _LISTS.items():
                known = [page(e.get("link"), e.get("title")) for e in dicts(searched.get(its))]
                found[turn, kind] = [each or ("", "") for each in known]
    return found


def _cited(text: str, pages: Mapping[tuple[int, str], list[Page]]) -> list[Any]:
    """Splits a text at its marks, which go where they name no page."""
    parts, last = list[Any](), 0
    for marks in _MARKS.finditer(text):
        named = [
            known[int(at)]
            for turn, kind, at in _MARK.findall(marks[0])
            if int(at) < len(known := pages.get((int(turn), kind), []))
        ]
        parts += [text[last : marks.start()], tuple(each for each in named if each[0])]
        last = marks.end()
    return [each for each in (*parts, text[last:]) if each]
