"""The answer as it grows: text, thinking, calls and citations of one choice.

Offsets of citations count in the content as the server wrote it. What is shown has lost the
thinking printed before it and the marks inside it, so offsets are moved by the one and mapped
around the other.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from agent.cited import numbered, sources
from agent.page_dates import page_date
from agent.providers.openai_chat.calls import Calls
from agent.providers.openai_chat.counts import read_times, read_usage
from agent.providers.openai_chat.history import PROVIDER, version
from agent.residue import Residue
from agent.spans import locate, widen
from agent.thinking import ThinkSplitter
from agent.tool_text import TextCalls
from agent.types import (
    Citation,
    Mark,
    Message,
    ProviderData,
    Source,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolSpec,
    Usage,
)

Delta = TextDelta | ThinkingDelta
_REASONING = ("reasoning_content", "reasoning")
_STOPS: dict[str, StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refusal",
}


class Answer:
    """One choice. `reason` is the server's `finish_reason`.

    `tools`: those whose calls may stand in the text, as small models print them.
    """

    def __init__(self, model: str, host: str, tools: Iterable[ToolSpec] = ()) -> None:
        self._model = model
        self._host = host
        self.reason = ""
        self.begun = False
        self._content: list[str] = []  # as the server wrote it
        self._answered = 0  # how much of it came after the thinking printed before it
        self._shown: list[str] = []
        self._thinking: list[str] = []
        self._splitter = ThinkSplitter()
        self._residue = Residue()
        self._written = TextCalls(tools)
        self._times: dict[str, Any] = {}
        self._calls = Calls()
        self._refused = False
        self._annotations: list[Mapping[str, Any]] = []
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._consulted: list[Source] = []
        self._usage = Usage()

    @property
    def annotated(self) -> bool:
        """Whether the server has named a page."""
        return bool(self._annotations)

    def add(self, delta: Mapping[str, Any], *, whole: bool) -> list[Delta]:
        """A piece of the answer, or all of it. Returns what can be shown now."""
        self.begun = True
        out: list[Delta] = []
        content = delta.get("content")
        if len(delta) > 1 or content is None:
            self._add_rest(delta, out, whole=whole)
        if content:
            if type(content) is str:
                self._text(content, out)
            else:
                self._parts(content, out)
        return out

    def end(self) -> list[Delta]:
        """No more will come. Returns what was not shown yet."""
        out: list[Delta] = []
        for piece in self._splitter.close():
            self._show(piece, out)
        self._say(self._written.feed(self._residue.close()) + self._written.close(), out)
        return out

    def note(self, chunk: Mapping[str, Any]) -> None:
        """What a server says beside the answer: counts, pages consulted. The last word holds."""
        if chunk.get("usage"):
            self._usage = read_usage(chunk["usage"])
        if isinstance(chunk.get("timings"), dict):
            self._times = read_times(chunk["timings"])
        results = chunk.get("search_results")
        if isinstance(results, list):
            listed = [page for page in results if isinstance(page, dict)]
            self._consulted = [
                Source(url, _string(page.get("title")), published=page_date(page.get("date")))
                for page in listed
                if (url := _string(page.get("url")))
            ]

    def result(self) -> tuple[Message, StopReason, Usage]:
        """The whole of it. Calls of an answer that was cut or filtered are dropped."""
        stop = _STOPS.get(self.reason, "refusal" if self._refused else "stop")
        calls, raw = ((), []) if stop != "stop" else self._calls.build()
        details = dict(self._times)
        if stop == "stop" and not calls and self._written.calls:
            details["calls"] = "text"
            calls = tuple(
                ToolCall(f"call_{uuid.uuid4().hex}", name, arguments)
                for name, arguments in self._written.calls
            )
        citations, found = self._citations()
        message = Message(
            "assistant",
            "".join(self._shown),
            thinking="".join(self._thinking),
            tool_calls=calls,
            citations=citations,
            sources=sources((*self._consulted, *found), citations),
            details=details,
            provider_data=self._block(raw) if raw else None,
        )
        return message, "tool_calls" if calls else stop, self._usage

    def _add_rest(self, delta: Mapping[str, Any], out: list[Delta], *, whole: bool) -> None:
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._keep_details(details)
        for name in _REASONING:
            thought = delta.get(name)
            if thought and isinstance(thought, str):
                self._reasoning.setdefault(name, []).append(thought)
                self._think(thought, out)
                break
        else:
            for detail in details if isinstance(details, list) else ():
                self._think(_thought(detail), out)
        if delta.get("tool_calls"):
            add = self._calls.add_whole if whole else self._calls.add
            add(delta["tool_calls"])
        annotations = delta.get("annotations")
        if isinstance(annotations, list):
            self._annotations += [note for note in annotations if isinstance(note, dict)]
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            self._text(refusal, out)

    def _text(self, text: str, out: list[Delta]) -> None:
        self._content.append(text)
        if self._splitter.passing:
            self._show(TextDelta(text), out)
        else:
            for piece in self._splitter.feed(text):
                self._show(piece, out)

    def _show(self, piece: Delta, out: list[Delta]) -> None:
        if type(piece) is ThinkingDelta:
            self._think(piece.text, out)
            return
        self._answered += len(piece.text)
        text = self._residue.feed(piece.text)
        if text:
            self._say(self._written.feed(text), out)

    def _say(self, text: str, out: list[Delta]) -> None:
        if text:
            self._shown.append(text)
            out.append(TextDelta(text))

    def _think(self, text: str, out: list[Delta]) -> None:
        if text:
            self._thinking.append(text)
            out.append(ThinkingDelta(text))

    def _parts(self, content: Any, out: list[Delta]) -> None:
        """Content as a list of parts, which some servers stream too."""
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict):
                continue
            text = part.get("text")
            if isinstance(text, str) and text:
                self._text(text, out)
            elif isinstance(part.get("thinking"), list):
                for inner in part["thinking"]:
                    self._think(_thought(inner), out)

    def _keep_details(self, details: list[Any]) -> None:
        """Reasoning to be sent back: pieces of one block are put together."""
        for detail in details:
            if not isinstance(detail, dict):
                continue
            last = self._details[-1] if self._details else {}
            if all(last.get(k) == detail.get(k) for k in ("type", "index")) and last:
                for key, value in detail.items():
                    joined = key in ("text", "summary", "data") and isinstance(last.get(key), str)
                    if value is not None:
                        last[key] = last[key] + value if joined else value
            else:
                self._details.append(dict(detail))

    def _block(self, calls: list[dict[str, Any]]) -> ProviderData:
        block: dict[str, Any] = {"role": "assistant", "tool_calls": calls}
        block |= {name: "".join(pieces) for name, pieces in self._reasoning.items()}
        if self._details:
            block["reasoning_details"] = self._details
        return ProviderData(PROVIDER, self._model, version(self._host), (block,))

    def _citations(self) -> tuple[tuple[Citation, ...], list[Source]]:
        """Pages cited at a place in the text, and all that were named, cited or not."""
        raw, text = "".join(self._content), "".join(self._shown)
        found: list[tuple[Mark, str, str]] = []
        named: list[Source] = []
        for note in self._annotations:
            note = _citation(note)
            url, title = _string(note.get("url")), _string(note.get("title"))
            if not url:
                continue
            named.append(Source(url, title))
            where = locate(raw, _number(note, "start_index"), _number(note, "end_index"), url)
            span = self._span(where, raw, text) if where else None
            if span:
                found.append((Mark(span), url, title))
        return numbered(found), named

    def _span(self, where: tuple[int, int], raw: str, text: str) -> tuple[int, int] | None:
        printed = len(raw) - self._answered
        first, last = (self._residue.position(max(0, at - printed)) for at in where)
        first, last = min(first, len(text)), min(last, len(text))
        return (first, last) if first < last else widen(text, first)


def _citation(note: Mapping[str, Any]) -> Mapping[str, Any]:
    """The citation, which the API nests and some servers do not."""
    inner = note.get("url_citation")
    if isinstance(inner, dict):
        return inner
    return note if note.get("type") == "url_citation" else {}


def _number(note: Mapping[str, Any], name: str) -> int:
    value = note.get(name)
    return value if type(value) is int else 0


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _thought(detail: Any) -> str:
    if not isinstance(detail, dict):
        return ""
    text = detail.get("text") or detail.get("summary")
    return text if isinstance(text, str) else ""
