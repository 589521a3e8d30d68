"""A real browser on a real server: every test also proves that nothing left this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    ViewportSize,
    sync_playwright,
)

from tests.browser.house import House, LedOllama

WAIT = 10_000  # milliseconds
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
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

    def _console(self, message: ConsoleMessage) -> None:
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
        foreign, problems = self.foreign, self.problems[:]
        self.requests.clear()
        self.problems.clear()
        assert not foreign, f"requests to other hosts: {foreign}"
        assert not problems, f"the page broke a rule: {problems}"


Enter = Callable[..., Page]


def signed_in(watched: Watched, at: House) -> Page:
    """A new page on an empty chat."""
    page = watched.context.new_page()
    page.goto(at.start_url)
    page.locator(".health").first.wait_for()
    return page


@pytest.fixture
def enter(browser: Browser, house: House) -> Iterator[Enter]:
    """enter(**options) gives a page of a new browser profile; all are checked at the end."""
    opened: list[Watched] = []

    def make(at: House = house, **options: Any) -> Page:
        options.setdefault("viewport", DESKTOP)
        watched = Watched(browser.new_context(**options), at.url)
        opened.append(watched)
        return signed_in(watched, at)

    yield make
    for watched in opened:
        watched.check()
        watched.context.close()


@pytest.fixture(scope="module")
def profile(browser: Browser, house: House) -> Iterator[Watched]:
    """One browser profile for the tests of a module that need nothing special."""
    watched = Watched(browser.new_context(viewport=DESKTOP), house.url)
    yield watched
    watched.context.close()


@pytest.fixture
def page(profile: Watched, house: House) -> Iterator[Page]:
    """A signed-in page on an empty chat, of desktop size; checked at the end."""
    yield signed_in(profile, house)
    profile.check()
    for opened in profile.context.pages:
        opened.close()


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Where pictures go that nobody keeps."""
    return tmp_path
