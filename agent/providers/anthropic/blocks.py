"""Content blocks: those we make, and those of an earlier answer that may be sent back.

Spec: https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from agent.providers.anthropic.local_results import passages
from agent.providers.anthropic.offers import tool_name
from agent.types import Message, ToolCall

Block = dict[str, Any]
THINKING = ("thinking", "redacted_thinking")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# Others name positions in the request that they were made for.
_LASTING_CITATION = "web_search_result_location"


def text_block(text: str) -> Block:
    """Text that a user said; it may not be blank."""
    return {"type": "text", "text": text if text.strip() else "(empty)"}


def call_block(call: ToolCall) -> Block:
    """A call that was made elsewhere, or by a model that is not asked now."""
    return {
        "type": "tool_use",
        "id": call_id(call.id),
        "name": tool_name(call.name),
        "input": dict(call.arguments),
    }


def result_block(message: Message, *, cites: bool) -> Block:
    """The result of a call: plain text, or what our own search and pages gave as citable blocks."""
    content: str | list[Block] = message.content if message.content.strip() else "(empty)"
    if cites and not message.is_error:
        content = passages(message) or content
    block: Block = {
        "type": "tool_result",
        "tool_use_id": call_id(message.tool_call_id or ""),
        "content": content,
    }
    return {**block, "is_error": True} if message.is_error else block


def call_id(given: str) -> str:
    """Ids of other makers may hold characters that are refused here."""
    if _ID.fullmatch(given):
        return given
    return "toolu_" + blake2b(given.encode("utf-8", "replace"), digest_size=16).hexdigest()


def open_calls(blocks: Iterable[Mapping[str, Any]]) -> tuple[Sequence[str], Sequence[str]]:
    """Ids of server calls without their result, and of results without their call."""
    opened: dict[str, None] = {}
    late: list[str] = []
    for block in blocks:
        own_id, answers = _server_call(block), block.get("tool_use_id")
        if own_id:
            opened[own_id] = None
        elif isinstance(answers, str):
            if answers in opened:
                del opened[answers]
            else:
                late.append(answers)
    return list(opened), late


def _server_call(block: Mapping[str, Any]) -> str | None:
    kind = str(block.get("type"))
    own_id = block.get("id")
    return own_id if kind.endswith("_tool_use") and isinstance(own_id, str) else None


def without_refused(
    blocks: Iterable[Block],
    *,
    answered: Collection[str],
    searching: bool,
    thinking: bool,
    left_out: Collection[str],
) -> list[Block]:
    """The blocks that can be sent back, in their order and otherwise untouched.

    `answered` are the calls that have a result; `left_out` are ids of the server's own calls that
    must not be named. Thinking stays only beside all that it came with.
    """
    kept: list[Block] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            if block.get("text"):
                kept.append(_text(block))
            continue
        if kind == "tool_use":
            gone = block.get("id") not in answered
        elif kind in THINKING:
            gone = False
        else:
            # Without the search, neither its blocks nor any that nobody knows: they may rest on it.
            gone = not searching or (_server_call(block) or block.get("tool_use_id")) in left_out
        if gone:
            thinking = False
        elif kind == "tool_use" and tool_name(block["name"]) != block["name"]:
            kept.append({**block, "name": tool_name(block["name"])})  # it was made up
        else:
            kept.append(block)
    if not thinking:
        kept = [block for block in kept if block.get("type") not in THINKING]
    while kept and kept[-1].get("type") in THINKING:
        kept.pop()
    if not searching:
        kept = [_uncited(block) for block in kept]
    return kept


def _text(block: Block) -> Block:
    """Text with the citations that last, and without a null for none."""
    if "citations" not in block:
        return block
    lasting = [
        note
        for note in block["citations"] or ()
        if isinstance(note, dict) and note.get("type") == _LASTING_CITATION
    ]
    if lasting and len(lasting) == len(block["citations"]):
        return block
    plain = _uncited(block)
    return {**plain, "citations": lasting} if lasting else plain


def _uncited(block: Block) -> Block:
    if "citations" not in block:
        return block
    return {key: value for key, value in block.items() if key != "citations"}
