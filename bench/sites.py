"""210 questions of seven kinds, the web search down and no key: do they reach an official page?

python -m bench.sites: what the router asks, and the answers of modelled sites.

data/site_questions.tsv has 30 questions of each kind, the sites that have an authoritative page for
it, its title, and the beginning of its text as we wrote it down. Two figures come of it: how often
such a site is among those asked, and how often its page is found. A modelled site knows its own
pages of the file by title and two lines at most, and answers with those that hold every keyword
that it gets, the shortest titles first. The real sites know millions of other pages, and the whole
text of each: nothing here measures that.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from searchloop.search_backend.engines import Access, Engine, find_engines
from searchloop.search_backend.library import Library
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, Query, SearchResult

QUESTIONS, ROUTED = (
    Path(__file__).parent / "data" / f"{name}_questions.tsv" for name in ("site", "routed")
)
SITES = {name: engine for name, engine in find_engines().items() if engine.kinds}
Answer = Mapping[str, Any]  # the body of POST /api/web-search


@dataclass(frozen=True)
class Asked:
    """One question, and the page that it should reach."""

    kind: str
    question: str
    sites: tuple[str, ...]
    title: str
    text: str


@dataclass(frozen=True)
class Reach:
    """What became of a question: a site of its page was asked; the page was found."""

    asked: bool
    found: bool


def questions() -> list[Asked]:
    """Reads the file."""
    return [Asked(k, q, tuple(s.split(",")), *page) for k, q, s, *page in rows(QUESTIONS)]


def rows(file: Path) -> list[list[str]]:
    """Reads the cells of each line that is no comment."""
    lines = file.read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.lower())
    return "".join(c for c in plain if not unicodedata.combining(c))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", _folded(text))


def modelled(name: str, known: Sequence[Asked]) -> Callable[[Query, Access], list[SearchResult]]:
    """Returns the search of a site that knows the pages of `known` that are its own."""
    pages = [page for page in known if name in page.sites]

    def search(query: Query, _access: Access) -> list[SearchResult]:
        words = _words(query.text)
        hits = [p for p in pages if all(w in _folded(f"{p.title} {p.text}") for w in words)]
        hits.sort(key=lambda page: len(page.title))
        return [
            SearchResult(p.title, f"https://{name}.example/{pages.index(p)}", p.text, name)
            for p in hits[: query.max_results]
        ]

    return search


def _down(_query: Query, _access: Access) -> list[SearchResult]:
    raise EngineError("blocked", "It wants proof that a person is asking.", "Wait.")


def _chain(home: Path, sites: Mapping[str, Engine]) -> Chain:
    engines = {"web": Engine("web", "Web", _down), **sites}
    return Chain(SearchSettings(home, ("web",), routed=True), Library(home, dict), engines)


def model(known: Sequence[Asked], home: Path) -> list[Answer]:
    """The answers of modelled sites, without their rates: a bench asks faster than a person."""
    sites = {
        name: replace(engine, wire=None, rate=0.0, search=modelled(name, known))
        for name, engine in SITES.items()
    }
    chain = _chain(home, sites)
    return [chain.search(Query(one.question)).as_json() for one in known]


def judge(one: Asked, answer: Answer) -> Reach:
    """Compares an answer with the page that was wanted: its title, from one of its sites."""
    asked = {attempt["engine"] for attempt in answer["attempts"]}
    found = any(
        result["source"] in one.sites and _folded(one.title) in _folded(result["title"])
        for result in answer["results"]
    )
    return Reach(bool(asked & {*one.sites}), found)


def table(known: Sequence[Asked], reached: Sequence[Reach]) -> str:
    """One line a kind, and all of them."""
    lines = [f"{'kind':<14}{'questions':>9}{'asked':>9}{'found':>9}"]
    kinds = [*dict.fromkeys(one.kind for one in known), ""]
    for kind in kinds:
        mine = [r for one, r in zip(known, reached, strict=True) if kind in ("", one.kind)]
        shares = (sum(getattr(r, n) for r in mine) / len(mine) for n in Reach.__annotations__)
        cells = "".join(f"{share:>9.0%}" for share in shares)
        lines.append(f"{kind or 'all':<14}{len(mine):>9}{cells}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table, and what was missed."""
    parser = argparse.ArgumentParser(prog="bench.sites", description=__doc__.splitlines()[0])
    parser.add_argument("--misses", action="store_true", help="name what was not found")
    args = parser.parse_args(argv)
    known = questions()
    with tempfile.TemporaryDirectory() as home:
        answers = model(known, Path(home))
    reached = [judge(one, answer) for one, answer in zip(known, answers, strict=True)]
    print("Modelled sites, the web search down, no key")
    print(table(known, reached))
    for one, answer, reach in zip(known, answers, reached, strict=True):
        if args.misses and not reach.found:
            asked = [f"{a['engine']}: {a.get('query', '')}" for a in answer["attempts"][1:]]
            print(f"{one.kind}: {one.question} -> {'; '.join(asked)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
