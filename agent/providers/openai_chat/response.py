"""Decodes Chat Completions answers, streamed or whole, into events.

The end is `[DONE]`, or the end of the bytes after a `finish_reason`: the counts come after that
reason, and some servers send no reason at all. Anything that ends otherwise is incomplete.

Spec: https://platform.openai.com/docs/api-reference/chat/streaming
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from searchloop.agent.providers._answer import (
    Calls,
    PrintedText,
    ShownAnswer,
    thought,
    without_late_thinking,
)
from searchloop.agent.providers._codec import CodecBase, DecoderBase
from searchloop.agent.providers._wire import count, error_in, member, money, text_in
from searchloop.agent.providers.openai_chat.models import ChatServer, Dialect
from searchloop.agent.providers.openai_chat.request import PROVIDER, StreamedCalls, version
from searchloop.agent.search.citations import numbered
from searchloop.agent.search.marks import find
from searchloop.agent.transport.exchange import incomplete
from searchloop.agent.types import (
    Citation,
    Finished,
    Mark,
    Message,
    Notice,
    ProviderData,
    Request,
    SearchFinished,
    SearchStarted,
    Source,
    StopReason,
    StreamEvent,
    ToolSpec,
    Usage,
)
from searchloop.analysis.dates import iso_date


def read_usage(usage: Any) -> Usage:
    """Returns the reported counts; prompt tokens include cached ones."""
    usage = usage if isinstance(usage, dict) else {}
    cost = usage.get("cost")
    cost = cost.get("total_cost") if isinstance(cost, dict) else cost
    return Usage(
        input_tokens=count(usage, "prompt_tokens"),
        output_tokens=count(usage, "completion_tokens"),
        cached_tokens=count(usage.get("prompt_tokens_details"), "cached_tokens"),
        reasoning_tokens=count(usage.get("completion_tokens_details"), "reasoning_tokens"),
        searches=count(usage.get("server_tool_use_details"), "web_search_requests"),
        cost_usd=money(cost),
    )


_REASONING = ("reasoning_content", "reasoning")
_NOTED = frozenset({"usage", "search_results", "citations"})
# What makers of servers call an end that is none; any other word is a stop.
_CUT = ("length", "max_tokens", "max_output_tokens", "model_length", "repetition_truncation")
_WITHHELD = (
    "content_filter",
    "sensitive",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
)
_BROKEN = ("error", "abort", "cancelled", "insufficient_system_resource", "network_error")
_STOPS: dict[str, StopReason] = {
    **dict.fromkeys(_CUT, "length"),
    **dict.fromkeys(_WITHHELD, "refusal"),
}


class ChatAnswer(ShownAnswer):
    """Collects one choice: text, thinking, calls and citations.

    `reason` is the server's `finish_reason`; `tools` are those whose calls may stand in the text,
    as small models print them. Offsets of citations count in the text with printed thinking.
    """

    def __init__(
        self, model: str, server: ChatServer, dialect: Dialect, tools: Iterable[ToolSpec] = ()
    ) -> None:
        super().__init__()
        printing = tools if dialect.prints else ()
        self._printed = PrintedText(self, printing)
        self._model = model
        self._host = server.host
        self.reason = ""
        self.begun = False
        self._content: list[str] = []  # with printed thinking
        self._size = 0
        self._marks = dialect.marks
        self._listed: list[str] = []  # the pages that marks name, by number
        self._calls = StreamedCalls()
        self._refused = False
        self._annotations: list[Mapping[str, Any]] = []
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._consulted: list[Source] = []
        self._usage = Usage()

    @property
    def lost(self) -> bool:
        """True for marks of a model that counts through pages, none of which was named."""
        pages = self._listed or self._consulted or self._annotations
        return self._marks and not pages and bool(find(self.text, range(1, 30)))

    @property
    def annotated(self) -> bool:
        """True once the server has named a page."""
        return bool(self._annotations)

    @property
    def searched(self) -> bool:
        """True once it is known that the server has searched."""
        return self.annotated or bool(self._usage.searches)

    def add(self, delta: Mapping[str, Any], *, whole: bool) -> list[StreamEvent]:
        """Adds a piece of the answer, or the whole. Returns the deltas that can be shown now."""
        self.begun = True
        out: list[StreamEvent] = []
        content = delta.get("content")
        if len(delta) > 1 or content is None:
            self._add_rest(delta, out, whole=whole)
        if content:
            if type(content) is str:
                self._text(content, out)
            else:
                self._parts(content, out)
        return out

    def complete(self, message: Mapping[str, Any]) -> list[StreamEvent]:
        """Adds what a whole message has beyond the pieces before it; some servers close with one.

        Perplexity sends it beside each piece, MiniMax at the end, others instead of pieces.
        """
        known = {"tool_calls": self._calls, "annotations": self._annotations}
        known |= dict.fromkeys((*_REASONING, "reasoning_details"), self._thinking)
        rest = {name: value for name, value in message.items() if not known.get(name)}
        if self._content:
            content = text_in(rest, "content")
            more = len(content) > self._size and content.startswith("".join(self._content))
            rest["content"] = content[self._size :] if more else ""
            rest.pop("refusal", None)
        return self.add(rest, whole=True)

    def end(self) -> list[StreamEvent]:
        """Ends the answer. Returns the deltas that were not shown yet."""
        out: list[StreamEvent] = []
        self._printed.end(out)
        return out

    def held(self) -> str:
        return self._printed.held()

    def note(self, chunk: Mapping[str, Any]) -> None:
        """Notes counts and pages consulted; later values replace earlier ones."""
        if chunk.get("usage"):
            self._usage = read_usage(chunk["usage"])
        results = chunk.get("search_results")
        if isinstance(results, list):
            self._consulted = [
                Source(url, text_in(page, "title"), published=iso_date(page.get("date")))
                for page in results
                if (url := text_in(page, "url"))
            ]
            self._listed = self._listed or [text_in(page, "url") for page in results]
        if isinstance(chunk.get("citations"), list):
            pages = chunk["citations"]
            self._listed = [p if isinstance(p, str) else text_in(p, "url") for p in pages]

    def result(self) -> tuple[Message, StopReason, Usage]:
        """Returns the whole answer. Drops the calls of one that was cut or filtered."""
        stop = _STOPS.get(self.reason, "refusal" if self._refused else "stop")
        calls, raw = ((), []) if stop != "stop" else self._calls.build()
        details = {}
        if stop == "stop" and not calls and self._printed.written.calls:
            details["calls"] = "text"
            written = Calls()
            for name, arguments in self._printed.written.calls:
                written.add("", name, arguments)
            calls = tuple(written.made.values())
        citations, found = self._citations()
        consulted, block = (*self._consulted, *found), self._block(raw) if raw else None
        message = self.message(calls, citations, consulted, block, details)
        if not (message.thinking or citations):
            message = without_late_thinking(message)
        return message, "tool_calls" if calls else stop, self._usage

    def _add_rest(self, delta: Mapping[str, Any], out: list[StreamEvent], *, whole: bool) -> None:
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._keep_details(details)
        for name in _REASONING:
            if text := text_in(delta, name):
                self._reasoning.setdefault(name, []).append(text)
                out += thought(self.think(text))
                break
        else:
            for detail in details if isinstance(details, list) else ():
                out += thought(self.think(_thought(detail)))
        if delta.get("tool_calls"):
            self._calls.add(delta["tool_calls"], whole=whole)
        annotations = delta.get("annotations")
        if isinstance(annotations, list):
            self._annotations += [note for note in annotations if isinstance(note, dict)]
        if refusal := text_in(delta, "refusal"):
            self._refused = True
            self._text(refusal, out)

    def _text(self, text: str, out: list[StreamEvent]) -> None:
        self._content.append(text)
        self._size += len(text)
        self._printed.add(text, out)

    def _parts(self, content: Any, out: list[StreamEvent]) -> None:
        """Adds content as a list of parts, which some servers stream too."""
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict):
                continue
            if text := text_in(part, "text"):
                self._text(text, out)
            elif isinstance(part.get("thinking"), list):
                for inner in part["thinking"]:
                    out += thought(self.think(_thought(inner)))

    def _keep_details(self, details: list[Any]) -> None:
        """Joins the pieces of each reasoning block, which goes back to the server."""
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
        """Returns the pages cited at a place in the text, and all pages named."""
        stretch = self._printed.stretch
        thinking = "".join(self._content)[: self._size - stretch.size]
        found: list[tuple[Mark, str, str]] = []
        named: list[Source] = []
        for note in (member(each, "url_citation") for each in self._annotations):
            if url := text_in(note, "url"):
                named.append(Source(url, text_in(note, "title")))
                mark = self.cited(stretch, note, thinking)
                found += [(mark, *named[-1][:2])] if mark.span else []
        if self._marks and not found:
            found = self._marked({s.url: s.title for s in (*named, *self._consulted)})
        return numbered(found), named

    def _marked(self, titles: Mapping[str, str]) -> list[tuple[Mark, str, str]]:
        """Returns the marks `[n]` in the text, which count through the pages that were listed."""
        pages = self._listed or list(titles)
        places = find(self.text, range(1, len(pages) + 1))
        cited = ((place, pages[n - 1]) for place in places for n in place.numbers)
        return [(Mark((p.start, p.end)), url, titles.get(url, "")) for p, url in cited if url]


def _thought(detail: Any) -> str:
    return text_in(detail, "text") or text_in(detail, "summary")


_LOST = Notice(
    "marks_without_pages",
    "The answer has marks such as [1], but its provider named no pages: they lead nowhere.",
    "Ask again, or choose local search.",
)


class ChatDecoder(DecoderBase[ChatAnswer]):
    """Decodes the answer to one request. See `agent.providers.Decoder`."""

    def __init__(
        self, codec: CodecBase, request: Request, server: ChatServer, dialect: Dialect
    ) -> None:
        super().__init__(codec)
        self._answer = ChatAnswer(request.model, server, dialect, request.tools)
        self._answer.native = request.native_search is not None
        # Models that always search report nothing; a server's tool shows in what it found.
        searches = "due" if dialect.always else "possible"
        self._search = searches if request.native_search is not None else "none"
        self._ended = False
        self._free = server.loopback

    def _read_done(self) -> Iterable[StreamEvent]:
        if not (self._ended or self._answer.begun):
            raise incomplete(self._server)
        return self._finish()

    def _end_of_stream(self) -> Iterable[StreamEvent]:
        if not self._ended:
            raise incomplete(self._server)
        return self._finish()

    def _error_in(self, event: Any) -> dict[str, Any] | None:
        # An error behind the reason for the end takes nothing away: routers send both.
        return None if self._ended else error_in(event)

    def _read(self, event: Any) -> Iterable[StreamEvent]:
        error = None if self._ended or "choices" in event else error_in(event, failed=True)
        if error:
            raise self._codec.refused(error)
        if not _NOTED.isdisjoint(event):
            self._answer.note(event)
        for choice in event.get("choices") or ():
            if not choice.get("index"):
                yield from self._choice(choice)

    def _choice(self, choice: Mapping[str, Any]) -> Iterable[StreamEvent]:
        if self._search == "due":
            self._search = "begun"
            yield SearchStarted()
        if "usage" in choice:  # Moonshot counts here
            self._answer.note(choice)
        delta = choice.get("delta")
        shown = self._answer.add(delta, whole=False) if type(delta) is dict else []
        if "message" in choice and isinstance(choice["message"], dict):
            shown += self._answer.complete(choice["message"])
            self._ended = self._ended or "delta" not in choice
        if shown or self._answer.annotated:
            yield from self._searched()
        yield from shown
        reason = choice.get("finish_reason")
        if reason:
            if str(reason).lower() in _BROKEN or choice.get("error"):
                raise self._codec.refused(error_in(choice) or {})
            self._ended = True
            self._answer.reason = str(reason).lower()

    def _searched(self) -> Iterable[StreamEvent]:
        if self._search == "possible" and self._answer.searched:
            yield SearchStarted()
            self._search = "begun"
        if self._search == "begun":
            self._search = "done"
            yield SearchFinished("")

    def _finish(self) -> Iterable[StreamEvent]:
        rest = self._answer.end()
        yield from self._searched()
        yield from rest
        self._finished = True
        if self._answer.lost:
            yield _LOST
        message, why, usage = self._answer.result()
        if self._free and usage.cost_usd is None:
            usage = usage._replace(cost_usd=0.0)
        yield Finished(message, why, usage)
