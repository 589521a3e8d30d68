"""`builtin:extractive` answers with quotes only; it needs no language model.

It works like any other model: it sees the transcript, calls `web_search` and `open_page` through
the loop, and answers. The answer quotes and cites the sentences that answer the question best, or
says that nothing was found. The words around the quotes are in the language of the question, where
`words.toml` has it, else in English.
"""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from searchloop.agent.errors import ConfigError
from searchloop.agent.log.events import asked
from searchloop.agent.providers import Abilities
from searchloop.agent.providers.builtin.quotes import Quote, best_quotes
from searchloop.agent.settings import Setting
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Capabilities,
    Finished,
    Message,
    ModelInfo,
    Request,
    StopReason,
    StreamEvent,
    TextDelta,
    ToolCall,
    Usage,
)
from searchloop.analysis.language import language
from searchloop.analysis.terms import folded, stop_words, words

_FILE = Path(__file__).with_name("words.toml")
SENTENCES: Mapping[str, SimpleNamespace] = {
    lang: SimpleNamespace(**words)
    for lang, words in tomllib.loads(_FILE.read_text("utf-8")).items()
}
_ASKS = {lang: frozenset(say.asks.split()) for lang, say in SENTENCES.items()}
_SPARE = frozenset().union(*_ASKS.values())


def sentences_for(question: str) -> SimpleNamespace:
    """Returns the words in the question's language, told by its script and commonest words."""
    lang = language(question)
    if not lang:
        asked = [word.casefold() for word in words(question)[:12]]  # a file may follow
        lang = next((known for w in asked for known, asks in _ASKS.items() if w in asks), "en")
    say = SENTENCES.get(lang, SENTENCES["en"])
    return SENTENCES["en"] if set(question) & set(say.foreign) else say


SETTINGS: tuple[Setting, ...] = ()
MODEL = "extractive"

_PAGES = 3
_CALLS: StopReason = "tool_calls"
_REASON = 300  # characters of the reason why an engine or a page failed


class Extractive:
    """The provider. Its only model is `extractive`."""

    name = "builtin"
    abilities = Abilities(writes=False, local=lambda model: True)

    def capabilities(self, model: str) -> Capabilities:
        """It calls tools and has no search of its own."""
        return Capabilities(tools=True)

    def check(self, model: str) -> None:
        """Raises ConfigError for a model other than `extractive`."""
        if model != MODEL:
            raise ConfigError(
                "unknown_model",
                f"There is no model builtin:{model}.",
                f"The built-in model is builtin:{MODEL}.",
            )

    async def models(self) -> list[ModelInfo]:
        """The only model."""
        title = "Extractive - no language model: quotes only"
        return [ModelInfo(f"builtin:{MODEL}", title, self.capabilities(MODEL), local=True)]

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Searches, then reads, then quotes; each step is one answer of this model.

        What files of the chat say about the question needs no search.
        """
        question, turn = _turn(request.messages)
        attached = [page for m in request.messages for page in m.details.get("read", ())]
        found = await asyncio.to_thread(best_quotes, question, attached, _SPARE) if attached else []
        calls = () if request.answer_now or found else _next_calls(question, turn, request)
        answer = partial(_answer, question, turn, bool(request.tools), found)
        text, end = await asyncio.to_thread(answer) if not calls else ("", _CALLS)
        for piece in re.findall(r"\S+\s*", text):
            yield TextDelta(piece)
        message = Message("assistant", text.strip(), tool_calls=calls)
        yield Finished(message, end, Usage())


def create(env: Mapping[str, str], transport: Transport) -> Extractive:
    """See `agent.providers`."""
    return Extractive()


def _turn(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """The last question, and the messages after it."""
    last = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1)
    return (asked(messages[last]) if last >= 0 else ""), list(messages[last + 1 :])


def _next_calls(question: str, turn: list[Message], request: Request) -> tuple[ToolCall, ...]:
    """The next calls: a search, then the best pages it found, then none."""
    unused = {spec.name for spec in request.tools} - {m.tool_name for m in turn}
    first = sum(len(m.tool_calls) for m in request.messages) + 1
    if "web_search" in unused:
        return (ToolCall(f"builtin-{first}", "web_search", {"query": query_of(question)}),)
    if "open_page" not in unused:
        return ()
    pages: dict[str, str] = {}  # a page once, whatever part of it was found
    for row in (row for m in turn for row in m.details.get("results", ())):
        pages.setdefault(row["url"].partition("#")[0], row["url"])
    return tuple(
        ToolCall(f"builtin-{n}", "open_page", {"url": url, "max_length": 40000})
        for n, url in enumerate(list(pages.values())[:_PAGES], first)
    )


def query_of(question: str) -> str:
    """The words of a question worth searching for."""
    lang = language(question)
    stops = stop_words(lang or "en")
    telling = [word for word in words(question) if folded(word) not in stops]
    return " ".join(telling[:24]) or " ".join(question.split())[:200]


def _answer(
    question: str, turn: list[Message], searched: bool, found: Sequence[Quote]
) -> tuple[str, StopReason]:
    say = sentences_for(question)
    if not searched and not found:
        return str(say.unsearched), "stop"
    chosen = found or best_quotes(question, _read(turn), _SPARE)
    if not chosen:
        return _no_answer(turn, say), "nothing"
    return _listed(say.found, (f"{quote.said} [{quote.n}]" for quote in chosen)), "stop"


def _read(turn: list[Message]) -> list[tuple[int, str]]:
    """The pages that were read: the number of each source, and its text."""
    found = []
    for message in turn:
        start, end = message.details.get("text", (0, 0))
        if message.role == "tool" and end:
            found.append((message.details["n"], message.content[start:end]))
    return found


def _no_answer(turn: list[Message], say: SimpleNamespace) -> str:
    """Why there are no quotes: one reason for each engine or page, or no match."""
    results = [m for m in turn if m.role == "tool"]
    pages = [m for m in results if m.tool_name == "open_page"]
    unread = [m for m in pages if m.is_error]
    if search := next((m for m in results if m.is_error and m not in pages), None):
        return _reasons(say.search_failed, search.details.get("trail") or [search.content])
    if unread and len(unread) == len(pages):
        why = [f"{m.details.get('url', '')}: {m.details.get('why', m.content)}" for m in unread]
        return _reasons(say.unread, why)
    if pages:
        return str(say.no_match)
    found = [row["url"] for m in results for row in m.details.get("results", ())]
    return _reasons(say.unread, found[:_PAGES]) if found else str(say.nothing)


def _reasons(lead: str, reasons: Iterable[str]) -> str:
    return _listed(lead, (" ".join(r.split())[:_REASON].removeprefix(": ") for r in reasons))


def _listed(lead: str, lines: Iterable[str]) -> str:
    return f"{lead}\n\n" + "\n".join(f"- {line}" for line in lines)
