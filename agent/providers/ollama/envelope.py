"""Searching with models that have no tool calls: what they are told, and what they may write.

In the envelope the server's grammar holds the model to one JSON object that names a tool and its
arguments, or says that it will answer; the answer itself is then asked for in plain words. Models
that cannot even do that are not asked: the program searches with the question and opens the first
pages, and the model answers from what was found.

https://github.com/ollama/ollama/blob/main/docs/api.md#structured-outputs
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.dates import asked
from agent.schema import takes
from agent.types import Message, Request, ToolCall, ToolSpec

ANSWER = "answer"
_PAGES = 2
_QUERY = 200  # characters of a question that are searched for
_FEW = 4
_HOW = """\
You use a tool by writing one JSON object: {{"tool": NAME, "arguments": {{...}}}}. When you know \
enough, write {{"tool": "answer", "arguments": {{}}}}. The tools:
{tools}
What a tool gave stands in messages that begin with "Result of"."""
_FOUND = """\
You cannot call tools here. What was looked up for you stands in messages that begin with \
"Result of"."""
_NOW = """\
Answer my last question now, in plain words and in its language, from what stands above. Put the \
number of the source in brackets right after each claim, like [1]."""


def shape_of(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The JSON Schema of one envelope."""
    choices = [_choice(tool.name, tool.parameters) for tool in tools]
    return {"anyOf": [*choices, _choice(ANSWER, {"type": "object", "properties": {}})]}


def _choice(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"type": "string", "enum": [name]}, "arguments": dict(parameters)},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }


def asking(request: Request) -> Request:
    """The request for one envelope."""
    listed = "\n".join(f"- {t.name}: {t.description} {takes(t.parameters)}" for t in request.tools)
    return replace(request, system=_joined(request.system, _HOW.format(tools=listed)))


def answering(request: Request, how: str = "") -> Request:
    """The request for the answer in words; without tools, asked for once more."""
    last = request.messages[-1] if request.messages else None
    messages = list(request.messages)
    if last is None or last.role != "user":
        messages.append(Message("user", _NOW, details={"nudge": True}))
    return replace(request, system=_joined(request.system, how), tools=(), messages=messages)


def answering_found(request: Request) -> Request:
    """The request for an answer from what the program looked up."""
    return answering(request, _FOUND)


def _joined(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def is_answer(text: str) -> bool | None:
    """Whether an envelope chose to answer; None if it is no envelope at all."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str):
        return None
    return bool(value["tool"] == ANSWER)


def first_calls(request: Request) -> tuple[ToolCall, ...]:
    """What the program looks up before the model is asked: a search, then the first pages."""
    offered = {tool.name for tool in request.tools}
    last = max((i for i, m in enumerate(request.messages) if m.role == "user"), default=-1)
    turn = request.messages[last + 1 :]
    used = {m.tool_name for m in turn if m.role == "tool"}
    if last < 0 or request.answer_now:
        return ()
    if "web_search" in offered and not used:
        return (_call("web_search", {"query": _query(request.messages, last)}),)
    if "open_page" in offered and used == {"web_search"}:
        rows = [row["url"] for m in turn for row in m.details.get("results", ())]
        return tuple(_call("open_page", {"url": url}) for url in rows[:_PAGES])
    return ()


def _query(messages: Sequence[Message], last: int) -> str:
    """The question; one of a few words, with the question that it follows."""
    words = asked(messages[last]).split()
    if len(words) <= _FEW:
        earlier = (m for m in reversed(messages[:last]) if m.role == "user")
        words = [*asked(next(earlier, Message("user", ""))).split(), *words]
    return " ".join(words)[-_QUERY:].strip()


def _call(name: str, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(f"call_{uuid.uuid4().hex}", name, arguments)
