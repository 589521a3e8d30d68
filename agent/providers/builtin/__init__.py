"""`builtin:extractive`: no language model, quotes only; it works on a bare machine.

It plays by the rules of any other model: it sees the transcript, asks for `web_search` and
`open_page` through the loop, and answers. Its answer is made of the sentences that match the
question best, each quoted literally and cited; what it says around them is in `words.py`. Sentences
are scored by the question's words, rarer words counting more, with a bonus for words that stand
close together.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from agent.citations import MARK
from agent.dates import asked
from agent.errors import ConfigError
from agent.features import Features
from agent.models import Capabilities, ModelInfo
from agent.providers.builtin.words import Sentences, sentences_for
from agent.settings import Setting
from agent.transport import Transport
from agent.types import Finished, Message, Request, StreamEvent, TextDelta, ToolCall, Usage

SETTINGS: tuple[Setting, ...] = ()
FEATURES = Features(
    needs="nothing",
    pages="ours",
    citations="numbers of ours, quotes checked",
    replay="text and calls",
)
MODEL = "extractive"

_PAGES = 3
_QUOTES = 5
_REASON = 300  # characters of why an engine or a page failed
_ECHO = 5  # words; a page that holds so many of the question in a row quotes the question
_HEADED = 0.6  # what a word of the heading is worth beside one of the sentence
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.*)$", re.MULTILINE)
_BREAK = re.compile(r"(?<=[.!?。！？])\s+(?=\S)|\n+")
_MARKS = re.compile(
    r"^\s*(?:[#>]+|[-*+]|\d+[.)]|\|)\s*|\s*\|\s*$"
    r"|(?<!\w)_{1,3}|_{1,3}(?!\w)|(?<!\s)[*`]{1,3}|[*`]{1,3}(?!\s)"
)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_COMMON_WORDS = """
    a about after all also am an and any are as at be been but by can could did do does for from had
    has have he her him his how i if in into is it its just like may me more most my no not of on or
    our out over she should so some such than that the their them then there these they this to too
    up us use used was we were what when where which who whom whose why will with would you your
    der die das ein eine und oder ist sind wie was wer wo wann warum welche den dem des im von mit
    le la les un une des et ou est sont comment que qui quoi dans pour
"""
_COMMON = frozenset(_COMMON_WORDS.split())


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence of a page that was read: source number, place, words, words of its heading."""

    n: int
    place: int
    text: str
    words: frozenset[str]
    about: frozenset[str] = frozenset()


class Extractive:
    """The provider. Its only model is `extractive`."""

    name = "builtin"

    def capabilities(self, model: str) -> Capabilities:
        """Calls tools; has no search of its own."""
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
        """The one model there is."""
        title = "Extractive - no language model: quotes only"
        return [ModelInfo(f"builtin:{MODEL}", title, self.capabilities(MODEL), local=True)]

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Search, then read, then quote: each step is one answer of this model."""
        question, turn = _turn(request.messages)
        calls = () if request.answer_now else _next_calls(question, turn, request)
        if calls:
            yield _finished("", calls)
            return
        text = _answer(question, turn, bool(request.tools))
        for piece in re.findall(r"\S+\s*", text):
            yield TextDelta(piece)
        yield _finished(text.strip(), ())


def create(env: Mapping[str, str], transport: Transport) -> Extractive:
    """See `agent.providers`."""
    return Extractive()


def _turn(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """The last question, and what has happened since."""
    last = max((i for i, m in enumerate(messages) if m.role == "user"), default=-1)
    return (asked(messages[last]) if last >= 0 else ""), list(messages[last + 1 :])


def _next_calls(question: str, turn: list[Message], request: Request) -> tuple[ToolCall, ...]:
    """What to ask for now: a search, then the best pages it found, then nothing."""
    offered = {spec.name for spec in request.tools}
    used = {m.tool_name for m in turn if m.role == "tool"}
    numbers = count(sum(len(m.tool_calls) for m in request.messages) + 1)
    if "web_search" in offered and "web_search" not in used:
        return (ToolCall(f"builtin-{next(numbers)}", "web_search", {"query": query_of(question)}),)
    if "open_page" in offered and "open_page" not in used:
        found = [row["url"] for m in turn for row in m.details.get("results", ())]
        pages: dict[str, str] = {}  # a page once, whatever part of it was found
        for url in found:
            pages.setdefault(url.partition("#")[0], url)
        return tuple(
            ToolCall(f"builtin-{next(numbers)}", "open_page", {"url": url, "max_length": 40000})
            for url in list(pages.values())[:_PAGES]
        )
    return ()


def query_of(question: str) -> str:
    """The words of a question worth searching for."""
    words = [w for w in _WORD.findall(question) if w.casefold() not in _COMMON]
    return " ".join(words[:24]) or " ".join(question.split())[:200]


def _answer(question: str, turn: list[Message], searched: bool) -> str:
    say = sentences_for(question)
    if not searched:
        return say.unsearched
    chosen = best_passages(question, _passages(turn))
    if not chosen:
        return _no_answer(turn, say)
    lines = [f"- “{_short(p.text)}” [{p.n}]" for p in chosen]
    return f"{say.found}\n\n" + "\n".join(lines)


def _no_answer(turn: list[Message], say: Sentences) -> str:
    """What stood in the way, one line for each engine or page, or that nothing matches."""
    results = [m for m in turn if m.role == "tool"]
    pages = [m for m in results if m.tool_name == "open_page"]
    unread = [m for m in pages if m.is_error]
    if search := next((m for m in results if m.is_error and m not in pages), None):
        why = search.details.get("trail") or [search.content]
        return _listed(say.search_failed, why)
    if unread and len(unread) == len(pages):
        told = [f"{m.details.get('url', '')}: {m.details.get('why', m.content)}" for m in unread]
        return _listed(say.unread, told)
    if pages:
        return say.no_match
    return say.nothing


def _listed(lead: str, reasons: Iterable[str]) -> str:
    lines = [f"- {' '.join(reason.split())[:_REASON].removeprefix(': ')}" for reason in reasons]
    return f"{lead}\n\n" + "\n".join(lines)


def _passages(turn: list[Message]) -> list[Passage]:
    found: list[Passage] = []
    for message in turn:
        start, end = message.details.get("text", (0, 0))
        if message.role == "tool" and end:
            n = message.details["n"]
            for heading, body in sections(message.content[start:end]):
                about = frozenset(_stems(heading))
                for text in sentences(body):
                    found.append(Passage(n, len(found), text, frozenset(_stems(text)), about))
    return found


def sections(text: str) -> list[tuple[str, str]]:
    """A page in parts: the heading, and what stands below it."""
    parts = _HEADING.split(text)
    return [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


def sentences(text: str) -> list[str]:
    """The sentences of a page worth quoting: no code, no headings, no rubble."""
    kept, code = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            code = not code
        elif not code and not line.lstrip().startswith("#"):
            kept.append(line)
        else:
            kept.append("")
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*+|]|\d+[.)])\s)", "\n".join(kept))
    found = []
    for paragraph in paragraphs:
        plain = _MARKS.sub("", _LINK.sub(r"\1", " ".join(paragraph.split())))
        plain = " ".join(MARK.sub("", plain).split())  # a page's own [1] is none of ours
        found += [s.strip() for s in _BREAK.split(plain)]
    return [s for s in found if _quotable(s)]


def _quotable(text: str) -> bool:
    """A sentence may be short; what ends like none (a label, a menu entry) may not."""
    least = 12 if text.endswith((".", "!", "。", "！")) and text.count(" ") > 1 else 30
    return least <= len(text) <= 600 and text.count("|") < 2


def best_passages(question: str, passages: Sequence[Passage]) -> list[Passage]:
    """The few passages that answer best, in the order of their sources; none if all miss."""
    wanted = set(_stems(query_of(question)))
    rarity = _rarity(wanted, passages)
    words = _WORD.findall(question.casefold())
    scored = []
    for passage in passages:
        hits = wanted & passage.words
        if hits and not _repeats(words, passage.text):
            worth = sum(rarity[w] for w in hits)
            worth += _HEADED * sum(rarity[w] for w in (wanted & passage.about) - hits)
            scored.append((worth / math.log(18 + len(passage.words)), passage))
    scored.sort(key=lambda pair: -pair[0])
    if not scored or scored[0][0] <= 0:
        return []
    floor = scored[0][0] * 0.5
    chosen: list[Passage] = []
    seen: set[frozenset[str]] = set()
    for score, passage in scored:
        if score >= floor and passage.words not in seen and len(chosen) < _QUOTES:
            seen.add(passage.words)
            chosen.append(passage)
    return sorted(chosen, key=lambda p: (p.n, p.place))


def _repeats(asked: list[str], text: str) -> bool:
    """Whether a page only asks the same question; a word or two of it are its topic."""
    return len(asked) >= _ECHO and " ".join(asked) in " ".join(_WORD.findall(text.casefold()))


def _rarity(wanted: Iterable[str], passages: Sequence[Passage]) -> dict[str, float]:
    seen = Counter(word for p in passages for word in p.words)
    return {w: math.log(1 + len(passages) / (0.5 + seen[w])) for w in wanted}


def _stems(text: str) -> list[str]:
    """Words without the commonest endings, so that `searches` meets `search`."""
    words = (w for w in _WORD.findall(text.casefold()) if w not in _COMMON)
    return [re.sub(r"(?<=\w{4})(?:ings?|ed|es|s|ly)$", "", w) for w in words]


def _short(text: str) -> str:
    return text.replace("“", '"').replace("”", '"')


def _finished(text: str, calls: tuple[ToolCall, ...]) -> Finished:
    message = Message("assistant", text, tool_calls=calls)
    return Finished(message, "tool_calls" if calls else "stop", Usage())
