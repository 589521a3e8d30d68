"""A tool that asks for leave: what the person sees, may change, and decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from searchloop.agent.log import EventLog
from tests.browser.house import House
from tests.browser.steps import last_turn

pytestmark = pytest.mark.integration

DIFF = "--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n-old <b>line</b>\n+new line"
REQUEST = {
    "call_id": "c1",
    "name": "write_file",
    "arguments": {"path": "notes.md", "content": "new line", "lines": 1},
    "effect": "write",
    "server": None,
    "why": "It changes a file.",
    "preview": DIFF,
}


@pytest.fixture
def asking(page: Page, house: House) -> Iterator[tuple[EventLog, str, Page]]:
    """A chat in which a tool waits for leave, as the log of another process tells it."""
    log = EventLog(house.home / "data" / "sessions.sqlite3")
    chat = log.create_session(model="builtin:extractive", mode="agent").id
    started = {"run_id": "r", "model": "m", "mode": "agent", "search": "off", "search_path": "off"}
    call = {key: REQUEST[key] for key in ("call_id", "name", "arguments", "effect")}
    log.append(
        chat,
        [
            ("user_message", {"text": "Change my notes"}),
            ("run_started", started),
            ("tool_call", call),
            ("approval_requested", REQUEST),
        ],
    )
    page.goto(f"{house.url}#/s/{chat}")
    yield log, chat, page
    log.close()


def test_a_tool_shows_what_it_would_do_and_runs_what_was_edited(
    asking: tuple[EventLog, str, Page],
) -> None:
    """Diff, effect and exact arguments are shown; what is changed in them is what is sent."""
    log, chat, page = asking
    card = last_turn(page).locator(".approval")
    expect(card.get_by_role("heading")).to_contain_text("Write a file?")
    expect(card).to_contain_text("changes files")
    expect(card.locator(".diff .gone")).to_have_text("-old <b>line</b>\n")
    expect(last_turn(page).locator(".activity")).to_contain_text("Waiting for your decision")
    card.get_by_text("Arguments").click()
    card.get_by_label("lines").fill("two")
    card.get_by_role("button", name="Allow once").click()
    expect(card.get_by_role("alert")).to_contain_text("“lines” is not valid JSON")
    card.get_by_label("lines").fill("2")
    card.get_by_label("path").fill("other.md")
    with page.expect_request("**/approvals/c1") as sent:
        card.get_by_role("button", name="Allow once").click()
    edited = {"path": "other.md", "content": "new line", "lines": 2}
    assert sent.value.post_data_json == {"decision": "once", "arguments": edited}
    decided = {"call_id": "c1", "decision": "once", "arguments": edited, "by": "user"}
    log.append(chat, [("approval_decided", decided)])
    expect(card).to_contain_text("allowed once")
    expect(card.get_by_role("button")).to_have_count(0)
    came = {"call_id": "c1", "name": "write_file", "is_error": False, "content": "Wrote <b>2</b>"}
    log.append(chat, [("tool_result", {**came, "details": {}, "sources": []})])
    expect(card.locator("p").first).to_contain_text("done")
    card.get_by_text("What changed, and what came back").click()
    expect(card.locator(".diff .gone")).to_have_text("-old <b>line</b>\n")
    expect(card.locator(".result")).to_have_text("Wrote <b>2</b>")


def test_a_server_asks_the_person(asking: tuple[EventLog, str, Page]) -> None:
    """The card says who asks what; what is typed is the answer, for this call alone."""
    log, chat, page = asking
    question = {**REQUEST, "call_id": "c1-1", "preview": None, "question": True, "server": "sdk"}
    said = {"why": "sdk asks: Where to?", "arguments": {"place": ""}}
    log.append(chat, [("approval_requested", {**question, **said})])
    card = last_turn(page).locator(".approval").last
    expect(card.get_by_role("heading")).to_have_text("sdk asks you something")
    expect(card).to_contain_text("Where to?")
    expect(card.get_by_role("button")).to_have_count(2)
    card.get_by_label("place").fill("Rome")
    with page.expect_request("**/approvals/c1-1") as sent:
        card.get_by_role("button", name="Send the answer").click()
    assert sent.value.post_data_json == {"decision": "once", "arguments": {"place": "Rome"}}


HIDDEN = "total = 1 \u202e}; if admin\u2066 //\u200b\U000e0041"


def test_a_card_names_signs_that_nobody_sees(page: Page, house: House) -> None:
    """The diff and the arguments show each by its number; unedited, a call runs as it was asked."""
    log = EventLog(house.home / "data" / "sessions.sqlite3")
    chat = log.create_session(model="builtin:extractive", mode="agent").id
    started = {"run_id": "r", "model": "m", "mode": "agent", "search": "off", "search_path": "off"}
    given = {"path": "a.py", "content": f"{HIDDEN}\r\nend\r\n"}
    request = {**REQUEST, "arguments": given, "preview": f"--- a\n+++ b\n@@ -1 +1 @@\n+{HIDDEN}"}
    call = {key: request[key] for key in ("call_id", "name", "arguments", "effect")}
    said = [("tool_call", call), ("approval_requested", request)]
    log.append(chat, [("user_message", {"text": "Change it"}), ("run_started", started), *said])
    page.goto(f"{house.url}#/s/{chat}")
    card = last_turn(page).locator(".approval")
    names = ["U+202E", "U+2066", "U+200B", "U+E0041"]
    expect(card.locator(".diff .sign")).to_have_text(names)
    card.get_by_text("Arguments").click()
    expect(card.get_by_role("note")).to_contain_text(", ".join(names))
    with page.expect_request("**/approvals/c1") as sent:
        card.get_by_role("button", name="Allow once").click()
    assert sent.value.post_data_json == {"decision": "once"}
    log.close()


def test_a_card_is_answered_by_its_keys(asking: tuple[EventLog, str, Page]) -> None:
    """Each key is written on what it presses; Escape denies, but not from a field being edited, and
    Enter in the question box, or one that is held down, answers nothing.
    """
    _, _, page = asking
    card, sent = last_turn(page).locator(".approval"), list[Any]()
    once, deny = (card.get_by_role("button", name=n, exact=True) for n in ("Allow once", "Deny"))
    page.route("**/approvals/c1", lambda route: route.abort())
    page.on("request", lambda request: sent.append(request.url))
    page.get_by_label("Your question").press("Enter")
    expect(card.locator("kbd:visible")).to_have_count(0)
    once.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(once).to_be_focused()
    expect(card.locator("kbd:visible")).to_have_text(["⏎", "Esc"])
    page.evaluate(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown',"
        " { key: 'Enter', repeat: true, bubbles: true, cancelable: true })) && window.pressed()"
    )  # throws if the card lets a held key through to its button
    page.keyboard.press("Tab")
    expect(deny).to_be_focused()
    expect(card.locator("kbd:visible")).to_have_text(["Esc"])
    card.get_by_text("Arguments").click()
    card.get_by_label("path").press("Escape")
    assert not [url for url in sent if url.endswith("/approvals/c1")]
    once.focus()
    with page.expect_request("**/approvals/c1") as denied:
        page.keyboard.press("Escape")
    assert denied.value.post_data_json == {"decision": "deny"}
    expect(
        page.get_by_role("alert").first
    ).to_be_visible()  # it did not arrive: the card is still open
    with page.expect_request("**/approvals/c1") as allowed:
        once.press("Enter")
    assert allowed.value.post_data_json == {"decision": "once"}


def test_what_nobody_decided_is_not_left_open(asking: tuple[EventLog, str, Page]) -> None:
    """The card outlives a reload, and says so when the run ended without an answer."""
    log, chat, page = asking
    with page.expect_request("**/approvals/c1") as sent:
        page.get_by_role("button", name="Deny").click()
    assert sent.value.post_data_json == {"decision": "deny"}
    expect(page.get_by_role("alert").first).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Always allow this very call")).to_be_visible()
    finished = {"run_id": "r", "reason": "cancelled", "answer": "", "search_path": "off"}
    lists = {"citations": [], "sources": [], "usage": {}}
    log.append(chat, [("run_finished", {**finished, **lists})])
    expect(last_turn(page).locator(".approval")).to_contain_text("not decided, so not done")
