"""Says how likely a source supports a claim: a logistic regression on numbers of no one language.

`python -m bench.fit_verdicts` fits the weights of `score.json`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from searchloop.agent.verdicts.compare import Comparison, aligned
from searchloop.agent.verdicts.numbers import ABOUT
from searchloop.agent.verdicts.text import Token


@cache
def model() -> dict[str, Any]:
    """Returns {"weights": {feature: weight}, "bias": number, "threshold": chance}."""
    loaded: dict[str, Any] = json.loads(files(__package__).joinpath("score.json").read_text())
    return loaded


def chance(found: Comparison) -> float:
    """Returns the chance, 0 to 1, that people would say the window supports the claim."""
    weights = model()["weights"]
    sum_ = model()["bias"] + sum(weights[k] * v for k, v in features(found).items() if k in weights)
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, sum_))))


def content(tokens: Sequence[Token]) -> list[Token]:
    """Returns what tells something: no grammar, no "about", no unit or sign that a number has."""
    found = []
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        unit = before and token.key[0] == "~" and (before.number or before.key[0] == "~")
        minus = after and after.number and after.number.value < 0 and after.start - token.end < 2
        said = token.kind in ("word", "number", "letter") and token.word not in ABOUT
        if said and not unit and not minus:
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
    rarest = max((found.weights.get(t.key, 0) for t in absent), default=0)
    return {
        "cover": found.cover,
        "order": len(aligned(ours, theirs)) / size,
        "fours": _shared(found.claim, found.window, 4),
        "run": max(runs, default=0) / size,
        "names_lost": min(3, sum(t.capital for t in absent)),
        "rarest": rarest,
        "last": float(bool(missing) and missing[-1]),
        "window": math.log(max(1, len(theirs)) / size),
        "derived": float(found.derived > 0),
    }


def _shared(ours: Sequence[Token], theirs: Sequence[Token], length: int) -> float:
    """Returns the share of the claim's runs of so many tokens that the window has as they are."""
    own, have = (
        {tuple(t.key for t in side[at : at + length]) for at in range(len(side) - length + 1)}
        for side in (ours, theirs)
    )
    return len(own & have) / max(1, len(own))
