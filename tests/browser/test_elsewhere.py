"""Questions from outside the page wait in its box; a foreign site cannot put them there."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.house import House, LedOllama
from tests.browser.steps import box, wait_for_answer

pytestmark = pytest.mark.integration


SITE = "http://site.example/"  # of somebody else
BODIES = {
    "link": "<a href='{at}?q=stolen'>go</a>",
    "redirect": "<script>location.replace('{at}?q=stolen')</script>",
    "frame": "<iframe src='{at}?q=stolen'></iframe>",
    "form": "<form method=post enctype=multipart/form-data action='{at}'>"
    "<input name=text value=stolen></form><script>document.forms[0].submit()</script>",
    "script": "<script>open('{at}?q=stolen')</script>",
}


def sessions(house: House) -> int:
    """How many chats there are."""
    return len(house.call("GET", "/api/sessions")["sessions"])


def test_a_question_in_the_address_waits_to_be_sent(
    page: Page, house: House, ollama: LedOllama
) -> None:
    """It is in the box once, with the words that were there; nothing is asked before one press."""
    before, chats = sessions(house), len(ollama.chats)
    box(page).fill("mine")
    page.goto(f"{house.url}?text=Look&url=https%3A%2F%2Ftides.example%2F")  # as another app shares
    expect(box(page)).to_have_value("Look\nhttps://tides.example/\n\nmine")
    box(page).fill("mine")
    page.goto(f"{house.url}?q=When+is+low+water%3F")
    expect(box(page)).to_have_value("When is low water?\n\nmine")
    expect(box(page)).to_be_focused()
    assert page.url == house.url
    page.reload()
    expect(box(page)).to_have_value("When is low water?\n\nmine")
    assert (sessions(house), len(ollama.chats)) == (before, chats)
    page.keyboard.press("Enter")
    wait_for_answer(page)
    assert sessions(house) == before + 1


def test_no_foreign_page_opens_a_question(browser: Browser, house: House) -> None:
    """A link, a redirect, a frame, a posted form, a window: a sentence, and nothing asked."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(house.start_url)
    expect(page.locator("#question")).to_be_visible()
    before = sessions(house)
    body = ""
    page.route(f"{SITE}*", lambda route: route.fulfill(body=body, content_type="text/html"))
    for way, text in BODIES.items():
        body = text.format(at=house.url)
        with context.expect_page() if way == "script" else nullcontext() as opened:
            page.goto(SITE, wait_until="commit")
            if way == "link":
                page.get_by_role("link").click()
        if way == "frame":
            expect(page.locator("iframe")).to_be_attached()
            page.wait_for_load_state("networkidle")
            assert not any(frame.locator("#question").count() for frame in page.frames)
        else:
            shown = opened.value if way == "script" else page
            expect(shown.locator("body")).to_contain_text("other sites are refused")
            expect(shown.locator("#question")).to_have_count(0)
        assert sessions(house) == before, way
    context.close()


def test_the_page_can_be_installed(page: Page) -> None:
    """The browser finds no fault with the manifest and its icons, which it gets signed in."""
    watching = page.context.new_cdp_session(page)
    manifest = watching.send("Page.getAppManifest")
    assert manifest["url"].endswith("/app/manifest.webmanifest")
    assert manifest["errors"] == []
    faults = [
        e["errorId"] for e in watching.send("Page.getInstallabilityErrors")["installabilityErrors"]
    ]
    assert set(faults) <= {"in-incognito"}  # as every profile of a test is
    watching.detach()
