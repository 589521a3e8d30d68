"""Older turns of a chat are summarised for the model at a person's wish, who can edit the words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.house import LOCAL, LedOllama
from tests.browser.steps import ask, box, choose_model, wait_for_answer

pytestmark = pytest.mark.integration

MADE, RIGHT = "The ferry is called Sturmvogel.", "The ferry is called Möwe."


def menu(page: Page) -> Locator:
    """The button with what can be done with the chat."""
    return page.get_by_role("button", name="This chat", exact=True)


def asked(page: Page, *questions: str) -> None:
    """Asks them one after the other."""
    for question in questions:
        ask(page, question)
        expect(page.locator(".turn").last.locator(".answer")).to_contain_text(f"To {question}")
        wait_for_answer(page)


def test_a_chat_is_summarised_and_its_summary_edited(page: Page, ollama: LedOllama) -> None:
    """In the menu of the chat, by keys alone; the model gets the words that were saved."""
    heard: list[str] = []

    def answer(messages: list[dict[str, Any]]) -> list[str]:
        heard.append(json.dumps(messages, ensure_ascii=False))
        summary = "You summarise the earlier part" in heard[-1]
        return [MADE] if summary else [f"To {messages[-1]['content']}"]

    ollama.script = answer
    choose_model(page, LOCAL)
    menu(page).click()  # before the first question there is one thing to set
    expect(page.get_by_role("menuitem")).to_have_count(1)
    page.get_by_role("menuitem", name="Model options").click()
    page.get_by_label("Temperature").fill("0.3")
    page.get_by_label("Temperature").press("Enter")
    expect(page.get_by_label("Temperature")).to_have_count(0)
    asked(page, "one", "two")
    assert all(chat["options"]["temperature"] == 0.3 for chat in ollama.chats[-2:])
    menu(page).click()
    page.get_by_role("menuitem", name="Summarise the older part").click()
    expect(page.get_by_role("alert").filter(has_text="nothing older")).to_be_visible()
    asked(page, "three", "four")
    box(page).fill("/comp")
    page.keyboard.press("Enter")
    earlier = page.locator(".earlier:visible")
    expect(earlier).to_have_count(1)
    expect(menu(page)).not_to_have_attribute("aria-busy", "true")
    earlier.locator("summary").click()
    expect(earlier).to_contain_text(MADE)
    menu(page).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("menuitem").last).to_be_focused()
    page.keyboard.press("Enter")
    text = page.get_by_role("textbox", name="Summary", exact=True)
    expect(text).to_be_focused()
    expect(text).to_have_value(MADE)
    text.fill(" ")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#summary-text-problem")).not_to_be_empty()
    text.fill(RIGHT)
    page.get_by_role("button", name="Save").click()
    expect(text).to_be_hidden()
    expect(menu(page)).to_be_focused()
    expect(earlier).to_contain_text(RIGHT)
    asked(page, "five")
    assert RIGHT in heard[-1]
    assert MADE not in heard[-1]
    assert '"one"' not in heard[-1]
    page.reload()
    page.locator(".earlier:visible summary").click()
    expect(page.locator(".earlier:visible")).to_contain_text(RIGHT)
