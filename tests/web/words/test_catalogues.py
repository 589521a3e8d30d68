"""The page's words: each language has all of them, in plain words, for what a server can say."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from searchloop.agent import settings
from searchloop.agent.run.prompts import built_in
from searchloop.agent.search import switch
from searchloop.compose import every_setting
from searchloop.search_backend import settings as backend_settings
from tests.source_tree import ROOT, modules, tracked_files
from tests.web.words.error_codes import FOLDERS, codes

CATALOGUES = {
    path.stem: json.loads(path.read_bytes())
    for path in sorted((ROOT / "web" / "static" / "locales").glob("*.json"))
}
each_language = pytest.mark.parametrize("language", CATALOGUES)

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
_NUMBERED = re.compile(r"([\w-]+)\.\d+")
_LITERAL = re.compile(r"https?://[\w.:/-]+|\{\w+\}|`[^`]+`|[A-Z0-9]+_[A-Z0-9_]+|\w+=\w+|\d[\d.]*\d")


def texts(language: str) -> Iterator[tuple[str, str]]:
    """Each text of a language with its key, its {places} left out."""
    for key, entry in CATALOGUES[language].items():
        for text in entry.values() if isinstance(entry, dict) else [entry]:
            yield key, re.sub(r"\{\w+\}", "", text)


def words(language: str, kind: str) -> dict[str, str]:
    """The catalogue's texts of a kind, by the server's names."""
    found = CATALOGUES[language].items()
    return {k.removeprefix(f"{kind}."): text for k, text in found if k.startswith(f"{kind}.")}


@each_language
def test_no_text_is_code_or_a_word_of_the_house(language: str) -> None:
    """No backticks anywhere; no variables and names of fields outside the small print. A reader
    knows chats, questions, pages and servers, not what our code calls them."""
    edge = "" if language == "zh" else r"\b"
    wrong = {word: f"say {better}" for word, better in INSIDE[language].items()}
    found = [key for key, text in texts(language) if "`" in text]
    for key, text in texts(language):
        if not key.startswith(SMALL_PRINT) and key not in TYPED and MARKS.search(text):
            found.append(f"{key}: {text}")
        if not key.startswith((*SMALL_PRINT, "find.")):  # which people type, and nobody reads
            found += [
                f"{key} has {match[0]!r} ({better}): {text}"
                for word, better in wrong.items()
                if (match := re.search(f"{edge}(?:{word}){edge}", text, re.IGNORECASE))
            ]
    assert found == []


def filled(text: str) -> str:
    """The text with ` for what is filled in."""
    return re.sub(r"\{\w+\}", "`", text)


def held(data: Any) -> Iterator[str]:
    """Every text in a table of data."""
    if isinstance(data, str):
        yield data
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from held(part)


def said() -> Iterator[str]:
    """Every text in the server's code and beside it, with ` for what is filled in."""
    for path in tracked_files():
        if path.suffix == ".toml" and path.relative_to(ROOT).parts[0] in FOLDERS:
            yield from map(filled, held(tomllib.loads(path.read_text("utf-8"))))
    for module in modules(*FOLDERS):
        for node in module.nodes:
            if isinstance(node, ast.JoinedStr):
                parts = [getattr(part, "value", "") for part in node.values]
                yield "".join(part if isinstance(part, str) else "`" for part in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield filled(node.value)


@each_language
def test_every_code_has_words(language: str) -> None:
    """Whatever code a server can send, each language says what happened; none is left over."""
    known = {_NUMBERED.sub(r"\1", key) for key in words(language, "error")}
    assert codes() - known == set(), f"write what they mean into locales/{language}.json"
    assert known - codes() == {"asks", "http", "original"}


def test_sentences_with_places_are_the_servers_own() -> None:
    """An English sentence that is looked for in what the server says is one that it does say."""
    own = list(said())
    for key, form in words("en", "error").items():
        if _NUMBERED.fullmatch(key):
            pattern = re.sub(r"\\\{\w+\\\}", ".+", re.escape(form))
            assert any(re.fullmatch(pattern, text) for text in own), (key, form)


def shown() -> dict[str, str]:
    """The English help of each setting that the page shows: all that are no secret, and keys."""
    every = every_setting()
    return {s.name: s.help for s in every if not s.secret or s.name.endswith("_KEY")}


def central() -> set[str]:
    """Settings that belong to no provider, engine or reader. Those come as one file, and what its
    settings are for is shown in English until somebody translates it."""
    declared = {s.name for s in (*settings.SETTINGS, *switch.SETTINGS)}
    return declared | {name for name, _, _ in backend_settings.SETTINGS}


@pytest.mark.parametrize("language", [name for name in CATALOGUES if name != "en"])
def test_settings_and_agents_have_words_in_every_language(language: str) -> None:
    """A new setting or agent asks for its words; those of one that is gone go as well. Addresses,
    examples, names of settings and numbers are those of the English help."""
    translated = words(language, "help")
    assert translated.keys() >= central() & shown().keys(), language
    assert translated.keys() <= shown().keys(), language
    assert words(language, "about").keys() == built_in().keys(), language
    for name, english in shown().items():
        text = translated.get(name, english)
        assert [part for part in _LITERAL.findall(english) if part not in text] == [], name
