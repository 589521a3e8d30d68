"""Answers that have to fit a JSON Schema: checks each, and has one that does not fit written anew.

Nothing of an answer is shown before it is checked, so that nobody reads two.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from searchloop.agent.calls.instructions import bare_json, misfit
from searchloop.agent.errors import IncompleteError
from searchloop.agent.types import (
    NOTHING,
    Finished,
    Message,
    Request,
    StreamEvent,
    Streams,
    TextDelta,
)

_AGAIN = "That does not fit the JSON Schema: {problem}. Write the JSON again, and nothing else."


@dataclass(slots=True)
class StructuredProvider:
    """A provider whose last answer is JSON; one that does not fit is asked for once more."""

    provider: Streams
    schema: Mapping[str, Any]

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        usage, sources = NOTHING, tuple[Any, ...]()
        for last in (False, True):
            end: Finished | None = None
            async with aclosing(self.provider.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        end = event
                    elif not isinstance(event, TextDelta):
                        yield event
            if end is None:
                return
            usage += end.usage
            message = replace(end.message, sources=(*sources, *end.message.sources))
            if end.stop_reason == "stop" and not message.tool_calls:
                message = _structured(message)
                problem = await asyncio.to_thread(misfit, message.content, self.schema)
                if problem and not last:
                    said = [end.message, Message("user", _AGAIN.format(problem=problem))]
                    sources = message.sources
                    request = replace(
                        request,
                        messages=[*request.messages, *said],
                        native_search=None,
                        answer_now=True,
                    )
                    continue
            if message.content:
                yield TextDelta(message.content)
            yield replace(end, message=message, usage=usage)
            return


def _structured(message: Message) -> Message:
    """Marks the answer as JSON: its brackets are no marks of sources."""
    text = bare_json(message.content)
    return replace(message, content=text, details={**message.details, "structured": True})


async def unfit(message: Message, schema: Mapping[str, Any]) -> IncompleteError | None:
    """Returns the error of an answer that does not fit."""
    problem = await asyncio.to_thread(misfit, message.content, schema)
    if problem is None:
        return None
    what = f"The answer does not fit the schema, nor did a second try: {problem}."
    return IncompleteError("schema_mismatch", what, "Simplify the schema, or choose another model.")
