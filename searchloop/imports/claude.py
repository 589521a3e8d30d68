"""The export of Claude: `conversations.json`, a list of messages for each chat.

    {uuid, name, created_at, updated_at, current_leaf_message_uuid?, is_starred?,
     chat_messages: [{uuid, parent_message_uuid?, sender, text, created_at,
      content: [{type: text, text, citations: [{start_index, end_index, details: {url}}]} |
                {type: thinking, thinking} | {type: tool_use, name} | {type: tool_result, content}],
      attachments: [{file_name, extracted_content}], files: [{file_name}]}]}

Messages that name no parent follow each other. Dates are ISO 8601. Read off exports, as programs
that publish their readers describe them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchloop.imports.chats import ImportedChat, Node, Page, Unknown, clean, dicts, moment, page

ORIGIN = "Claude"
_ROLES = {"human": "user", "assistant": "assistant"}
_ROOT = "00000000-0000-4000-8000-000000000000"  # the parent of a first message


def read(item: Mapping[str, Any], unknown: Unknown) -> ImportedChat | None:
    """Returns the chat of an object, or None if it is none of this kind."""
    if not isinstance(item.get("chat_messages"), list):
        return None
    nodes: dict[str, Node] = {}
    last: str | None = None
    for number, each in enumerate(dicts(item["chat_messages"])):
        node = _node(each, last, number, unknown)
        node.id = f"message-{number}" if node.id in nodes else node.id
        nodes[node.id] = node
        last = node.id
    chat = clean(item.get("uuid")), clean(item.get("name"))
    dates = moment(item.get("created_at")), moment(item.get("updated_at"))
    current = clean(item.get("current_leaf_message_uuid")) or last
    return ImportedChat(ORIGIN, *chat, *dates, nodes, current, bool(item.get("is_starred")))


def _node(given: Mapping[str, Any], last: str | None, number: int, unknown: Unknown) -> Node:
    parent = given.get("parent_message_uuid", last)
    parent = None if parent == _ROOT or not isinstance(parent, str) else parent
    node = Node(clean(given.get("uuid")) or f"message-{number}", parent)
    node.role = _ROLES.get(str(given.get("sender")), "")
    node.at, node.model = moment(given.get("created_at")), clean(given.get("model"))[:100]
    titles: dict[str, str] = {}
    for block in dicts(given.get("content")):
        _block(block, node, titles, unknown)
    if not node.parts:
        node.parts = [clean(given.get("text"))]
    node.pages = list(titles.items())
    for each in dicts(given.get("attachments")):
        node.parts.append(_attached(each))
    node.attach((each.get("file_name") for each in dicts(given.get("files"))), unknown)
    return node


def _block(block: Mapping[str, Any], node: Node, titles: dict[str, str], unknown: Unknown) -> None:
    kind = str(block.get("type"))
    if kind == "text":
        if node.parts:
            node.parts.append("\n\n")
        _cited(block, node, titles)
    elif kind == "thinking":
        node.thinking += clean(block.get("thinking"))
    elif kind == "tool_result":
        for each in dicts(block.get("content")):
            if found := page(each.get("url"), each.get("title")):
                titles[found[0]] = found[1]
    elif kind not in ("tool_use", "token_budget") or block.get("name") != "web_search":
        unknown[clean(block.get("name"))[:40] or kind[:40]] += 1


def _cited(block: Mapping[str, Any], node: Node, titles: Mapping[str, str]) -> None:
    """Adds a text, with a mark at the end of each of its citations."""
    text, places = clean(block.get("text")), dict[int, list[Page]]()
    for each in dicts(block.get("citations")):
        details = each.get("details")
        url = details.get("url") if isinstance(details, dict) else each.get("url")
        end, found = each.get("end_index"), page(url, each.get("title"))
        if found:
            named = (found[0], found[1] or titles.get(found[0], ""))
            known = isinstance(end, int) and 0 < end <= len(text)
            places.setdefault(end if known else len(text), []).append(named)  # type: ignore[arg-type]
    last = 0
    for end, pages in sorted(places.items()):
        node.parts += [text[last:end], " ", tuple(pages)]
        last = end
    node.parts.append(text[last:])


def _attached(given: Mapping[str, Any]) -> str:
    """Returns a text file as it stands in a question, in a fence that it cannot close."""
    name, text = clean(given.get("file_name"))[:200], clean(given.get("extracted_content"))
    name = " ".join(name.split()) or "file"
    if not text:
        return f"\n\n[Attached: {name}]"
    fence = "```"
    while fence in text:
        fence += "`"
    return f"\n\nAttached file: {name}\n{fence}\n{text}\n{fence}"
