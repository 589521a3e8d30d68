"""Measures search in the library: `python -m bench.retrieval --xquad DIR --cranfield DIR`.

`--xquad` is a folder of files in SQuAD's form whose names end with a language, `xquad.de.json`;
`--cranfield` one with cran.all.1400, cran.qry and cranqrel. Each text is a file in a folder that is
added to a library. R@1 is the share of questions whose paragraph comes first. The peer is `bm25s`
(not installed with the rest: `pip install bm25s`) with Lucene's formula, k1 .9, b .4, Snowball's
stems, and neighbouring letters for Chinese, Japanese and Thai. `--passages N` adds a library of N
passages, made of shuffled sentences, and its times; these are no files, which a library would read
again meanwhile. Milliseconds are those of the CPU; 100,000 passages take a minute of it.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import Stemmer

from searchloop.search_backend.library import Library

_LANGS = """
ar:arabic de:german el:greek en:english es:spanish hi:hindi ro:romanian ru:russian tr:turkish
"""
_STEMMED = dict(name.split(":") for name in _LANGS.split())
_PAIRED = ("ja", "th", "zh")
_MOST_FILES = 1_000  # of one folder
Search = Callable[[str], list[int]]


class Collection(NamedTuple):
    """Texts, and questions with the gain of each text that answers one."""

    name: str
    texts: Sequence[str]
    questions: Sequence[tuple[str, Mapping[int, int]]]


class Found(NamedTuple):
    """What a search made of a collection: R@1, nDCG@10, empty answers, milliseconds a question."""

    first: float
    gain: float
    empty: int
    times: list[float]


def squad(file: Path) -> Collection:
    """Reads the paragraphs and questions of a file in SQuAD's form."""
    texts: list[str] = []
    questions: list[tuple[str, Mapping[int, int]]] = []
    for article in json.loads(file.read_text("utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            questions += [(qa["question"], {len(texts): 1}) for qa in paragraph["qas"]]
            texts.append(paragraph["context"].rpartition("[SEP]")[2].strip())
    return Collection(file.stem[-2:], texts, questions)


def cranfield(folder: Path) -> Collection:
    """Reads titles and texts of the Cranfield collection; all relevant ones count alike."""
    raw = (folder / "cran.all.1400").read_text("utf-8", "replace")
    texts = [
        re.sub(r"\n\.A\n.*?\n\.W\n", "\n\n", part.partition(".T\n")[2], flags=re.S)
        for part in _split(raw)
    ]
    raw = (folder / "cran.qry").read_text("utf-8", "replace")
    asked = [part.partition(".W\n")[2].strip() for part in _split(raw)]
    gains: list[dict[int, int]] = [{} for _ in asked]
    for line in (folder / "cranqrel").read_text("utf-8").splitlines():
        if len(row := line.split()) >= 3:
            gains[int(row[0]) - 1][int(row[1]) - 1] = 1 if int(row[2]) > 0 else 0
    return Collection("cranfield", texts, list(zip(asked, gains, strict=True)))


def _split(raw: str) -> list[str]:
    return re.split(r"^\.I ", raw, flags=re.M)[1:]


def measure(search: Search, collection: Collection) -> Found:
    """Asks every question."""
    first = gain = empty = 0.0
    times = []
    for question, gains in collection.questions:
        began = time.process_time()
        found = search(question)
        times.append(1000 * (time.process_time() - began))
        first += bool(found) and gains.get(found[0], 0) > 0
        empty += not found
        got = sum(gains.get(n, 0) / math.log2(at + 2) for at, n in enumerate(found[:10]))
        best = sorted(gains.values(), reverse=True)[:10]
        gain += got / (sum(g / math.log2(at + 2) for at, g in enumerate(best)) or 1)
    every = len(collection.questions)
    return Found(first / every, gain / every, int(empty), sorted(times))


def library(home: Path, texts: Sequence[str], *, files: bool = True) -> tuple[Search, float]:
    """Returns a search in a library that holds each text, as a file or not, and texts a second."""
    for number, text in enumerate(texts if files else ()):
        file = home / "texts" / f"{number // _MOST_FILES:03}" / f"{number:06}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    held = {} if files else {f"{number:06}.txt": text for number, text in enumerate(texts)}
    shelf = Library(home, lambda: held)
    began = time.process_time()
    if files:
        shelf.add(home / "texts")
    shelf.list()  # the first use takes in what is no file
    rate = len(texts) / (time.process_time() - began)

    def search(question: str) -> list[int]:
        return [int(hit.url.rpartition("/")[2][:6]) for hit in shelf.search(question, 10)]

    return search, rate


def peer(collection: Collection) -> Search | None:
    """Returns the search of bm25s, if that is installed."""
    try:
        bm25s = import_module("bm25s")
    except ImportError:
        return None
    lang = "en" if len(collection.name) > 2 else collection.name
    stemmer = Stemmer.Stemmer(_STEMMED[lang]) if lang in _STEMMED else None

    def words(text: str) -> list[str]:
        found = re.findall(r"\w+", text.lower())
        if lang in _PAIRED:
            return [w[n : n + 2] for w in found for n in range(max(1, len(w) - 1))]
        return list(stemmer.stemWords(found)) if stemmer else found

    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    index.index([words(text) for text in collection.texts], show_progress=False)

    def search(question: str) -> list[int]:
        known = [word for word in words(question) if word in index.vocab_dict]
        if not known:
            return []
        most = min(10, len(collection.texts))
        return [int(n) for n in index.retrieve([known], k=most, show_progress=False)[0][0]]

    return search


def shuffled(collection: Collection, passages: int) -> Collection:
    """Makes many passages of five sentences each out of a collection's sentences."""
    draw = random.Random(1)
    every = [s for text in collection.texts for s in re.split(r"(?<=[.。]) ?", text) if s]
    texts = [" ".join(draw.choices(every, k=5)) for _ in range(passages)]
    return Collection(f"{passages:,}", texts, draw.sample(list(collection.questions), 200))


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a line for each collection and way to search; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("--xquad", type=Path)
    parser.add_argument("--cranfield", type=Path)
    parser.add_argument("--lang", action="append", help="only this language, or several")
    parser.add_argument("--passages", type=int, default=0)
    args = parser.parse_args(argv)
    files = sorted(args.xquad.glob("*.json")) if args.xquad else []
    sets = [squad(file) for file in files if not args.lang or file.stem[-2:] in args.lang]
    sets += [cranfield(args.cranfield)] if args.cranfield else []
    print(f"{'':22} {'R@1':>6} {'nDCG@10':>8} {'empty':>6} {'ms p50':>7} {'p95':>7} {'files/s':>8}")
    for collection in sets:
        _ours(collection)
        if other := peer(collection):
            _show(f"{collection.name} bm25s", measure(other, collection))
    if args.passages and sets:
        _ours(shuffled(sets[0], args.passages), files=False)
    return 0


def _ours(collection: Collection, *, files: bool = True) -> None:
    # A folder is still re-read in the background when the last question is answered.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        search, rate = library(Path(home), collection.texts, files=files)
        _show(f"{collection.name} library", measure(search, collection), rate)


def _show(name: str, found: Found, rate: float | None = None) -> None:
    middle, late = (found.times[int(share * (len(found.times) - 1))] for share in (0.5, 0.95))
    told = f"{found.first:6.3f} {found.gain:8.3f} {found.empty:6} {middle:7.1f} {late:7.1f}"
    print(f"{name:22} {told} {rate or 0:8.0f}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
