"""`python -m bench.extraction_fit --data DIR --out FILE`: fit what the HTML reader chooses text by.

Learned from a part of WCXB's development split alone (see `bench.extraction`; `extraction_labels`
tells which blocks are right). One logistic regression weighs the names of a page (classes, address)
to tell its sort, one those around a block (tags, classes, first words). Boosted trees weigh what a
block looks like; they see only what models made of a page that were not fitted on its host. Takes
some ten minutes and 4 GB. It needs packages that the project itself does not:

    python -m venv fit && fit/bin/pip install numpy scipy scikit-learn lightgbm selectolax
"""

from __future__ import annotations

import argparse
import gzip
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.extraction import WORD, Sample, wcxb
from bench.extraction_labels import right_blocks
from searchloop.search_backend.readers._html import about as _about
from searchloop.search_backend.readers._html.blocks import Layout, layout, roles, written
from searchloop.search_backend.readers._html.bounds import parsed
from searchloop.search_backend.readers._html.choose import GENRES, About, page_names
from searchloop.search_backend.readers._html.features import (
    columns,
    same_ways,
    text_names,
    wrappers,
)
from searchloop.search_backend.readers._html.parts.visible import show
from searchloop.search_backend.text.clean import decode

LEAST_HOSTS = 8
LEAST_WEIGHT = 0.03
PARTS = 4
TREES = 48
# What a block of an article must reach of the page's expected F1, and what another one must.
CUT = (0.68, 0.45)
FOREST = {
    "objective": "binary",
    "learning_rate": 0.12,
    "num_leaves": 31,
    "max_bin": 63,
    "min_data_in_leaf": 100,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "verbose": -1,
    "num_threads": 1,
    "seed": 1,
}


@dataclass(frozen=True, slots=True)
class Example:
    """A page with, for each block, whether it is right and how much that matters."""

    page: Layout
    about: About
    sort: str
    part: int
    right: list[bool]
    weights: list[float]


def example(sample: Sample) -> Example:
    """The page as the reader sees it."""
    body = gzip.decompress(sample.file.read_bytes())
    tree, _ = parsed(decode(body, "utf-8"))
    about = About(_about.kind(_about.metadata(tree, sample.url)), sample.url)
    show(tree)
    page = layout(written(tree))
    truth, total = len(WORD.findall(sample.truth)), sum(block.words for block in page.blocks)
    scale = max(30, truth) ** 0.75 * max(50, total) ** 0.25
    weights = [(min(block.words, 200) + 0.5) / scale for block in page.blocks]
    host = (urlsplit(sample.url).hostname or sample.name).removeprefix("www.")
    part = zlib.crc32(host.encode()) // 3 % PARTS
    return Example(page, about, sample.group, part, right_blocks(page, sample.truth), weights)


def block_names(page: Layout) -> list[Counter[str]]:
    """What the regression sees of each block, with a mark for `path` and for `near`."""
    ways: list[Counter[str]] = []
    for box, is_wrapper in zip(page.boxes, wrappers(page), strict=True):
        own = Counter(() if is_wrapper else (f"path {name}" for name in box.names))
        ways.append(own + ways[box.parent] if box.parent >= 0 else own)
    found = []
    for block in page.blocks:
        box = page.boxes[block.box]
        near = [*box.names, *(page.boxes[box.parent].names if box.parent >= 0 else ())]
        near += text_names(block.text, block.words)
        counts = Counter(ways[block.box])
        counts.update(f"near {name}" for name in near)
        found.append(counts)
    return found


class Fit:
    """The three models; numpy and the rest are loaded here and nowhere else."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._np: Any = import_module("numpy")
        # A page without text teaches nothing.
        self._examples = [one for one in examples if one.right]
        sizes = [len(one.right) for one in self._examples]
        self._ends = [0, *self._np.cumsum(sizes).tolist()]
        self._right = self._np.array([r for one in self._examples for r in one.right], int)
        weights = self._np.array([w for one in self._examples for w in one.weights])
        self._weights = weights / weights.mean()
        self._page_parts = self._np.array([one.part for one in self._examples])
        self._parts = self._page_parts.repeat(sizes)

    def run(self) -> dict[str, Any]:
        """The model in the shape of `main_text.json`."""
        genres, sorts = self._genres()
        bias, names, guesses = self._guesses()
        rows = self._rows(
            lambda one, at: (
                columns(
                    one.page,
                    guesses[self._ends[at] : self._ends[at + 1]].tolist(),
                    same_ways(one.page.boxes),
                    (one.about.kind, *sorts[at].tolist()),
                )
                + roles(one.page, wrappers(one.page))
            )
        )
        trees = _trees(self._forest(rows))
        return {"bias": bias, "cut": CUT, "names": names, "genres": genres, "forest": trees}

    def _genres(self) -> tuple[dict[str, list[float]], Any]:
        """The weights by which the sort of a page is told, and the odds of each page's sorts."""
        pages = [page_names(one.page, one.about.url, one.about.kind) for one in self._examples]
        index = self._known([[Counter(names)] for names in pages])
        table = self._table([Counter(names) for names in pages], index)
        sorts = self._np.array([GENRES.index(one.sort) for one in self._examples])
        kind = import_module("sklearn.linear_model").LogisticRegression
        odds = self._np.zeros((len(pages), len(GENRES)))
        for part in range(PARTS):
            other = self._page_parts != part
            model = kind(C=0.03, max_iter=60).fit(table[other], sorts[other])
            odds[~other] = model.predict_proba(table[~other])
        model = kind(C=0.03, max_iter=60).fit(table, sorts)
        weights = {name: _short(model.coef_[:, at]) for name, at in index.items()}
        kept = {name: row for name, row in weights.items() if any(row)}
        return {"": _short(model.intercept_), **kept}, odds

    def _guesses(self) -> tuple[float, dict[str, list[float]], Any]:
        """(bias, weights of names, guesses)."""
        names = [block_names(one.page) for one in self._examples]
        index = self._known(names)
        table = self._table([block for page in names for block in page], index)
        kind = import_module("sklearn.linear_model").LogisticRegression

        def fitted(rows: Any) -> Any:
            model = kind(C=0.03, max_iter=50)
            return model.fit(table[rows], self._right[rows], self._weights[rows])

        guesses = self._np.zeros(len(self._right))
        for part in range(PARTS):
            here = self._parts == part
            guesses[here] = fitted(~here).decision_function(table[here])
        model = fitted(self._parts >= 0)
        weights = {name: float(model.coef_[0][at]) for name, at in index.items()}
        bare = sorted({name.partition(" ")[2] for name in weights})
        rows = {
            name: _short([weights.get(f"{mark} {name}", 0.0) for mark in ("path", "near")])
            for name in bare
        }
        kept = {name: row for name, row in rows.items() if any(row)}
        return round(float(model.intercept_[0]), 3), kept, guesses.clip(-12, 12)

    def _known(self, pages: Sequence[Sequence[Counter[str]]]) -> dict[str, int]:
        """The names that are used by several hosts, numbered."""
        seen: dict[str, set[str]] = defaultdict(set)
        for one, blocks in zip(self._examples, pages, strict=True):
            host = urlsplit(one.about.url).hostname or ""
            for name in set().union(*blocks):
                seen[name].add(host)
        known = sorted(name for name, where in seen.items() if len(where) >= LEAST_HOSTS)
        return {name: number for number, name in enumerate(known)}

    def _table(self, rows: Sequence[Mapping[str, int]], index: dict[str, int]) -> Any:
        ends, where, counts = [0], list[int](), list[int]()
        for names in rows:
            known = [(index[n], count) for n, count in names.items() if n in index]
            where += [number for number, _ in known]
            counts += [count for _, count in known]
            ends.append(len(where))
        values = self._np.array(counts, "float32")
        shape = (len(rows), len(index))
        return import_module("scipy.sparse").csr_matrix((values, where, ends), shape=shape)

    def _rows(self, features: Callable[[Example, int], Sequence[Sequence[float]]]) -> Any:
        found = [
            self._np.array(features(one, at), "float32").T for at, one in enumerate(self._examples)
        ]
        return self._np.concatenate(found)

    def _forest(self, rows: Any) -> Any:
        lightgbm: Any = import_module("lightgbm")
        data = lightgbm.Dataset(rows, self._right, weight=self._weights)
        return lightgbm.train(FOREST, data, TREES)


def _short(weights: Sequence[float]) -> list[float]:
    """Rounded; those that hardly weigh are left out."""
    return [round(float(w), 2) if abs(w) >= LEAST_WEIGHT else 0 for w in weights]


def _trees(forest: Any) -> list[Any]:
    return [_tree(tree["tree_structure"]) for tree in forest.dump_model()["tree_info"]]


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
    parser.add_argument("--part", choices=("train", "all"), default="all")
    args = parser.parse_args(argv)
    examples = [example(sample) for sample in wcxb(args.data / "wcxb", args.part)]
    model = Fit(examples).run()
    args.out.write_text(json.dumps(model, separators=(",", ":")) + "\n", "ascii")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
