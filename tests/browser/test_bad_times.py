"""A server that is gone or updated, a dead link, no JavaScript, a giant file: each a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP, Enter
from tests.browser.house import House
from tests.browser.steps import ask, box

pytestmark = pytest.mark.integration


@pytest.fixture
def own(tmp_path: Path) -> Iterator[House]:
    """A server that a test may stop."""
    served = House(tmp_path, {"SEARCHLOOP_OFFLINE": "1", "SEARCHLOOP_MODEL": "builtin:extractive"})
    served.start()
    yield served
    served.stop()


def test_a_question_to_a_server_that_is_gone_comes_back(enter: Enter, own: House) -> None:
    """In a new chat, where no stream tells; once the server is back one press sends it."""
    page = enter(own, fresh=True)
    own.stop(kill=True)
    ask(page, "Are you there?")
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    expect(box(page)).to_have_value("Are you there?")
    own.start()
    box(page).press("Enter")
    expect(page.locator(".turn")).to_have_count(1)


@pytest.mark.parametrize(("locale", "words"), [("en-US", "was updated"), ("de-DE", "aktualisiert")])
def test_a_server_of_another_version_offers_a_reload(
    enter: Enter, house: House, locale: str, words: str
) -> None:
    """Once, in words; what was typed is there after the reload, and so is nothing of the offer."""
    page = enter(fresh=True, locale=locale)
    other = {"name": "searchloop", "status": "ok", "version": "99.0"}
    page.route("**/api/health", lambda route: route.fulfill(json=other))
    page.locator("#question").fill("Half a thou")
    for _ in range(2):
        page.evaluate("dispatchEvent(new Event('focus'))")
        expect(page.locator("#updated")).to_contain_text(words)
    expect(page.locator("#updated")).to_have_count(1)
    page.unroute("**/api/health")
    page.locator("#updated button").press("Enter")
    page.locator(".suggestions").wait_for()
    expect(page.locator("#question")).to_have_value("Half a thou")
    expect(page.locator("#updated")).to_have_count(0)


def test_a_link_to_a_deleted_chat_says_so(page: Page, house: House) -> None:
    """A bookmark of a chat that is gone: a sentence, an empty chat, and the words in the box."""
    box(page).fill("Kept")
    page.goto(f"{house.url}#/s/abcdefghijklmnopqrstuvwx")
    expect(page.get_by_role("alert")).to_contain_text("deleted")
    expect(box(page)).to_have_value("Kept")
    expect(page).to_have_url(f"{house.url}#/")


def test_without_javascript_there_is_one_sentence(browser: Browser, house: House) -> None:
    """And no button that does nothing."""
    context = browser.new_context(java_script_enabled=False, viewport=DESKTOP)
    page = context.new_page()
    page.goto(house.start_url)
    expect(page.locator(".noscript")).to_be_visible()
    expect(page.locator(".noscript")).to_contain_text("This page needs JavaScript")
    assert page.get_by_role("button").count() == 0
    context.close()


def test_an_image_of_100_mb_is_refused_and_the_page_lives(page: Page, tmp_path: Path) -> None:
    """At once, by its size; the question and the other file stay."""
    giant, small = tmp_path / "giant.png", tmp_path / "small.md"
    with giant.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.truncate(100 * 2**20)
    small.write_text("hi")
    box(page).fill("What is this?")
    page.locator("#files").set_input_files([giant, small])
    expect(page.locator("#composer-notice")).to_contain_text("giant.png")
    expect(page.locator("#shelf")).to_contain_text("small.md")
    expect(box(page)).to_have_value("What is this?")
