"""Enter while an answer is written: the question waits, is seen, and is sent once."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import DRAWN, axe
from tests.browser.house import LOCAL, House, LedOllama
from tests.browser.steps import (
    ask,
    box,
    came,
    chat_of,
    choose_model,
    hold,
    place,
    wait_for_answer,
)
from tests.waiting import until

pytestmark = pytest.mark.integration
QUEUE = "#queue li"


@pytest.fixture
def gate(ollama: LedOllama) -> Iterator[threading.Event]:
    """Opens the answer to the first question; later ones come at once."""
    opened = threading.Event()

    def script(messages: list[dict[str, object]]) -> list[object]:
        asked = str(messages[-1]["content"])
        return ["One ", opened, "done."] if asked.startswith("First") else [f"Re: {asked}"]

    ollama.script = script
    yield opened
    opened.set()


def queued(page: Page, *texts: str) -> None:
    """A first question whose answer is under way, and these behind it."""
    choose_model(page, LOCAL)
    ask(page, "First")
    expect(page.locator(".turn").last).to_contain_text("One")
    for n, text in enumerate(texts, 1):
        ask(page, text)
        expect(page.locator(QUEUE)).to_have_count(n)


def questions(page: Page, count: int) -> list[str]:
    """The questions of the chat, once there are so many and the last is answered."""
    expect(page.locator(".turn")).to_have_count(count)
    wait_for_answer(page)
    return page.locator(".turn .bubble").all_inner_texts()


def test_questions_wait_survive_a_reload_and_are_sent_once(
    page: Page, gate: threading.Event
) -> None:
    """In their order, one after the other; one is edited and one removed by keys alone."""
    queued(page, "Second", "Thrd", "Fourth")
    expect(page.locator(QUEUE).first).to_contain_text("Next")
    assert axe(page) == []
    page.reload()
    expect(page.locator(QUEUE)).to_have_count(3)
    expect(page.locator(".turn").last).to_contain_text("One")
    third = page.locator(QUEUE).nth(2).get_by_role("button", name="Remove this question")
    expect(third).to_have_accessible_description("Fourth")
    third.press("Enter")
    page.locator(QUEUE).nth(1).get_by_role("button", name="Edit this question").press("Enter")
    expect(box(page)).to_be_focused()
    expect(box(page)).to_have_value("Thrd")
    ask(page, "Third")
    expect(page.locator(QUEUE)).to_have_count(2)
    gate.set()
    assert questions(page, 3) == ["First", "Second", "Third"]
    expect(page.locator(QUEUE)).to_have_count(0)
    page.reload()
    assert questions(page, 3) == ["First", "Second", "Third"]


def test_what_is_typed_while_the_queue_is_fetched_stays(page: Page, gate: threading.Event) -> None:
    """On a slow line: each press queues its question once, and the next words are in the box."""
    held = hold(page, "**/queue.js")
    queued(page)
    with page.expect_request("**/queue.js"):
        ask(page, "Second")
    expect(box(page)).to_have_value("")
    box(page).press("Enter")
    box(page).fill("Third")
    held[0].continue_()
    expect(page.locator(QUEUE)).to_have_count(1)
    expect(page.locator(QUEUE)).to_contain_text("Second")
    expect(box(page)).to_have_value("Third")


def test_an_answer_may_end_while_the_queue_is_fetched(page: Page, gate: threading.Event) -> None:
    """The question behind it goes then, as it would have at the end of the answer."""
    held = hold(page, "**/queue.js")
    queued(page)
    ask(page, "Second")
    came(page, held)
    gate.set()
    wait_for_answer(page)
    held[0].continue_()
    assert questions(page, 2) == ["First", "Second"]


def test_a_long_question_leaves_its_buttons_in_reach(page: Page, gate: threading.Event) -> None:
    """However long it is, in words or in one: it is cut, and what is done with it stands there."""
    queued(page, "Second " * 60, "w" * 300, "Short")
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 700})
        page.evaluate(DRAWN)
        for button in page.locator(QUEUE).get_by_role("button").all():
            at = place(button)
            assert at["x"] + at["width"] <= width
    page.get_by_role("button", name="Stop").click()


@pytest.mark.parametrize("way", ["stopped", "left"])
def test_a_question_waits_for_a_press_where_nobody_saw_the_end(
    page: Page, house: House, gate: threading.Event, way: str
) -> None:
    """Stop sends nothing by itself, also after a reload and a look elsewhere; nor does a chat that
    was left before its answer ended."""
    queued(page, "Second")
    chat = chat_of(page)
    if way == "stopped":
        page.get_by_role("button", name="Stop").click()
        wait_for_answer(page)
        page.reload()
        expect(page.locator(QUEUE)).to_contain_text("Waits for you")
    page.locator("#new-chat").click()
    expect(page.locator(QUEUE)).to_have_count(0)
    gate.set()
    until(lambda: not house.call("GET", f"/api/sessions/{chat}")["running"])
    page.go_back()
    wait_for_answer(page)
    expect(page.locator(QUEUE)).to_contain_text("Waits for you")
    expect(page.locator(".turn")).to_have_count(1)
    page.get_by_role("button", name="Send now").click()
    assert questions(page, 2) == ["First", "Second"]
