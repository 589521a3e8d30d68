"""A person who has read nothing: from the start of the server to a cited answer, and what is found.

Nothing here knows the page's insides. What is used is what a person sees or hears: roles and names.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.house import STALL, House, LedOllama

pytestmark = pytest.mark.integration

MOST_SECONDS = 60.0  # of which a start takes one on an idle machine
NOTHING = {"OLLAMA_HOST": "127.0.0.1:9", "SEARCHLOOP_OFFLINE": "1"}  # no model, no key, no network


@pytest.fixture
def started(browser: Browser, tmp_path: Path) -> Iterator[tuple[Page, float, float]]:
    """A page on a server that was just started, when that was, and how long the page took."""
    house = House(tmp_path, NOTHING)
    began = time.monotonic()
    house.start()
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(house.start_url)
    expect(page.get_by_role("heading", name="Ask anything. Check everything.")).to_be_visible()
    yield page, began, time.monotonic() - began
    context.close()
    house.stop()


def test_a_cited_answer_within_a_minute(
    started: tuple[Page, float, float], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two clicks, switch and Send, lead to sources; each other thing has its name."""
    page, began, shown = started
    question = page.get_by_role("textbox", name="Your question")
    expect(question).to_be_focused()
    expect(page.get_by_text("Web search is off: nothing is searched.")).to_be_visible()
    page.keyboard.type("What leaves this machine when web search is on?")
    page.get_by_text("Web search", exact=True).click()
    expect(page.get_by_text("On, via Library")).to_be_visible()
    page.get_by_role("button", name="Send").click()
    answer = page.get_by_role("log").get_by_role("article")
    expect(answer.get_by_role("link", name=re.compile(r"^Source \d")).first).to_be_visible()
    answered = time.monotonic() - began
    expect(answer.get_by_role("group").filter(has_text=re.compile(r"Sources \d"))).to_be_visible()
    with capsys.disabled():
        told = f"\nstart to page {shown:.1f} s, start to a cited answer {answered:.1f} s\n"
        sys.stdout.write(told)
    assert answered < MOST_SECONDS
    for name in ("Copy the answer with its sources", "Ask again", "Export this chat"):
        expect(answer.get_by_role("button", name=name)).to_be_visible()
    answer.get_by_role("button", name="Ask again").click()
    expect(page.get_by_role("menuitem", name="Without web search")).to_be_visible()
    page.keyboard.press("Escape")
    answer.get_by_role("button", name="Export this chat").click()
    for name in ("Markdown with footnotes", "One web page", "JSON", "Trace of every event"):
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=name).click()
        assert download.value.path().stat().st_size > 500
        answer.get_by_role("button", name="Export this chat").click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_role("dialog", name="Settings")).to_be_visible()
    page.keyboard.press("Escape")


def test_stop_stands_where_send_stood(page: Page, ollama: LedOllama) -> None:
    """A model is found and chosen by name; an answer that does not come is stopped."""
    ollama.script = lambda messages: [STALL]
    page.get_by_role("button", name="Model").click()
    page.get_by_role("option", name="qwen3:8b").click()
    page.get_by_role("textbox", name="Your question").fill("Tell me everything")
    send = page.get_by_role("button", name="Send")
    send.click()
    stop = page.get_by_role("button", name="Stop answering")
    expect(stop).to_be_visible()
    place = stop.bounding_box()
    stop.click()
    expect(page.get_by_role("log")).to_contain_text("Stopped before an answer was written.")
    expect(send).to_be_visible()
    now = send.bounding_box()
    assert now
    assert place
    assert now["x"] + now["width"] == place["x"] + place["width"]
    assert now["y"] == place["y"]
