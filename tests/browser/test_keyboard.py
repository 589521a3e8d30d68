"""The whole flow without a mouse, and what a screen reader is told."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import axe
from tests.browser.house import LOCAL, STALL, LedOllama
from tests.browser.steps import (
    QUESTION,
    ask,
    begun,
    box,
    choose_model,
    hold,
    place,
    switch,
    wait_for_answer,
)

MOST_TABS = 400  # the list of chats grows from test to test


def tab_to(page: Page, css: str, key: str = "Tab") -> None:
    """Presses Tab until the focus is there."""
    for _ in range(MOST_TABS):
        if page.evaluate("css => document.activeElement.matches(css)", css):
            return
        page.keyboard.press(key)
    raise AssertionError(f"Tab never came to {css}")


def test_from_the_switch_to_an_open_source_by_keyboard(page: Page) -> None:
    """Switch, question, chip, its page at the quoted passage, and back; the settings, by keys."""
    expect(box(page)).to_be_focused()
    tab_to(page, "#web-search")
    page.keyboard.press("Space")
    expect(switch(page)).to_be_checked()
    expect(page.locator("#switch-state")).to_contain_text("Web search is on")
    tab_to(page, "#question", "Shift+Tab")
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    wait_for_answer(page)
    expect(box(page)).to_be_focused()
    tab_to(page, ".chip", "Shift+Tab")
    card = page.locator("#card")
    expect(card).to_contain_text("These words stand in the source")
    quote = card.locator("blockquote").inner_text()
    page.keyboard.press("Enter")
    expect(card).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#reader mark").first).to_be_in_viewport()
    marked = re.sub(r"[\W_]", "", "".join(page.locator("#reader mark").all_inner_texts()))
    assert re.sub(r"[\W_]", "", quote) in marked
    page.keyboard.press("Escape")
    expect(page.locator("#reader")).to_be_hidden()
    expect(page.locator(".chip:focus")).to_have_count(1)
    tab_to(page, "#open-settings", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Settings")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#open-settings")).to_be_focused()


def test_enter_sends_and_each_finished_paragraph_is_announced_once(
    page: Page, ollama: LedOllama
) -> None:
    """Shift+Enter breaks the line, the arrow brings a question back. A polite status says whole
    paragraphs; what was there before is not read again."""
    ollama.script = lambda messages: ["Para", "graph one.\n\nPara", "graph two.\n\nUnfin", STALL]
    choose_model(page, LOCAL)
    hold(page, "**/messages")
    ask(page, "   ")  # which is no question
    expect(box(page)).to_have_value("   ")
    page.unroute("**/messages")
    box(page).fill("")
    page.keyboard.type("first line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second line")
    expect(page.locator(".turn")).to_have_count(0)
    page.keyboard.press("Enter")
    told = page.locator("#announcer p")
    expect(told).to_have_text(["Paragraph one.", "Paragraph two."])
    page.get_by_role("button", name="Stop answering").click()
    expect(wait_for_answer(page).locator(".bubble")).to_have_text("first line\nsecond line")
    expect(told).to_have_text(["Paragraph one.", "Paragraph two.", "Unfin"])
    expect(box(page)).to_have_value("")
    box(page).press("ArrowUp")
    expect(box(page)).to_have_value("first line\nsecond line")
    page.reload()
    wait_for_answer(page)
    expect(told).to_have_count(0)


COMPOSING = """([key, isComposing]) => document.activeElement.dispatchEvent(
  new KeyboardEvent("keydown", { key, isComposing, keyCode: 229, bubbles: true, cancelable: true }),
)"""


@pytest.mark.integration
def test_the_focus_is_never_nowhere_and_escape_has_layers(page: Page, ollama: LedOllama) -> None:
    """Whatever goes away, the focus stays in the page; a key of a composition is no command."""
    begun(page, ollama, "Is it?", "Yes.", STALL)
    stopping = page.get_by_role("button", name="Stop answering")
    expect(page.locator(".answer")).to_have_text("Yes.")
    page.evaluate(COMPOSING, ["Escape", True])
    page.get_by_label("Search chats").fill("it")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Search chats")).to_have_value("")
    expect(stopping).to_be_visible()
    page.locator("#skip").focus()
    page.keyboard.press("Enter")
    expect(box(page)).to_be_focused()
    expect(page.locator(".turn")).to_have_count(1)
    page.keyboard.press("Escape")
    wait_for_answer(page)
    page.keyboard.type("k")
    page.evaluate(COMPOSING, ["Enter", False])
    expect(box(page)).to_have_value("k")
    page.get_by_role("button", name="Remove this question and answer").press("Enter")
    expect(page.locator(".turn")).to_have_count(0)
    expect(box(page)).to_be_focused()
    page.locator(".toast button").press("Enter")
    expect(page.locator(".turn")).to_have_count(1)
    expect(box(page)).to_be_focused()
    box(page).fill("/export")
    expect(page.locator('#slash [role="option"]')).to_have_count(1)
    page.locator("#new-chat").click()
    expect(page.locator("#slash")).to_be_hidden()  # its words are in the other chat
    box(page).fill("/export")
    box(page).press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("nothing to export")


@pytest.mark.integration  # axe
def test_the_keys_are_listed_and_work(page: Page) -> None:
    """`?` where nothing is typed; in the box it is a letter; single keys can be turned off."""
    question = page.locator("#question")
    question.press("?")
    expect(question).to_have_value("?")
    page.locator("#new-chat").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Keyboard shortcuts")
    assert axe(page) == []
    title, close = (place(dialog.get_by_role(role)) for role in ("heading", "button"))
    assert abs(title["y"] + title["height"] / 2 - close["y"] - close["height"] / 2) < 12
    dialog.get_by_role("checkbox").press("Space")
    page.keyboard.press("Escape")
    page.locator("#new-chat").focus()
    page.keyboard.press("/")
    expect(page.locator("#new-chat")).to_be_focused()
    page.keyboard.press("Control+/")
    dialog.get_by_role("checkbox").press("Space")
    page.keyboard.press("Escape")
    page.locator("#new-chat").focus()
    page.keyboard.press("/")
    expect(question).to_be_focused()
    for key in ("Control+k", "Control+K"):  # the second one with Caps Lock
        question.focus()
        page.keyboard.press(key)
        expect(page.locator("#find-session")).to_be_focused()
    page.keyboard.press("Control+Shift+O")
    expect(question).to_be_focused()
