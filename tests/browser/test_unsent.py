"""Words that were typed and not sent: each chat has its own, for as long as the tab lives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Enter
from tests.browser.house import House
from tests.browser.steps import (
    ask,
    box,
    came,
    chat_of,
    do,
    give,
    hold,
    open_chat,
    row,
    turn_on,
    wait_for_answer,
)
from tests.waiting import until

pytestmark = pytest.mark.integration
KEPT = "sessionStorage.getItem('searchloop.unsent') ?? '[]'"
NO_FAREWELL = "addEventListener('pagehide', (e) => e.stopImmediatePropagation(), { capture: true })"
NO_STORAGE = """() => Object.defineProperty(window, "sessionStorage", {
  get() { throw new DOMException("refused", "SecurityError"); } })"""


def kept(page: Page) -> dict[str, str]:
    """What the tab's storage holds now, by chat."""
    return {entry["chat"]: entry["text"] for entry in json.loads(page.evaluate(KEPT))}


def to(page: Page, chat: str) -> None:
    """Opens a chat of the list."""
    link = page.locator(f'.session[data-id="{chat}"] a')
    link.click()
    expect(link).to_have_attribute("aria-current", "page")


def test_each_chat_keeps_its_own_words(page: Page, house: House) -> None:
    """Over a switch, a reload and a page that goes without a word; files too. What is emptied is
    forgotten, and so is what waits in a chat that is deleted."""
    first, second = house.asked("One"), house.asked("Two")
    page.reload()
    box(page).fill("new\n\nwith lines")
    to(page, first)
    expect(box(page)).to_have_value("")
    box(page).fill("für eins <b>")
    give(page, ("a.md", "text/plain", b"```\nnote"))
    file = page.locator("#shelf .file")
    expect(file).to_contain_text("a.md")
    to(page, second)
    expect(box(page)).to_have_value("")
    expect(file).to_have_count(0)
    box(page).press_sequentially("for two")
    until(lambda: kept(page).get(second) == "for two")
    page.evaluate(NO_FAREWELL)
    page.reload()
    expect(box(page)).to_have_value("for two")
    to(page, first)
    expect(box(page)).to_have_value("für eins <b>")
    expect(file).to_contain_text("a.md")
    page.reload()
    expect(file).to_contain_text("a.md")
    file.get_by_role("button").click()
    box(page).fill("")
    page.locator("#new-chat").click()
    expect(box(page)).to_have_value("new\n\nwith lines")
    until(lambda: set(kept(page)) == {"", second})
    do(page, second, "Delete")
    page.reload()  # whoever leaves does not take it back
    expect(row(page, second)).to_have_count(0)
    until(lambda: set(kept(page)) == {""})


def test_what_is_typed_before_the_script_is_there_stays(page: Page, house: House) -> None:
    """On a slow line the box is there first, also of a chat; a reload has the words once."""
    typed_too_early(page)
    open_chat(page, house, house.asked("One"))
    wait_for_answer(page)
    typed_too_early(page)


def typed_too_early(page: Page) -> None:
    """Words that are there before the script is."""
    held = hold(page, "**/app.js")
    page.reload(wait_until="commit")
    box_of_html = page.locator("#question")
    box_of_html.fill("too early")
    came(page, held)
    held[0].continue_()
    expect(page.locator("#model-name")).not_to_be_empty()
    page.unroute("**/app.js")
    expect(box_of_html).to_have_value("too early")
    until(lambda: "too early" in kept(page).values())
    page.reload()
    expect(box_of_html).to_have_value("too early")


def test_a_question_that_waits_for_its_file_is_not_taken_for_another(
    page: Page, house: House
) -> None:
    """Whoever opens another chat meanwhile sends nothing there, and finds both in their chats."""
    first, second = house.asked("One"), house.asked("Two")
    page.reload()
    to(page, second)
    box(page).fill("for two")
    to(page, first)
    wait_for_answer(page)
    held = hold(page, "**/attachments.js")
    give(page, ("a.md", "text/plain", b"note"))
    came(page, held)
    ask(page, "for one")
    to(page, second)
    expect(box(page)).to_have_value("for two")
    with page.expect_response("**/attachments.js"):
        held[0].continue_()
    to(page, first)
    expect(box(page)).to_have_value("for one")
    to(page, second)
    expect(box(page)).to_have_value("for two")
    expect(page.locator(".turn")).to_have_count(1)


def test_a_temporary_chat_leaves_no_word_behind(page: Page) -> None:
    """Neither in the storage nor in the chat that is opened after it, with or without a name."""
    page.locator("#new-temporary").click()
    box(page).fill("secret")
    turn_on(page)
    expect(box(page)).to_have_value("secret")
    page.locator("#new-chat").click()
    expect(box(page)).to_have_value("")
    box(page).fill("open")
    until(lambda: kept(page) == {"": "open"})


def test_a_chat_that_gets_a_name_or_goes_takes_its_words_along(page: Page, house: House) -> None:
    """To the chat that begins, to a new one when it was only switched or is deleted elsewhere, and
    beside a suggestion that is asked meanwhile."""
    box(page).fill("first words")
    turn_on(page)
    chat = chat_of(page)
    until(lambda: kept(page) == {chat: "first words"})
    page.locator("#new-chat").click()
    expect(box(page)).to_have_value("first words")
    page.locator(".suggestions button").first.click()
    expect(wait_for_answer(page).locator(".answer .chip").first).to_be_visible()
    expect(box(page)).to_have_value("first words")
    house.call("DELETE", f"/api/sessions/{page.url.rpartition('/')[2]}")
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(box(page)).to_have_value("first words")
    until(lambda: kept(page) == {"": "first words"})


def test_what_was_not_taken_comes_back(page: Page, house: House) -> None:
    """A question that is refused, or on its way when the page is reloaded, is in the box again
    before what was typed since; so is one that was being edited, also when its chat is left. Once
    it is taken it is forgotten."""
    open_chat(page, house, house.asked("One"))
    wait_for_answer(page)
    held = hold(page, "**/messages")
    ask(page, "And this?")
    box(page).fill("typed since")
    came(page, held)
    held.pop().abort()
    expect(box(page)).to_have_value("And this?\n\ntyped since")
    box(page).fill("")
    page.get_by_role("button", name="Edit the question").click()
    editor = page.locator(".editing textarea")
    editor.fill("edited")
    editor.press("Enter")
    came(page, held)
    held.pop().abort()
    expect(editor).to_have_value("edited")
    ask(page, "On its way")
    box(page).fill("typed since")
    came(page, held)
    page.locator("#new-chat").click()
    expect(box(page)).to_have_value("")
    page.go_back()
    page.reload()
    unsent = ["On its way", "edited", "typed since"]
    until(lambda: sorted(box(page).input_value().split("\n\n")) == unsent)
    page.unroute("**/messages")
    box(page).press("Enter")
    expect(page.locator(".turn")).to_have_count(2)
    wait_for_answer(page)
    until(lambda: kept(page) == {})
    page.reload()
    wait_for_answer(page)
    expect(box(page)).to_have_value("")


FILL = """async (entries) => {
  const { unsentTexts } = await import("/static/composer/drafts.js");
  const texts = unsentTexts();
  for (const [chat, length] of entries) texts.put(chat, "x".repeat(length));
  texts.store();
  return entries.map(([chat]) => texts.get(chat).length);
}"""


def test_what_is_stored_is_bounded(enter: Enter) -> None:
    """The newest chats, and no more than a browser takes; in memory all of them are there, also
    where the storage is refused."""
    page = enter(bypass_csp=True)
    many: list[Any] = [[f"c{i}", 10] for i in range(70)]
    assert page.evaluate(FILL, many) == [10] * 70
    assert list(kept(page)) == [f"c{i}" for i in range(20, 70)]
    huge = [["small", 10], ["huge", 9_000_000], ["last", 10]]
    assert page.evaluate(FILL, huge) == [10, 9_000_000, 10]
    assert {"small", "last"} <= set(kept(page))
    assert "huge" not in kept(page)
    page.evaluate(NO_STORAGE)
    assert page.evaluate(FILL, many) == [10] * 70
