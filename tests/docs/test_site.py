"""The documentation site as `make docs` builds it: whole, sound, readable by all, and alone."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote_plus, unquote, urlsplit

import pytest
from playwright.sync_api import BrowserContext, sync_playwright
from selectolax.lexbor import LexborHTMLParser

import searchloop
from searchloop.cli.main import COMMANDS
from searchloop.compose import every_setting
from searchloop.search_backend.api import schemas as search_openapi
from searchloop.web import flask_app
from searchloop.web.api import openapi
from tests.browser.checks import AXE, COLOURS, RUN
from tests.docs.conftest import ROOT
from tests.once import once

pytestmark = pytest.mark.integration

REQUESTED = "img, script, link[rel=stylesheet], link[rel*=icon], iframe, source, video, audio"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site; one worker builds it for all."""
    return once(tmp_path_factory, "site", _build) / "html"


def _build(to: Path) -> None:
    """With the words of the Makefile; any warning ends it."""
    make = (ROOT / "Makefile").read_text("utf-8")
    (words,) = re.findall(r"sphinx-build (.*) -d build/doctrees docs build/site", make)
    command = [sys.executable, "-m", "sphinx", *words.split(), "-d", str(to / "trees")]
    done = subprocess.run(
        [*command, "docs", str(to / "html")], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, LexborHTMLParser]:
    """Each page of the site."""
    found = {path: LexborHTMLParser(path.read_bytes()) for path in sorted(site.rglob("*.html"))}
    assert len(found) > 20
    return found


def test_every_document_is_a_page_and_named_in_the_navigation(
    site: Path, pages: dict[Path, LexborHTMLParser]
) -> None:
    """What is written can be found, from every page."""
    documents = {
        p.relative_to(ROOT / "docs").with_suffix("") for p in (ROOT / "docs").rglob("*.md")
    }
    links = pages[site / "index.html"].css(".sidebar-tree a")
    named = {Path((a.attributes["href"] or "").removesuffix(".html")) for a in links}
    assert named == documents - {Path("index")}


def test_every_link_leads_somewhere(pages: dict[Path, LexborHTMLParser]) -> None:
    """Files exist and so do the anchors in them; what is requested is in the site."""
    wrong, followed = [], 0
    for path, tree in pages.items():
        for node in tree.css(f"a[href], {REQUESTED}"):
            target = node.attributes.get("href") or node.attributes.get("src") or ""
            there = urlsplit(target)
            if there.scheme or there.netloc:
                if node.tag != "a":
                    wrong.append(f"{path.name} loads {target}")
                continue
            followed += 1
            file = (path.parent / unquote(there.path)).resolve() if there.path else path
            anchor = unquote(there.fragment)
            if not file.is_file():
                wrong.append(f"{path.name}: {target}")
            elif anchor and file in pages and not pages[file].css_first(f'[id="{anchor}"]'):
                wrong.append(f"{path.name}: no {anchor} in {target}")
    assert followed > 1000
    assert wrong == []


def test_the_reference_is_complete(site: Path) -> None:
    """Each command, public name, setting and route of the code stands on its page."""
    assert flask_app.__doc__  # importing it declares the routes
    there = {
        "cli": [f"searchloop {command}" for command in COMMANDS],
        "http": openapi.document()["paths"],
        "search-http": search_openapi.document(secured=False)["paths"],
        "python": searchloop.__all__,
        "settings": [s.name for s in every_setting() if not s.name.endswith("_BASE_URL")],
        "errors": ["missing_key", "no_native_search", "exposed", "port_in_use", "bad_url"],
    }
    for page, names in there.items():
        body = LexborHTMLParser((site / "reference" / f"{page}.html").read_bytes()).body
        assert body
        shown = " ".join(node.text() for node in body.css("article h2, h3, td:first-child"))
        assert len(names) > 4, page
        assert [name for name in names if name not in shown] == [], page
    assert len(body.css("tbody tr")) > 250


@pytest.fixture(scope="module")
def browser(headless: str) -> Iterator[BrowserContext]:
    """A browser that writes down what a page asks for; no page may ask for anything elsewhere."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=headless, args=["--no-sandbox", "--disable-gpu"]
        )
        yield launched.new_context(bypass_csp=True)
        launched.close()


def sound(pages: Iterable[Path], browser: BrowserContext, scheme: str) -> list[str]:
    """What axe finds on these pages in light colours, or of dark ones what colours change."""
    page = browser.new_page()
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    problems = []
    for path in pages:
        page.goto(path.as_uri())
        page.add_script_tag(path=AXE)
        run = RUN if scheme == "light" else COLOURS
        problems += [f"{path.name} {said}" for said in page.evaluate(run)]
    page.close()
    return problems


KINDS = [("light", {"index", "python", "deploy", "errors"}), ("dark", {"index", "python"})]


@pytest.mark.parametrize(("scheme", "names"), KINDS)
def test_a_page_of_each_kind_is_sound(
    pages: dict[Path, LexborHTMLParser], browser: BrowserContext, scheme: str, names: set[str]
) -> None:
    """axe finds nothing on a sample: a list, prose with code, a guide, a large table."""
    shown = [path for path in pages if path.stem in names]
    assert len(shown) >= len(names)
    assert sound(shown, browser, scheme) == []


@pytest.mark.torture  # axe takes seconds for a long page, and the pages share one theme
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_sound(
    pages: dict[Path, LexborHTMLParser], browser: BrowserContext, scheme: str
) -> None:
    """axe finds nothing on any page."""
    assert sound(pages, browser, scheme) == []


def test_every_page_fits_a_phone_and_loads_nothing_from_elsewhere(
    site: Path, pages: dict[Path, LexborHTMLParser], browser: BrowserContext
) -> None:
    """Opened as a file, as whoever built it does. Nothing has to be moved sideways but a wide table
    in its place."""
    asked: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": 360, "height": 740})
    wide = []
    for path in pages:
        page.goto(path.as_uri())
        if page.evaluate("document.documentElement.scrollWidth") > 360:
            wide.append(path.name)
    page.close()
    assert wide == []
    assert len(asked) > len(pages)
    assert [url for url in asked if not url.startswith((site.as_uri(), "data:"))] == []


# The page that answers, and what newcomers type.
ANSWERS = {
    "Running it for others": (
        "transaction pooler | backup | systemd | TLS | more than one person | people sign in | "
        "docker | several users | kubernetes | telemetry | reverse proxy nginx | "
        "password forgotten"
    ),
    "Behind a proxy": (
        "outgoing proxy | certificate | proxy | https | offline | closed network | "
        "self signed certificate | corporate proxy | air gapped"
    ),
    "uninstalling": (
        "uninstall | upgrade | where is my data | delete api key | move to another computer | "
        "update to new version | back up my chats | gdpr"
    ),
    "What an answer may cost": "limit cost | budget | spending cap | maximum spend per day",
    "Coming from": (
        "coming from LangChain | coming from Open WebUI | coming from llm | "
        "import chats from ChatGPT | migrate from openai sdk | switch from simonw llm | "
        "replace Open WebUI"
    ),
    "Azure": "azure | bedrock | vertex | aws",
    "goes wrong": "model not found | change port | debug | slow answers",
    "Start in three": "api key | quickstart",
    "Python library": "store chats python",
    "Python": (
        "structured output schema | cancel stop answer | test without network | own search engine"
    ),
    "Local models": "llama.cpp server | raspberry pi | custom model",
    "The web-search switch": "hallucination",
    "quarter of an hour": "dark mode | keyboard shortcuts",
    "Search for other programs": "claude desktop",
    "Security": "prompt injection | ssrf",
    "Releases": "license",
}
QUESTIONS = {q: page for page, told in ANSWERS.items() for q in told.split(" | ")}


def test_the_search_finds_what_newcomers_ask(site: Path, browser: BrowserContext) -> None:
    """In one try, among the first three, in an opened file: no server and no network is needed."""
    page, first = browser.new_page(), next(iter(QUESTIONS))
    page.goto((site / "search.html").as_uri() + f"?q={quote_plus(first)}")
    page.wait_for_selector("#search-results li")
    page.wait_for_function("!document.querySelector('#search-progress')?.textContent")
    shown = page.locator("#search-results li a").all_inner_texts()[:3]
    # What that page calls for the words of its address.
    ask = "each => each.map(q => Search._performSearch(...Search._parseQuery(q)).slice(-3))"
    found = {
        question: [row[1] for row in reversed(rows)]
        for question, rows in zip(QUESTIONS, page.evaluate(ask, [*QUESTIONS]), strict=True)
    }
    page.close()
    assert found[first] == shown
    missed = {q: found[q] for q, wanted in QUESTIONS.items() if wanted not in " | ".join(found[q])}
    assert missed == {}
