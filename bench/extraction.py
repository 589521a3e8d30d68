"""`python -m bench.extraction --data DIR`: how well and how fast the main text of pages is found.

DIR holds one or both of these, as their authors publish them (no page is part of this project):

    git clone https://github.com/Murrough-Foley/web-content-extraction-benchmark DIR/wcxb
    git clone https://github.com/scrapinghub/article-extraction-benchmark DIR/zyte

WCXB (2,008 pages of seven types, CC-BY-4.0) is scored as its evaluate.py does: F1 of the bags of
words, mean over the pages. Zyte (181 articles, MIT): precision and recall of runs of four words,
each a mean over the pages, and the F1 of the two. The model that is shipped was fitted on all of
WCXB's development split, and on nothing else. So `--part test`, WCXB's test split, scores it on
hosts that it never saw, as Zyte does; what it scores on `train`, `held` and `all`, which are parts
of the development split, is flattering. Nothing may be fitted or chosen by the test split: to
compare models, fit them on the part `train` and score them on the other hosts, `held`:

    model=search_backend/readers/_html/main_text.json
    python -m bench.extraction_fit --data DIR --part train --out $model
    python -m bench.extraction --data DIR --part held

To compare with it, `pip install trafilatura lxml_html_clean`; `--alone` does without. Every page
is read by all extractors in turn, so the ratio of their CPU times does not depend on what
else the machine does. `--ablate` prints what each rule of the reader is worth: the pages whose text
changes without it, and what that does to F1 (of the words, on every page).
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import logging
import re
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, median
from typing import Any
from urllib.parse import urlsplit

from searchloop.search_backend.readers import read

Extractor = Callable[[bytes, str], str]

WORD = re.compile(r"\w+")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
OURS = "ours"


@dataclass(frozen=True, slots=True)
class Sample:
    """One page of a benchmark and its right main text."""

    name: str
    group: str
    url: str
    file: Path
    truth: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of one page: precision, recall and F1, and seconds of CPU."""

    sample: Sample
    precision: float
    recall: float
    f1: float
    cpu: float


def wcxb(folder: Path, part: str) -> Iterator[Sample]:
    """The pages of the test split; or of the development split: train, held or all."""
    split = folder / ("test" if part == "test" else "dev")
    for file in sorted((split / "ground-truth").glob("*.json")):
        data = json.loads(file.read_text("utf-8"))
        url = data.get("url") or ""
        if part in ("held", "train") and is_held(url or file.stem) != (part == "held"):
            continue
        group = data["_internal"]["page_type"]["primary"]
        page = split / "html" / f"{file.stem}.html.gz"
        yield Sample(file.stem, group, url, page, data["ground_truth"].get("main_content") or "")


def is_held(url: str) -> bool:
    """A third of the hosts, by checksum, so that no site is in both parts."""
    host = (urlsplit(url).hostname or url).lower().removeprefix("www.")
    return zlib.crc32(host.encode()) % 3 == 0


def zyte(folder: Path) -> Iterator[Sample]:
    """The articles."""
    truths = json.loads((folder / "ground-truth.json").read_text("utf-8"))
    for name, truth in sorted(truths.items()):
        page = folder / "html" / f"{name}.html.gz"
        yield Sample(name, "zyte", truth["url"], page, truth["articleBody"])


def by_words(found: str, truth: str) -> tuple[float, float, float]:
    """WCXB's score: (precision, recall, F1) of the words, whatever their order."""
    has, wants = WORD.findall(found.lower()), WORD.findall(truth.lower())
    if not wants or not has:
        same = float(not wants and not has)
        return same, same, same
    common = sum((Counter(has) & Counter(wants)).values())
    precision, recall = common / len(has), common / len(wants)
    return precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0


def by_runs(found: str, truth: str) -> tuple[float, float, float]:
    """Zyte's score of one page: (precision, recall, F1) of runs of four words."""
    has, wants = _runs(found), _runs(truth)
    common = sum((has & wants).values())
    if has == wants:
        return 1.0, 1.0, 1.0
    precision = common / has.total() if has else float("nan")
    recall = common / wants.total() if wants else float("nan")
    return precision, recall, 0.0


def _runs(text: str) -> Counter[tuple[str, ...]]:
    words = WORD.findall(text)
    runs = (tuple(words[i : i + 4]) for i in range(max(1, len(words) - 3)))
    return Counter(run for run in runs if run)


def plain(markdown: str) -> str:
    """Markdown without the addresses of its links; the scores see nothing else of it."""
    return _LINK.sub(r"\1", markdown)


def ours(body: bytes, url: str) -> str:
    """The reader of this project, all it does with a page included."""
    return plain(read(body, url=url, content_type="text/html", charset="utf-8").text)


def trafilatura(fast: bool) -> Extractor:
    """trafilatura as its users call it."""
    extract: Callable[..., str | None] = import_module("trafilatura").extract

    def run(body: bytes, url: str) -> str:
        text = body.decode("utf-8", "replace")
        return extract(text, url=url, fast=fast) or ""

    return run


def measure(
    samples: Sequence[Sample], extractors: dict[str, Extractor]
) -> dict[str, list[Reading]]:
    """Each page through each extractor in turn; the first page warms up and counts once."""
    found: dict[str, list[Reading]] = {name: [] for name in extractors}
    gc.disable()  # as in the process that reads pages
    for number, sample in enumerate(samples):
        body = gzip.decompress(sample.file.read_bytes())
        score = by_runs if sample.group == "zyte" else by_words
        for name, extract in extractors.items():
            if number == 0:
                extract(body, sample.url)
            before = time.process_time()
            text = extract(body, sample.url)
            cpu = time.process_time() - before
            found[name].append(Reading(sample, *score(text, sample.truth), cpu))
    return found


def lines(found: dict[str, list[Reading]]) -> Iterator[str]:
    """A table: one line an extractor and group of pages."""
    yield "| pages | n | extractor | F1 | precision | recall | CPU ms p50 | p95 | x ours |"
    yield "|---|---|---|---|---|---|---|---|---|"
    groups: dict[str, list[int]] = defaultdict(list)
    for index, reading in enumerate(next(iter(found.values()))):
        group = reading.sample.group
        groups[group].append(index)
        if group != "zyte":
            groups["wcxb"].append(index)
    for group, indexes in sorted(groups.items()):
        base = sum(found[OURS][index].cpu for index in indexes)
        for name, readings in found.items():
            chosen = [readings[index] for index in indexes]
            f1, precision, recall = scores(chosen, group)
            times = sorted(reading.cpu * 1000 for reading in chosen)
            yield (
                f"| {group} | {len(chosen)} | {name} | {f1:.3f} | {precision:.3f} | {recall:.3f} "
                f"| {median(times):.1f} | {times[int(len(times) * 0.95)]:.1f} "
                f"| {sum(times) / 1000 / base:.2f} |"
            )


def scores(readings: Sequence[Reading], group: str) -> tuple[float, float, float]:
    """(F1, precision, recall) over pages, as the benchmark's authors average them."""
    precision = mean(r.precision for r in readings if r.precision == r.precision)
    recall = mean(r.recall for r in readings if r.recall == r.recall)
    if group == "zyte":
        return 2 * precision * recall / (precision + recall), precision, recall
    return mean(r.f1 for r in readings), precision, recall


_READERS = "searchloop.search_backend.readers."
# A rule, and the functions that do nothing without it: where they are called, their name, and what
# stands in for them.
RULES: dict[str, tuple[tuple[str, str, Any], ...]] = {
    "what is hidden": (("_html.hidden", "hiding", lambda _style: frozenset()),),
    "what unfolds": (("_html.hidden", "unfolds", lambda *_: False),),
    "text in the colour of its ground": (("_html.hidden", "colour_of", lambda _style: None),),
    "code, tables, captions, notes": (("_html.choose", "with_parts", lambda _p, kept, *_: kept),),
    "what is said twice": (("_html.choose", "once", lambda _p, kept, _w: kept),),
    "many blocks that are alike": (("_html.choose", "alike", lambda _p, scores, _w: scores),),
    "comments below articles": (("_html.choose", "without_comments", lambda _p, kept, _c: kept),),
    "corrections": (("html", "with_corrections", lambda _p, kept: kept),),
    "furniture of short pages, banners": (
        ("html", "_beside", lambda page, _short: [False] * len(page.boxes)),
    ),
    "data of pages without text": (("html", "told", lambda _tree: ""),),
    "figures and dates": (("_html.parts.visible", "_write_figures_and_dates", lambda _tree: None),),
    "words side by side": (("_html.parts.visible", "_keep_apart", lambda *_: None),),
    "formulas": (("_html.parts.visible", "write_formulas", lambda _tree: None),),
    "code by its class": (("_html.blocks", "shows_code", lambda tag, _classes: tag == "pre"),),
    "code of several lines": (("_html.blocks", "code_in_blocks", str),),
    "images in cells": (("_html.parts.visible", "_write_pictures", lambda _tree: None),),
    "numbers over each other": (("_html.blocks", "stacked", str),),
    "marks within a line": (("_html.blocks", "inline", list),),
    "tables as a whole": (("_html.parts.tables", "_is_head", lambda *_: False),),
    "the links of a text": (("_html.markdown", "_linked", lambda words, _target: words),),
}


def worth(samples: Sequence[Sample]) -> Iterator[str]:
    """A table: one line a rule."""
    bodies = [gzip.decompress(sample.file.read_bytes()) for sample in samples]

    def read_all() -> list[str]:
        return [ours(body, one.url) for body, one in zip(bodies, samples, strict=True)]

    def f1(texts: Sequence[str]) -> list[float]:
        return [by_words(text, one.truth)[2] for text, one in zip(texts, samples, strict=True)]

    yield "| without | pages changed | better | worse | F1 |"
    yield "|---|---|---|---|---|"
    whole = read_all()
    base = f1(whole)
    for rule, places in RULES.items():
        kept = [(import_module(_READERS + at), name, instead) for at, name, instead in places]
        was = [getattr(module, name) for module, name, _ in kept]
        for module, name, instead in kept:
            setattr(module, name, instead)
        try:
            texts = read_all()
        finally:
            for (module, name, _), old in zip(kept, was, strict=True):
                setattr(module, name, old)
        found = f1(texts)
        changed = sum(one != other for one, other in zip(whole, texts, strict=True))
        better, worse = (
            sum(sign * (now - before) > 1e-9 for now, before in zip(found, base, strict=True))
            for sign in (1, -1)
        )
        change = mean(found) - mean(base)
        yield f"| {rule} | {changed} | {better} | {worse} | {change:+.4f} |"


def main(argv: list[str] | None = None) -> int:
    """0 when something was measured, 2 when no benchmark lies in the folder."""
    parser = argparse.ArgumentParser(prog="python -m bench.extraction", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--part", choices=("test", "held", "train", "all"), default="test")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth page")
    parser.add_argument("--ablate", action="store_true", help="what each rule is worth")
    parser.add_argument("--alone", action="store_true", help="our reader alone")
    args = parser.parse_args(argv)
    samples: list[Sample] = []
    if (args.data / "wcxb").is_dir():
        samples += wcxb(args.data / "wcxb", args.part)
    if (args.data / "zyte").is_dir():
        samples += zyte(args.data / "zyte")
    if not samples:
        print(f"bench: no benchmark in {args.data}; see --help for what goes there")
        return 2
    if args.ablate:
        for line in worth(samples[:: args.every]):
            print(line, flush=True)
        return 0
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    extractors: dict[str, Extractor] = {OURS: ours}
    if not args.alone:
        if find_spec("trafilatura") is None:
            print("bench: pip install trafilatura lxml_html_clean to compare, or pass --alone")
            return 2
        extractors["trafilatura fast"] = trafilatura(fast=True)
        extractors["trafilatura"] = trafilatura(fast=False)
    print("\n".join(lines(measure(samples[:: args.every], extractors))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
