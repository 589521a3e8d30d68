"""`python -m bench.extraction_fit --data DIR --out FILE`: fit what the HTML reader chooses text by.

Learned from the `train` part of WCXB's development split alone (see `bench.extraction`). A block of
text is right when most of its runs of four words stand in the page's right text. First a logistic
regression weighs names (tags, classes, first words), then boosted trees weigh what the blocks look
like; the trees see guesses of regressions that were not fitted on the same hosts. Takes some ten
minutes and 3 GB. It needs packages that the project itself does not:

    python -m venv fit && fit/bin/pip install numpy scipy scikit-learn lightgbm selectolax
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from bench.extraction import Sample, wcxb
from search_backend.charset import decode
from search_backend.readers import _about
from search_backend.readers._blocks import Layout, layout, written
from search_backend.readers._bounds import bounded
from search_backend.readers._features import SHORT, columns, text_names
from search_backend.readers._hidden import remove_hidden

_WORD = re.compile(r"\w+")
LEAST_HOSTS = 8
LEAST_WEIGHT = 0.03
PARTS = 4
TREES = 72
# (expected F1, cut below it, cut above it); a few were compared on the held part and on Zyte.
CUT = (0.85, 0.35, 0.55)
FOREST = {
    "objective": "binary",
    "learning_rate": 0.12,
    "num_leaves": 31,
    "min_data_in_leaf": 100,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "verbose": -1,
    "seed": 1,
}


@dataclass(frozen=True, slots=True)
class Example:
    """A page with, for each block, whether it is right and how much that matters."""

    page: Layout
    kind: int
    part: int
    right: list[bool]
    weights: list[float]
    names: list[Counter[str]]


def example(sample: Sample) -> Example:
    """The page as the reader sees it."""
    body = gzip.decompress(sample.file.read_bytes())
    tree = LexborHTMLParser(bounded(decode(body, "utf-8"))[0])
    kind = _about.kind(tree)
    remove_hidden(tree)
    page = layout(written(tree))
    right = _right(page, sample.truth)
    truth, total = len(_WORD.findall(sample.truth)), sum(block.words for block in page.blocks)
    scale = max(30, truth) ** 0.75 * max(50, total) ** 0.25
    weights = [(min(block.words, 200) + 0.5) / scale for block in page.blocks]
    host = (urlsplit(sample.url).hostname or sample.name).removeprefix("www.")
    part = zlib.crc32(host.encode()) // 3 % PARTS
    return Example(page, kind, part, right, weights, _names(page))


def _right(page: Layout, truth: str) -> list[bool]:
    wanted = _WORD.findall(truth.lower())
    runs = {n: set(_runs(wanted, n)) for n in range(1, 5)}
    found = []
    for block in page.blocks:
        words = _WORD.findall(block.text.lower())
        length = min(4, len(words))
        has = list(_runs(words, length)) if words else []
        found.append(sum(run in runs[length] for run in has) > len(has) / 2)
    return found


def _runs(words: Sequence[str], length: int) -> Iterable[tuple[str, ...]]:
    return (tuple(words[i : i + length]) for i in range(len(words) - length + 1))


def _names(page: Layout) -> list[Counter[str]]:
    """What the regression sees of each block, with a mark for `path` and for `near`."""
    ways: list[Counter[str]] = []
    for box in page.boxes:
        own = Counter(f"path {name}" for name in box.names)
        ways.append(own + ways[box.parent] if box.parent >= 0 else own)
    found = []
    for block in page.blocks:
        counts = Counter(ways[block.box])
        up = page.boxes[block.box].parent
        near = [*page.boxes[block.box].names, *(page.boxes[up].names if up >= 0 else ())]
        near += text_names(block.text, block.words) if block.words <= SHORT else []
        counts.update(f"near {name}" for name in near)
        found.append(counts)
    return found


class Fit:
    """The two models; numpy and the rest are loaded here and nowhere else."""

    def __init__(self, examples: Sequence[Example], hosts: Sequence[str]) -> None:
        self._np: Any = import_module("numpy")
        self._examples = examples
        seen: dict[str, set[str]] = defaultdict(set)
        for one, host in zip(examples, hosts, strict=True):
            for name in set().union(*one.names):
                seen[name].add(host)
        known = sorted(name for name, where in seen.items() if len(where) >= LEAST_HOSTS)
        self._index = {name: number for number, name in enumerate(known)}
        self._right = self._np.array([r for one in examples for r in one.right], int)
        weights = self._np.array([w for one in examples for w in one.weights])
        self._weights = weights / weights.mean()
        self._part = self._np.array([one.part for one in examples for _ in one.right])

    def run(self) -> dict[str, Any]:
        """The model in the shape of `main_text.json`."""
        table = self._table()
        guesses = self._np.zeros(len(self._right))
        for part in range(PARTS):
            other = self._part != part
            guesses[~other] = self._regression(table, other).decision_function(table[~other])
        model = self._regression(table, self._part >= 0)
        weights = dict(zip(self._index, model.coef_[0].round(2), strict=True))
        kept = {name: float(w) for name, w in weights.items() if abs(w) >= LEAST_WEIGHT}
        names = sorted({name[5:] for name in kept})
        return {
            "bias": round(float(model.intercept_[0]), 3),
            "cut": CUT,
            "names": {n: [kept.get(f"path {n}", 0), kept.get(f"near {n}", 0)] for n in names},
            "trees": self._forest(guesses.clip(-12, 12)),
        }

    def _table(self) -> Any:
        ends, where, counts = [0], list[int](), list[int]()
        for one in self._examples:
            for names in one.names:
                known = [(self._index[n], c) for n, c in names.items() if n in self._index]
                where += [number for number, _ in known]
                counts += [count for _, count in known]
                ends.append(len(where))
        shape = (len(ends) - 1, len(self._index))
        values = self._np.array(counts, "float32")
        return import_module("scipy.sparse").csr_matrix((values, where, ends), shape=shape)

    def _regression(self, table: Any, rows: Any) -> Any:
        kind = import_module("sklearn.linear_model").LogisticRegression
        return kind(C=0.03, max_iter=50).fit(table[rows], self._right[rows], self._weights[rows])

    def _forest(self, guesses: Any) -> list[Any]:
        lightgbm: Any = import_module("lightgbm")
        rows, start = [], 0
        for one in self._examples:
            end = start + len(one.right)
            if one.right:
                found = columns(one.page, list(guesses[start:end]), one.kind)
                rows.append(self._np.array(found, "float32").T)
            start = end
        data = lightgbm.Dataset(self._np.concatenate(rows), self._right, weight=self._weights)
        told = lightgbm.train(FOREST, data, TREES).dump_model()
        return [_tree(tree["tree_structure"]) for tree in told["tree_info"]]


def _tree(node: dict[str, Any]) -> Any:
    if "leaf_value" in node:
        return round(node["leaf_value"], 4)
    threshold = float(f"{node['threshold']:.5g}")
    left, right = _tree(node["left_child"]), _tree(node["right_child"])
    return [node["split_feature"], threshold, left, right]


def main(argv: list[str] | None = None) -> int:
    """Fit and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.extraction_fit", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    args = parser.parse_args(argv)
    samples = list(wcxb(args.data / "wcxb", "train"))
    hosts = [urlsplit(sample.url).hostname or sample.name for sample in samples]
    model = Fit([example(sample) for sample in samples], hosts).run()
    args.out.write_text(json.dumps(model, separators=(",", ":")) + "\n", "ascii")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
