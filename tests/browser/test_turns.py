"""What is done with a turn: asked again, edited, copied, exported, removed and brought back."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.house import MODEL, LedOllama
from tests.browser.steps import ask, choose_model, last_turn, turn_on, wait_for_answer

pytestmark = pytest.mark.integration


def tool(turn: Locator, name: str) -> Locator:
    """A button of this turn, in view."""
    turn.hover()
    return turn.get_by_role("button", name=name)


def test_again_edited_and_back(page: Page, ollama: LedOllama) -> None:
    """A new version stands in the old one's place; each version keeps what followed it."""
    ollama.script = lambda messages: [f"To {len(messages)}: {messages[-1]['content']}"]
    choose_model(page, f"ollama:{MODEL}")
    ask(page, "one")
    wait_for_answer(page)
    ask(page, "two")
    expect(page.locator(".turn")).to_have_count(2)
    wait_for_answer(page)
    first = page.locator(".turn").first
    tool(first, "Edit the question").click()
    box = first.get_by_role("textbox")
    expect(box).to_have_value("one")
    box.fill("one, better")
    box.press("Enter")
    expect(page.locator(".turn")).to_have_count(1)
    expect(wait_for_answer(page).locator(".answer")).to_have_text("To 2: one, better")
    expect(first.locator(".versions")).to_have_text("2/2")
    page.reload()
    expect(page.locator(".bubble")).to_have_text(["one, better"])
    first.get_by_role("button", name="Earlier version").click()
    expect(page.locator(".bubble")).to_have_text(["one", "two"])
    tool(last_turn(page), "Ask again").click()
    expect(page.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(last_turn(page).locator(".versions")).to_have_text("2/2")
    expect(wait_for_answer(page).locator(".answer")).to_have_text("To 4: two")


def test_another_way_with_and_without_search(page: Page, ollama: LedOllama) -> None:
    """The menu offers the other models and the other position of the switch, which then says so."""
    ollama.script = lambda messages: ["From a model."]
    ask(page, "What leaves this machine?")
    wait_for_answer(page)
    tool(last_turn(page), "Ask again").click()
    page.get_by_role("menuitem", name="With web search").click()
    expect(wait_for_answer(page).locator(".answer .chip").first).to_be_visible()
    expect(page.locator("#switch-state")).to_contain_text("On, via Library")
    tool(last_turn(page), "Ask again").click()
    page.get_by_role("menuitem", name=f"With {MODEL}").click()
    expect(last_turn(page).locator(".versions")).to_have_text("3/3")
    expect(wait_for_answer(page).locator(".answer")).to_have_text("From a model.")


def test_copied_with_footnotes_exported_and_removed(page: Page) -> None:
    """The sources go along; what was removed is back with Undo and gone without."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    turn_on(page)
    ask(page)
    turn = wait_for_answer(page)
    tool(turn, "Copy the answer").click()
    expect(turn.get_by_text("Copied")).to_be_attached()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert re.search(r"” \[\^1\]\n", copied)
    assert re.search(r"\n\n\[\^1\]: .+ <library:.+> “", copied)
    tool(turn, "Export this chat").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="One web page").click()
    assert download.value.suggested_filename.endswith(".html")
    tool(turn, "Remove this question").click()
    expect(page.locator(".turn")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".turn")).to_have_count(1)
    ask(page)
    expect(page.locator(".turn")).to_have_count(2)
    wait_for_answer(page)
    gone = page.locator("#removed")
    expect(gone).to_be_hidden()
    for left in (1, 0):
        tool(page.locator(".turn").first, "Remove this question").click()
        expect(page.locator(".turn")).to_have_count(left)
    page.reload()
    expect(page.locator("#title")).not_to_have_text("New chat")
    expect(gone).to_contain_text("2 questions were removed here")
    expect(page.locator(".turn")).to_have_count(0)
    gone.get_by_role("button", name="Put the last one back").click()
    expect(page.locator(".turn")).to_have_count(1)
    expect(gone).to_contain_text("A question was removed here")
    gone.get_by_role("button").click()
    expect(page.locator(".turn")).to_have_count(2)
    expect(gone).to_be_hidden()
