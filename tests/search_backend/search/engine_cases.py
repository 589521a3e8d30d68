"""What every engine over HTTP is held to: how to reach a fake of it, and answers as it gives them.

The recorded bodies in recordings/ENGINE/ are invented in the shape of the engine's documentation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from searchloop.search_backend.engines import Engine, find_engines

RECORDINGS = Path(__file__).parent / "recordings"


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
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def engine(self) -> Engine:
        """The engine itself."""
        return find_engines()[self.name]

    def keys(self, url: str) -> dict[str, str]:
        """Settings with which it asks the server at `url`."""
        found = {self.address: url + self.suffix, **self.extra}
        if self.key:
            found[self.key] = "k-0123456789"
        return found

    def recording(self, name: str) -> bytes:
        """A recorded body."""
        return (RECORDINGS / self.name / f"{name}.json").read_bytes()


CASES = (
    Case(
        *("brave", "BRAVE_BASE_URL", "/web/search", "GET", "BRAVE_API_KEY"),
        header="x-subscription-token",
        prefix="",
    ),
    Case("tavily", "TAVILY_BASE_URL", "/search", key="TAVILY_API_KEY"),
    Case("searxng", "SEARXNG_URL", "/search", "GET"),
    Case("perplexity", "PERPLEXITY_BASE_URL", "/search", key="PERPLEXITY_API_KEY"),
    Case("exa", "EXA_BASE_URL", "/search", key="EXA_API_KEY", header="x-api-key", prefix=""),
    Case(
        *("serper", "SERPER_BASE_URL", "/search"),
        key="SERPER_API_KEY",
        header="x-api-key",
        prefix="",
    ),
    Case("jina", "JINA_SEARCH_BASE_URL", "/", "GET", "JINA_API_KEY"),
    Case("ollama", "OLLAMA_SEARCH_BASE_URL", "/api/web_search", key="OLLAMA_API_KEY"),
    Case("generic", "SEARCH_ENDPOINT", "/find", key="SEARCH_API_KEY", suffix="/find"),
)
BY_NAME = {case.name: case for case in CASES}
