"""The export of ChatGPT: `conversations.json`, a tree of messages for each chat.

    {id, title, create_time, update_time, current_node, mapping: {id: {id, parent, children,
     message: {author: {role}, content: {content_type, parts}, create_time, recipient,
     metadata: {model_slug, content_references, citations}} | null}}}

A citation is a piece of the text: `content_references[].matched_text` with its pages in `items`, in
older chats the range `citations[].start_ix, end_ix` with the page in `metadata`. Times are seconds.
Read off exports, as programs that publish their readers describe them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from searchloop.imports.chats import ImportedChat, Node, Page, Unknown, clean, dicts, moment, page

ORIGIN = "ChatGPT"
_SILENT = {"reasoning_recap", "model_editable_context", "user_editable_context"}
_MARKER = re.compile("\ue200[^\ue201]{0,2000}\ue201|[\ue200-\ue206]|【\\d+†[^】]{0,100}】")


def read(item: Mapping[str, Any], unknown: Unknown) -> ImportedChat | None:
    """Returns the chat of an object, or None if it is none of this kind."""
    mapping = item.get("mapping")
    if not isinstance(mapping, dict):
        return None
    nodes = {
        name: _node(name, each, unknown) for name, each in mapping.items() if isinstance(each, dict)
    }
    return ImportedChat(
        ORIGIN,
        clean(item.get("conversation_id") or item.get("id")) or clean(item.get("current_node")),
        clean(item.get("title")),
        moment(item.get("create_time")),
        moment(item.get("update_time")),
        nodes,
        clean(item.get("current_node")),
        pinned=bool(item.get("is_starred")),
        archived=bool(item.get("is_archived")),
    )


def _node(name: str, given: Mapping[str, Any], unknown: Unknown) -> Node:
    node = Node(name, parent if isinstance(parent := given.get("parent"), str) else None)
    message = given.get("message")
    if not isinstance(message, dict):
        return node
    author, content = message.get("author"), message.get("content")
    role = author.get("role") if isinstance(author, dict) else None
    known = metadata if isinstance(metadata := message.get("metadata"), dict) else {}
    if not isinstance(content, dict) or known.get("is_visually_hidden_from_conversation"):
        return node
    node.at, kind = moment(message.get("create_time")), str(content.get("content_type"))
    node.model = clean(known.get("model_slug"))[:100]
    aside = role == "assistant" and message.get("recipient") not in (None, "all")
    if kind == "thoughts" and role == "assistant":
        thoughts = dicts(content.get("thoughts"))
        node.role = "assistant"
        node.thinking = "\n\n".join(clean(t.get("content")) for t in thoughts)
    elif role in ("user", "assistant") and kind in ("text", "multimodal_text") and not aside:
        node.role = role
        node.parts = _parts(content.get("parts"), known, unknown)
        node.pages = list(_footnotes(known)) if role == "assistant" else []
    elif role in ("assistant", "tool") and kind not in _SILENT:
        unknown[f"{kind[:40]} ({role})"] += 1
    return node


def _parts(parts: object, known: Mapping[str, Any], unknown: Unknown) -> list[Any]:
    attached = enumerate(dicts(known.get("attachments")))
    named = {clean(e.get("id")) or str(n): clean(e.get("name"))[:200] for n, e in attached}
    found: list[Any] = []
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, str):
            found += _cited(part, known)
        elif isinstance(part, dict):
            kind = clean(part.get("content_type"))[:40] or "part"
            words = clean(part.get("text")) if kind == "audio_transcription" else ""
            asset = clean(part.get("asset_pointer")).rpartition("/")[2][:100]
            if not words:
                unknown[kind] += 1
                what = f"{kind.partition('_')[0]} {named.pop(asset, asset)}".strip()
                words = f"[{what}: not in the chat]\n\n"
            found.append(words)
    if not named:
        return found
    unknown["attachments"] += len(named)
    return [*found, f"\n\n[Attached: {', '.join(named.values())}]"]


def _cited(text: str, known: Mapping[str, Any]) -> list[Any]:
    """Splits a text at its citations."""
    found: list[Any] = []
    last = 0
    for start, end, pages in sorted(_places(text, known)):
        if start < last:
            continue
        found += [_MARKER.sub("", clean(text[last:start])), pages]
        last = end
    return [*found, _MARKER.sub("", clean(text[last:]))]


def _places(text: str, known: Mapping[str, Any]) -> Iterator[tuple[int, int, tuple[Page, ...]]]:
    for each in dicts(known.get("content_references")):
        matched = each.get("matched_text")
        pages = tuple(_pages(each))
        if not pages or not isinstance(matched, str) or not matched.strip():
            continue
        start = each.get("start_idx")
        if not isinstance(start, int) or text[start : start + len(matched)] != matched:
            start = text.find(matched)
        if start >= 0:
            yield start, start + len(matched), pages
    for each in dicts(known.get("citations")):
        start, end, about = each.get("start_ix"), each.get("end_ix"), each.get("metadata")
        if isinstance(start, int) and isinstance(end, int) and isinstance(about, dict):
            found = page(about.get("url"), about.get("title"))
            if found and 0 <= start < end <= len(text):
                yield start, end, (found,)


def _pages(reference: Mapping[str, Any]) -> Iterator[Page]:
    for each in (*dicts(reference.get("items")), reference):
        if found := page(each.get("url"), each.get("title")):
            yield found
        for other in dicts(each.get("supporting_websites")):
            if more := page(other.get("url"), other.get("title")):
                yield more


def _footnotes(known: Mapping[str, Any]) -> Iterator[Page]:
    for each in dicts(known.get("content_references")):
        for source in dicts(each.get("sources")):
            if found := page(source.get("url"), source.get("title")):
                yield found
