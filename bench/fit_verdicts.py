"""Fits the score of verdicts: `python -m bench.fit_verdicts FILE...` writes score.json.

FILE is a development set in one of the forms that `bench.labelled` reads. The weights come from a
ridge-penalised logistic regression. What precision each chance has on five held-out fifths is
printed; the thresholds, one for claims of few words, are read from that and given. Only claims that
no veto touches are fitted, and each by its best window: the one that today's weights choose, so run
it until the figures stand still.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

from bench.labelled import Labelled, read
from searchloop.agent.verdicts.page import Page
from searchloop.agent.verdicts.score import closest, features
from searchloop.agent.verdicts.text import blanked
from searchloop.agent.verdicts.vetoes import veto

_SCORE = Path(__file__).parents[1] / "agent/verdicts/score.json"
Row = tuple[list[float], float]


def rows(labelled: Sequence[Labelled]) -> tuple[list[str], list[Row], int]:
    """Returns the names of the features, a row for each claim, and how many supported have none."""
    names: list[str] = []
    found: list[Row] = []
    missed = 0
    for each in labelled:
        best = closest(blanked(each.claim).strip(), Page(each.text))
        if isinstance(best, str) or veto(best.seen):
            missed += each.right
            continue
        values = features(best.seen)
        names = list(values)
        found.append((list(values.values()), float(each.right)))
    return names, found, missed


def fitted(found: Sequence[Row], ridge: float) -> list[float]:
    """Returns the weights, the bias first, by Newton's method on standardised features."""
    size = len(found[0][0])
    mean = [sum(x[k] for x, _ in found) / len(found) for k in range(size)]
    spread = [
        math.sqrt(sum((x[k] - mean[k]) ** 2 for x, _ in found) / len(found)) or 1.0
        for k in range(size)
    ]
    data = [([1.0, *((v - m) / s for v, m, s in zip(x, mean, spread, strict=True))], y)
            for x, y in found]  # fmt: skip
    weights = [0.0] * (size + 1)
    for _ in range(12):
        slope = [ridge * w * (k > 0) for k, w in enumerate(weights)]
        curve = [[ridge * (i == j > 0) for j in range(size + 1)] for i in range(size + 1)]
        for x, y in data:
            p = 1 / (1 + math.exp(-sum(w * v for w, v in zip(weights, x, strict=True))))
            for i, v in enumerate(x):
                slope[i] += (p - y) * v
                row, by = curve[i], p * (1 - p) * v
                for j, other in enumerate(x):
                    row[j] += by * other
        weights = [w - d for w, d in zip(weights, _solved(curve, slope), strict=True)]
    plain = [w / s for w, s in zip(weights[1:], spread, strict=True)]
    return [weights[0] - sum(w * m for w, m in zip(plain, mean, strict=True)), *plain]


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solves a system of linear equations by elimination."""
    rows_ = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k in range(len(rows_)):
        best = max(range(k, len(rows_)), key=lambda i: abs(rows_[i][k]))
        rows_[k], rows_[best] = rows_[best], rows_[k]
        for i, row in enumerate(rows_):
            if i != k and (by := row[k] / (rows_[k][k] or 1e-9)):
                rows_[i] = [a - by * b for a, b in zip(row, rows_[k], strict=True)]
    return [row[-1] / (row[k] or 1e-9) for k, row in enumerate(rows_)]


def chance(weights: Sequence[float], x: Sequence[float]) -> float:
    """Returns the chance of a row."""
    total = weights[0] + sum(w * v for w, v in zip(weights[1:], x, strict=True))
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, total))))


def threshold(scored: list[tuple[float, float]], precision: float) -> float:
    """Returns the lowest chance above which so many are right, of (chance, label)."""
    right, best = 0.0, 1.0
    for number, (p, label) in enumerate(sorted(scored, reverse=True), 1):
        right += label
        if number >= 20 and right / number >= precision:
            best = p
    return best


def main(argv: Sequence[str] | None = None) -> int:
    """Fits, prints the curve, and writes the file."""
    parser = argparse.ArgumentParser(prog="python -m bench.fit_verdicts", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--thresholds", type=float, nargs=2, default=(0.63, 0.735))
    parser.add_argument("--ridge", type=float, default=10.0)
    args = parser.parse_args(argv)
    labelled = [each for file in args.files for each in read(file)]
    names, found, missed = rows(labelled)
    random.Random(1).shuffle(found)
    scored = []
    for fifth in range(5):
        weights = fitted([r for n, r in enumerate(found) if n % 5 != fifth], args.ridge)
        scored += [(chance(weights, x), y) for n, (x, y) in enumerate(found) if n % 5 == fifth]
    every = sum(y for _, y in found) + missed
    for wanted in (0.95, 0.9, 0.85, 0.8, 0.75, 0.7):
        at = threshold(scored, wanted)
        hits = sum(y for p, y in scored if p >= at)
        print(f"precision {wanted:.2f} recall {hits / every:.3f} at a chance of {at:.3f}")
    weights = fitted(found, args.ridge)
    made = {
        "weights": {n: round(w, 3) for n, w in zip(names, weights[1:], strict=True)},
        "bias": round(weights[0], 3),
        **dict(zip(("threshold", "threshold_short"), args.thresholds, strict=True)),
    }
    _SCORE.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    print(made)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
