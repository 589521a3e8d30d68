"""A real browser on a real server: every test also proves that nothing left this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.house import House, LedOllama

WAIT = 10_000  # milliseconds
_WATCH = """
window.violations = [];
addEventListener("securitypolicyviolation", (e) =>
  window.violations.push(`${e.effectiveDirective} ${e.blockedURI} ${e.sample}`));
"""


@pytest.fixture(scope="session")
def ollama() -> Iterator[LedOllama]:
    """The local model server that the house is told of."""
    with LedOllama() as server:
        yield server


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory, ollama: LedOllama) -> Iterator[House]:
    """An offline machine: no key, no network, the built-in model and a local Ollama."""
    settings = {"SEARCHLOOP_OFFLINE": "1", "OLLAMA_HOST": ollama.url}
    served = House(tmp_path_factory.mktemp("house"), settings)
    served.start()
    yield served
    served.stop()


# Playwright keeps an asyncio loop while it runs, which other tests could not bear: hence a module.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """The system's Chromium, without a window."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield launched
        launched.close()


class Watched:
    """A browser context whose requests, errors and policy violations are written down."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.context = context
        self.origin = origin
        self.requests: list[str] = []
        self.problems: list[str] = []
        context.set_default_timeout(WAIT)
        context.add_init_script(_WATCH)
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("weberror", lambda error: self.problems.append(str(error.error)))
        context.on("console", self._console)

    def _console(self, message: Any) -> None:
        if any(word in message.text for word in ("Content Security Policy", "Trusted")):
            self.problems.append(message.text)

    @property
    def foreign(self) -> list[str]:
        """Requests that were meant for anybody but our server."""
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme != "data" and not url.startswith(self.origin)
        ]

    def check(self) -> None:
        """Nothing went elsewhere, nothing was refused by the browser, nothing broke."""
        for page in self.context.pages:
            self.problems += page.evaluate("window.violations ?? []")
        assert not self.foreign, f"requests to other hosts: {self.foreign}"
        assert not self.problems, f"the page broke a rule: {self.problems}"


Enter = Callable[..., Page]


@pytest.fixture
def enter(browser: Browser, house: House) -> Iterator[Enter]:
    """enter(**options) gives a signed-in page of a new browser profile; all are checked at the end."""
    opened: list[Watched] = []

    def make(at: House = house, **options: Any) -> Page:
        options.setdefault("viewport", {"width": 1280, "height": 800})
        watched = Watched(browser.new_context(**options), at.url)
        opened.append(watched)
        page = watched.context.new_page()
        page.goto(at.start_url)
        page.locator(".health").first.wait_for()
        return page

    yield make
    for watched in opened:
        watched.check()
        watched.context.close()


@pytest.fixture
def page(enter: Enter) -> Page:
    """A signed-in page on an empty chat, of desktop size."""
    return enter()


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Where pictures go that nobody keeps."""
    return tmp_path
