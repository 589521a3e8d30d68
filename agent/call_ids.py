"""Call ids that are unique in a session, whatever a server hands out.

Some servers number the calls of each answer from nought, and two providers in one session may use
the same id. A result is found by its call's id, and no vendor takes an id twice in one request.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agent.types import Message

_IDS = frozenset({"id", "call_id"})
_WRITTEN = frozenset({"args", "arguments", "input"})


def with_own_ids(message: Message, before: Iterable[Message]) -> Message:
    """`message` with new ids for calls whose id was used `before`, in its raw blocks too."""
    if not message.tool_calls:
        return message
    used = {call.id for earlier in before for call in earlier.tool_calls}
    fresh = {c.id: f"call_{secrets.token_hex(12)}" for c in message.tool_calls if c.id in used}
    if not fresh:
        return message
    calls = tuple(replace(call, id=fresh.get(call.id, call.id)) for call in message.tool_calls)
    raw = message.provider_data
    if raw is not None:
        raw = replace(raw, blocks=tuple(_renamed(block, fresh) for block in raw.blocks))
    return replace(message, tool_calls=calls, provider_data=raw, encoded={})


def _renamed(value: Any, fresh: Mapping[str, str]) -> Any:
    """The value with new ids in the fields that hold ids; what a model wrote is left alone."""
    if isinstance(value, list):
        return [_renamed(item, fresh) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _field(key, item, fresh) for key, item in value.items()}


def _field(key: str, item: Any, fresh: Mapping[str, str]) -> Any:
    if isinstance(item, str):
        return fresh.get(item, item) if key in _IDS else item
    return item if key in _WRITTEN else _renamed(item, fresh)
