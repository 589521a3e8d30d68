"""Measures verdicts: `python -m bench.support`, with people's labels and texts where they are.

Without arguments it prints the tables made from our own pages. `--labelled` takes files in a form
that `bench.labelled` reads, and `--ablate` switches the vetoes off there, one after the other.
`--xquad` takes a folder of files in SQuAD's form whose names end with a language, `xquad.de.json`.
`--batch` asks `searchloop check --batch` instead of the function.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from bench.claims import TRUE, claims
from bench.labelled import Labelled, read
from bench.own_pages import CASES, PAGES
from searchloop.agent.verdicts.check import check
from searchloop.agent.verdicts.page import Page
from searchloop.agent.verdicts.vetoes import VETOES
from searchloop.analysis.sentences import sentences

_TICKED = ("supported", "quoted")
_VERDICTS = ("supported", "quoted", "contradicted", "misquoted", "unclear")
_SHORTEST = 10  # letters of a sentence that claims are made from


class Timer:
    """The processor time of all comparisons; pages are prepared outside."""

    def __init__(self) -> None:
        self.marks = 0
        self.seconds = 0.0

    def verdict(self, claim: str, page: Page) -> str:
        """Returns the verdict's name."""
        begun = time.process_time()
        name = check(claim, page).verdict
        self.seconds += time.process_time() - begun
        self.marks += 1
        return name

    def __str__(self) -> str:
        each = 1000 * self.seconds / max(1, self.marks)
        return f"{self.marks} marks, {each:.2f} ms of processor time each"


class Batch(Timer):
    """Asks `searchloop check --batch`, line by line; the processor time is the command's."""

    def __init__(self) -> None:
        super().__init__()
        command = [sys.executable, "-um", "searchloop.cli", "check", "--batch", "-"]
        pipe = subprocess.PIPE
        self._command = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def verdict(self, claim: str, page: Page) -> str:
        """Returns the verdict's name."""
        if not claim.strip():
            return super().verdict(claim, page)
        assert self._command.stdin
        assert self._command.stdout
        line = json.dumps({"id": self.marks, "claim": claim, "text": page.text})
        self._command.stdin.write(line + "\n")
        self._command.stdin.flush()
        answer = json.loads(self._command.stdout.readline())
        assert answer["id"] == self.marks, answer
        self.marks += 1
        return str(answer["verdict"])

    def __str__(self) -> str:
        self._command.communicate()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.seconds = used.ru_utime + used.ru_stime
        return f"searchloop check --batch: {super().__str__()}, pages included"


def precision(labelled: Iterable[Labelled], timer: Timer) -> None:
    """Prints precision and recall of each group, and of all of one file together."""
    groups: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
    for row in labelled:
        name = timer.verdict(row.claim, Page(row.text))
        for group in {row.group, row.group.split()[0]}:
            groups[group][name, row.right] += 1
    print(f"{'':34} {'precision':>9} {'recall':>7} {'supported':>11} {'quoted':>9}  accused")
    for group, count in sorted(groups.items()):
        for kinds in (_TICKED, _TICKED[:1]):
            hits, false = (sum(count[kind, right] for kind in kinds) for right in (True, False))
            every = sum(n for (_, right), n in count.items() if right)
            share = f"{hits / max(1, hits + false):9.3f} {hits / max(1, every):7.3f}"
            told = " ".join(f"{count[k, True]:>5}:{count[k, False]:<4}" for k in _TICKED)
            wrong = sum(count[kind, True] for kind in ("contradicted", "misquoted"))
            print(f"{group + ' (' + '+'.join(kinds) + ')':34} {share} {told} {wrong:>6}")


def ablated(labelled: Sequence[Labelled]) -> None:
    """Prints for each veto how many verdicts change without it, and how many of them to right."""

    def verdicts() -> list[str]:
        return [check(each.claim, Page(each.text)).verdict for each in labelled]

    whole, rules = verdicts(), dict(VETOES)
    print(f"{'without':12} changed  better  worse")
    for name in rules:
        del VETOES[name]
        changed = [
            (each.right, after in _TICKED)
            for each, before, after in zip(labelled, whole, verdicts(), strict=True)
            if before != after
        ]
        VETOES.clear()
        VETOES.update(rules)  # in their order
        better = sum(right is ticked for right, ticked in changed)
        print(f"{name:12} {len(changed):7} {better:7} {len(changed) - better:6}")


def generated(pages: Sequence[str], lang: str, most: int, timer: Timer) -> Counter[str]:
    """Prints the share of each outcome of claims made from pages.

    Returns how often a contradiction was told of a true and of an untrue claim.
    """
    table: dict[str, Counter[str]] = defaultdict(Counter)
    made = 0
    for text in pages:
        page = Page(text)
        spans = sentences(text)
        for number, (start, end) in enumerate(spans):
            if made >= most or end - start < _SHORTEST:
                continue
            made += 1
            after = text[slice(*spans[number + 1])] if number + 1 < len(spans) else ""
            for kind, claim in claims(text[start:end], after, lang, number):
                table[kind][timer.verdict(claim, page)] += 1
    told: Counter[str] = Counter()
    for kind, count in table.items():
        every = sum(count.values())
        shares = " ".join(f"{count[name] / every:9.1%}" for name in _VERDICTS)
        print(f"{lang} {kind:16} {every:5} {shares}")
        told["wrong" if kind in TRUE else "right"] += count["contradicted"]
    return told


def translated(files: dict[str, list[str]], timer: Timer) -> None:
    """Prints the outcomes of sentences held against the same paragraph in other languages."""
    count: Counter[str] = Counter()
    for lang, texts in files.items():
        for other, pages in files.items():
            if other == lang or len(texts) != len(pages):
                continue
            for text, page in list(zip(texts, map(Page, pages), strict=True))[:40]:
                count.update(timer.verdict(text[slice(*s)], page) for s in sentences(text)[:3])
    every = sum(count.values())
    if every:
        shares = " ".join(f"{count[name] / every:9.1%}" for name in _VERDICTS)
        print(f"-- {'translated':16} {every:5} {shares}")


def squad(folder: Path) -> dict[str, list[list[str]]]:
    """Reads {language: articles}, each a list of paragraphs."""
    found = {}
    for file in sorted(folder.glob("*.json")):
        data = json.loads(file.read_text("utf-8"))["data"]
        found[file.stem[-2:]] = [
            # JSQuAD writes the title before each paragraph
            [p["context"].split(" [SEP] ")[-1] for p in a["paragraphs"]]
            for a in data
        ]
    return found


def own(timer: Timer) -> None:
    """Prints which of our own cases came out otherwise than wanted."""
    pages = {lang: Page(text) for lang, text in PAGES.items()}
    wrong = 0
    for case in CASES:
        name = timer.verdict(case.claim, pages[case.lang])
        if not case.meets(name):
            wrong += 1
            print(f"{case.lang}: {case.wanted} came out as {name}: {case.claim}")
    print(f"own cases: {len(CASES)}, {wrong} otherwise than wanted")


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.support", description=__doc__)
    parser.add_argument("--xquad", type=Path)
    parser.add_argument("--labelled", type=Path, nargs="+", default=[])
    parser.add_argument("--ablate", action="store_true", help="what each veto is worth")
    parser.add_argument("--batch", action="store_true", help="ask the command")
    parser.add_argument("--sentences", type=int, default=400, help="a language, at the most")
    args = parser.parse_args(argv)
    timer = Batch() if args.batch else Timer()
    told = Counter[str]()
    own(timer)
    print(f"{'':25}" + " ".join(f"{name:>9}"[:9] for name in _VERDICTS))
    for lang, text in PAGES.items():
        told += generated([text], lang, args.sentences, timer)
    if args.xquad:
        articles = squad(args.xquad)
        for lang in sorted(PAGES.keys() & articles.keys()):
            pages = ["\n".join(paragraphs) for paragraphs in articles[lang]]
            told += generated(pages, lang, args.sentences, timer)
        translated({lang: [*chain(*texts)] for lang, texts in articles.items()}, timer)
    print(f"contradicted: {told['right']} untrue claims, {told['wrong']} true ones")
    for file in args.labelled:
        precision(read(file), timer)
        if args.ablate:
            ablated(list(read(file)))
    print(timer)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
