"""Other search APIs as their clients speak them; and what describes all routes is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import ollama
import pytest
import schemathesis
from flask.testing import FlaskClient

from searchloop.search_backend.api.app import Quota, create_app, has_token
from searchloop.search_backend.api.schemas import document
from searchloop.search_backend.engines import Access, Engine
from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.library import Library
from searchloop.search_backend.other_apis import find_shapes
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import (
    EngineError,
    FetchRefused,
    NotReachable,
    Query,
    SearchResult,
)
from tests.openapi_sample import FEW, MANY, hold
from tests.tables import each_row

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
FOUND = [
    SearchResult("Tea", "https://example.org/tea", "About tea.", "fake", "2026-01-02"),
    SearchResult("Pots", "https://pots.example/", "About pots.", "fake"),
]


class House:
    """The application over an engine and a web of fakes; `asked` is what reached the engine."""

    def __init__(self, home: Path, token: str | None = None, quota: Quota | None = None) -> None:
        self.asked: list[Query] = []
        own = SearchSettings(home, ("fake",))
        library = Library(home, dict)
        chain = Chain(own, library, {"fake": Engine("fake", "Fake", self.search)})
        self.app = create_app(
            own, token=token, quota=quota, fetch=fetch, library=library, chain=chain
        )
        self.client: FlaskClient = self.app.test_client()

    def search(self, query: Query, _access: Access) -> list[SearchResult]:
        """Two results, none, or a failure, as the query says."""
        self.asked.append(query)
        if query.text == "fail":
            raise EngineError("network", "The network is down.", "Plug it in.")
        return [] if query.text == "nothing" else FOUND


def fetch(url: str, **_rules: object) -> Fetched:
    """One page with a link; a place that is refused; a place that is not there."""
    if url.endswith("/private"):
        raise FetchRefused("refused_url", "Not a web address.", "Use one.")
    if url.endswith("/gone"):
        raise NotReachable("nobody there")
    page = b"<title>A</title><p>A page about tea and <a href='/more'>more</a> of it.</p>"
    return Fetched(url, url, 200, "text/html", "utf-8", page)


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Open to everybody, as on loopback."""
    return House(tmp_path)


def told(house: House, method: str, path: str, **sent: Any) -> tuple[int, Any]:
    """Status and JSON of the answer."""
    response = house.client.open(path, method=method, **sent)
    assert response.mimetype == "application/json"
    return response.status_code, response.get_json()


def ollama_client(house: House, token: str = "any") -> ollama.Client:
    """The real package; its fixed address leads to the application, as a proxy would."""
    ours = httpx.WSGITransport(app=house.app)
    return ollama.Client(transport=ours, headers={"Authorization": f"Bearer {token}"})


def test_the_ollama_package_searches(house: House) -> None:
    """Titles, addresses and texts arrive, as many as were asked for; its exception has the status
    and our sentence. What asks a local server asks under /api/experimental."""
    found = ollama_client(house).web_search("green tea", max_results=1)
    assert [(r.title, r.url, r.content) for r in found.results] == [
        ("Tea", "https://example.org/tea", "About tea.")
    ]
    assert (house.asked[0].text, house.asked[0].max_results) == ("green tea", 1)
    assert ollama_client(house).web_search("nothing").results == []
    status, answer = told(house, "POST", "/api/experimental/web_search", json={"query": "tea"})
    assert (status, len(answer["results"])) == (200, 2)
    with pytest.raises(ollama.ResponseError, match=r"The network is down\.") as caught:
        ollama_client(house).web_search("fail")
    assert caught.value.status_code == 424


def test_the_ollama_package_reads_a_page(house: House) -> None:
    """Title, main text and absolute links."""
    page = ollama_client(house).web_fetch("https://example.org/a")
    assert page.title == "A"
    assert "A page about tea" in (page.content or "")
    assert page.links == ["https://example.org/more"]


SEARXNG = {"q": "x", "format": "json"}
REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("/api/web_search", {"query": ""}, 400, "query is empty"),
    ("/api/web_search", {"query": "x", "max_results": -1}, 400, "max_results must be"),
    ("/api/web_fetch", {"url": "https://example.org/private"}, 400, "Not a web address."),
    ("/api/web_fetch", {"url": "https://example.org/gone"}, 424, "No public web server"),
    ("/search", {"format": "json"}, 400, "'query' is missing"),
    ("/search", SEARXNG | {"q": ""}, 400, "query is empty"),
    ("/search", {"q": "x"}, 403, "format=json"),
    ("/", {"q": "x"}, 403, "format=json"),
    ("/search", SEARXNG | {"format": "csv"}, 403, "format=json"),
    ("/search", SEARXNG | {"time_range": "z"}, 400, "time_range"),
    ("/search", SEARXNG | {"safesearch": "3"}, 400, "safesearch"),
    ("/search", SEARXNG | {"pageno": "-1"}, 400, "pageno"),
    ("/v1/search", {}, 400, "'query' is missing"),
    ("/v1/search", {"query": ["a"] * 6}, 400, "more than 5"),
    ("/v1/search", {"query": []}, 400, "or none"),
    ("/v1/search", {"query": "x", "search_domain_filter": "a.org"}, 400, "must be an array"),
    ("/v1/search", {"query": "x", "search_domain_filter": ["a b"]}, 400, "allowed_domains[0]"),
    ("/v1/search", {"query": "x", "search_recency_filter": "decade"}, 400, "time_range"),
    ("/v1/search", {"query": "x", "search_recency_filter": ["day"]}, 400, "time_range"),
    ("/v1/search", {"query": "fail"}, 424, "The network is down."),
]


@each_row(("path", "asked", "status", "words"), REFUSED)
def test_each_api_refuses_in_its_own_shape(
    tmp_path: Path, path: str, asked: dict[str, Any], status: int, words: str
) -> None:
    """One sentence under `error`, or an object with message, type and code, as LiteLLM reads it."""
    form, house = path in ("/", "/search"), House(tmp_path)
    sent = {"query_string": asked} if form else {"json": asked}
    given, answer = told(house, "GET" if form else "POST", path, **sent)
    assert given == status
    assert set(answer) == {"error"}
    error = answer["error"]
    if path == "/v1/search":
        assert error["code"] == status
        error = error["message"]
    assert words in error


OPEN_WEBUI = (
    "q=green+tea&format=json&pageno=1&safesearch=1&language=de-AT&time_range=&categories="
    "&theme=simple&image_proxy=0"
)
LIBRECHAT = (
    "q=green+tea&format=json&pageno=1&categories=general&language=all&safesearch=1"
    "&engines=google%2Cbing%2Cduckduckgo"
)


@pytest.mark.parametrize(
    ("method", "path", "asked", "where"),
    [
        ("GET", "/search", OPEN_WEBUI, ("de", "at")),
        ("POST", "/", OPEN_WEBUI, ("de", "at")),
        ("GET", "/", LIBRECHAT, (None, None)),
    ],
)
def test_searxng_is_spoken(
    tmp_path: Path, method: str, path: str, asked: str, where: tuple[str | None, str | None]
) -> None:
    """What Open WebUI and LibreChat send is understood, the latter's key in a header of its own and
    a type for no body, and each finds what it looks for; so it is at its main page, which LangChain
    asks."""
    house = House(tmp_path, token="a-secret")
    headers = {"X-API-Key": "a-secret", "Content-Type": JSON if method == "GET" else FORM}
    sent = {"query_string" if method == "GET" else "data": asked}
    status, answer = told(house, method, path, headers=headers, **sent)
    assert status == 200
    query = house.asked[0]
    assert (query.text, query.safe_search) == ("green tea", "moderate")
    assert (query.language, query.country) == where
    rows = answer["results"]
    assert [(row["url"], row["title"], row["content"]) for row in rows] == [
        (found.url, found.title, found.snippet) for found in FOUND
    ]
    assert rows[0]["publishedDate"] == "2026-01-02"
    assert rows[0]["score"] > rows[1]["score"]
    assert (answer["number_of_results"], answer["unresponsive_engines"]) == (2, [])
    assert answer["suggestions"] == []


def test_searxng_names_the_engines_that_failed(house: House) -> None:
    """Nothing found and nothing reached can be told apart, as its clients expect it; whoever turns
    the one page gets no result twice."""

    def asked(query: str, page: str = "1") -> Any:
        form = {"q": query, "format": "json", "pageno": page}
        status, answer = told(house, "GET", "/search", query_string=form)
        assert (status, answer["results"]) == (200, [])
        return answer["unresponsive_engines"]

    assert asked("tea", page="2") == []
    assert asked("nothing") == []
    assert asked("fail") == [["fake", "The network is down."]]
    # It rests after that, which is no answer either.
    assert "asked again in" in asked("fail")[0][1]


def test_perplexity_is_spoken(house: House) -> None:
    """Filters become ours, and what has no counterpart is named."""
    asked = {
        "query": "green tea",
        "max_results": 5,
        "country": "GB",
        "search_domain_filter": ["example.org", "-bad.example"],
        "search_recency_filter": "hour",
        "search_language_filter": ["en"],
        "max_tokens_per_page": 512,
        "search_mode": "academic",
        "search_tool_name": "ours",
    }
    status, answer = told(house, "POST", "/v1/search", json=asked)
    assert status == 200
    query = house.asked[0]
    assert (query.text, query.max_results, query.time_range) == ("green tea", 5, "d")
    assert (query.country, query.language) == ("gb", "en")
    assert query.allowed_domains == ("example.org",)
    assert query.blocked_domains == ("bad.example",)
    tea = FOUND[0]
    same = {"title": tea.title, "url": tea.url, "snippet": tea.snippet}
    assert answer["results"] == [{**same, "date": tea.published, "last_updated": None}]
    assert "search_mode" in answer["not_applied"]


def test_perplexity_searches_several_things_at_once(house: House) -> None:
    """One flat list, as the official client and LiteLLM read it, and each page once."""
    asked = {"query": ["tea", "nothing", "pots"]}
    _, answer = told(house, "POST", "/v1/search", json=asked)
    assert [row["title"] for row in answer["results"]] == ["Tea", "Pots"]
    assert sorted(query.text for query in house.asked) == ["nothing", "pots", "tea"]


def test_every_refusal_at_a_foreign_address_has_its_shape(tmp_path: Path) -> None:
    """No token, wrong method, no JSON, too large: whatever refuses, the client can read it."""
    house = House(tmp_path, token="a-secret")
    good = {"Authorization": "Bearer a-secret"}
    for shape in find_shapes():
        for route in shape.routes:
            method = route.methods[-1]
            bodies = [
                told(house, method, route.path),
                told(house, "DELETE", route.path, headers=good),
                told(house, "POST", route.path, headers=good, data=b"x" * 2_000_000),
            ]
            assert [status for status, _ in bodies][:2] == [401, 405]
            assert bodies[2][0] in ((413, 415) if "POST" in route.methods else (405,))
            for _, body in bodies:
                assert set(body) == {"error"}
                assert "code" not in body


@each_row(
    ("header", "welcome"),
    [
        ("Bearer a-secret", True),
        ("bearer  a-secret ", True),
        ("Basic dXNlcjphLXNlY3JldA==", True),  # user:a-secret
        ("Basic OmEtc2VjcmV0", True),  # :a-secret
        ("Basic YS1zZWNyZXQ=", False),  # a-secret, as a name
        ("Basic !!!", False),
        ("Bearer", False),
        ("Bearer a-secreT", False),
        ("a-secret", False),
        ("", False),
        ("Bearer ä", False),
    ],
)
def test_the_token_comes_as_clients_send_it(header: str, welcome: bool) -> None:
    """As a bearer, or as the password in an address such as http://any:TOKEN@host:3002/search."""
    assert has_token(header, "", "a-secret") is welcome
    key = header.removeprefix("Bearer ")
    assert has_token("", key, "a-secret") is (key == "a-secret")
    assert not has_token("Bearer no", "a-secret", "a-secret")


def test_each_client_has_its_quota(tmp_path: Path) -> None:
    """The one who asks too often waits as long as it is told; nobody else does."""
    now = [0.0]
    house = House(tmp_path, token="t", quota=Quota(3, lambda: now[0]))

    def ask(client: str, token: str = "t") -> tuple[int, str | None]:
        response = house.client.post(
            "/api/web_search",
            json={"query": "tea"},
            headers={"Authorization": f"Bearer {token}"},
            environ_base={"REMOTE_ADDR": client},
        )
        if response.status_code == 429:
            assert "too often" in response.get_json()["error"]
        return response.status_code, response.headers.get("Retry-After")

    assert [ask("192.0.2.1")[0] for _ in range(3)] == [200] * 3
    assert ask("192.0.2.1") == (429, "20")
    assert ask("192.0.2.2")[0] == 200
    now[0] += 19
    assert ask("192.0.2.1") == (429, "1")
    now[0] += 1
    assert ask("192.0.2.1")[0] == 200
    # Guessing a token is limited as well, and one IPv6 network is one client.
    guesses = [ask(f"2001:db8::{n}", "guess")[0] for n in range(4)]
    assert guesses == [401, 401, 401, 429]
    health = house.client.get("/api/health", environ_base={"REMOTE_ADDR": "192.0.2.1"})
    assert health.status_code == 200


def test_the_description_names_every_route(tmp_path: Path) -> None:
    """Each rule of the application is described, and each description has a rule."""
    rules = House(tmp_path).app.url_map.iter_rules()
    served = {
        (method.lower(), rule.rule.replace("<path:path>", "{path}"))
        for rule in rules
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    told = {(m, path) for path, methods in document()["paths"].items() for m in methods}
    assert told == served
    assert {route.path for shape in find_shapes() for route in shape.routes} <= {p for _, p in told}


@pytest.mark.parametrize("examples", [FEW, MANY])
def test_requests_made_from_the_description(tmp_path: Path, examples: int) -> None:
    """No answer of class 5xx, none that is not described, no broken request taken for a good one,
    and no route that forgets the token."""
    app = House(tmp_path, token="a-secret").app
    schema = schemathesis.openapi.from_wsgi(
        "/api/openapi.json", app, headers={"Authorization": "Bearer a-secret"}
    )
    described = {
        f"{method.upper()} {path}"
        for path, methods in document()["paths"].items()
        for method in methods
    }
    assert described - set(hold(schema, examples, "a-secret")) == {"GET /api/openapi.json"}
