"""A real browser on a real server: every test also proves that nothing left this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.browser.house import LOCAL_MODELS, House, LedOllama

# Milliseconds: a machine that does other things besides is slow, and that is no fault of the page.
WAIT, EXPECT = 90_000, 60_000
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
SMALL = {**PHONE, "viewport": {"width": 320, "height": 640}}
# What a page is told of itself: any profile can be told anything, so that each serves many tests.
MEDIA: dict[str, Any] = {
    "color_scheme": "light",
    "reduced_motion": "no-preference",
    "forced_colors": "none",
    "media": "screen",
}

# What is stored is removed, and what the page would store on its way out is not stored.
# A browser that stores nothing has nothing to forget.
_FORGET = """try { localStorage.clear(); sessionStorage.clear(); } catch {}
Storage.prototype.setItem = () => {};"""

# What the browser says of a page that is being left at that moment.
_GOING = ("context was destroyed", "is interrupted by another", "net::ERR_ABORTED")


@pytest.fixture(scope="session")
def ollama() -> Iterator[LedOllama]:
    """The local model server that the house is told of."""
    with LedOllama(*LOCAL_MODELS) as server:
        yield server


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory, ollama: LedOllama) -> Iterator[House]:
    """An offline machine: no key, no network, the built-in model and a local Ollama."""
    settings = {"SEARCHLOOP_OFFLINE": "1", "OLLAMA_HOST": ollama.url}
    home = tmp_path_factory.mktemp("house")
    (home / "data").mkdir()  # else the model of that Ollama would answer
    (home / "data" / "config.toml").write_text('SEARCHLOOP_MODEL = "builtin:extractive"\n')
    with House(home, settings) as served:
        yield served


# Playwright keeps an asyncio loop while it runs, which tests elsewhere could not bear: hence no
# longer than for this folder, which is a package for that alone.
@pytest.fixture(scope="package")
def browser(headless: str) -> Iterator[Browser]:
    """The system's Chromium, without a window."""
    expect.set_options(timeout=EXPECT)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=headless,
            # One process for all pages of our server: starting one costs more than most tests do.
            args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--process-per-site"],
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
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("weberror", lambda error: self.problems.append(str(error.error)))
        context.on("console", self._console)

    def _console(self, message: ConsoleMessage) -> None:
        if any(word in message.text for word in ("Content Security Policy", "Trusted")):
            self.problems.append(message.text)

    @property
    def foreign(self) -> list[str]:
        """Requests that were meant for anybody but our server, and the browser's own memory."""
        own = (self.origin, "data:", "blob:null/")  # the last is a preview's: it has no origin
        return [url for url in self.requests if not url.startswith(own)]

    def faults(self) -> list[str]:
        """What went elsewhere, what the browser refused, and what broke, since the last look."""
        found = [f"a request to another host: {url}" for url in self.foreign]
        found += [f"the page broke a rule: {problem}" for problem in self.problems]
        self.requests.clear()
        self.problems.clear()
        return found

    def tidy(self) -> None:
        """One blank tab is left; what a test set is unset. `enter` sets its size and media."""
        page, *others = self.context.pages
        for other in others:
            other.close()
        page.unroute_all()
        self._leave(page)
        self.context.clear_permissions()

    def _leave(self, page: Page) -> None:
        """Forgets and goes, again where a test ended while its page was going elsewhere."""
        for _ in range(3):
            try:
                page.evaluate(_FORGET)
                page.goto("about:blank")
                return
            except Error as error:
                if not any(sign in error.message for sign in _GOING):
                    raise
                page.wait_for_load_state()
        raise AssertionError("the page leaves again and again")


Enter = Callable[..., Page]


@pytest.fixture(scope="package")
def profiles(browser: Browser) -> Iterator[Callable[..., Watched]]:
    """Browser profiles by their options. Making one costs more than most tests: they are kept."""
    kept: dict[str, Watched] = {}

    def get(at: House, fresh: bool, options: dict[str, Any]) -> Watched:
        """The profile with these options; a `fresh` one has never seen the page."""
        key = json.dumps([at.url, options], sort_keys=True)
        if not fresh and key in kept:
            return kept[key]
        made = Watched(browser.new_context(**options), at.url)
        if not fresh:
            kept[key] = made
        return made

    yield get
    for watched in kept.values():
        watched.context.close()


@pytest.fixture
def enter(profiles: Callable[..., Watched], house: House) -> Iterator[Enter]:
    """enter(**options) gives a page on an empty chat, in a browser profile with these options.

    All of them are checked at the end. `fresh=True` is for a test that must be the first to load
    the page, or that changes what cannot be changed back.
    """
    used: dict[Watched, bool] = {}  # True: of this test alone

    def make(at: House = house, *, fresh: bool = False, **options: Any) -> Page:
        wide = options if options.get("is_mobile") else {**options, "viewport": DESKTOP}
        kept = {name: wide[name] for name in wide if name not in MEDIA}
        watched = profiles(at, fresh, kept)
        used[watched] = fresh
        pages = watched.context.pages
        page = pages[0] if pages else watched.context.new_page()
        size = options.get("viewport", DESKTOP)
        if page.viewport_size != size:
            page.set_viewport_size(size)
        page.emulate_media(**{name: options.get(name, MEDIA[name]) for name in MEDIA})
        page.goto(at.start_url)
        if "token=" in page.url:  # a kept token is no start link; its form takes it
            page.locator("#token").fill(at.token)
            page.keyboard.press("Enter")
        page.locator(".suggestions").wait_for()
        return page

    yield make
    for watched, fresh in used.items():
        watched.tidy()
        if fresh:
            watched.context.close()
    found = [watched.faults() for watched in used]
    house.call("DELETE", "/api/sessions")  # while no page looks on
    assert not any(found), found


@pytest.fixture
def page(enter: Enter) -> Page:
    """A signed-in page on an empty chat, of desktop size; checked at the end."""
    return enter()
