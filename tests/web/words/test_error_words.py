"""What a server says of an error has words in every language of the page."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

import pytest

from tests.source_tree import ROOT, modules
from tests.web.words.error_codes import FOLDERS, codes

LOCALES = ROOT / "web" / "static" / "locales"
LANGUAGES = sorted(path.stem for path in LOCALES.glob("*.json"))
_NUMBERED = re.compile(r"(error\.[\w-]+)\.\d+")


def words(language: str) -> dict[str, str]:
    """The catalogue's texts for errors."""
    catalogue = json.loads((LOCALES / f"{language}.json").read_bytes())
    return {key: text for key, text in catalogue.items() if key.startswith("error.")}


def texts() -> Iterator[str]:
    """Every text in the server's code, with ` for what is filled in."""
    for module in modules(*FOLDERS):
        for node in module.nodes:
            if isinstance(node, ast.JoinedStr):
                parts = [getattr(part, "value", "") for part in node.values]
                yield "".join(part if isinstance(part, str) else "`" for part in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield re.sub(r"\{\w+\}", "`", node.value)


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
