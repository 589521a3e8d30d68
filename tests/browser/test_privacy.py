"""Signing in and out in a real browser, the Privacy page, and what each person sees of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.checks import AXE, RUN
from tests.browser.conftest import DESKTOP, Enter
from tests.browser.house import House, LedOllama
from tests.browser.steps import asked
from tests.browser.test_settings import opened

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, ollama: LedOllama) -> Iterator[House]:
    """A server that keeps its own token, as it is for users."""
    settings = {"SEARCHLOOP_OFFLINE": "1", "OLLAMA_HOST": ollama.url, "SEARCHLOOP_TOKEN": ""}
    settings["SEARCHLOOP_MODEL"] = "builtin:extractive"
    with House(tmp_path_factory.mktemp("kept"), settings) as served:
        yield served


@pytest.mark.parametrize("scripts", [True, False])
def test_a_stranger_signs_in_by_the_page(scripts: bool, browser: Browser, kept: House) -> None:
    """In the browser's language, with or without JavaScript, by the keyboard alone; a wrong token
    is told in words that are read aloud; axe finds nothing; and then the page is there."""
    context = browser.new_context(java_script_enabled=scripts, locale="de-DE", viewport=DESKTOP)
    page = context.new_page()
    page.goto(kept.url)
    expect(page).to_have_title("Bei searchloop anmelden")
    field = page.get_by_label("Zugangs-Token")
    expect(field).to_be_focused()
    page.keyboard.type("no such token")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("nicht gültig")
    expect(page.get_by_label("Zugangs-Token")).to_have_attribute("aria-invalid", "true")
    if scripts:
        # As a privileged script: the page itself lets none in, which is the point of its policy.
        session = context.new_cdp_session(page)
        session.send("Page.setBypassCSP", {"enabled": True})
        page.reload()
        session.send("Runtime.evaluate", {"expression": AXE.read_text("utf-8")})
        told = {"expression": f"({RUN})()", "awaitPromise": True, "returnByValue": True}
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert session.send("Runtime.evaluate", told)["result"]["value"] == []
    page.get_by_label("Zugangs-Token").fill(kept.token)
    page.get_by_role("button", name="Anmelden").click()
    expect(page).to_have_title("searchloop")
    assert page.url == kept.url
    assert kept.token not in json.dumps(context.cookies())
    if not scripts:  # one sentence, and no button that does nothing
        expect(page.locator(".noscript")).to_contain_text("This page needs JavaScript")
        assert page.get_by_role("button").count() == 0
    context.close()


def test_signing_out_and_a_new_token(kept: House, enter: Enter) -> None:
    """A new token keeps this browser in and signs the others out; signing out ends at the page
    that asks for the token."""
    page = enter(kept, fresh=True)
    other = enter(kept, fresh=True)
    dialog = opened(page, "privacy")
    expect(dialog).to_contain_text("Whoever has the token sees every chat here.")
    dialog.get_by_role("button", name="New token…").click()
    expect(dialog.get_by_role("button", name="Keep")).to_be_focused()
    dialog.get_by_role("button", name="Sign out everywhere else").click()
    expect(dialog.get_by_role("status").first).to_contain_text("The token is new")
    before, kept.token = kept.token, (kept.home / "data" / "token").read_text().strip()
    assert before != kept.token
    other.goto(kept.url)
    expect(other).to_have_title("Sign in to searchloop")
    page.reload()
    dialog = opened(page, "privacy")
    dialog.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in to searchloop")


def test_everything_is_deleted_at_the_second_press(kept: House, enter: Enter) -> None:
    """All chats, after a question that can be taken back; the list is empty then. A chat that is
    kept nowhere begins there too."""
    page = enter(kept, fresh=True)
    asked(page, "What is here?")
    dialog = opened(page, "privacy")
    dialog.get_by_role("button", name="Delete all chats…").click()
    dialog.get_by_role("button", name="Keep").click()
    assert kept.call("GET", "/api/sessions")["sessions"]
    dialog.get_by_role("button", name="Delete all chats…").click()
    dialog.get_by_role("button", name="Delete all of them for good").click()
    expect(dialog.get_by_role("status").last).to_contain_text("deleted")
    assert kept.call("GET", "/api/sessions")["sessions"] == []
    expect(dialog.get_by_role("cell", name="Nobody")).to_be_visible()
    expect(dialog).to_contain_text("Offline: the server lets nothing leave.")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_text("No chats yet", exact=False).first).to_be_attached()
    page = enter(kept, fresh=True)  # the other one leaves the deleted chat
    dialog = opened(page, "privacy")
    dialog.get_by_role("button", name="New temporary chat").click()
    expect(dialog).not_to_be_visible()
    expect(page.locator("#temporary")).to_be_visible()


def test_each_sees_themselves_and_an_administrator_the_use(
    browser: Browser, tmp_path: Path, ollama: LedOllama
) -> None:
    """Behind a proxy: their own name, no sign-out of ours, no word of another; the administrator's
    table has counts."""
    settings = {"SEARCHLOOP_OFFLINE": "1", "OLLAMA_HOST": ollama.url, "SEARCHLOOP_ADMINS": "bob"}
    settings |= {"SEARCHLOOP_USER_HEADER": "X-Who", "SEARCHLOOP_MODEL": "builtin:extractive"}
    pages = {}
    with House(tmp_path, settings) as house:
        for name in ("anna", "bob"):
            context = browser.new_context(extra_http_headers={"X-Who": name}, viewport=DESKTOP)
            pages[name] = context.new_page()
            pages[name].goto(house.url)
            pages[name].locator(".suggestions").wait_for()
        asked(pages["anna"], "Where is the annaqz plan?")
        dialog = opened(pages["anna"], "privacy")
        expect(dialog).to_contain_text("You are anna")
        expect(dialog.get_by_role("button", name="Sign out")).to_have_count(0)
        expect(dialog.get_by_role("region", name="Use", exact=True)).to_have_count(0)
        pages["bob"].reload()
        dialog = opened(pages["bob"], "privacy")
        expect(dialog.get_by_role("region", name="Use", exact=True)).to_contain_text("anna")
        assert "annaqz" not in pages["bob"].content()
        for page in pages.values():
            page.context.close()
