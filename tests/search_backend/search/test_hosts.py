"""A name is the host that is asked: every engine and reader, by what it looks up; and what a
search may wish for, over every engine: respected, done afterwards, or told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from searchloop.search_backend.engines import Engine, find_engines
from searchloop.search_backend.fetch.engine_client import EngineHttp
from searchloop.search_backend.library import Library
from searchloop.search_backend.pages.service_calls import ServiceCalls
from searchloop.search_backend.plugin import Setting
from searchloop.search_backend.readers import find_services
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.search.merge import filtered, keep
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import Filtered, Query, SearchResult
from tests.fakes import FakeServer, Received, Reply
from tests.search_backend.search.engine_cases import BY_NAME, CASES, ddg_reply
from tests.search_backend.search.zim_archives import write
from tests.tables import cut, each_row

HOSTS = dict(
    pair.split("=")
    for pair in cut(
        "arxiv=export.arxiv.org brave=api.search.brave.com crossref=api.crossref.org"
        " ddg=html.duckduckgo.com exa=api.exa.ai firecrawl=api.firecrawl.dev github=api.github.com"
        " jina=s.jina.ai ollama=ollama.com openstreetmap=nominatim.openstreetmap.org"
        " perplexity=api.perplexity.ai pubmed=eutils.ncbi.nlm.nih.gov serper=google.serper.dev"
        " stackexchange=api.stackexchange.com tavily=api.tavily.com wikipedia=en.wikipedia.org"
    )
)
READERS = {"firecrawl": "api.firecrawl.dev", "jina": "r.jina.ai", "tavily": "api.tavily.com"}
# The address is the user's own, or none is asked by us.
OWN = {"searxng", "generic", "crawl4ai"}
PAGE = "https://page.example/a"


class Names(EngineHttp):
    """Looks every name up in vain, and remembers it."""

    def __init__(self) -> None:
        self.asked = set[str]()
        super().__init__(resolve=self.note)

    def note(self, host: str, _port: int) -> Sequence[str]:
        """Nobody is there."""
        self.asked.add(host)
        raise OSError("unknown")


def usual(settings: Sequence[Setting]) -> dict[str, str]:
    """Keys, and the addresses that hold where none is set."""
    return {s.name: s.default or "x" for s in settings if s.secret or s.default}


def test_an_engine_asks_the_one_host_that_its_name_stands_for(tmp_path: Path) -> None:
    """Of names that are looked up; `searxng` and `generic` ask the address that the user gives."""
    asked = {}
    for name, engine in find_engines().items():
        if name in OWN:
            continue
        names, own = Names(), SearchSettings(tmp_path, (name,), keys=usual(engine.settings))
        with closing(Chain(own, Library(tmp_path, dict), http=names)) as chain:
            chain.search(Query("tea"), name if not engine.missing(own.keys) else None)
        asked[name] = names.asked
    here = {"library": set[str](), "zim": set[str]()}
    assert asked == {name: {host} for name, host in HOSTS.items()} | here


def test_a_reader_asks_the_one_host_that_its_name_stands_for() -> None:
    """And never the page's own, which it reads for us."""
    asked = {}
    for name, service in find_services().items():
        if name not in OWN:
            names = Names()
            ServiceCalls(usual(service.settings), http=names).read(service, PAGE)
            asked[name] = names.asked
    assert asked == {name: {host} for name, host in READERS.items()}
    assert set(find_services()) == {*READERS, *OWN} - {"searxng", "generic"}


@each_row("status", [301, 302, 303, 307, 308])
@each_row("name", [*BY_NAME, "ddg"])
def test_no_engine_follows_a_redirect(name: str, status: int, tmp_path: Path) -> None:
    """Nobody but the host of its name gets the question, or the key."""
    with FakeServer([]) as elsewhere:

        def away(_: Received) -> Reply:
            place = {"location": f"{elsewhere.url}/x", "refresh": f"0; url={elsewhere.url}/y"}
            return Reply(b"", status, place)

        with FakeServer(away) as server:
            keys = {"DDG_BASE_URL": server.url}
            keys = BY_NAME[name].keys(server.url) if name in BY_NAME else keys
            with closing(
                Chain(SearchSettings(tmp_path, (name,), keys=keys), Library(tmp_path, dict))
            ) as chain:
                answer = chain.search(Query("tea"), name)
        assert (answer.status, len(server.requests), elsewhere.requests) == ("error", 1, [])


WISHES: Mapping[str, Query] = {
    "time_range": Query("tea", time_range="y"),
    "country": Query("tea", country="de"),
    "language": Query("tea", language="de"),
    "safe_search": Query("tea", safe_search="strict"),
}


@pytest.mark.parametrize("name", sorted(find_engines()))
def test_no_wish_is_lost(tmp_path: Path, name: str) -> None:
    """Each engine, each wish: respected by the engine, or named in `not_applied`; the number of
    results and the domains hold whatever the engine returned."""
    keys: dict[str, str] = {}
    engines: dict[str, Engine] = {name: find_engines()[name]}
    library = Library(tmp_path, lambda: {f"{n}.md": f"# Tea {n}\n\nAbout tea." for n in range(9)})

    def always(received: Received) -> Reply:
        return BY_NAME[name].reply(received) if name in BY_NAME else ddg_reply(received)

    with FakeServer(always) as server:
        if name in BY_NAME:
            keys = BY_NAME[name].keys(server.url)
        elif name == "zim":
            keys = {"ZIM_FILES": str(write(tmp_path / "tea.zim"))}
        elif name == "ddg":
            keys = {"DDG_BASE_URL": server.url}
        own = SearchSettings(tmp_path, (name,), keys=keys)
        engines = {name: replace(engine, rate=0.0) for name, engine in engines.items()}
        chain = Chain(own, library, engines)
        some = chain.search(Query("tea", max_results=1), name)
        assert len(some.results) == 1
        for wish, query in WISHES.items():
            answer = chain.search(query, name)
            assert answer.results, answer.attempts
            respected = wish in engines[name].respects(query)
            lifted = answer.filtered is not None and answer.filtered.lifted
            assert (wish not in answer.not_applied) == (respected or lifted), wish
        nowhere = chain.search(Query("tea", allowed_domains=("nowhere.example",)), name)
        assert nowhere.results == ()
    assert {case.name for case in CASES} | {"ddg", "library", "zim"} == set(find_engines())


@each_row(("when", "kept"), [("d", "ab-"), ("w", "abc-"), ("m", "abcd-"), ("y", "abcd-")])
def test_a_time_range_is_done_here_when_the_engine_cannot(when: str, kept: str) -> None:
    """Older results are dropped and counted; those without a date stay."""
    dates = {"a": "2026-11-21", "b": "2026-11-19", "c": "2026-11-13", "d": "2026-10-20"}
    found = [SearchResult(n, f"https://{n}.example/", "", "x", d) for n, d in dates.items()]
    found += [SearchResult("-", "https://undated.example/", "", "x")]
    found += [SearchResult("old", "https://old.example/", "", "x", "2020-01-01")]
    query = Query("tea", time_range=when)  # type: ignore[arg-type]
    today = date(2026, 11, 21)
    done = keep(found, query, frozenset(), today)
    assert "".join(result.title for result in done.results) == kept
    told = Filtered(f"time_range={when}", 6 - len(kept), lifted=False)
    assert filtered(query, 0, done.stale) == told
    assert keep(found, query, frozenset({"time_range"}), today).stale == 0
