"""A server that is gone or updated, a dead link, no JavaScript, a giant file: each a sentence."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP, Enter
from tests.browser.house import House
from tests.browser.steps import box

pytestmark = pytest.mark.integration


def test_a_server_of_another_version_offers_a_reload(enter: Enter) -> None:
    """Once, in words of the page's language; what was typed is there after the reload, and so is
    nothing of the offer."""
    page = enter(fresh=True, locale="de-DE")
    other = {"name": "searchloop", "status": "ok", "version": "99.0"}
    page.route("**/api/health", lambda route: route.fulfill(json=other))
    page.locator("#question").fill("Half a thou")
    for _ in range(2):
        page.evaluate("dispatchEvent(new Event('focus'))")
        expect(page.locator("#updated")).to_contain_text("aktualisiert")
    expect(page.locator("#updated")).to_have_count(1)
    page.unroute("**/api/health")
    page.locator("#updated button").press("Enter")
    page.locator(".suggestions").wait_for()
    expect(page.locator("#question")).to_have_value("Half a thou")
    expect(page.locator("#updated")).to_have_count(0)


GONE = {"s/abcdefghijklmnopqrstuvwx": "deleted", "p/nothing": "no project"}


def test_a_link_to_what_is_gone_says_so(page: Page, house: House) -> None:
    """A bookmark of a chat or a project: a sentence, an empty chat, and the words in the box."""
    box(page).fill("Kept")
    for address, words in GONE.items():
        page.goto(f"{house.url}#/{address}")
        expect(page.get_by_role("alert").filter(has_text=words)).to_be_visible()
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
