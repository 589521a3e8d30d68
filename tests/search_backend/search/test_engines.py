"""Engines over HTTP as pure functions: what they ask, and what they make of any answer."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from searchloop.search_backend.engines import find_engines
from searchloop.search_backend.plugin import HttpRequest, HttpResponse
from searchloop.search_backend.types import EngineError, Query, SearchResult
from tests.recorded import exchanges, large
from tests.search_backend.search.engine_cases import BY_NAME, CASES, Case, parsed, real
from tests.tables import each_row

URL = "http://127.0.0.1:9"
CHALLENGE = "<title>Just a moment...</title>Checking your browser"
EVERY = each_row("case", CASES)
WEB = each_row("case", [case for case in CASES if case.web])
SITES = each_row("case", [case for case in CASES if not case.web])
FULL = Query(
    "green tea",
    max_results=5,
    allowed_domains=("a.example", "b.example"),
    blocked_domains=("c.example",),
    time_range="w",
    country="de",
    language="de",
    safe_search="strict",
)


def ask(case: Case, query: Query = FULL, **keys: str) -> HttpRequest:
    """What the engine would send."""
    assert case.engine.wire is not None
    return case.engine.wire.request(query, {**case.keys(URL), **keys})


def said(request: HttpRequest) -> dict[str, Any]:
    """The parameters of a request, from its query or its body."""
    if request.method == "POST":
        return dict(json.loads(request.body))
    return {k: v[0] if len(v) == 1 else v for k, v in parse_qs(urlsplit(request.url).query).items()}


def read(case: Case, body: bytes | str, status: int = 200, **headers: str) -> list[SearchResult]:
    """What the engine makes of an answer."""
    data = body if isinstance(body, bytes) else body.encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return parsed(case.engine, HttpResponse(status, named, data), case.keys(URL))


def failure(case: Case, body: bytes | str, status: int = 200, **headers: str) -> EngineError:
    """The error that the engine makes of an answer."""
    with pytest.raises(EngineError) as caught:
        read(case, body, status, **headers)
    assert caught.value.message.endswith(".")
    assert caught.value.remedy.endswith(".")
    return caught.value


def test_every_engine_over_http_is_tested_here() -> None:
    """A new engine brings its case and its recordings; `ddg` reads a page: test_ddg.py."""
    assert {e.name for e in find_engines().values() if e.wire} == {*BY_NAME, "ddg"}


@EVERY
def test_a_request_goes_where_and_how_the_engine_wants_it(case: Case) -> None:
    """Method, path, key in its header and nowhere else, JSON where there is a body."""
    request = ask(case)
    parts = urlsplit(request.url)
    assert (request.method, parts.netloc, parts.path) == (case.method, "127.0.0.1:9", case.path)
    headers = {name.lower(): value for name, value in request.headers.items()}
    if case.key:
        assert headers[case.header] == case.prefix + "k-0123456789"
    assert "k-0123456789" not in request.url + request.body.decode() + repr(request)
    assert bool(request.body) == (case.method == "POST")
    assert headers.get("content-type") == ("application/json" if request.body else None)


@EVERY
def test_a_plain_query_carries_no_options(case: Case) -> None:
    """What the user did not ask for is left to the engine."""
    text = json.dumps(said(ask(case, Query("tea"))))
    for word in ("example", "DE", '"de"', "site:", "week", "qdr", "pw", "strict"):
        assert word not in text


@EVERY
def test_what_an_engine_says_it_applies_is_in_its_request(case: Case) -> None:
    """Each part of the query named in `applies` changes the request, every other does not."""
    bare = ask(case, Query("tea"))
    options: Mapping[str, Query] = {
        "domains": Query("tea", allowed_domains=("a.example",)),
        "time_range": Query("tea", time_range="m"),
        "country": Query("tea", country="fr", language="fr"),
        "language": Query("tea", language="fr"),
        "safe_search": Query("tea", safe_search="strict"),
    }
    for name, query in options.items():
        if name == "country" and name not in case.engine.applies:
            continue  # some take it only beside a language
        if name == "domains":
            assert ("a.example" in str(said(ask(case, query)))) == case.web
        else:
            assert (ask(case, query) != bare) == (name in case.engine.applies), name


SITE = "green tea (site:a.example OR site:b.example) -site:c.example"
AB = ["a.example", "b.example"]
OWN_WORDS: dict[str, dict[str, Any]] = {
    "brave": {"q": SITE, "count": "5", "freshness": "pw", "country": "DE", "search_lang": "de"},
    "tavily": {
        "include_domains": AB,
        "exclude_domains": ["c.example"],
        "time_range": "week",
        "search_depth": "basic",
        "max_results": 5,
    },
    "searxng": {"q": SITE, "format": "json", "time_range": "week", "language": "de-DE"},
    "perplexity": {"search_domain_filter": AB, "search_recency_filter": "week", "country": "DE"},
    "exa": {"includeDomains": AB, "userLocation": "DE", "contents": {"highlights": True}},
    "serper": {"tbs": "qdr:w", "gl": "de", "hl": "de", "num": 10},
    "jina": {"site": AB, "q": "green tea -site:c.example"},
    "ollama": {"query": SITE, "max_results": 5},
    "generic": {"query": SITE, "max_results": 5},
}


@each_row(("name", "words"), OWN_WORDS.items())
def test_options_in_each_engines_own_words(name: str, words: dict[str, Any]) -> None:
    """The names and values of the engines' documentation."""
    asked = said(ask(BY_NAME[name]))
    assert asked.items() >= words.items()
    safe = {"brave": ("safesearch", "strict"), "searxng": ("safesearch", "2")}
    field, value = {**safe, "exa": ("moderation", True)}.get(name, ("", None))
    assert asked.get(field) == value


def test_a_country_that_an_engine_cannot_be_asked_for_is_told() -> None:
    """SearXNG knows only those of a language."""
    searxng = BY_NAME["searxng"]
    assert "country" not in searxng.engine.respects(Query("tea", country="ie"))
    spoken = Query("tea", country="ie", language="ga")
    assert said(ask(searxng, spoken))["language"] == "ga-IE"
    assert "country" in searxng.engine.respects(spoken)


def test_brave_gets_no_more_than_it_takes() -> None:
    """400 characters and 50 words are its limits; longer queries are cut at a word where it can."""
    asked = said(ask(BY_NAME["brave"], Query("word " * 80, max_results=20)))
    assert len(asked["q"].split()) == 50
    assert len(said(ask(BY_NAME["brave"], Query("x" * 900)))["q"]) == 400


@each_row("path", ["", "/", "/search", "/search?q=<query>"])
def test_searxng_addresses_of_all_kinds_work(path: str) -> None:
    """The server's address, its search page, and the form with <query> that other tools use."""
    address = f"http://localhost:8080{path}"
    request = ask(BY_NAME["searxng"], Query("tea"), SEARXNG_URL=address)
    assert request.url == "http://localhost:8080/search?q=tea&format=json"


@each_row("address", ["localhost:8080", "ftp://x/", "http://a b/", "http://ü/"])
@EVERY
def test_an_address_that_is_none_is_named(case: Case, address: str) -> None:
    """The error names the setting."""
    with pytest.raises(EngineError, match=case.address) as caught:
        ask(case, **{case.address: address})
    assert caught.value.kind == "config"


def test_a_generic_endpoint_may_be_a_template() -> None:
    """With {query} it is a GET, the other places are filled in as well, all of it quoted."""
    case = BY_NAME["generic"]
    endpoint = "http://127.0.0.1:9/s?q={query}&n={count}&lang={language}"
    keys = {"SEARCH_ENDPOINT": endpoint, "SEARCH_FIELDS": "key_header=X-Key"}
    request = ask(case, Query("a&b=c", max_results=3, language="de"), **keys)
    assert (request.method, request.url) == ("GET", "http://127.0.0.1:9/s?q=a%26b%3Dc&n=3&lang=de")
    assert request.headers == {"X-Key": "k-0123456789"}


def test_generic_fields_are_found_where_the_setting_says() -> None:
    """Paths with dots lead through objects and lists; a wrong setting is explained."""
    case = BY_NAME["generic"]
    assert case.engine.wire is not None
    body = {"d": [{"items": [{"u": "https://a.example/", "t": {"de": "Tee"}, "x": "Text"}]}]}
    response = HttpResponse(200, {}, json.dumps(body).encode())
    fields = "results=d.0.items, url=u, title=t.de, snippet=x"
    found = case.engine.wire.parse(response, {"SEARCH_FIELDS": fields})
    assert [(r.url, r.title, r.snippet) for r in found] == [("https://a.example/", "Tee", "Text")]
    bare = HttpResponse(200, {}, json.dumps(body["d"][0]["items"]).encode())
    assert len(case.engine.wire.parse(bare, {"SEARCH_FIELDS": "results=,url=u"})) == 1
    for wrong in ("nope=x", "results"):
        with pytest.raises(EngineError, match="SEARCH_FIELDS"):
            case.engine.wire.parse(response, {"SEARCH_FIELDS": wrong})


@WEB
def test_recorded_results_are_read(case: Case) -> None:
    """Titles and snippets are plain text, dates are ISO dates, the order is the engine's."""
    results = read(case, case.recording("results"))
    assert [r.url for r in results] == [
        "https://tea.example/brew?lang=en",
        "https://pots.example/",
        "https://water.example/tea.html",
    ]
    assert results[0].title == "How to brew green tea & not burn it"
    said = ["Use 75 'C water.", "Iron or clay?", "Soft water < hard water."]
    assert [r.snippet for r in results] == said
    assert {r.source for r in results} == {case.name}
    dates = [r.published for r in results]
    assert dates == ([None] * 3 if case.name == "ollama" else ["2026-03-04", "2026-03-05", None])


@EVERY
def test_an_empty_answer_is_empty_and_no_error(case: Case) -> None:
    """The engine answered and knows nothing."""
    assert read(case, case.recording("empty")) == []


def test_searxng_tells_which_of_its_engines_failed() -> None:
    """Without results it has failed; that all of its engines did is nothing its answer says."""
    searxng = BY_NAME["searxng"]
    error = failure(searxng, searxng.recording("blocked"))
    assert error.kind == "network"
    assert "alpha: Suspended: too many requests, beta: CAPTCHA" in error.message
    assert "all" not in error.message.lower().split()


def test_searxng_without_json_says_how_to_switch_it_on() -> None:
    """403 is the server's way to say that JSON is off."""
    error = failure(BY_NAME["searxng"], "<title>403 Forbidden</title>", 403)
    assert (error.kind, "formats: [html, json]" in error.remedy) == ("config", True)
    assert failure(BY_NAME["searxng"], CHALLENGE, 403).kind == "blocked", "a wall in front of it"


@each_row(
    ("charset", "declared"),
    [("latin-1", "iso-8859-1"), ("cp1251", "windows-1251"), ("gb18030", '"GBK"'), ("utf-16", "")],
)
def test_an_answer_in_another_charset_is_read(charset: str, declared: str) -> None:
    """JSON is UTF-8; a server of the user's own may not know it."""
    title = {"cp1251": "Чай", "gb18030": "茶"}.get(charset, "Thé")
    body = json.dumps({"results": [{"url": URL, "title": title}]}, ensure_ascii=False)
    kind = f"application/json; charset={declared}"
    (found,) = read(BY_NAME["generic"], body.encode(charset), content_type=kind)
    assert found.title == title


@each_row(
    ("status", "body", "headers", "kind", "seconds"),
    [
        (429, "", {"retry_after": "7"}, "rate", 7),
        (429, "", {}, "rate", None),
        (429, '{"error":"slow down"}', {"retry_after": "soon"}, "rate", None),
        (429, '{"detail":{"error":"monthly plan limit reached"}}', {}, "quota", None),
        (429, '{"message": "Quota exceeded: 60 queries per minute"}', {}, "rate", None),
        (402, '{"message":"Payment Required"}', {}, "quota", None),
        (401, '{"error":{"message":"bad key"}}', {}, "auth", None),
        (422, '{"error":{"detail":"The subscription token is invalid"}}', {}, "auth", None),
        (400, '{"message":"Not enough credits"}', {}, "quota", None),
        (400, '{"message":"q is too long"}', {}, "config", None),
        (400, '{"error": "Unexpected token < in JSON at position 0"}', {}, "config", None),
        (400, '{"error": "invalid token"}', {}, "auth", None),
        (422, '{"detail": [{"msg": "max_tokens_per_page must be positive"}]}', {}, "config", None),
        (404, "not found", {}, "config", None),
        (418, "", {}, "config", None),
        (301, "", {"location": "https://elsewhere.example/"}, "config", None),
        (500, "<html>oops", {}, "network", None),
        (503, "", {"retry_after": "12"}, "network", 12),
        (503, CHALLENGE, {}, "blocked", None),
        (502, "<html><title>Bad gateway</title>Ray ID: 1</html>", {}, "network", None),
        (529, '{"error": "overloaded"}', {}, "network", None),
        (202, "", {}, "blocked", None),
        (200, CHALLENGE, {}, "blocked", None),
        (200, "<html><title>Welcome</title><p>Hello", {}, "parse", None),
        (200, "", {}, "parse", None),
        (200, "[1, 2", {}, "parse", None),
        pytest.param(200, "[" * 100_000, {}, "parse", None, id="nested without end"),
        (200, '"text"', {}, "parse", None),
    ],
)
@EVERY
def test_every_kind_of_failure_is_told_apart(
    case: Case, status: int, body: str, headers: dict[str, str], kind: str, seconds: float | None
) -> None:
    """Wait, pay, change the key, change the settings or use another: the kind says which."""
    if len(body) > 10_000:
        gc.collect()  # what earlier tests left would else be collected in the deepest call
    error = failure(case, body, status, **headers)
    assert (error.kind, error.retry_after) == (kind, seconds)


def test_engines_own_statuses_and_headers() -> None:
    """Tavily's two statuses for an empty account; Brave's counts for a second and for a month."""
    assert failure(BY_NAME["tavily"], "", 432).kind == "quota"
    assert failure(BY_NAME["tavily"], "", 433).kind == "quota"
    brave = BY_NAME["brave"]
    reset = {"x_ratelimit_reset": "1, 1419704"}
    second = failure(brave, "", 429, x_ratelimit_remaining="0, 1200", **reset)
    month = failure(brave, "", 429, x_ratelimit_remaining="0, 0", **reset)
    assert (second.kind, second.retry_after) == ("rate", 1)
    assert (month.kind, month.retry_after) == ("quota", 1_419_704)
    assert failure(BY_NAME["serper"], '{"message":"Unauthorized."}', 403).kind == "auth"


def real_answers() -> Iterator[tuple[Case, bytes]]:
    """Answers that real servers gave: our own, and those of the larger set of recordings."""
    for case in CASES:
        if real(case.name).exists():
            yield case, real(case.name).read_bytes()
        for path in large("search_engines", f"{case.name}*.json"):
            for exchange in exchanges(path):
                yield case, json.dumps(exchange["response"]["body"]).encode()


@each_row(("case", "answer"), real_answers())
def test_an_answer_of_the_real_server_is_read(case: Case, answer: bytes) -> None:
    """Every page has an address and a title, and no marks of a page are left in its text."""
    found = read(case, answer)
    assert found or b'"results": []' in answer
    for one in found:
        assert one.url.startswith("http")
        assert one.title != one.url
        assert not re.search(r"</?(?:strong|b|em|jats:\w+)>|&#\w+;", one.title + one.snippet)


def test_an_engine_without_a_real_answer_says_so() -> None:
    """It is marked, and one that has an answer is not."""
    marked = {case.name for case in CASES if case.engine.untested}
    # What a user's own API answers is the user's to know.
    assert marked == {c.name for c in CASES if not real(c.name).exists()} - {"generic"}


@each_row(
    ("name", "url", "title", "snippet", "published"),
    [
        ("arxiv", "arxiv.org/abs/1904.08994v1", "From GAN to WGAN", "intended to", "2019-04-18"),
        ("crossref", "doi.org/", "Communicating Ecology", "", None),
        ("github", "github.com/cjauvin/tetris-c64", "cjauvin/tetris-c64", "stars)", None),
        ("openstreetmap", "www.openstreetmap.org/way/437595031", "Ditsch", "contributors", None),
        ("pubmed", "pubmed.ncbi.nlm.nih.gov/27933103/", "Programmatic", "Journal", "2016-11-23"),
        ("stackexchange", "stackoverflow.com/questions/488", "Statically", "2; j", "2018-02-18"),
        ("wikipedia", "en.wikipedia.org/wiki/Earth", "Earth", "", None),
    ],
)
def test_what_official_sites_answer(
    name: str, url: str, title: str, snippet: str, published: str | None
) -> None:
    """The page that a person would open, its title, a useful line, and its date."""
    first = read(BY_NAME[name], real(name).read_bytes())[0]
    assert first.url.startswith(f"https://{url}")
    assert first.title.startswith(title)
    assert snippet in first.snippet
    assert published in (None, first.published)


@SITES
def test_sites_without_a_key_are_told_who_asks(case: Case) -> None:
    """Their terms ask for a product and a contact in the User-Agent, and for few requests."""
    headers = ask(case, SEARCH_CONTACT="me@home.example\r\nX: y").headers
    assert headers["User-Agent"].startswith("searchloop/")
    assert headers["User-Agent"].endswith("; me@home.exampleX:y)")
    assert "contact" not in ask(case).headers["User-Agent"]
    assert 0 < case.engine.rate <= 2
    assert not case.engine.needs


def test_a_summary_takes_a_second_request() -> None:
    """PubMed gives ids first; without ids there is nothing to ask for."""
    case = BY_NAME["pubmed"]
    assert case.engine.wire is not None
    assert case.engine.wire.then is not None
    first = HttpResponse(200, {}, real("pubmed").with_name("real_first.json").read_bytes())
    request = case.engine.wire.then(first, case.keys(URL))
    assert request is not None
    assert request.url.startswith(f"{URL}/esummary.fcgi?")
    assert said(request)["id"] == "36374290,36370080,36363931"
    nothing = HttpResponse(200, {}, case.recording("empty"))
    assert case.engine.wire.then(nothing, case.keys(URL)) is None
    with pytest.raises(EngineError):
        case.engine.wire.then(HttpResponse(200, {}, b'{"error":"API rate limit exceeded"}'), {})


def test_an_arxiv_id_asks_for_that_paper_and_no_bomb_goes_off() -> None:
    """Words are sought in all fields; entities are not expanded."""
    arxiv = BY_NAME["arxiv"]
    assert said(ask(arxiv, Query("what does 1706.03762v5 say")))["id_list"] == "1706.03762v5"
    words = said(ask(arxiv, Query("state-of-the-art GAN, (training)!")))["search_query"]
    assert words == "all:state-of-the-art AND all:GAN AND all:training"
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><feed>&b;</feed>'
    assert read(arxiv, bomb) == []
