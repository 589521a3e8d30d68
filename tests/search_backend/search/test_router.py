"""Official sites beside the chain: which are asked, with what, why, and what they never do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.engines import Access, Engine, default_chain, find_engines
from searchloop.search_backend.library import Library
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.search.router import choose, keywords, language_of, wants_news
from searchloop.search_backend.search.schedule import PATIENCE_BESIDE
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, Query, SearchAnswer, SearchResult
from tests.tables import each_row
from tests.waiting import LATE

SITES = [engine for engine in find_engines().values() if engine.kinds]
BLOCKED = EngineError("blocked", "It wants a CAPTCHA.", "Wait.")
PAPER = "papers about sparse attention"


def chosen(text: str, *, instead: bool = False, **options: object) -> list[str]:
    """The names of the sites that are asked."""
    query = Query(text, **options)  # type: ignore[arg-type]
    return [choice.engine.name for choice in choose(query, SITES, instead=instead)]


@each_row(
    ("question", "first", "asked"),
    [
        ("What is photosynthesis?", "wikipedia", "photosynthesis"),
        ("Was ist Photosynthese?", "wikipedia", "Photosynthese"),
        ("¿Qué es la fotosíntesis?", "wikipedia", "fotosíntesis"),
        ("Qu’est-ce que la photosynthèse ?", "wikipedia", "photosynthèse"),
        ("什么是光合作用？", "wikipedia", "光合作用"),
        ("光合成とは何ですか？", "wikipedia", "光合成"),
        ("Что такое фотосинтез?", "wikipedia", "фотосинтез"),
        ("Who invented the telephone?", "wikidata", "telephone"),
        ("attention is all you need paper", "arxiv", "attention is all you need"),
        ("稀疏注意力的论文 arxiv", "arxiv", "稀疏注意力"),
        ("arxiv 1706.03762", "arxiv", "1706.03762"),
        ("10.1038/nature14539", "crossref", "10.1038/nature14539"),
        ("side effects of ibuprofen", "pubmed", "side effects of ibuprofen"),
        ("布洛芬的副作用", "pubmed", "布洛芬的副作用"),
        ("how to undo the last git commit", "stackexchange", "undo the last git commit"),
        ("TypeError: 'NoneType' object is not iterable", "stackexchange", "TypeError"),
        ("css grid align items", "mdn", "css grid align items"),
        ("github repo of ripgrep", "github", "ripgrep"),
        ("ripgrep 的源码仓库", "github", "ripgrep"),
        ("who wrote the book Dune", "openlibrary", "Dune"),
        ("¿Quién escribió Cien años de soledad?", "openlibrary", "Cien años de soledad"),
        ("Where is Machu Picchu?", "openstreetmap", "Machu Picchu"),
        ("Wo liegt der Bodensee?", "openstreetmap", "Bodensee"),
        ("金阁寺在哪里？", "openstreetmap", "金阁寺"),
        ("hacker news discussion about sqlite", "hackernews", "sqlite"),
    ],
)
def test_a_question_reaches_the_site_of_its_kind(question: str, first: str, asked: str) -> None:
    """By words of several languages; the site gets what the question is about."""
    names = chosen(question)
    assert names[0] == first, names
    assert len(names) <= 2
    assert keywords(Query(question), find_engines()[first].kinds).text.startswith(asked)


@each_row(
    "question",
    [
        *("best pizza recipe", "cheap flights to Lisbon", "how do I fold a paper plane"),
        *("weather tomorrow", "Rezept für Apfelkuchen", "tienda de zapatos", "猫 可爱"),
        *("translate good morning into French", "is it going to rain", "x", "?", "123"),
    ],
)
def test_other_questions_are_the_chains_alone(question: str) -> None:
    """A site that cannot know is not asked; an encyclopedia may stand in for a failed chain."""
    assert chosen(question) == []
    assert "wikipedia" in chosen(question, instead=True)


def test_a_choice_says_why() -> None:
    """In words that complete "asked NAME: ..."."""
    why = {c.engine.name: c.why for c in choose(Query(PAPER), SITES, instead=False)}
    assert set(why.values()) == {"looks like a paper"}


def test_rules_for_domains_leave_out_sites_in_vain() -> None:
    """One whose results would all be dropped is not asked."""
    assert "arxiv" in chosen("preprint on black holes")
    assert "arxiv" not in chosen("preprint on black holes", blocked_domains=("arxiv.org",))
    assert "arxiv" not in chosen("preprint on black holes", allowed_domains=("example.org",))
    assert "arxiv" in chosen("preprint on black holes", allowed_domains=("arxiv.org",))
    assert chosen("What is tea?", allowed_domains=("de.wikipedia.org",)) == ["wikipedia"]


@each_row(
    ("text", "language"),
    [
        *(("What is the capital of France", "en"), ("Was ist die Hauptstadt", "de")),
        *(("quelle est la capitale", "fr"), ("¿cuál es la capital?", "es"), ("首都は", "ja")),
        *(
            ("首都在哪里", "zh"),
            ("столица Франции", "ru"),
            ("수도는 어디", "ko"),
            ("ripgrep", None),
        ),
        *(("столиця Франції", "uk"), ("η πρωτεύουσα", "el"), ("عاصمة فرنسا", "ar")),
    ],
)
def test_the_language_of_a_question(text: str, language: str | None) -> None:
    """By its letters, or by the small words that it is made of."""
    assert language_of(text) == language


@given(st.text(max_size=400), st.booleans())
def test_any_question_can_be_routed(text: str, instead: bool) -> None:
    """Bounded, never without words to ask, never a fault."""
    query = Query(text.strip() or "?")
    assert len(choose(query, SITES, instead=instead)) <= (6 if instead else 2)
    for engine in SITES:
        assert keywords(query, engine.kinds).text
    wants_news(text)


def test_signs_are_looked_for_at_the_beginning() -> None:
    """A question of any length costs the same, and a text put behind it chooses no site."""
    assert chosen("tea " * 200 + "papers about sparse attention") == []
    for text in ("a" * 2000, "when was " + "x " * 900, "1 " * 1000, "10 " + "street " * 280):
        choose(Query(text), SITES, instead=True)


class Site:
    """A search engine that answers as it is told, and remembers what it was asked."""

    def __init__(self, answer: list[str] | Exception) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def __call__(self, query: Query, _access: Access) -> list[SearchResult]:
        self.asked.append(query.text)
        if isinstance(self.answer, Exception):
            raise self.answer
        return [SearchResult(f"Title of {u}", u, "x", "x") for u in self.answer]


WEB, MORE = "https://web.example/", "https://more.example/"
ARXIV, ALEX = "https://arxiv.org/abs/1706.03762", "https://doi.org/10.5555/2"


def house(
    tmp_path: Path,
    sites: Mapping[str, Callable[[Query, Access], list[SearchResult]]],
    clock: Callable[[], float] = time.monotonic,
    **settings: object,
) -> Chain:
    """`web` and `local` are the chain; the others are sites with the kinds of the real ones."""
    real = find_engines()
    known = {
        name: Engine(
            name,
            name.title(),
            search,
            remote=name != "local",
            kinds=real[name].kinds if name in real else (),
            sites=real[name].sites if name in real else (),
            rate=real[name].rate if name in real else 0.0,
        )
        for name, search in sites.items()
    }
    own = SearchSettings(tmp_path, tuple(n for n in known if n in ("web", "local")), routed=True)
    chain = replace(own, **settings)  # type: ignore[arg-type]
    return Chain(chain, Library(tmp_path, dict), known, clock)


def trail(answer: SearchAnswer) -> list[tuple[str, str, str]]:
    """(engine, status, why) of each attempt."""
    return [(a.engine, a.status, a.why) for a in answer.attempts]


def test_a_site_stands_beside_the_chain(tmp_path: Path) -> None:
    """Its results stand between the chain's, which stays the engine that answered."""
    arxiv = Site([ARXIV, f"{ALEX}1", f"{ALEX}2", f"{ALEX}3"])
    chain = house(tmp_path, {"web": Site([WEB, MORE]), "arxiv": arxiv})
    answer = chain.search(Query(PAPER))
    assert [r.url for r in answer.results] == [ARXIV, WEB, f"{ALEX}1", MORE, f"{ALEX}2"]
    assert answer.engine == "web"
    assert trail(answer) == [("web", "ok", ""), ("arxiv", "ok", "looks like a paper")]
    assert arxiv.asked == ["sparse attention"]
    assert answer.attempts[1].as_json()["query"] == "sparse attention"


def test_sites_answer_when_the_chain_is_blocked(tmp_path: Path) -> None:
    """All that fit are asked, and what they found is the answer; the block stays on record."""
    wiki, local = Site(["https://en.wikipedia.org/wiki/Attention"]), Site([])
    sites = {"web": Site(BLOCKED), "arxiv": Site([ARXIV]), "wikipedia": wiki, "github": Site([])}
    answer = house(tmp_path, {**sites, "local": local}).search(Query(PAPER))
    assert (answer.status, answer.engine) == ("ok", "arxiv")
    assert {r.url for r in answer.results} == {ARXIV, "https://en.wikipedia.org/wiki/Attention"}
    assert trail(answer)[0][:2] == ("web", "blocked")
    assert sites["github"].asked == []
    assert local.asked == []


@pytest.mark.parametrize("answer", [[], EngineError("network", "Down.", "Wait.")])
def test_a_site_without_results_changes_nothing(
    tmp_path: Path, answer: list[str] | Exception
) -> None:
    """A blocked web search that sites cannot make up for is blocked, not empty; an empty one stays
    empty; a good one stays good."""
    for web, status in ((BLOCKED, "blocked"), ([], "empty"), ([WEB], "ok")):
        sites = {"web": Site(web), "arxiv": Site(answer), "wikipedia": Site(answer)}
        assert house(tmp_path, sites).search(Query(PAPER)).status == status


def test_a_web_that_found_nothing_is_believed(tmp_path: Path) -> None:
    """Only failure calls the other sites in."""
    wiki = Site(["https://en.wikipedia.org/wiki/Tea"])
    chain = house(tmp_path, {"web": Site([]), "wikipedia": wiki})
    assert chain.search(Query("tea leaves of the moon")).status == "empty"
    assert wiki.asked == []


def test_a_chain_that_the_user_wrote_is_kept_to(tmp_path: Path) -> None:
    """With SEARCH_ENGINES nobody else is asked, and sites named there are asked like any other."""
    arxiv = Site([ARXIV])
    sites = {"web": Site(BLOCKED), "arxiv": arxiv}
    assert house(tmp_path, sites, routed=False).search(Query(PAPER)).status == "blocked"
    assert arxiv.asked == []
    named = house(tmp_path, sites, routed=False, engines=("arxiv",)).search(Query(PAPER))
    assert (named.engine, trail(named)) == ("arxiv", [("arxiv", "ok", "")])
    assert arxiv.asked == ["sparse attention"]
    assert SearchSettings.from_mapping({}, tmp_path).routed
    assert not SearchSettings.from_mapping({"SEARCH_ENGINES": "ddg"}, tmp_path).routed
    mixed = SearchSettings.from_mapping({"SEARCH_ENGINES": "ddg, sites,library"}, tmp_path)
    assert (mixed.engines, mixed.routed) == (("ddg", "library"), True)
    assert not {engine.name for engine in SITES} & {*default_chain(find_engines(), {})}


def test_a_named_engine_is_asked_alone(tmp_path: Path) -> None:
    """`engine` in a request means that one and no other."""
    arxiv = Site([ARXIV])
    answer = house(tmp_path, {"web": Site([WEB]), "arxiv": arxiv}).search(Query(PAPER), "web")
    assert (trail(answer), arxiv.asked) == ([("web", "ok", "")], [])


def test_a_site_that_hangs_holds_nobody(tmp_path: Path) -> None:
    """The chain's results come without it, and it is told as late."""
    now, gate = [100.0], threading.Event()

    def hang(_query: Query, _access: Access) -> list[SearchResult]:
        now[0] += PATIENCE_BESIDE + 0.1
        gate.wait(LATE)
        return []

    chain = house(tmp_path, {"web": Site([WEB]), "arxiv": hang}, lambda: now[0])
    answer = chain.search(Query(PAPER))
    gate.set()
    assert [r.url for r in answer.results] == [WEB]
    assert trail(answer)[1][:2] == ("arxiv", "error")
    assert answer.attempts[1].error is not None
    assert answer.attempts[1].error.code == "timeout"


def test_the_rates_of_sites_are_kept(tmp_path: Path) -> None:
    """Three seconds between two requests to arXiv: a question in between goes without it."""
    arxiv = Site([ARXIV])
    chain = house(tmp_path, {"web": Site([WEB]), "arxiv": arxiv}, lambda: 100.0)
    assert len(chain.search(Query(PAPER)).results) == 2
    again = chain.search(Query("papers about dense attention"))
    assert [r.url for r in again.results] == [WEB]
    assert again.attempts[1].error is not None
    assert again.attempts[1].error.code == "busy"
    assert len(arxiv.asked) == 1


def test_a_site_that_failed_rests_and_is_not_chosen(tmp_path: Path) -> None:
    """The other that fits is asked, and nothing of the first stands in the trail."""
    sites = {
        "web": Site([WEB]),
        "arxiv": Site(EngineError("quota", "Used up.", "Wait.", 3_600)),
        "crossref": Site(["https://doi.org/10.5555/1"]),
    }
    chain = house(tmp_path, sites, lambda: 100.0)
    assert [e for e, _, _ in trail(chain.search(Query(PAPER)))] == ["web", "arxiv", "crossref"]
    second = chain.search(Query("papers about dense attention"))
    assert [e for e, _, _ in trail(second)] == ["web", "crossref"]


def test_wishes_that_a_site_cannot_respect_are_told(tmp_path: Path) -> None:
    """A time range is applied to its dates here; what has no date stays, and that is told."""
    sites = {"web": Site([WEB]), "arxiv": Site([ARXIV])}
    answer = house(tmp_path, sites).search(Query(PAPER, time_range="y"))
    assert "time_range" in answer.not_applied


def test_the_list_of_engines_says_which_may_be_asked(tmp_path: Path) -> None:
    """`routed` is false where the user has written the chain."""
    sites = {"web": Site([]), "arxiv": Site([])}
    rows = {r["name"]: r for r in house(tmp_path, sites).describe()["engines"]}
    assert (rows["arxiv"]["routed"], rows["arxiv"]["position"]) == (True, None)
    assert not rows["web"]["routed"]
    rows = {r["name"]: r for r in house(tmp_path, sites, routed=False).describe()["engines"]}
    assert not rows["arxiv"]["routed"]
