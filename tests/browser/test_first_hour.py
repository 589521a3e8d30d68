"""The first hour with a model of one's own, as somebody lives it who knows nothing of the page."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.attached import pdf_of, png
from tests.browser.house import House, LedOllama
from tests.fake_ollama import Model

pytestmark = pytest.mark.integration

PAGES = ("The unit runs on 24 volts.", "It weighs 318 kilograms.", "The warranty is five years.")
MOST_SECONDS = 60.0  # for each step; a person on an idle machine waits for none of them


@pytest.fixture
def models() -> Iterator[LedOllama]:
    """A model that sees, found where Ollama usually is."""
    with LedOllama(Model("eyes:4b", ("completion", "vision"), num_ctx=32_768)) as server:
        yield server


@pytest.fixture
def started(tmp_path: Path, models: LedOllama) -> Iterator[House]:
    """A server that nobody has set anything for; its token is one that it made and keeps."""
    own = {"OLLAMA_HOST": models.url, "SEARCHLOOP_TOKEN": "", "SEARCHLOOP_OFFLINE": "1"}
    house = House(tmp_path, own)
    house.start()
    yield house
    house.stop()


def link_of(house: House) -> str:
    """The address that the server prints."""
    return next(word for line in house.output for word in line.split() if "?token=" in word)


def asked(page: Page, question: str) -> None:
    """Writes a question and presses the one button that sends it."""
    page.get_by_role("textbox", name="Your question").fill(question)
    page.get_by_role("button", name="Send").click()


def given(page: Page, name: str, kind: str, data: bytes) -> None:
    """Chooses a file with the button at the box."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach").click()
    chooser.value.set_files({"name": name, "mimeType": kind, "buffer": data})


def read_on_a_phone(page: Page) -> None:
    """Opens the chat from the list and reads what its sources are worth."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.get_by_role("button", name="Show chats").click()
    page.get_by_role("link", name="How heavy is it").first.click()
    sources = page.get_by_role("log").get_by_role("group").filter(has_text="cited").last
    expect(sources).to_contain_text("Contradicted")
    expect(sources).to_contain_text("Supported")
    page.get_by_role("log").get_by_role("link", name="Source 1").click()
    expect(page.get_by_role("dialog", name="Source 1")).to_contain_text("24 volts")


def test_the_first_hour(
    browser: Browser, started: House, models: LedOllama, capsys: pytest.CaptureFixture[str]
) -> None:
    """An answer with one click, a picture, a PDF by its page, an old chat by a word of its answer,
    a bookmark after a restart, and verdicts on a phone; each in its time."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    log = page.get_by_role("log")
    took: dict[str, float] = {}

    def done(what: str, since: float) -> float:
        took[what] = time.monotonic() - since
        return time.monotonic()

    now = time.monotonic()
    page.goto(link_of(started))
    models.script = lambda messages: ["An anglerfish lures with light."]
    asked(page, "How do fish hunt in the dark?")  # one click: the best model is chosen already
    expect(log).to_contain_text("An anglerfish lures with light.")
    now = done("first answer", now)

    page.get_by_role("button", name="New chat", exact=True).click()
    models.script = lambda messages: ["A dial that shows 24."]
    given(page, "dial.png", "image/png", png(40, 30))
    asked(page, "What does it show?")
    expect(log).to_contain_text("A dial that shows 24.")
    assert models.chats[-1]["messages"][-1]["images"]
    now = done("a picture asked about", now)

    page.get_by_role("button", name="New chat", exact=True).click()
    models.script = lambda messages: [
        "It weighs 318 kilograms [2]. The unit runs on 240 volts [1]."
    ]
    given(page, "data sheet.pdf", "application/pdf", pdf_of(PAGES))
    asked(page, "How heavy is it?")
    log.get_by_role("link", name="Source 2").click()
    expect(page.get_by_role("dialog", name="Source 2")).to_contain_text("data sheet.pdf, page 2")
    now = done("a PDF cited by its page", now)

    page.keyboard.press("Escape")
    page.get_by_label("Search chats").fill("anglerfish")
    page.get_by_role("link", name="How do fish hunt").first.click()
    expect(log).to_contain_text("An anglerfish lures with light.")
    now = done("an old chat found", now)

    bookmark = page.url
    started.stop()
    started.start()
    page.goto("about:blank")
    page.goto(bookmark)
    expect(log).to_contain_text("An anglerfish lures with light.")
    now = done("a bookmark after a restart", now)

    read_on_a_phone(page)
    done("verdicts on a phone", now)

    context.close()
    with capsys.disabled():
        told = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in took.items())
        sys.stdout.write(f"\n{told}\n")
    assert max(took.values()) < MOST_SECONDS
