"""What a server says of an error has words in every language of the page."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.source_tree import ROOT, modules, tracked_files
from tests.web.words.error_codes import FOLDERS, codes

LOCALES = ROOT / "web" / "static" / "locales"
LANGUAGES = sorted(path.stem for path in LOCALES.glob("*.json"))
_NUMBERED = re.compile(r"(error\.[\w-]+)\.\d+")


def words(language: str) -> dict[str, str]:
    """The catalogue's texts for errors."""
    catalogue = json.loads((LOCALES / f"{language}.json").read_bytes())
    return {key: text for key, text in catalogue.items() if key.startswith("error.")}


def filled(text: str) -> str:
    """The text with ` for what is filled in."""
    return re.sub(r"\{\w+\}", "`", text)


def held(data: Any) -> Iterator[str]:
    """Every text in a table of data."""
    if isinstance(data, str):
        yield data
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from held(part)


def texts() -> Iterator[str]:
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_has_words(language: str) -> None:
    """Whatever code a server can send, each language says what happened; none is left over."""
    known = {_NUMBERED.sub(r"\1", key) for key in words(language)}
    sent = {f"error.{code}" for code in codes()}
    assert sent - known == set(), f"write what they mean into locales/{language}.json"
    assert known - sent == {"error.asks", "error.http", "error.original"}


def test_sentences_with_places_are_the_servers_own() -> None:
    """An English sentence that is looked for in what the server says is one that it does say."""
    said = list(texts())
    for key, form in words("en").items():
        if _NUMBERED.fullmatch(key):
            pattern = re.sub(r"\\\{\w+\\\}", ".+", re.escape(form))
            assert any(re.fullmatch(pattern, text) for text in said), (key, form)
