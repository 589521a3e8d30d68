"""Decides which official sites are asked beside the chain: those of the kind of a question.

kinds.toml holds the kinds and the words by which they are known, in several languages; an engine
declares its kinds. Each choice says why, for the trail. Such sites match names and keywords, so a
question is cut down to these, and its language chooses the edition.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from searchloop.search_backend.engines import Engine
from searchloop.search_backend.fetch.host_check import Rules
from searchloop.search_backend.types import Query

MOST_BESIDE, MOST_INSTEAD = 2, 6  # beside a chain that works; instead of one that does not
_ENOUGH = 2  # the score of one strong sign, or of two weak ones
_EXAMINED = 300  # characters of a question
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# The languages that their letters alone tell, kana before the Han that it stands beside.
_SCRIPTS = tuple(
    (name, re.compile(f"[{letters}]"))
    for name, letters in (
        *(("ja", "\u3040-\u30ff"), ("ko", "\uac00-\ud7af"), ("zh", "\u3400-\u9fff")),
        *(("uk", "іїєґІЇЄҐ"), ("ru", "\u0400-\u04ff"), ("el", "\u0370-\u03ff")),
        *(("he", "\u0590-\u05ff"), ("fa", "پچژگ"), ("ar", "\u0600-\u06ff")),
        *(("hi", "\u0900-\u097f"), ("th", "\u0e00-\u0e7f")),
    )
)
_EDGES = " \t\"'`“”„«»‹›‘’()[]{}<>¿?¡!.,;:…？。，！、「」『』（）《》・"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of question: what it looks like, the signs of it, and the words to leave out."""

    looks: str
    strong: tuple[str, ...]
    weak: tuple[str, ...]
    drop: tuple[str, ...]

    def score(self, text: str) -> int:
        """Returns 2 for each strong sign and 1 for each weak one."""
        strong = {match[0].lower() for match in _pattern(self.strong).finditer(text)}
        weak = {match[0].lower() for match in _pattern(self.weak).finditer(text)}
        return 2 * len(strong) + len(weak)


@dataclass(frozen=True, slots=True)
class Routed:
    """An engine to be asked, and why: "looks like a paper"."""

    engine: Engine
    why: str


@dataclass(frozen=True, slots=True)
class _Data:
    kinds: Mapping[str, Kind]
    news: re.Pattern[str]
    copies: Mapping[str, str]
    works: tuple[tuple[str, re.Pattern[str]], ...]
    words: Mapping[str, frozenset[str]]


@cache
def _data() -> _Data:
    read = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text("utf-8"))
    return _Data(
        {name: _kind(values) for name, values in read["kind"].items()},
        _pattern(tuple(read["news"]["words"])),
        read["copies"],
        tuple((name, re.compile(one, re.IGNORECASE)) for name, one in read["works"].items()),
        {name: frozenset(words.split()) for name, words in read["stop"].items()},
    )


def _kind(values: Mapping[str, Any]) -> Kind:
    return Kind(values["looks"], *(tuple(values.get(n, ())) for n in ("strong", "weak", "drop")))


@cache
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Neighbours with the same edges share them: that halves the time to compile."""
    alike = groupby(words, _edges)
    joined = "|".join(f"{left}(?:{'|'.join(some)}){right}" for (left, right), some in alike)
    return re.compile(joined or "(?!)", re.IGNORECASE)


def _edges(word: str) -> tuple[str, str]:
    if _UNSPACED.search(word):
        return "", ""
    left = "" if word.startswith("^") else r"(?<!\w)"
    return left, "" if word.endswith((" ", "$", "[?]")) else r"(?!\w)"


def language_of(text: str) -> str | None:
    """Returns the ISO 639 code of a question's language; None if nothing tells it."""
    for name, letters in _SCRIPTS:
        if letters.search(text):
            return name
    words = set(re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", text.lower()))
    counts = {name: len(words & known) for name, known in _data().words.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] > (0 if best == "en" else counts["en"]) else None


def wants_news(text: str) -> bool:
    """True for a question about what is new."""
    return _data().news.search(text[:_EXAMINED]) is not None


def works() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Returns the patterns of works with several addresses, by name."""
    return _data().works


def original_of(host: str) -> str | None:
    """Returns the site that `host` copies; None for one that copies none."""
    copies = _data().copies
    labels = host.lower().split(".")
    return next((o for at in range(len(labels)) if (o := copies.get(".".join(labels[at:])))), None)


def keywords(query: Query, kinds: Sequence[str]) -> Query:
    """Returns `query` as a site of these kinds is asked: by names, in the question's language."""
    data, language = _data(), query.language or language_of(query.text)
    text = query.text.replace("’", "'")
    drops = [_pattern(data.kinds[kind].drop) for kind in kinds if kind in data.kinds]
    for pattern in (*drops, data.news):
        text = pattern.sub(" ", text)
    text = _trimmed(text.split(), data.words.get(language or "en", frozenset()))
    return replace(query, text=text or query.text.strip(_EDGES) or query.text, language=language)


def _trimmed(words: list[str], stops: frozenset[str]) -> str:
    """Joins the words without stop words at both ends: inside a title they belong to it."""
    words = [bare for word in words if (bare := word.strip(_EDGES))]
    while words and words[0].lower() in stops:
        del words[0]
    while words and words[-1].lower() in stops:
        del words[-1]
    text = " ".join(words)
    unspaced = [stop for stop in stops if _UNSPACED.search(stop)]
    while end := next((stop for stop in unspaced if text.endswith(stop)), ""):
        text = text.removesuffix(end).strip(_EDGES)
    while start := next((stop for stop in unspaced if text.startswith(stop)), ""):
        text = text.removeprefix(start).strip(_EDGES)
    return text


def choose(query: Query, engines: Iterable[Engine], *, instead: bool) -> list[Routed]:
    """Returns the engines with kinds that fit `query`, best first.

    They are at most two beside a chain that works; with `instead`, when the chain has failed, all
    that fit by any sign, and those for any question.
    """
    engines = list(engines)
    if not engines:
        return []
    data, text = _data(), " ".join(query.text[:_EXAMINED].replace("’", "'").split())
    scores = {**_scores(text), **({"general": 1} if instead else {})}
    fits = {name for name, score in scores.items() if score >= (1 if instead else _ENOUGH)}
    rules = Rules(query.allowed_domains, query.blocked_domains)
    found = []
    for engine in engines:
        ranked = [(scores[k] - at / 2, k) for at, k in enumerate(engine.kinds) if k in fits]
        if ranked and _within(engine, rules):
            score, kind = max(ranked)
            found.append((score, Routed(engine, f"looks like {data.kinds[kind].looks}")))
    found.sort(key=lambda one: -one[0])
    return [choice for _, choice in found][: MOST_INSTEAD if instead else MOST_BESIDE]


@lru_cache(64)  # a search looks twice
def _scores(text: str) -> Mapping[str, int]:
    return {name: kind.score(text) for name, kind in _data().kinds.items()}


def _within(engine: Engine, rules: Rules) -> bool:
    """True unless the rules for domains let none of the engine's results through."""
    wider = any(allowed.endswith(f".{site}") for allowed in rules.allowed for site in engine.sites)
    return wider or not engine.sites or any(map(rules.passes, engine.sites))
