"""The HTTP contract: shapes, strict input, JSON errors, the token."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from searchloop.agent.tools.backend import GONE
from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.engines import Engine
from searchloop.search_backend.fetch.fetch import fetch as checked_fetch
from searchloop.search_backend.fetch.host_check import Rules
from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.library import Library
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, Query, SearchResult
from tests.search_backend.hostile import HostileServer, Internet, answer, redirect
from tests.tables import each_row


def search(query: Query, _access: object) -> list[SearchResult]:
    """One result, a failure or a fault, as the query asks."""
    if query.text == "fail":
        raise EngineError("network", "The network is down.", "Plug it in.")
    return [SearchResult("Tea", "https://example.org/tea", "About tea.", "fake", "2026-01-02")]


def fetch(url: str, *, host_allowed: Callable[[str], bool] | None = None) -> Fetched:
    """The same small page everywhere, but for a fault."""
    if url.endswith("/fault"):
        raise ZeroDivisionError
    return Fetched(url, url, 200, "text/plain", None, b"A page about tea.")


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    """A client of an application with one fake engine and the library."""
    return make_client(tmp_path)


def make_client(home: Path, token: str | None = None) -> FlaskClient:
    """The application over fakes, with data in `home`."""
    own = SearchSettings(home, ("fake",))
    library = Library(home, lambda: {"a.md": "# A\n\nkettle"})
    known = (Engine("fake", "Fake", search), Engine("key", "K", search, ("K_KEY",)))
    chain = Chain(own, library, {engine.name: engine for engine in known})
    return create_app(own, token=token, fetch=fetch, library=library, chain=chain).test_client()


def post(client: FlaskClient, path: str, data: object) -> tuple[int, Any]:
    """Status and JSON of a POST."""
    response = client.post(path, json=data)
    return response.status_code, response.get_json()


def test_web_search_answers_in_the_shape_of_the_contract(client: FlaskClient) -> None:
    """query, engine, status, results and attempts."""
    asked = {"query": "  tea  time ", "time_range": "all"}  # as the command line writes it
    status, answer = post(client, "/api/web-search", asked)
    assert status == 200
    assert answer["attempts"][0].pop("ms") >= 0
    found = {"engine": "fake", "status": "ok"}
    tea = {"title": "Tea", "url": "https://example.org/tea", "snippet": "About tea."}
    results = [{**tea, "source": "fake", "published": "2026-01-02"}]
    assert answer == {"query": "tea time", **found, "results": results, "attempts": [found]}


def test_a_failed_search_is_a_good_answer_about_a_failure(client: FlaskClient) -> None:
    """The HTTP exchange worked; the answer says that the search did not, and why."""
    status, answer = post(client, "/api/web-search", {"query": "fail"})
    assert (status, answer["status"], answer["engine"]) == (200, "error", None)
    told = {"code": "network", "message": "The network is down.", "remedy": "Plug it in."}
    assert answer["attempts"][0]["error"] == told


def test_open_page_answers_in_the_shape_of_the_contract(client: FlaskClient) -> None:
    """The promised keys, and lengths that are right."""
    status, page = post(client, "/api/open-page", {"url": "https://example.org/a", "max_length": 6})
    assert status == 200
    assert page["content"] == "A page"
    assert page["content_length"] == 6
    assert page["original_length"] == 17
    assert (page["truncated"], page["next_offset"], page["status"]) == (True, 6, "ok")
    assert {"url", "final_url", "title", "error"} <= set(page)


def test_documents_of_the_library_can_be_looked_at(client: FlaskClient) -> None:
    """A source from the library opens in a browser, too."""
    answer = client.get("/api/library/docs/a.md").get_json()
    assert answer == {"url": "library://docs/a.md", "title": "A", "content": "# A\n\nkettle"}
    assert client.get("/api/library/docs/b.md").status_code == 404


@each_row(
    ("path", "data", "words"),
    [
        ("web-search", {}, "'query' is missing"),
        ("web-search", {"query": ""}, "query is empty"),
        ("web-search", {"query": "\x00\ufeff\u200b \U000e0041"}, "query is empty"),
        ("web-search", {"query": 5}, "query must be a string"),
        ("web-search", {"query": "x" * 10_000}, "10000 characters of at most 2000"),
        *(
            ("web-search", {"query": "x", "max_results": count}, "max_results")
            for count in (0, -1, 21, "5", True, 2.5)
        ),
        ("web-search", {"query": "x", "time_range": "z"}, "'d', 'w', 'm', 'y'"),
        ("web-search", {"query": "x", "country": "Germany"}, "code of two letters"),
        ("web-search", {"query": "x", "safe_search": "maybe"}, "'off', 'moderate', 'strict'"),
        ("web-search", {"query": "x", "allowed_domains": "a.org"}, "must be an array"),
        ("web-search", {"query": "x", "allowed_domains": ["a b"]}, "allowed_domains[0]"),
        ("web-search", {"query": "x", "blocked_domains": ["a.org", None]}, "blocked_domains[1]"),
        ("web-search", {"query": "x", "engine": "nope"}, "no engine named 'nope'"),
        ("web-search", {"query": "x", "engine": "key"}, "lacks K_KEY"),
        ("web-search", {"query": "x", "querry": 1}, "there is no 'querry'"),
        ("web-search", {"query": "x", "folders": ["f"] * 21}, "has 21 entries"),
        ("web-search", ["query"], "not a JSON object"),
        ("forget", {}, "'chat' is missing"),
        ("forget", {"chat": "x" * 101}, "characters"),
        ("forget", {"chat": "x", "temporary": True}, "there is no 'temporary'"),
        ("open-page", {}, "'url' is missing"),
        ("open-page", {"url": "https://e.example/", "offset": -1}, "offset must be at least 0"),
        ("open-page", {"url": "https://e.example/", "max_length": 0}, "max_length"),
        ("open-page", {"url": "https://e.example/", "offset": 10**6}, "beyond the end"),
        ("open-page", {"url": "https://e.example/", "find": ""}, "find is empty"),
        ("open-page", {"url": None}, "'url' is missing"),
        ("open-page", {"url": "u", "allowed_domains": ["a.b", "*.b"]}, "allowed_domains[1]"),
        ("open-page", {"url": "https://e.example/" + "x" * 10_240}, "characters"),
    ],
)
def test_bad_input_is_one_sentence_and_a_remedy(
    client: FlaskClient, path: str, data: object, words: str
) -> None:
    """400, what is wrong, and what to do."""
    status, answer = post(client, f"/api/{path}", data)
    assert status == 400
    assert words in answer["error"]["message"]
    assert answer["error"]["remedy"]
    assert answer["error"]["code"]


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "status"),
    [
        ("GET", "/nowhere", None, None, 404),
        ("GET", "/api/web-search", None, None, 405),
        ("POST", "/api/engines", b"{}", "application/json", 405),
        ("POST", "/api/web-search", b"{}", "text/plain", 415),
        ("POST", "/api/web-search", b"{}", None, 415),
        ("POST", "/api/web-search", b"{", "application/json", 400),
        ("POST", "/api/web-search", b"", "application/json", 400),
        ("POST", "/api/web-search", b'{"query": NaN}', "application/json", 400),
        ("POST", "/api/web-search", b"\xff\xfe\x00", "application/json", 400),
        ("POST", "/api/web-search", b"[" * 100_000, "application/json", 400),
        ("POST", "/api/web-search", b'{"query": "tea \\ud800"}', "application/json", 200),
        ("POST", "/api/web-search", b" " * (2**20 + 1), "application/json", 413),
        ("POST", "/api/open-page", b'{"url": "https://e.example/fault"}', "application/json", 500),
    ],
)
def test_every_error_is_json(
    client: FlaskClient, method: str, path: str, body: bytes | None, kind: str | None, status: int
) -> None:
    """Whatever goes wrong, the answer has the same shape and holds no traceback."""
    response = client.open(path, method=method, data=body, content_type=kind)
    assert response.status_code == status
    assert response.mimetype == "application/json"
    assert "Traceback" not in response.get_data(as_text=True)
    assert "ZeroDivision" not in response.get_data(as_text=True)
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    if status >= 400:
        assert set(response.get_json()["error"]) == {"code", "message", "remedy"}
    if status == 405:
        assert response.headers["Allow"]


def test_with_a_token_only_health_is_open(tmp_path: Path) -> None:
    """Every other route wants the token, known or not."""
    client = make_client(tmp_path, token="secret")
    assert client.get("/api/health").status_code == 200
    for path in ("/api/engines", "/api/library/docs/a.md", "/nowhere"):
        refused = client.get(path)
        assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert client.get(path, headers={"Authorization": "Bearer secreT"}).status_code == 401
    good = {"Authorization": "Bearer secret"}
    assert client.get("/api/engines", headers=good).status_code == 200


def test_a_home_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    """A file where the folder should be: the search says so, the server goes on."""
    home = tmp_path / "file"
    home.write_text("in the way")
    own = SearchSettings(home, ("library",))
    client = create_app(own, fetch=fetch).test_client()
    status, answer = post(client, "/api/web-search", {"query": "tea"})
    assert (status, answer["status"]) == (200, "error")
    assert answer["attempts"][0]["error"]["code"] == "library_unavailable"
    assert post(client, "/api/open-page", {"url": "https://e.example/a"})[1]["status"] == "ok"
    assert post(client, "/api/open-page", {"url": "library://docs/a.md"})[0] == 503


def test_starting_loads_nothing_heavy(tmp_path: Path) -> None:
    """What a search or a page needs is loaded when it is needed, not to list what there is."""
    code = """
import sys
from pathlib import Path
from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.settings import SearchSettings
create_app(SearchSettings(Path(sys.argv[1]), ())).test_client().get('/api/engines')
heavy = {'trafilatura', 'lxml', 'pypdfium2', 'searchloop.search_backend.readers.office.docx'}
print(sorted(heavy & set(sys.modules)))
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.check_output(command, text=True).strip() == "[]"


def test_domain_rules_hold_on_the_way(tmp_path: Path) -> None:
    """By the contract: the address, a redirect, and the cached copy are each held to the rules."""
    with HostileServer() as server:
        server.routes["/out"] = redirect("http://elsewhere.example/page")
        server.routes["/page"] = answer(b"A page about tea.", kind="text/plain")
        net = Internet(server.port)
        challenged = partial(checked_fetch, resolve=net.resolve, sockets=net.sockets)
        own = SearchSettings(tmp_path, ("fake",), rules=Rules(blocked=("never.example",)))
        client = create_app(own, fetch=challenged, library=Library(tmp_path, dict)).test_client()

        def status(url: str, **rules: list[str]) -> str:
            answered = client.post("/api/open-page", json={"url": url, **rules}).json
            return str(answered["error"]["code"] if answered["error"] else answered["status"])

        out, page = "http://tea.example/out", "http://elsewhere.example/page"
        assert status(out, allowed_domains=["tea.example"]) == "refused_domain"
        assert status(out, blocked_domains=["ELSEWHERE.example."]) == "refused_domain"
        assert net.looked_up == ["tea.example", "tea.example"]
        assert status(out) == "ok"
        assert status(page) == "ok"
        seen = len(server.requests)
        assert status(out, blocked_domains=["elsewhere.example"]) == "refused_domain"
        assert status(page, allowed_domains=["tea.example"]) == "refused_domain"
        assert status("http://www.never.example/page") == "refused_domain"
        assert len(server.requests) <= seen + 1


def test_a_page_ends_with_whoever_asked(client: FlaskClient) -> None:
    """Who leaves while it is fetched has it read by nobody; the next one on the thread has it."""
    gone = Future[None]()
    gone.cancel()
    asked: dict[str, Any] = {"json": {"url": "https://e.example/"}}
    left = client.post("/api/open-page", **asked, environ_overrides={GONE: gone})
    assert left.get_json()["error"]["code"] == "interrupted"
    assert client.post("/api/open-page", **asked).get_json()["status"] == "ok"
