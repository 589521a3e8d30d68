"""Finds the sentences that bear most on a claim, and says how likely they support it.

The chance is a logistic regression on numbers of no one language.

`python -m bench.fit_verdicts` fits the weights of `score.json`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple

from searchloop.agent.verdicts.compare import Comparison, aligned
from searchloop.agent.verdicts.derived import derived
from searchloop.agent.verdicts.numbers import ABOUT, shares
from searchloop.agent.verdicts.page import Page
from searchloop.agent.verdicts.text import Token, tokens
from searchloop.agent.verdicts.vetoes import accused, veto

SHORT = "The claim is too short to be compared."
FEW = "Too few of the claim's words stand together in the source."
_LEAST = 0.4  # share of the claim's content, by weight, below which a window is not looked at
_WINDOWS, _WORK = 8, 2_000  # compared word by word, and their tokens
_SHAPES = ((0, 0), (-1, 0), (0, 1), (-2, 0), (-1, 1), (0, 2))  # around a sentence that is near
_SHORT = 7  # content words of a claim that must be surer
TOKENS = 2_000  # of a claim and of a window


@cache
def model() -> dict[str, Any]:
    """Returns {"weights": {feature: weight}, "bias": number, "threshold": chance}."""
    loaded: dict[str, Any] = json.loads(files(__package__).joinpath("score.json").read_bytes())
    return loaded


def chance(found: Comparison) -> float:
    """Returns the chance, 0 to 1, that people would say the window supports the claim."""
    weights = model()["weights"]
    sum_ = model()["bias"] + sum(weights[k] * v for k, v in features(found).items())
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, sum_))))


def content(tokens: Sequence[Token]) -> list[Token]:
    """Returns what tells something: no grammar, no "about", no unit or sign that a number has."""
    found = []
    for before, token in zip((None, *tokens), tokens, strict=False):
        unit = before and token.key[0] == "~" and (before.number or before.key[0] == "~")
        said = token.kind in ("word", "number", "letter") and token.word not in ABOUT
        if said and not unit:
            found.append(token)
    return found


def features(found: Comparison) -> dict[str, float]:
    """Returns the numbers that the score is made of, most of them shares of the claim."""
    ours, theirs = content(found.claim), content(found.window)
    size = max(1, len(ours))
    lost = {t.key for t in found.lost}
    missing = [t.key in lost for t in ours]
    absent = [t for t in ours if t.key in lost]
    runs = [sum(1 for _ in run) for gone, run in groupby(missing) if gone]
    return {
        "cover": found.cover,
        "cover_squared": found.cover**2,
        "held": 1 - sum(missing) / size,
        "order": len(aligned(ours, theirs)) / size,
        "run": max(runs, default=0) / size,
        "names_lost": min(3, sum(t.capital for t in absent)),
        "rarest": max((found.weights.get(t.key, 0) for t in absent), default=0),
        "last": float(bool(missing) and missing[-1]),
        "window": math.log(max(1, len(theirs)) / size),
        "derived": float(found.derived > 0),
    }


class Found(NamedTuple):
    """The window that decides: its sentences, how likely they support the claim, and what not."""

    seen: Comparison
    first: int
    last: int
    chance: float
    fault: str


def closest(claim: str, page: Page) -> Found | str:
    """Returns the sentences of the page that bear most on a claim, or why there are none."""
    said = tokens(claim, page.lang)[:TOKENS]
    weights = {t.key: page.weight(t.key) for t in content(said)}
    if len(weights) < 2:
        return SHORT
    windows = _windows(page, weights)
    if not windows:
        return "Nothing like it stands in the source."
    found: list[Found] = []
    left = _WORK
    for cover, first, last in windows[:_WINDOWS]:
        if left > 0 and (cover >= _LEAST or not found):
            row = page.row(first, set(weights)) if first == last else []
            window = row or [t for k in range(first, last + 1) for t in page.tokens(k)]
            left -= len(window)
            seen = Comparison(said, window[:TOKENS], weights, page)
            found.append(_seen(seen, first, last, bool(row)))
            if first == last and found[-1].seen.near and not found[-1].fault:
                break  # nothing outdoes the source's own sentence
    found += _worked_out(claim, max(found, key=_rank), page)
    best = max(_deciding(found), key=_rank)
    return best._replace(fault=veto(best.seen) or FEW) if best.fault == FEW else best


def _seen(seen: Comparison, first: int, last: int, row: bool = False) -> Found:
    """Judges a window; few words and strange names must be surer, cells may hold less."""
    strange = any(t.named and t.kind == "word" and not seen.page.has(t.key) for t in seen.given)
    kind = "_short" if strange or len(seen.weights) <= _SHORT else ""
    sure = seen.derived or (row and not any(t.capital for t in seen.lost))
    likely, least = chance(seen), model()["threshold" if sure else f"threshold{kind}"]
    few = "" if likely >= least else FEW
    return Found(seen, first, last, likely, few if few and not seen.near else veto(seen) or few)


def _worked_out(claim: str, best: Found, page: Page) -> list[Found]:
    """Returns the sentences whose numbers give those that a claim has and the page has not."""
    seen, text = best.seen, page.text.casefold()
    if seen.near or not best.fault:
        return []
    parts = [
        each for each in shares(claim, page.lang) if claim[each[1] : each[2]].casefold() not in text
    ]
    said = {t for t in seen.given for _, start, end in parts if start <= t.start < end}
    lost = [t for t in seen.lost if t.number and t not in said and not page.gives(t)]
    wanted = [*(share for share, _, _ in parts), *(t.number for t in lost if t.number)]
    near = page.nearest(set(seen.weights))
    pairs = [pair for n in wanted if (pair := derived(n, page, near, seen.weights))]
    if len(pairs) < len(wanted) or not any(pair.worked or parts for pair in pairs):
        return []
    sides = {id(side.said): side for pair in pairs for side in pair[:2]}.values()
    window = [t for side in sides for t in side.said]
    end = max(t.end for t in window)
    told = {t.start for t in (*said, *lost)}
    window += [t._replace(start=end, end=end) for t in seen.given if t.start in told]
    places = [side.sentence for side in sides]
    seen = replace(seen, window=window[:TOKENS], derived=len(wanted))
    return [_seen(seen, min(places), max(places))]


def _deciding(found: list[Found]) -> list[Found]:
    """Returns the shortest windows that are nearly the claim; without one, all windows.

    A sentence that is the claim but for a number decides, whatever stands around it; but sentences
    that hold all of the claim in order decide with it.
    """
    near = [each for each in found if each.seen.near]
    shortest = min((each.last - each.first for each in near), default=0)
    return [each for each in near if each.last - each.first == shortest or each.seen.whole] or found


def _rank(each: Found) -> tuple[bool, bool, float, int, int]:
    denied = bool(each.fault) and accused(each.seen, each.fault)
    return not each.fault, denied, each.chance, each.first - each.last, -each.first


def _windows(page: Page, weights: Mapping[str, float]) -> list[tuple[float, int, int]]:
    """Returns (share of the weights it may hold, first, last sentence), the best first.

    Numbers count as held: only the comparison reads their scale and words.
    """
    ranges = {
        (k + before, k + behind)
        for k in page.nearest(set(weights))
        for before, behind in _SHAPES
        if k + before >= 0 and k + behind < len(page.spans)
        if before == behind or not page.has_items(k + before, k + behind)
    }
    total = sum(weights.values())
    places = {key: {*page.holding(key)} for key in weights if key[0] not in "#~"}
    found = []
    for first, last in ranges:
        window = range(first, last + 1)
        held = sum(w for k, w in weights.items() if not places.get(k, {first}).isdisjoint(window))
        found.append((held / total, first, last))
    return sorted(found, key=lambda each: (-each[0], each[2] - each[1], each[1]))
