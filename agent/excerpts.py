"""A tool's result made shorter: what was used of a page, one line of the rest. Pure.

The fence around text from the web stays: what is between its marks is data, however short.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from agent.types import Message

_FENCED = re.compile(r"(.*?<<(\w+) untrusted[^\n]*>>\n)(.*)(\n<<\2 end>>.*)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_WORD = re.compile(r"\w{3,}")
_PASSAGES = 3
_LONGEST = 420  # characters of passages that stay of one page
_NOTE = "[shortened: the passages that were used]"


def brief(message: Message, transcript: Sequence[Message]) -> Message:
    """A result that was read: title, address, and the passages that answers used.

    `transcript` is everything said so far: its answers and questions tell what was used.
    """
    head, body, tail = parts(message.content)
    match message.details.get("kind"):
        case "page":
            text = f"{_NOTE}\n{passages(body, _wanted(message, transcript))}"
        case "search":
            rows = message.details.get("results", ())
            text = "\n".join(f"[{r['n']}] {r['title'][:80]} {r['url']}" for r in rows)
        case _:
            text = body if len(body) <= _LONGEST else f"{body[:_LONGEST]}\n[shortened]"
    return _with(message, head + text + tail)


def one_line(message: Message) -> Message:
    """A result there is no room for at all: what it was, so that the call has its answer."""
    details = message.details
    match details.get("kind"):
        case "page":
            said = f"[{details.get('n')}] {details.get('url', '')[:200]}"
        case "search":
            said = f"searched for {details.get('query', '')[:80]!r}"
        case _:
            said = message.content[:80]
    return _with(message, f"[left out, no room in the window: {said}]")


def capped(message: Message, share: float) -> Message:
    """A result of which only this share fits."""
    head, body, tail = parts(message.content)
    around = len(head) + len(tail)
    keep = max(0, int(len(message.content) * share) - around - 120)
    note = f"\n[cut here: {keep} of {len(body)} characters fit; use find for the rest]"
    return _with(message, head + body[:keep] + note + tail)


def parts(content: str) -> tuple[str, str, str]:
    """(before, inside, after) of fenced text; without a fence all of it is inside."""
    found = _FENCED.fullmatch(content)
    return (found[1], found[3], found[4]) if found else ("", content, "")


def passages(body: str, wanted: set[str]) -> str:
    """The few sentences that share most words with `wanted`, in their order."""
    found = [s.strip() for s in _SENTENCE.split(body) if s.strip()]
    scored = [(len(wanted & words(s)) / (12 + len(s)) ** 0.5, i) for i, s in enumerate(found)]
    best = sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:_PASSAGES]
    chosen, left = [], _LONGEST
    for _, place in best:
        text = found[place][:left]
        left -= len(text)
        if text:
            chosen.append((place, text))
    return " […] ".join(text for _, text in sorted(chosen))


def words(text: str) -> set[str]:
    """The words that tell texts apart."""
    return {w.casefold() for w in _WORD.findall(text)}


def _wanted(message: Message, transcript: Sequence[Message]) -> set[str]:
    """Words of the sentences that cite this page, else of the question it was read for."""
    n, cited, question = message.details.get("n"), set(), ""
    after = False
    for said in transcript:
        after = after or said is message
        if said.role == "user" and not after:
            question = said.content
        for citation in said.citations:
            if citation.n == n:
                for mark in citation.marks:
                    cited |= words(mark.quote or "")
                for start, end in citation.spans:
                    cited |= words(said.content[max(0, start - 200) : end])
    return cited or words(question)


def _with(message: Message, content: str) -> Message:
    if len(content) >= len(message.content):
        return message
    return replace(message, content=content, encoded={})
