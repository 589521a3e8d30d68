"""The export of Open WebUI: an array of chats, each with a tree of messages.

    {id, title, created_at, updated_at, pinned, archived, chat: {title, models,
     history: {currentId, messages: {id: {id, parentId, role, content, timestamp, model,
      files: [{name}], sources: [{source: {name, url}, metadata: [{source, title?, name?}]}]}}}}}

`[1]` in an answer is the first page of `sources` (before: `citations`). Times are seconds.
Read off https://github.com/open-webui/open-webui, src/lib/components/chat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from searchloop.imports.chats import ImportedChat, Node, Page, Unknown, clean, dicts, moment, page

ORIGIN = "Open WebUI"
_MARK = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3}){0,9})\](?!\()", re.ASCII)
_INSIDE = r"(?>(?:(?!</?details\b).)*)"
_THINKING = re.compile(rf"<details type=\"reasoning\"[^<>]{{0,200}}>({_INSIDE})</details>\s*", re.S)
_SUMMARY = re.compile(r"^\s*<summary>[^<]{0,200}</summary>")
_OTHER = re.compile(rf"<details type=\"(\w{{1,40}})\"[^<>]*+>{_INSIDE}</details>\s*", re.S)


def read(item: Mapping[str, Any], unknown: Unknown) -> ImportedChat | None:
    """Returns the chat of an object, or None if it is none of this kind."""
    chat = item.get("chat") if isinstance(item.get("chat"), dict) else item
    history = chat.get("history") if isinstance(chat, dict) else None
    messages = history.get("messages") if isinstance(history, dict) else None
    if (
        not isinstance(chat, dict)
        or not isinstance(history, dict)
        or not isinstance(messages, dict)
    ):
        return None
    return ImportedChat(
        ORIGIN,
        clean(item.get("id") or chat.get("id")) or clean(history.get("currentId")),
        clean(item.get("title") or chat.get("title")),
        moment(item.get("created_at") or chat.get("timestamp")),
        moment(item.get("updated_at")),
        {n: _node(n, each, unknown) for n, each in messages.items() if isinstance(each, dict)},
        clean(history.get("currentId")),
        pinned=bool(item.get("pinned")),
        archived=bool(item.get("archived")),
    )


def _node(name: str, given: Mapping[str, Any], unknown: Unknown) -> Node:
    parent, role = given.get("parentId"), given.get("role")
    node = Node(name, parent if isinstance(parent, str) else None)
    node.at, node.model = moment(given.get("timestamp")), clean(given.get("model"))[:100]
    if role not in ("user", "assistant"):
        return node
    content = given.get("content")
    node.role = role
    text = clean(content) or "".join(clean(part.get("text")) for part in dicts(content))
    if role == "assistant":
        pages = _pages(given)
        node.thinking = "\n\n".join(_SUMMARY.sub("", t).strip() for t in _THINKING.findall(text))
        text = _THINKING.sub("", text)
        for kind in _OTHER.findall(text):
            unknown[kind] += 1
        node.parts = _cited(_OTHER.sub("", text), pages)
        node.pages = [each for each in pages if each[0]]
    else:
        node.parts = [text]
    node.attach((f.get("name") or f.get("id") for f in dicts(given.get("files"))), unknown)
    return node


def _pages(given: Mapping[str, Any]) -> list[Page]:
    """Returns the pages in the order of their numbers; what is no page keeps its number empty."""
    found: dict[str, Page] = {}
    for each in dicts(given.get("sources") or given.get("citations")):
        source = each.get("source") if isinstance(each.get("source"), dict) else {}
        assert isinstance(source, dict)
        for about in [*dicts(each.get("metadata"))] or [{}]:
            named = clean(about.get("source") or source.get("id") or source.get("name"))
            title = about.get("title") or about.get("name") or source.get("name")
            known = page(named, title) or page(source.get("url"), title) or page(source.get("name"))
            found.setdefault(named, known or ("", ""))
    return list(found.values())


def _cited(text: str, pages: list[Page]) -> list[Any]:
    parts: list[Any] = []
    last = 0
    for mark in _MARK.finditer(text):
        numbers = [int(n) for n in mark[1].split(",")]
        named = tuple(pages[n - 1] for n in numbers if 0 < n <= len(pages) and pages[n - 1][0])
        if named:
            parts += [text[last : mark.start()], named]
            last = mark.end()
    return [*parts, text[last:]]
