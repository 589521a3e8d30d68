"""Reads what a model says of a chat: a title, and what could be asked next; titles of questions.

All of it is untrusted text: lines of few visible characters, without addresses.
"""

from __future__ import annotations

import re

from searchloop.agent.text import neutral
from searchloop.analysis.characters import visible

LONGEST = 60  # characters
_JOINERS = "\u200c\u200d"  # invisible, but words and emoji are made with them
_NO_PRONOUN = (
    r"(?!(?:you|it|he|she|they|we|i|that|this|there|these|those|du|sie|er|es|wir|ihr|das)\b)"
)
# How questions begin before they come to the point.
_OPENING = re.compile(
    r"(?:(?:hi|hello|hey|please|bitte|hallo|请问|请|你好|您好)[\s,!.，！。]*"
    r"|(?:can|could|would|will) you (?:please |kindly )?|i(?:'d| would) like to know "
    r"|tell me (?:about )?"
    rf"|(?:what|who|where|which|when)(?:'s| is| are| was| were) {_NO_PRONOUN}"
    r"|how (?:do|can|could|should) (?:i|we|you) "
    r"|(?:kannst|könntest) du (?:mir )?(?:bitte )?|(?:können|könnten) sie (?:mir )?(?:bitte )?"
    rf"|(?:was|wer|wo) (?:ist|sind|war|waren) {_NO_PRONOUN}"
    r"|告诉我|什么是|谁是|(?:the|an?|der|die|das|eine?) )",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[^\s.!?])[.!?]+(?=\s|$)|[。！？]")
_LABEL = re.compile(r"^(?:title|titel|标题)\s*[:：]\s*", re.IGNORECASE)
_MARKS = re.compile(r"\[\d{1,4}\]")
_AROUND = " \t\"'`*_#.。«»“”„‚‘’「」『』《》"


def one_line(text: str, most: int = LONGEST) -> str:
    """Puts a text on one line of at most `most` characters, cut between words where there are."""
    shown = (c if c.isprintable() or c in _JOINERS else " " for c in visible(text))
    line = " ".join("".join(shown).split())
    if len(line) <= most:
        return line
    head = line[: most - 1]
    words = head.rpartition(" ")[0]
    return (words if len(words) > most // 2 else head).rstrip(f" ,;:–-{_JOINERS}") + "…"


def title_of(text: str) -> str:
    """Makes a title of a chat's first question: its first sentence, without its opening words."""
    first = next((line for line in visible(text).splitlines() if line.strip()), "").strip()
    line = first
    while (found := _OPENING.match(line)) and len(line) - found.end() > 1:
        line = line[found.end() :]
    end = _END.search(line)
    if line is first:
        return one_line(line[: end.end()] if end else line)
    phrase = line[: end.start()] if end else line
    return one_line(phrase[:1].upper() + phrase[1:])


def said_title(text: str) -> str:
    """Reads the title in a model's answer; empty if there is none."""
    line = next((line for line in neutral(text).splitlines() if line.strip(_AROUND)), "")
    return one_line(_LABEL.sub("", _MARKS.sub("", line).strip(_AROUND)).strip(_AROUND))


MOST_QUESTIONS = 3
_LONGEST_QUESTION = 120  # characters
_ITEM = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.):、）])\s*")
# A question that the user sends counts as their own words, and so would an address in it.
_ADDRESS = re.compile(r"://|\bwww\.|\w\.\w{2,}/", re.IGNORECASE)


def said_questions(text: str, asked: str = "") -> list[str]:
    """Reads at most `MOST_QUESTIONS` questions, one a line, in a model's answer."""
    found: dict[str, str] = {}
    for line in neutral(text).splitlines():
        words = one_line(_ITEM.sub("", _MARKS.sub("", line)).strip(" \t\"'`*_#«»“”「」『』"), 1000)
        known = words.casefold() == asked.strip().casefold() or words.endswith((":", "："))
        if 4 < len(words) <= _LONGEST_QUESTION and not known and not _ADDRESS.search(words):
            found.setdefault(words.casefold(), words)
    return list(found.values())[:MOST_QUESTIONS]
