"""The page's words are for people: no code, no marks of code, no words from inside the house."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.source_tree import ROOT

LOCALES = ROOT / "web" / "static" / "locales"
LANGUAGES = sorted(path.stem for path in LOCALES.glob("*.json"))
MARKS = re.compile(r"`|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|\b[a-z]+_[a-z_]+\b(?!=)|</?\w+>")
# What our code calls things, by language: the word that people know stands beside it.
INSIDE = {
    "en": {
        "back-?end": "search server",
        "sessions?": "chat",
        "turns?": "question, answer",
        "payload": "request",
        "schema": "form",
        "glob|regex": "pattern",
        "prompt": "request",
        "preset": "agent",
        "pooler": "what shares connections",
        "process": "server, program",
        "stdout|stderr": "what it wrote",
        "exception|traceback": "error",
        "null|undefined|boolean": "none, yes or no",
        "opaque|residue|codec|lease|chunk": "(nothing: it is ours)",
        "stub|mock|todo": "(nothing: it is ours)",
        "utf-?8": "text",
    },
    "de": {
        "backend|frontend": "Suchserver",
        "sitzung(en)?|session": "Chat",
        "schema|payload|prompt": "Form, Anfrage",
        "glob|regex": "Muster",
        "prozess": "Server, Programm",
        "pooler": "was Verbindungen teilt",
        "runden?": "Frage",
    },
    "zh": {
        "后端": "搜索服务器",
        "会话": "对话",
        "轮次": "部分",
        "提示词": "请求",
        "进程": "服务器",
        "载荷": "请求",
    },
}
# Small print: what a setting is for says what to type, and names the settings beside it.
SMALL_PRINT = ("help.",)
# The start of a variable and its value, as it has to be typed.
TYPED = {"mcp.env": "NAME=value is what has to be typed"}


def texts(language: str) -> Iterator[tuple[str, str]]:
    """Each text of a language with its key, its {places} left out."""
    catalogue = json.loads((LOCALES / f"{language}.json").read_bytes())
    for key, entry in catalogue.items():
        for text in entry.values() if isinstance(entry, dict) else [entry]:
            yield key, re.sub(r"\{\w+\}", "", text)


def test_there_is_a_list_for_every_language() -> None:
    """Whoever adds a language says which words of the trade it must not use."""
    assert set(LANGUAGES) == set(INSIDE)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_holds_marks_of_code(language: str) -> None:
    """No backticks, variables or names of fields outside the small print."""
    found = [
        f"{key}: {text}"
        for key, text in texts(language)
        if not key.startswith(SMALL_PRINT) and key not in TYPED and MARKS.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_small_print_holds_no_backticks(language: str) -> None:
    """Where a command is named, it stands without marks around it."""
    assert [key for key, text in texts(language) if "`" in text] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_uses_a_word_of_the_house(language: str) -> None:
    """A reader knows chats, questions, pages and servers, not what our code calls them."""
    edge = "" if language == "zh" else r"\b"
    wrong = {word: f"say {better}" for word, better in INSIDE[language].items()}
    found = [
        f"{key} has {match[0]!r} ({better}): {text}"
        for key, text in texts(language)
        if not key.startswith((*SMALL_PRINT, "find."))  # which people type, and nobody reads
        for word, better in wrong.items()
        if (match := re.search(f"{edge}(?:{word}){edge}", text, re.IGNORECASE))
    ]
    assert found == []
