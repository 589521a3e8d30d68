"""What every engine over HTTP is held to: how to reach a fake of it, and answers as it gives them.

recordings/README.md says which of the recorded bodies are invented.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from searchloop.search_backend.engines import Engine, find_engines
from searchloop.search_backend.plugin import HttpResponse, Keys
from searchloop.search_backend.plugin.markup import rows_in
from searchloop.search_backend.types import SearchResult
from tests.fakes import Received, Reply

RECORDINGS = Path(__file__).parent / "recordings"


DDG_PAGE = """<html><body><div id="links">
<div class="result results_links result--ad"><h2><a class="result__a"
 href="https://duckduckgo.com/y.js?ad_domain=shop.example">Buy tea</a></h2></div>
<div class="result results_links web-result"><div class="links_main result__body">
 <h2><a class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Ftea1.example%2F&amp;rut=1">
 Green <b>tea</b></a></h2><a class="result__snippet">Tea &amp; <b>water</b>.</a></div></div>
<div class="result results_links web-result"><div class="links_main result__body">
 <h2><a class="result__a" href="https://tea2.example/">Black tea</a></h2></div></div>
</div></body></html>"""


def ddg_reply(_received: Received) -> Reply:
    """DuckDuckGo's page with an advertisement and two results; its words are ours."""
    return Reply(DDG_PAGE.encode(), headers={"content-type": "text/html; charset=UTF-8"})


@dataclass(frozen=True)
class Case:
    """One engine. `address` is the setting that leads to a fake, `path` what is asked there."""

    name: str
    address: str
    path: str
    method: str = "POST"
    key: str = ""
    header: str = "authorization"
    prefix: str = "Bearer "
    suffix: str = ""

    @property
    def engine(self) -> Engine:
        """The engine itself."""
        return find_engines()[self.name]

    def keys(self, url: str) -> dict[str, str]:
        """Settings with which it asks the server at `url`."""
        found = {self.address: url + self.suffix}
        if self.key:
            found[self.key] = "k-0123456789"
        return found

    @property
    def web(self) -> bool:
        """Whether it searches the web, so that its invented answer holds the same three pages."""
        return not self.engine.kinds

    def recording(self, name: str) -> bytes:
        """A recorded body; the real one where none was invented."""
        invented = RECORDINGS / self.name / f"{name}.json"
        return (invented if invented.exists() else real(self.name)).read_bytes()

    def first(self) -> bytes:
        """Its answer to the first of the requests that a search takes."""
        first = RECORDINGS / self.name / "real_first.json"
        return first.read_bytes() if first.exists() else self.recording("results")

    def reply(self, received: Received) -> Reply:
        """Its good answer, to each of the requests that a search takes."""
        is_first = received.path.startswith(self.path)
        body = self.first() if is_first else self.recording("results")
        return Reply(body, headers={"content-type": "application/json"})


def parsed(engine: Engine, response: HttpResponse, keys: Keys) -> list[SearchResult]:
    """What the engine makes of an answer, whose markup is read first."""
    wire = engine.wire
    assert wire is not None
    if wire.markup and 200 <= response.status < 300:
        response = replace(response, rows=rows_in(response.body, wire.markup))
    return wire.parse(response, keys)


def real(engine: str) -> Path:
    """The answer that a real server gave."""
    return RECORDINGS / engine / "real.json"


_OWN = {"header": "x-api-key", "prefix": ""}
CASES = (
    Case(
        *("brave", "BRAVE_BASE_URL", "/web/search", "GET", "BRAVE_API_KEY"),
        header="x-subscription-token",
        prefix="",
    ),
    Case("tavily", "TAVILY_BASE_URL", "/search", key="TAVILY_API_KEY"),
    Case("searxng", "SEARXNG_URL", "/search", "GET"),
    Case("perplexity", "PERPLEXITY_BASE_URL", "/search", key="PERPLEXITY_API_KEY"),
    Case("exa", "EXA_BASE_URL", "/search", key="EXA_API_KEY", **_OWN),
    Case("serper", "SERPER_BASE_URL", "/search", key="SERPER_API_KEY", **_OWN),
    Case("jina", "JINA_SEARCH_BASE_URL", "/", "GET", "JINA_API_KEY"),
    Case("ollama", "OLLAMA_SEARCH_BASE_URL", "/api/web_search", key="OLLAMA_API_KEY"),
    Case("firecrawl", "FIRECRAWL_BASE_URL", "/v2/search", key="FIRECRAWL_API_KEY"),
    Case("arxiv", "ARXIV_BASE_URL", "/api/query", "GET"),
    Case("crossref", "CROSSREF_BASE_URL", "/works", "GET"),
    Case("github", "GITHUB_API_BASE_URL", "/search/repositories", "GET"),
    Case("openstreetmap", "NOMINATIM_BASE_URL", "/search", "GET"),
    Case("pubmed", "PUBMED_BASE_URL", "/esearch.fcgi", "GET"),
    Case("stackexchange", "STACKEXCHANGE_BASE_URL", "/search/advanced", "GET"),
    Case("wikipedia", "WIKIPEDIA_BASE_URL", "/w/api.php", "GET"),
    Case("generic", "SEARCH_ENDPOINT", "/find", key="SEARCH_API_KEY", suffix="/find"),
)
BY_NAME = {case.name: case for case in CASES}
