"""A tool that asks for leave: what the person sees, may change, and decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.house import LOCAL, House, LedOllama, called
from tests.browser.steps import ask, last_turn, open_chat, wait_for_answer

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


def asking_chat(house: House, **more: Any) -> str:
    """A chat in which a tool waits for leave, as the log of another process tells it."""
    request = {**REQUEST, **more}
    started = {"run_id": "r", "model": "m", "mode": "agent", "search": "off", "search_path": "off"}
    call = {key: request[key] for key in ("call_id", "name", "arguments", "effect")}
    said = [("user_message", {"text": "Change my notes"}), ("run_started", started)]
    waits = [("tool_call", call), ("approval_requested", request)]
    return house.chat(*said, *waits, model="builtin:extractive", mode="agent")


@pytest.fixture
def chat(page: Page, house: House) -> str:
    """That chat, on show."""
    made = asking_chat(house)
    open_chat(page, house, made)
    return made


def test_an_allowed_folder_asks_once(
    page: Page, house: House, ollama: LedOllama, tmp_path: Path
) -> None:
    """The card names the folder; the next file in it is made without a card, one above it is not:
    nothing is on the disk while its card waits, over a reload too, and none after Deny.
    """
    (tmp_path / "notes").mkdir()
    made = iter(["notes/a.md", "notes/deep/b.md", "c.md"])
    ollama.script = lambda messages: (
        ["Left alone."]
        if "declined" in messages[-1]["content"]
        else called("create_file", path=next(made), content="x")
    )
    body = {"model": LOCAL, "mode": "agent", "workspace": str(tmp_path)}
    open_chat(page, house, house.call("POST", "/api/sessions", body)["id"])
    ask(page, "Make three files")
    card = last_turn(page).locator(".approval:not(.decided)")
    expect(card).to_contain_text("It writes to notes/a.md.")
    expect(last_turn(page).locator(".step")).to_contain_text("Making notes/a.md")
    assert not (tmp_path / "notes" / "a.md").exists()
    card.get_by_role("button", name="Always allow edits in notes/ (this chat)").click()
    expect(card).to_contain_text("It writes to c.md.")
    assert [(tmp_path / name).exists() for name in ("notes/a.md", "notes/deep/b.md")] == [True] * 2
    page.reload()
    card.get_by_role("button", name="Deny").click()
    expect(wait_for_answer(page)).to_contain_text("Left alone.")
    expect(last_turn(page).locator(".approval").first).to_contain_text("notes/a.md")
    assert not (tmp_path / "c.md").exists()


@pytest.mark.integration
def test_a_tool_shows_what_it_would_do_and_runs_what_was_edited(
    page: Page, house: House, chat: str
) -> None:
    """Diff, effect and exact arguments are shown; what is changed in them is what is sent."""
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
    house.log.append(chat, [("approval_decided", decided)])
    expect(card).to_contain_text("allowed once")
    expect(card.get_by_role("button")).to_have_count(0)
    came = {"call_id": "c1", "name": "write_file", "is_error": False, "content": "Wrote <b>2</b>"}
    house.log.append(chat, [("tool_result", {**came, "details": {}, "sources": []})])
    expect(card.locator("p").first).to_contain_text("done")
    card.get_by_text("What changed, and what came back").click()
    expect(card.locator(".diff .gone")).to_have_text("-old <b>line</b>\n")
    expect(card.locator(".result")).to_have_text("Wrote <b>2</b>")


@pytest.mark.integration
def test_a_server_asks_the_person(page: Page, house: House, chat: str) -> None:
    """The card says who asks what; what is typed is the answer, for this call alone."""
    question = {**REQUEST, "call_id": "c1-1", "preview": None, "question": True, "server": "sdk"}
    said = {"why": "sdk asks: Where to?", "arguments": {"place": ""}}
    house.log.append(chat, [("approval_requested", {**question, **said})])
    card = last_turn(page).locator(".approval").last
    expect(card.get_by_role("heading")).to_have_text("sdk asks you something")
    expect(card).to_contain_text("Where to?")
    expect(card.get_by_role("button")).to_have_count(2)
    card.get_by_label("place").fill("Rome")
    with page.expect_request("**/approvals/c1-1") as sent:
        card.get_by_role("button", name="Send the answer").click()
    assert sent.value.post_data_json == {"decision": "once", "arguments": {"place": "Rome"}}


HIDDEN = "total = 1 \u202e}; if admin\u2066 //\u200b\U000e0041"


@pytest.mark.integration
def test_a_card_names_signs_that_nobody_sees(page: Page, house: House) -> None:
    """The diff, the arguments and the folder show each by its number; unedited, a call runs as it
    was asked.
    """
    given = {"path": "a.py", "content": f"{HIDDEN}\r\nend\r\n"}
    shown = f"--- a\n+++ b\n@@ -1 +1 @@\n+{HIDDEN}"
    more = {"preview": shown, "folder": "/w/no\u200btes"}
    open_chat(page, house, asking_chat(house, arguments=given, **more))
    card = last_turn(page).locator(".approval")
    expect(card.get_by_role("button", name="noU+200Btes")).to_be_visible()
    names = ["U+202E", "U+2066", "U+200B", "U+E0041"]
    expect(card.locator(".diff .sign")).to_have_text(names)
    card.get_by_text("Arguments").click()
    expect(card.get_by_role("note")).to_contain_text(", ".join(names))
    with page.expect_request("**/approvals/c1") as sent:
        card.get_by_role("button", name="Allow once").click()
    assert sent.value.post_data_json == {"decision": "once"}


@pytest.mark.integration
def test_a_card_is_answered_by_its_keys(page: Page, house: House, chat: str) -> None:
    """Each key is written on what it presses; Escape denies, but not from a field being edited, and
    Enter in the question box, or one that is held down, answers nothing. What did not arrive leaves
    the card open, over a reload too; it says so when the run ended without an answer.
    """
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
    expect(page.get_by_role("alert").first).to_be_visible()
    with page.expect_request("**/approvals/c1") as allowed:
        once.press("Enter")
    assert allowed.value.post_data_json == {"decision": "once"}
    page.reload()
    expect(page.get_by_role("button", name="Always allow this very call")).to_be_visible()
    ended = {"run_id": "r", "reason": "cancelled", "answer": "", "search_path": "off"}
    house.log.append(chat, [("run_finished", ended)])
    expect(card).to_contain_text("not decided, so not done")
