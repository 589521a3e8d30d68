"""Repeats the figures of README and docs: `make figures DATA=DIR`, `python -m bench.figures DIR`.

DIR (else SEARCHLOOP_FIGURES_DATA) holds public data sets, each a clone under the name of its
repository, `AttributionBench` for github.com/OSU-NLP-Group/AttributionBench. What people labelled
comes first. A figure whose data is not there is named with the place to get it from; the others
need none. `--only NAME` runs one of them, `--list` names them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_CLAIMS = "tests/agent/verdicts"
_SETTING = "SEARCHLOOP_FIGURES_DATA"


class Figure(NamedTuple):
    """A figure: where it is printed, the command, and {an argument's file in DIR: its source}.

    Data stands in the command as `{name}`; without it the figure is left out.
    """

    name: str
    printed: str
    command: str
    data: str = ""
    source: str = ""


_LABELLED = "docs/about/figures.md, README.md: verdicts on claims that people labelled"
FIGURES = (
    Figure("attribution-dev", _LABELLED, "bench.support --labelled {}",
           "AttributionBench/data/dev_all_subset_balanced.jsonl", "OSU-NLP-Group/AttributionBench"),
    Figure("attribution-test", _LABELLED, "bench.support --labelled {}",
           "AttributionBench/data/test_all_subset_balanced_sampled500.jsonl",
           "OSU-NLP-Group/AttributionBench"),
    Figure("attribution-ood", _LABELLED, "bench.support --labelled {}",
           "AttributionBench/data/test_ood_all_subset_balanced.jsonl",
           "OSU-NLP-Group/AttributionBench"),
    Figure("wice-dev", _LABELLED, "bench.support --labelled {}",
           "wice/data/entailment_retrieval/claim/dev.jsonl", "ryokamoi/wice"),
    Figure("wice-test", _LABELLED, "bench.support --labelled {}",
           "wice/data/entailment_retrieval/claim/test.jsonl", "ryokamoi/wice"),
    Figure("fever-dev", _LABELLED, "bench.support --labelled {}",
           "FeverSymmetric/symmetric_v0.2/fever_symmetric_dev.jsonl", "TalSchuster/FeverSymmetric"),
    Figure("fever-test", _LABELLED, "bench.support --labelled {}",
           "FeverSymmetric/symmetric_v0.2/fever_symmetric_test.jsonl",
           "TalSchuster/FeverSymmetric"),
    Figure("written", "docs/about/figures.md, README.md: claims as models write them",
           f"bench.support --labelled {_CLAIMS}/unseen.txt {_CLAIMS}/unseen_two.txt "
           f"{_CLAIMS}/written.txt {_CLAIMS}/forms.txt"),
    Figure("sentences", "docs/about/figures.md, README.md: claims made from paragraphs",
           "bench.support --sentences 250 --xquad {}", "xquad", "google-deepmind/xquad"),
    Figure("audits", "docs/about/figures.md: what an audit finds", "bench.audits"),
    Figure("extractive", "docs/about/decisions.md: the built-in model",
           "bench.extractive --questions 100 --xquad {}", "xquad", "google-deepmind/xquad"),
    Figure("library", "docs/guides/search-backend.md: searches in the library",
           "bench.retrieval --xquad {}", "xquad", "google-deepmind/xquad"),
    Figure("main-text", "docs/guides/search-backend.md, bench/README.md: main text of pages",
           "bench.extraction --data {}", "pages", "see python -m bench.extraction --help"),
    Figure("sites", "docs/guides/search-backend.md: official sites", "bench.sites"),
    Figure("searches", "docs/about/why.md: searches a second", "bench.search"),
    Figure("faults", "docs/guides/search-backend.md: engines that fail", "bench.search_faults"),
    Figure("speed", "docs/about/figures.md: speed", "bench"),
    Figure("late", "docs/about/figures.md: a turn late in a long chat", "bench.late_turn"),
    Figure("store", "docs/about/guarantees.md: stores", "bench.store"),
    Figure("scale", "docs/about/guarantees.md: many readers", "bench.scale"),
)  # fmt: skip


def command(figure: Figure, data: Path | None) -> list[str] | None:
    """Returns the command of a figure, or None where its data is not there."""
    path = data / figure.data if data and figure.data else None
    if figure.data and not (path and path.exists()):
        return None
    words = (str(path) if word == "{}" else word for word in figure.command.split())
    return [sys.executable, "-m", *words]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs them in order; returns 1 if a command failed. Absent data is told and no failure."""
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=os.environ.get(_SETTING) or None)
    parser.add_argument("--only", action="append", choices=[each.name for each in FIGURES])
    parser.add_argument("--list", action="store_true", help="name them and run nothing")
    args = parser.parse_args(argv)
    data = Path(args.data).resolve() if args.data else None
    failed, absent = list[str](), list[Figure]()
    for figure in FIGURES:
        if args.only and figure.name not in args.only:
            continue
        words = command(figure, data)
        if words is None:
            absent.append(figure)
            continue
        print(f"\n== {figure.name} ({figure.printed})\n{' '.join(words[1:])}", flush=True)
        if not args.list:
            begun = time.perf_counter()
            failed += [figure.name] * bool(subprocess.run(words, cwd=ROOT, check=False).returncode)
            print(f"{time.perf_counter() - begun:.0f} s", flush=True)
    for figure in absent:
        place = figure.source if " " in figure.source else f"github.com/{figure.source}"
        print(f"{figure.name} is left out: {figure.data} is not in {data or 'DIR'}; {place}")
    print(f"failed: {', '.join(failed)}" if failed else "")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
