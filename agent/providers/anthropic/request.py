"""Encodes messages and tools for the Messages API, so that no history is ever refused.

An answer of this model is replayed as it came, that of another model as text and calls. It leaves
out what the server would refuse: thinking, if tools or system text have changed or if its message
loses another block; the server's searches, if the request offers none or if they have no result
(except at the end, where the server goes on with them); citations that count positions.

Spec: https://platform.claude.com/docs/en/build-with-claude/working-with-messages
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from searchloop.agent.providers._keyed import ModelTable
from searchloop.agent.providers._wire import (
    dump,
    filled,
    function_name,
    function_of,
    hashed_id,
    remembered,
    steps,
    stray_text,
)
from searchloop.agent.providers.anthropic.passages import Block, passages
from searchloop.agent.transport.exchange import MISREAD
from searchloop.agent.types import (
    Capabilities,
    Message,
    NativeSearch,
    ProviderData,
    Replay,
    ToolCall,
    ToolSpec,
)
from searchloop.agent.types.attachments import Attachment

CACHED = {"type": "ephemeral"}
PROVIDER = "anthropic"
VERSION = "1"
LOOKBACK = 16  # blocks: a cache mark is found again up to 20 blocks later
_MARK = b',"cache_control":' + dump(CACHED)

Piece = tuple[str, bytes, int]  # role, JSON, number of blocks
_NOT_ON_TOP = frozenset({"anyOf", "oneOf", "allOf"})  # refused there; the tool checks by itself
THINKING = ("thinking", "redacted_thinking")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# Citations of other kinds name positions in the request that they were made for.
_LASTING_CITATION = "web_search_result_location"
BASIC = ("web_search_20250305", "web_fetch_20250910")  # the only ones on servers of others
# Limits of one fetched page in tokens, and of the fetches in one request.
_FETCH_TOKENS = 20_000
_FETCHES = 8


@dataclass(frozen=True, slots=True)
class ClaudeModel:
    """See models.toml: output tokens, versions of the server's tools, and what is special."""

    can: Capabilities
    max_tokens: int
    search: str | None = None
    fetch: str | None = None
    cites: bool = True
    formed: bool = False


MODELS = ModelTable(__file__, ClaudeModel)


def function_tool(tool: ToolSpec) -> dict[str, Any]:
    """Describes a function. Its schema is not enforced: that would refuse many that are fine."""
    function = function_of(tool)
    schema = {k: v for k, v in function.pop("parameters").items() if k not in _NOT_ON_TOP}
    return {**function, "input_schema": schema | {"type": "object"}}


def server_tools(search: NativeSearch, model: ClaudeModel, official: bool) -> list[dict[str, Any]]:
    """Describes the server's search, and its reading of pages.

    Spec: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool
    """
    tools = [_search(search, (model.search or BASIC[0]) if official else BASIC[0])]
    if model.fetch:
        tools.append(_fetch(search, model.fetch if official else BASIC[1]))
    return tools


def _search(search: NativeSearch, version: str) -> dict[str, Any]:
    most, country = search.max_searches, search.country
    return filled(
        type=version,
        name="web_search",
        **_direct(version),
        max_uses=None if most is None else max(1, most),
        user_location={"type": "approximate", "country": country} if country else None,
        **_domains(search),
    )


def _fetch(search: NativeSearch, version: str) -> dict[str, Any]:
    return {
        "type": version,
        "name": "web_fetch",
        **_direct(version),
        "max_uses": _FETCHES,
        "max_content_tokens": _FETCH_TOKENS,
        "citations": {"enabled": True},
        **_domains(search),
    }


def _direct(version: str) -> dict[str, Any]:
    """Allows direct calls only: what code of the model reads is not cited."""
    return {} if version in BASIC else {"allowed_callers": ["direct"]}


def _domains(search: NativeSearch) -> dict[str, list[str]]:
    """Returns allowed or blocked domains, never both: the API refuses that."""
    allowed, blocked = search.allowed_domains, search.blocked_domains
    if allowed:
        return {"allowed_domains": [d for d in allowed if d not in blocked] or [*allowed]}
    return {"blocked_domains": [*blocked]} if blocked else {}


def text_block(text: str) -> Block:
    """Makes a text block, which may not be blank."""
    return {"type": "text", "text": text if text.strip() else "(empty)"}


def call_block(call: ToolCall) -> Block:
    """Makes a block of a call that another model made."""
    return {
        "type": "tool_use",
        "id": call_id(call.id),
        "name": function_name(call.name),
        "input": dict(call.arguments),
    }


def result_block(message: Message, *, cites: bool) -> Block:
    """Makes a block of a tool result: plain text, or citable blocks of our search and pages."""
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
    """Replaces ids of other makers that contain characters refused here."""
    return given if _ID.fullmatch(given) else hashed_id(given, "toolu_")


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
    """Returns the blocks that can be sent back, in their order and otherwise untouched.

    `answered` are the calls that have a result; `left_out` are ids of the server's own calls
    without their other half. Thinking stays only beside all that it came with.
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
            # Without the search, unknown blocks go as well: they may rest on it.
            gone = not searching or (_server_call(block) or block.get("tool_use_id")) in left_out
        if gone:
            thinking = False
        elif kind == "tool_use":
            kept.append({**block, "name": function_name(block["name"])})
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
    """Keeps the citations that last, and removes a null for none."""
    lasting = [
        note
        for note in block.get("citations") or ()
        if isinstance(note, dict) and note.get("type") == _LASTING_CITATION
    ]
    return {**block, "citations": lasting} if lasting else _uncited(block)


def _uncited(block: Block) -> Block:
    return {key: value for key, value in block.items() if key != "citations"}


@dataclass(frozen=True, slots=True)
class ReplayView:
    """Decides how much of a raw answer is sent back. `prefix` hashes tools and system text."""

    model: str
    prefix: str
    searching: bool
    cites: bool
    replay: Replay = "whole"

    def raw(self, message: Message) -> ProviderData | None:
        """Returns the raw answer if this model made it, so that its blocks can be replayed."""
        data = message.provider_data
        if data is None or self.replay == "neutral":
            return None
        made = (data.provider, data.model, data.version.partition(":")[0])
        return data if made == (PROVIDER, self.model, VERSION) else None

    def keeps_thinking(self, data: ProviderData) -> bool:
        """Returns True if the model thought with the same tools and system text."""
        prefix = data.version.partition(":")[2]
        return prefix in ("", self.prefix)


def version_of(prefix: str) -> str:
    """Marks raw blocks with our version and the prefix that their model had."""
    return f"{VERSION}:{prefix}"


def assemble(messages: Sequence[Message], view: ReplayView) -> list[bytes]:
    """Returns the elements of `messages`. Encodes each message once."""
    pieces: list[Piece] = []
    left_out = _unpaired(messages, view) if view.searching else {}
    for message, results, strays in steps(messages):
        if message is not None:
            data = _encoded(message, view, left_out.get(message, ()))
            if data:
                size = len(message.provider_data.blocks) if message.provider_data else 1
                pieces.append((message.role, data, size))
        if results:
            blocks = [_result(result, view) for result in results]
            pieces.append(("user", _message("user", blocks), len(blocks)))
        if strays:
            blocks = [_stray(stray) for stray in strays]
            pieces.append(("user", _message("user", blocks), len(blocks)))
    _open_and_close(pieces, messages, view)
    _mark_long_step(pieces)
    return [piece[1] for piece in pieces]


def _open_and_close(pieces: list[Piece], messages: Sequence[Message], view: ReplayView) -> None:
    """Makes the user begin and end the conversation, unless a paused answer is to go on."""
    if pieces and pieces[0][0] == "assistant":
        pieces.insert(0, _said("(The beginning of this conversation is not shown.)"))
    last = messages[-1] if messages else None
    paused = last is not None and bool(last.details.get("paused")) and view.raw(last) is not None
    paused = paused and view.searching
    if not pieces or (pieces[-1][0] == "assistant" and not paused):
        pieces.append(_said("Continue."))


def _said(text: str) -> Piece:
    return "user", _message("user", [dump(text_block(text))]), 1


def _mark_long_step(pieces: list[Piece]) -> None:
    """Marks what preceded the last step for the cache, if the step is longer than it looks back."""
    blocks, seen = 0, False
    for index in range(len(pieces) - 1, -1, -1):
        role, data, size = pieces[index]
        if role == "assistant":
            blocks += size
            seen = True
        elif seen:
            if blocks >= LOOKBACK:
                pieces[index] = (role, data[:-3] + _MARK + data[-3:], size)
            return


def _encoded(message: Message, view: ReplayView, left_out: Collection[str]) -> bytes:
    def encode() -> bytes:
        blocks = [dump(block) for block in _blocks(message, view, left_out)]
        return _message(message.role, blocks) if blocks else b""

    try:
        return remembered(message, _variant(message, view, left_out), encode)
    except MISREAD:  # a block that nobody could send back: its text and calls go
        if view.replay == "neutral":
            raise
        return _encoded(message, replace(view, replay="neutral"), ())


def _variant(message: Message, view: ReplayView, left_out: Collection[str]) -> str:
    data = view.raw(message)
    if data is None:
        return "anthropic"
    kept = f"{'t' if view.keeps_thinking(data) else ''}{'s' if view.searching else ''}"
    return f"anthropic:raw:{kept}:{','.join(sorted(left_out))}"


def _blocks(message: Message, view: ReplayView, left_out: Collection[str]) -> Iterable[Block]:
    if message.role == "user":
        files = [_file(file, view.cites) for file in message.attachments]
        return [*files, text_block(message.content)]
    data = view.raw(message)
    if data is None:
        said = [text_block(message.content)] if message.content.strip() else []
        return [*said, *map(call_block, message.tool_calls)]
    return without_refused(
        data.blocks,
        answered={call.id for call in message.tool_calls},
        searching=view.searching,
        thinking=view.keeps_thinking(data),
        left_out=left_out,
    )


def _file(file: Attachment, cites: bool) -> Block:
    """Makes an image, or a PDF whose pages the model cites: its title is the source's address."""
    source = {"type": "base64", "media_type": file.media_type, "data": file.data}
    if file.is_image:
        return {"type": "image", "source": source}
    title = file.url().partition("#")[0]
    cited = {"citations": {"enabled": True}} if cites else {}
    return {"type": "document", "source": source, "title": title, **cited}


def _result(message: Message, view: ReplayView) -> bytes:
    variant = f"anthropic:{'cited' if view.cites else 'plain'}"
    return remembered(message, variant, lambda: dump(result_block(message, cites=view.cites)))


def _stray(message: Message) -> bytes:
    return remembered(message, "anthropic:stray", lambda: dump(text_block(stray_text(message))))


def _unpaired(messages: Sequence[Message], view: ReplayView) -> Mapping[Message, set[str]]:
    """Returns, by message, ids of server calls without a result and of results without a call.

    A result may come one answer later than its call, after a pause or after the results of calls
    beside it. At the end of the transcript a call may still wait for its result.
    """
    left_out = defaultdict[Message, set[str]](set)
    pending: dict[str, Message] = {}
    calls: set[str] = set()
    for message in messages:
        if message.role == "tool" and message.tool_call_id in calls:
            continue
        opened: dict[str, Message] = {}
        data = view.raw(message)
        for block in data.blocks if data else ():
            own_id, answers = _server_call(block), block.get("tool_use_id")
            if own_id:
                opened[own_id] = message
            elif isinstance(answers, str) and not (
                opened.pop(answers, None) or pending.pop(answers, None)
            ):
                left_out[message].add(answers)
        for call_id, where in pending.items():
            left_out[where].add(call_id)
        pending = opened
        calls = {call.id for call in message.tool_calls}
    return left_out


def _message(role: str, blocks: Iterable[bytes]) -> bytes:
    return b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks))
