"""Asking on a machine with no network and no key: quoted answers, sources that open, reload."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.house import House
from tests.browser.steps import asked, box, chat_of, give, switch, turn_on, wait_for_answer


def test_a_searched_answer_quotes_the_library_and_a_reload_shows_the_same(page: Page) -> None:
    """Switch on, ask: numbered sources, checked quotes, the path taken; the same after a reload. A
    source has one number in a chat, in every answer."""
    turn_on(page)
    turn = asked(page)
    expect(turn.locator(".answer .chip").first).to_be_visible()
    expect(turn.locator(".sources > summary")).to_contain_text(
        re.compile(r"[1-9]\d* cited, [1-9]\d* read, \d+ found")
    )
    expect(turn.locator(".source-list").first.locator(".number").first).to_have_text(
        re.compile(r"^\d+$")
    )
    expect(turn.locator(".activity > summary")).to_contain_text(
        re.compile(r"Searched 1 query, read \d pages?, ")
    )
    expect(turn.locator(".facts")).to_contain_text("local: Library")
    expect(turn.locator(".facts")).to_contain_text("no language model: quotes only")
    chips = set(turn.locator(".answer .chip").all_inner_texts())
    assert chips <= set(turn.locator(".source .number").all_inner_texts())
    assert not re.search(r"\[\d+\]", turn.locator(".answer").inner_text()), "a mark is left over"
    before = turn.inner_text()
    page.reload()
    after = wait_for_answer(page)
    assert after.inner_text() == before
    expect(switch(page)).to_be_checked()
    asked(page)
    numbers: dict[str, set[str]] = {}
    for source in page.locator(".source").all():
        number = source.locator(".number").inner_text()
        if number.isdigit():
            numbers.setdefault(source.locator(".source-link").inner_text(), set()).add(number)
    assert numbers
    assert all(len(given) == 1 for given in numbers.values()), numbers


def test_each_suggestion_finds_something_to_cite(page: Page) -> None:
    """Each of the four searches and answers in one click, from what every installation has."""
    for n in range(4):
        page.locator(".suggestions button").nth(n).click()
        expect(switch(page)).to_be_checked()
        expect(wait_for_answer(page).locator(".answer .chip").first).to_be_visible()
        page.get_by_role("button", name="New chat", exact=True).click()
        expect(page.locator(".suggestions")).to_be_visible()


PASTE = """(text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text);
  const paste = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
  return !document.querySelector("#question").dispatchEvent(paste);
}"""


def test_a_paste_that_could_not_be_sent_is_refused_whole(page: Page) -> None:
    """Five megabytes are not taken in and cut off later; what is in the box stays."""
    box(page).fill("Before")
    refused = page.evaluate(PASTE, "x" * 5_000_000)
    assert refused
    expect(page.get_by_role("alert")).to_contain_text("5,000,000 characters")
    expect(box(page)).to_have_value("Before")


FENCES = "one ``` two\n````\nthree"


@pytest.mark.integration
def test_long_pastes_and_many_files_leave_room_to_ask(page: Page, house: House) -> None:
    """A long text goes along as a file, in a longer fence than its own, does not slow the box, and
    comes back with its question."""
    page.evaluate(PASTE, "line of text\n" * 23_000)
    expect(page.locator("#shelf")).to_contain_text("Pasted text")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach images, PDFs or text").press("Enter")
    chooser.value.set_files({"name": "a.md", "mimeType": "text/plain", "buffer": FENCES.encode()})
    expect(box(page)).to_be_focused()
    put(page, [("../../x", 3), ("\u202egpj.exe", 3), ("empty", 0)])
    bubble = asked(page, "Mine").locator(".bubble")
    names = ["Pasted text", "a.md", "../../x", " gpj.exe", "empty"]
    expect(bubble.locator("summary")).to_contain_text(names)
    bubble.locator("summary").nth(1).click()
    expect(bubble.locator("pre").nth(1)).to_have_text(FENCES)
    events = house.call("GET", f"/api/sessions/{chat_of(page)}/export?format=json")["events"]
    assert f"Attached file: a.md\n`````\n{FENCES}" in events[0]["text"]
    box(page).press("ArrowUp")
    expect(box(page)).to_have_value("Mine")
    expect(page.locator("#shelf li")).to_have_count(5)
    put(page, [(f"file {i}", 190_000) for i in range(5)])
    expect(page.get_by_role("alert")).to_contain_text("file 4 does not fit beside the others")
    put(page, [(f"note {i}", 9) for i in range(200)])
    expect(page.locator("#shelf li")).to_have_count(208)
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport()
    assert page.evaluate("document.querySelector('#scroller').clientHeight") > 200
    page.get_by_role("button", name="Leave note 0 out").press("Enter")
    expect(page.get_by_role("button", name="Leave note 1 out")).to_be_focused()


def put(page: Page, files: list[tuple[str, int]]) -> None:
    """Texts with these names and so many characters."""
    give(page, *((name, "text/plain", b"x" * size) for name, size in files))
