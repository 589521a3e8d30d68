"""`builtin:extractive` answers with quotes only; it needs no language model.

It works like any other model: it sees the transcript, calls `web_search` and `open_page` through
the loop, and answers. The answer quotes and cites the sentences that match the question best; rarer
words of the question and of a heading count more. The words around the quotes are English, German
or Chinese, after the language of the question.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from searchloop.agent.errors import ConfigError
from searchloop.agent.log.events import asked
from searchloop.agent.providers import Features
from searchloop.agent.search.marks import MARK
from searchloop.agent.settings import Setting
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import (
    Capabilities,
    Finished,
    Message,
    ModelInfo,
    Request,
    StreamEvent,
    TextDelta,
    ToolCall,
    Usage,
)

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_OTHERS = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")  # kana and hangul: Japanese, Korean
_WORD = re.compile(r"[^\W\d_]+")
_IN_GERMAN = """
    aber als am auf aus bei bin bis bitte das dem den der durch ein eine einem einen einer eines er
    es für gibt haben hat heißt ich im ist kann kein keine kommt können macht mein mit muss nach
    nicht oder ohne seit sich sie sind soll sollte über um und uns unter viel viele vom von vor wann
    warum welche welchem welchen welcher welches wem wen wer werden weshalb wie wieso wieviel wird
    wo wohin woher wurde wurden zu zum zur zwischen
"""
_ELSEWHERE = """
    a an and are at by can do does for from had has have how is it its of on or that the their this
    to were what when where which who why will with you
    de het een van zijn niet voor hoe waarom welk en la le les des du que est y el los las og som
    är det att och på til
"""
_GERMAN, _FOREIGN = frozenset(_IN_GERMAN.split()), frozenset(_ELSEWHERE.split())


@dataclass(frozen=True, slots=True)
class Sentences:
    """The words of one language; a list follows `found`, `search_failed` and `unread`."""

    unsearched: str
    found: str
    search_failed: str
    unread: str
    no_match: str
    nothing: str


SENTENCES: Mapping[str, Sentences] = {
    "en": Sentences(
        unsearched="I am not a language model: I answer with quotes from pages that a web search "
        "finds. Switch on web search, or choose a language model.",
        found="These passages match your question best:",
        search_failed="The web search failed, so there is nothing to quote.",
        unread="The search found pages, but none of them could be read.",
        no_match="No sentence of the pages that were read matches your question. Try other words.",
        nothing="The search found nothing that matches your question. Try other words.",
    ),
    "de": Sentences(
        unsearched="Ich bin kein Sprachmodell: Ich antworte mit Zitaten aus Seiten, die eine "
        "Websuche findet. Schalten Sie die Websuche ein oder wählen Sie ein Sprachmodell.",
        found="Diese Stellen passen am besten zu Ihrer Frage:",
        search_failed="Die Websuche ist fehlgeschlagen, also gibt es nichts zu zitieren.",
        unread="Die Suche hat Seiten gefunden, aber keine davon ließ sich lesen.",
        no_match="Kein Satz der gelesenen Seiten passt zu Ihrer Frage. Versuchen Sie andere "
        "Wörter.",
        nothing="Die Suche hat nichts gefunden, das zu Ihrer Frage passt. Versuchen Sie andere "
        "Wörter.",
    ),
    "zh": Sentences(
        unsearched="我不是语言模型：我只引用网络搜索找到的页面来回答。请打开网络搜索，或选择一个语言模型。",
        found="以下段落与你的问题最相符：",
        search_failed="网络搜索失败，因此没有可引用的内容。",
        unread="搜索找到了页面，但没有一个能够读取。",
        no_match="读取的页面中没有与你的问题相符的句子。请换个说法试试。",
        nothing="搜索没有找到与你的问题相符的内容。请换个说法试试。",
    ),
}


def sentences_for(question: str) -> Sentences:
    """The words in the question's language, detected by its letters and commonest words."""
    words = _WORD.findall(question.casefold())
    german, foreign = (sum(word in known for word in words) for known in (_GERMAN, _FOREIGN))
    if _HAN.search(question) and not _OTHERS.search(question) and not german and not foreign:
        return SENTENCES["zh"]
    first = next((word for word in words if word in _GERMAN | _FOREIGN), "")
    return SENTENCES["de" if german > foreign and first in _GERMAN else "en"]


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
_REASON = 300  # characters of the reason why an engine or a page failed
_ECHO = 5  # words; a page that repeats a question of at least so many words quotes it
_HEADED = 0.6  # weight of a word of the heading; one of the sentence has 1
_WORDS = re.compile(r"\w+")
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
    """A sentence of a page: source number, place, text, its words, words of its heading."""

    n: int
    place: int
    text: str
    words: frozenset[str]
    about: frozenset[str] = frozenset()


class Extractive:
    """The provider. Its only model is `extractive`."""

    name = "builtin"

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
        """Searches, then reads, then quotes; each step is one answer of this model."""
        question, turn = _turn(request.messages)
        calls = () if request.answer_now else _next_calls(question, turn, request)
        text = "" if calls else _answer(question, turn, bool(request.tools))
        for piece in re.findall(r"\S+\s*", text):
            yield TextDelta(piece)
        message = Message("assistant", text.strip(), tool_calls=calls)
        yield Finished(message, "tool_calls" if calls else "stop", Usage())


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
    words = [w for w in _WORDS.findall(question) if w.casefold() not in _COMMON]
    return " ".join(words[:24]) or " ".join(question.split())[:200]


def _answer(question: str, turn: list[Message], searched: bool) -> str:
    say = sentences_for(question)
    if not searched:
        return say.unsearched
    chosen = best_passages(question, _passages(turn))
    if not chosen:
        return _no_answer(turn, say)
    quotes = str.maketrans("“”", '""')
    return _listed(say.found, (f"“{p.text.translate(quotes)}” [{p.n}]" for p in chosen))


def _no_answer(turn: list[Message], say: Sentences) -> str:
    """Why there are no quotes: one reason for each engine or page, or no match."""
    results = [m for m in turn if m.role == "tool"]
    pages = [m for m in results if m.tool_name == "open_page"]
    unread = [m for m in pages if m.is_error]
    if search := next((m for m in results if m.is_error and m not in pages), None):
        return _reasons(say.search_failed, search.details.get("trail") or [search.content])
    if unread and len(unread) == len(pages):
        why = [f"{m.details.get('url', '')}: {m.details.get('why', m.content)}" for m in unread]
        return _reasons(say.unread, why)
    return say.no_match if pages else say.nothing


def _reasons(lead: str, reasons: Iterable[str]) -> str:
    return _listed(lead, (" ".join(r.split())[:_REASON].removeprefix(": ") for r in reasons))


def _listed(lead: str, lines: Iterable[str]) -> str:
    return f"{lead}\n\n" + "\n".join(f"- {line}" for line in lines)


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
    """Splits a page into (heading, text below it)."""
    parts = _HEADING.split(text)
    return [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


def sentences(text: str) -> list[str]:
    """The sentences of a page worth quoting: no code, headings, labels or fragments."""
    kept, code = [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith(("```", "~~~"))
        code ^= fence
        if not fence:
            kept.append("" if code or line.lstrip().startswith("#") else line)
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*+|]|\d+[.)])\s)", "\n".join(kept))
    found = []
    for paragraph in paragraphs:
        plain = _MARKS.sub("", _LINK.sub(r"\1", " ".join(paragraph.split())))
        plain = " ".join(MARK.sub("", plain).split())  # a page's own [1] is none of ours
        found += [s.strip() for s in _BREAK.split(plain)]
    return [s for s in found if _quotable(s)]


def _quotable(text: str) -> bool:
    """A sentence may be short; text without its end (a label, a menu entry) may not."""
    least = 12 if text.endswith((".", "!", "。", "！")) and text.count(" ") > 1 else 30
    return least <= len(text) <= 600 and text.count("|") < 2


def best_passages(question: str, passages: Sequence[Passage]) -> list[Passage]:
    """The passages that match best, at most _QUOTES, in the order of their sources."""
    wanted = set(_stems(query_of(question)))
    rarity = _rarity(wanted, passages)
    words = _WORDS.findall(question.casefold())
    scored = []
    for passage in passages:
        hits = wanted & passage.words
        if hits and not _repeats(words, passage.text):
            worth = sum(rarity[w] for w in hits)
            worth += _HEADED * sum(rarity[w] for w in (wanted & passage.about) - hits)
            scored.append((worth / math.log(18 + len(passage.words)), passage))
    scored.sort(key=lambda pair: -pair[0])
    chosen: dict[frozenset[str], Passage] = {}  # by words: the same sentence once
    for score, passage in scored:
        if score >= scored[0][0] * 0.5 and len(chosen) < _QUOTES:
            chosen.setdefault(passage.words, passage)
    return sorted(chosen.values(), key=lambda p: (p.n, p.place))


def _repeats(asked: list[str], text: str) -> bool:
    """True if the text repeats the question; a short question may be the page's topic."""
    return len(asked) >= _ECHO and " ".join(asked) in " ".join(_WORDS.findall(text.casefold()))


def _rarity(wanted: Iterable[str], passages: Sequence[Passage]) -> dict[str, float]:
    seen = Counter(word for p in passages for word in p.words)
    return {w: math.log(1 + len(passages) / (0.5 + seen[w])) for w in wanted}


def _stems(text: str) -> list[str]:
    """Words without the commonest endings, so that `searches` meets `search`."""
    words = (w for w in _WORDS.findall(text.casefold()) if w not in _COMMON)
    return [re.sub(r"(?<=\w{4})(?:ings?|ed|es|s|ly)$", "", w) for w in words]
