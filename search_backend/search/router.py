"""Decides which official sites are asked when the chain has failed: those of a question's kind.

kinds.toml holds the kinds and the words by which they are known; an engine declares its kinds. Each
choice says why, for the trail. Such sites match names and keywords, so a question is cut down to
these, and its language chooses the edition.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from searchloop.analysis.language import language
from searchloop.analysis.terms import folded, stop_words
from searchloop.search_backend.engines import Engine
from searchloop.search_backend.fetch.host_check import Rules
from searchloop.search_backend.types import Query

_EXAMINED = 300  # characters of a question
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# Guessed by their function words, where a question is too short to tell its language surely.
_GUESSED = ("en", "de", "es", "fr", "it", "pt", "nl")
_EDGES = " \t\"'`“”„«»‹›‘’()[]{}<>¿?¡!.,;:…？。，！、「」『』（）《》・"


class Kind(NamedTuple):
    """One kind of question: what it looks like, and the words by which it is known."""

    looks: str
    names: re.Pattern[str]
    words: re.Pattern[str]

    def score(self, text: str) -> int:
        """Returns how many of its words stand in `text`."""
        found = (match for pattern in (self.names, self.words) for match in pattern.finditer(text))
        return len({match[0].lower() for match in found})


class Routed(NamedTuple):
    """An engine to be asked, and why: "looks like a paper"."""

    engine: Engine
    why: str


@cache
def _known() -> Mapping[str, Kind]:
    read = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text("utf-8"))
    return {
        name: Kind(one["looks"], *(_pattern(one.get(n, ())) for n in ("names", "words")))
        for name, one in read["kind"].items()
    }


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    """Joins expressions, each of which stands alone unless its script has no blanks."""
    joined = (word if _UNSPACED.search(word) else rf"(?<!\w)(?:{word})(?!\w)" for word in words)
    return re.compile("|".join(joined) or "(?!)", re.IGNORECASE)


def language_of(text: str) -> str | None:
    """Returns the ISO 639 code of a question's language; None if nothing tells it."""
    if re.search("[іїєґ]", text, re.IGNORECASE):
        return "uk"
    if sure := language(text):
        return sure
    words = [folded(word) for word in re.findall(r"[^\W\d_]+", text)]
    counts = {name: sum(word in stop_words(name) for word in words) for name in _GUESSED}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def keywords(query: Query, kinds: Sequence[str]) -> Query:
    """Returns `query` as a site of these kinds is asked: by names, in the question's language."""
    text, code = _plain(query.text), query.language or language_of(query.text)
    for kind in kinds:
        text = _known()[kind].names.sub(" ", text)
    text = _trimmed(text.split(), stop_words(code or "en"))
    return replace(query, text=text or query.text.strip(_EDGES) or query.text, language=code)


def _trimmed(words: Iterable[str], stops: frozenset[str]) -> str:
    """Joins the words without stop words at both ends: inside a title they belong to it."""
    kept = [bare for word in words if (bare := word.strip(_EDGES))]
    for end in (0, -1):
        while kept and folded(kept[end]) in stops:
            del kept[end]
    return " ".join(kept)


def choose(query: Query, engines: Iterable[Engine]) -> list[Routed]:
    """Returns the engines that fit `query` by any word, best first, and those for any question."""
    known, text = _known(), _plain(query.text)[:_EXAMINED]
    rules = Rules(query.allowed_domains, query.blocked_domains)
    engines = [engine for engine in engines if _within(engine, rules)]
    kinds = {kind for engine in engines for kind in engine.kinds}
    scores = {kind: known[kind].score(text) for kind in kinds}
    scores["general"] = 1
    found = []
    for engine in engines:
        ranked = [(scores[kind] - at / 2, kind) for at, kind in enumerate(engine.kinds)]
        if fits := [one for one in ranked if scores[one[1]]]:
            score, kind = max(fits)
            found.append((score, Routed(engine, f"looks like {known[kind].looks}")))
    return [choice for _, choice in sorted(found, key=lambda one: -one[0])]


def _plain(text: str) -> str:
    return " ".join(text.replace("’", "'").split())


def _within(engine: Engine, rules: Rules) -> bool:
    """True unless the rules for domains let none of the engine's results through."""
    wider = any(allowed.endswith(f".{site}") for allowed in rules.allowed for site in engine.sites)
    return wider or not engine.sites or any(map(rules.passes, engine.sites))
