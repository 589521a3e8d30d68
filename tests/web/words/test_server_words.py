"""What the server says in English of its settings and agents has words in every other language."""

from __future__ import annotations

import json
import re

import pytest

from searchloop.agent import settings
from searchloop.agent.run.prompts import built_in
from searchloop.agent.search import switch
from searchloop.compose import every_setting
from searchloop.search_backend import settings as backend_settings
from tests.source_tree import ROOT

LOCALES = ROOT / "web" / "static" / "locales"
LANGUAGES = sorted({path.stem for path in LOCALES.glob("*.json")} - {"en"})
_LITERAL = re.compile(r"https?://[\w.:/-]+|\{\w+\}|`[^`]+`|[A-Z0-9]+_[A-Z0-9_]+|\w+=\w+|\d[\d.]*\d")


def words(language: str, kind: str) -> dict[str, str]:
    """The catalogue's texts of a kind, by the server's names."""
    catalogue = json.loads((LOCALES / f"{language}.json").read_bytes())
    head = f"{kind}."
    return {key.removeprefix(head): s for key, s in catalogue.items() if key.startswith(head)}


def shown() -> dict[str, str]:
    """The English help of each setting that the page shows: all that are no secret, and keys."""
    every = every_setting()
    return {s.name: s.help for s in every if not s.secret or s.name.endswith("_KEY")}


def central() -> set[str]:
    """Settings that belong to no provider, engine or reader. Those come as one file, and what its
    settings are for is shown in English until somebody translates it."""
    declared = {s.name for s in (*settings.SETTINGS, *switch.SETTINGS)}
    return declared | {name for name, _, _ in backend_settings.SETTINGS}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_setting_and_every_agent_has_words(language: str) -> None:
    """A new setting or agent asks for its words; those of one that is gone go as well."""
    known, where = words(language, "help").keys(), f"{language}.json"
    assert known >= central() & shown().keys(), where
    assert known <= shown().keys(), where
    assert words(language, "about").keys() == built_in().keys(), where


@pytest.mark.parametrize("language", LANGUAGES)
def test_help_keeps_what_must_be_typed_as_it_is(language: str) -> None:
    """Addresses, examples, names of settings and numbers are those of the English help."""
    translated = words(language, "help")
    for name, english in shown().items():
        said = translated.get(name, english)
        lost = [part for part in _LITERAL.findall(english) if part not in said]
        assert lost == [], (language, name)
