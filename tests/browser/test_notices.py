"""What is told while nobody looks at the tab: in its title, by the browser where it is wanted."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.house import House
from tests.browser.steps import open_chat

pytestmark = pytest.mark.integration

# A tab that can be hidden, and the parts of a browser that tell: what it was asked to show.
HIDDEN = """() => {
  Object.defineProperty(document, "hidden", { get: () => window.away });
  window.told = [];
  window.rung = 0;
  window.AudioContext = class extends AudioContext { constructor() { super(); rung += 1; } };
  window.Notification = class extends EventTarget {
    static async requestPermission() { return (this.permission = window.answer); }
    constructor(title, { body }) { super(); told.push([title, body]); }
  };
}"""
SEEN = "() => { window.away = false; document.dispatchEvent(new Event('visibilitychange')); }"
CALL = {"call_id": "c1", "name": "write_file", "arguments": {"path": "notes.md"}, "effect": "write"}
RUN = {"run_id": "r", "model": "m", "mode": "agent", "search": "off", "search_path": "off"}


def test_what_happens_in_a_hidden_tab_is_told(page: Page, house: House) -> None:
    """A refusal is a sentence; a call that waits is told, a short answer in the title alone."""
    log = house.log
    chat = log.create_session(model="builtin:extractive", mode="agent").id
    log.append(chat, [("user_message", {"text": "Change my notes"}), ("run_started", RUN)])
    house.call("PATCH", f"/api/sessions/{chat}", {"title": "Tides"})
    open_chat(page, house, chat)
    page.evaluate(HIDDEN)
    page.locator("#open-settings").click()
    page.locator('#settings nav [data-page="appearance"]').click()
    wanted = page.get_by_role("switch", name="A notice of the browser")
    for answer in ("denied", "granted"):
        page.evaluate("given => { window.answer = given; }", answer)
        wanted.click()
        expect(page.locator("#notices .problem").first).to_have_text(
            ""
            if answer == "granted"
            else "The browser refuses notices of this page. "
            "They can be allowed in its settings for this address."
        )
        expect(wanted).to_be_checked(checked=answer == "granted")
    page.get_by_role("switch", name="A short sound").click()
    page.keyboard.press("Escape")
    page.evaluate("window.away = true")
    log.append(chat, [("tool_call", CALL), ("approval_requested", {**CALL, "server": None})])
    expect(page).to_have_title("Waiting for you: Tides - searchloop")
    assert page.evaluate("[told, rung]") == [[["Waiting for you", "Tides"]], 1]
    page.evaluate(SEEN)
    expect(page).to_have_title("Tides - searchloop")
    page.evaluate("window.away = true")
    log.append(chat, [("run_finished", {"reason": "stop", "answer": "Done."})])
    expect(page).to_have_title("Answer ready: Tides - searchloop")
    assert page.evaluate("[told.length, rung]") == [1, 1]
