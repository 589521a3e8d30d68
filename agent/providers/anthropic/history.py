"""Messages as the Messages API wants them, so that no history is ever refused.

An answer of this model is replayed as it came, its opaque blocks untouched; an answer of anybody
else as text and calls. What came is left out only where the server would refuse it:

- thinking, when the model was told other things (tools, system text) before the conversation than
  it is now, because newer models bind a thinking block to all that precedes it. Such a change costs
  the prompt cache anyway. Thinking is also left out of a message that loses another block.
- the server's searches, when the request offers none, and those without their result, but for the
  one place where that is right: at the end, before the provider goes on with it.
- citations that count positions in some earlier request.

All results of one answer go into one user message. Two user or two assistant messages in a row are
left as they are: the server joins them, and the bytes of a longer request still begin with those of
the one before.

Spec: https://platform.claude.com/docs/en/build-with-claude/working-with-messages
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agent.providers.anthropic.blocks import (
    call_block,
    open_calls,
    result_block,
    text_block,
    without_refused,
)
from agent.providers.anthropic.offers import CACHED
from agent.types import Message

PROVIDER = "anthropic"
VERSION = "1"
LOOKBACK = 16  # blocks: a cache mark is found again up to 20 blocks later
_LOST = "No result: the call was interrupted."
_MARK = b',"cache_control":' + json.dumps(CACHED, separators=(",", ":")).encode()

Replay = Literal["whole", "unsigned", "neutral"]
Piece = tuple[str, bytes, int]  # role, JSON, number of blocks


@dataclass(frozen=True, slots=True)
class View:
    """What decides how much of a raw answer is sent back. `prefix` is what the model is told."""

    model: str
    prefix: str
    searching: bool
    cites: bool
    replay: Replay = "whole"


def version_of(prefix: str) -> str:
    """The mark on raw blocks: our version, and what the model had been told."""
    return f"{VERSION}:{prefix}"


def is_own(message: Message, view: View) -> bool:
    """Whether this model made the message, so that its raw blocks can be replayed."""
    data = message.provider_data
    return (
        data is not None
        and view.replay != "neutral"
        and (data.provider, data.model) == (PROVIDER, view.model)
        and data.version.partition(":")[0] == VERSION
    )


def container(messages: Sequence[Message], model: str) -> str | None:
    """The server's workspace, while the answer that began in it is not over."""
    for message in reversed(messages):
        if message.role == "user":
            return None
        data = message.provider_data
        if data is not None and (data.provider, data.model) == (PROVIDER, model):
            used = message.details.get("container")
            return used if isinstance(used, str) else None
    return None


def assemble(messages: Sequence[Message], view: View) -> bytes:
    """The elements of `messages`, joined by commas. Each message is serialised once."""
    pieces: list[Piece] = []
    results: list[bytes] = []
    strays: list[bytes] = []
    waiting: dict[str, None] = {}
    left_out = _unpaired(messages, view) if view.searching else {}
    for index, message in enumerate(messages):
        if message.role == "tool":
            known = message.tool_call_id in waiting
            waiting.pop(message.tool_call_id or "", None)
            (results if known else strays).append(_result(message, view, stray=not known))
            continue
        _answer_calls(pieces, results, strays, waiting)
        data = _remembered(message, view, left_out.get(index, ()))
        if data:
            pieces.append((message.role, data, _size(message)))
            waiting.update((call.id, None) for call in message.tool_calls)
    _answer_calls(pieces, results, strays, waiting)
    _open_and_close(pieces, messages, view)
    _mark_long_step(pieces)
    return b",".join(piece[1] for piece in pieces)


def _answer_calls(
    pieces: list[Piece], results: list[bytes], strays: list[bytes], waiting: dict[str, None]
) -> None:
    """The user message that answers the calls before it; nothing else may stand in it."""
    for call_id in waiting:
        lost = Message("tool", _LOST, tool_call_id=call_id, is_error=True)
        results.append(_dump(result_block(lost, cites=False)))
    for blocks in (results, strays):
        if blocks:
            pieces.append(("user", _message("user", blocks), len(blocks)))
        blocks.clear()
    waiting.clear()


def _open_and_close(pieces: list[Piece], messages: Sequence[Message], view: View) -> None:
    """A conversation begins and ends with the user, unless a paused answer is to go on."""
    if pieces and pieces[0][0] == "assistant":
        pieces.insert(0, _said("(The beginning of this conversation is not shown.)"))
    last = messages[-1] if messages else None
    paused = last is not None and bool(last.details.get("paused")) and is_own(last, view)
    paused = paused and view.searching
    if not pieces or (pieces[-1][0] == "assistant" and not paused):
        pieces.append(_said("Continue."))


def _said(text: str) -> Piece:
    return "user", _message("user", [_dump(text_block(text))]), 1


def _mark_long_step(pieces: list[Piece]) -> None:
    """Where the last step is longer than the cache looks back, a mark on what preceded it.

    The mark is put in here, not in the remembered bytes: it moves, and is no part of the prompt.
    """
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


def _size(message: Message) -> int:
    return len(message.provider_data.blocks) if message.provider_data else 1


def _remembered(message: Message, view: View, left_out: Collection[str]) -> bytes:
    variant = _variant(message, view, left_out)
    encoded = message.encoded.get(variant)
    if encoded is None:
        blocks = [_dump(block) for block in _blocks(message, view, left_out)]
        encoded = message.encoded[variant] = _message(message.role, blocks) if blocks else b""
    return encoded


def _variant(message: Message, view: View, left_out: Collection[str]) -> str:
    if message.role == "user" or not is_own(message, view):
        return "anthropic"
    kept = f"{'t' if _keeps_thinking(message, view) else ''}{'s' if view.searching else ''}"
    return f"anthropic:raw:{kept}:{','.join(sorted(left_out))}"


def _keeps_thinking(message: Message, view: View) -> bool:
    assert message.provider_data is not None
    told = message.provider_data.version.partition(":")[2]
    return view.replay == "whole" and told in ("", view.prefix)


def _blocks(message: Message, view: View, left_out: Collection[str]) -> Iterable[dict[str, Any]]:
    if message.role == "user":
        return [text_block(message.content)]
    if not is_own(message, view):
        said = [text_block(message.content)] if message.content.strip() else []
        return [*said, *map(call_block, message.tool_calls)]
    assert message.provider_data is not None
    return without_refused(
        message.provider_data.blocks,
        answered={call.id for call in message.tool_calls},
        searching=view.searching,
        thinking=_keeps_thinking(message, view),
        left_out=left_out,
    )


def _result(message: Message, view: View, *, stray: bool) -> bytes:
    """A result; one without its call would be refused as such, and as text it is not lost."""
    variant = "anthropic:stray" if stray else f"anthropic:{'cited' if view.cites else 'plain'}"
    encoded = message.encoded.get(variant)
    if encoded is None:
        if stray:
            name = message.tool_name or "a tool"
            block = text_block(f"(Result of {name}, out of order)\n{message.content}")
        else:
            block = result_block(message, cites=view.cites)
        encoded = message.encoded[variant] = _dump(block)
    return encoded


def _unpaired(messages: Sequence[Message], view: View) -> dict[int, set[str]]:
    """By message, the ids of server calls without a result and of results without a call.

    A result may come one answer later than its call, after a pause or after the results of calls
    that were made beside it. At the end of the transcript a call may still wait for that.
    """
    left_out: dict[int, set[str]] = {}
    pending: dict[str, int] = {}
    calls: set[str] = set()
    for index, message in enumerate(messages):
        if message.role == "tool" and message.tool_call_id in calls:
            continue
        own = message.role == "assistant" and is_own(message, view)
        if not (own or pending):
            continue
        opened, late = _pairs(message) if own else ((), ())
        for call_id in late:
            if pending.pop(call_id, None) is None:
                left_out.setdefault(index, set()).add(call_id)
        for call_id, where in pending.items():
            left_out.setdefault(where, set()).add(call_id)
        pending = dict.fromkeys(opened, index)
        calls = {call.id for call in message.tool_calls}
    return left_out


def _pairs(message: Message) -> tuple[Sequence[str], Sequence[str]]:
    """Server calls without result and results without call in one message; looked up once."""
    found = message.encoded.get("anthropic:pairs")
    if found is None:
        assert message.provider_data is not None
        opened, late = open_calls(message.provider_data.blocks)
        found = message.encoded["anthropic:pairs"] = (
            _dump([opened, late]) if opened or late else b""
        )
    if not found:
        return (), ()
    opened, late = json.loads(found)
    return opened, late


def _message(role: str, blocks: Iterable[bytes]) -> bytes:
    return b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks))


def _dump(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
