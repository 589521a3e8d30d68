"""What a person does on the page, in the words of a person."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import FloatRect, Locator, Page, Route, expect

from tests.browser.house import LOCAL, House, LedOllama
from tests.fakes import Reply
from tests.waiting import until

QUESTION = "How does the search switch decide between native and local search?"


def switch(page: Page) -> Locator:
    """The web-search switch, found as a screen reader finds it."""
    return page.get_by_role("switch", name="Web search")


def turn_on(page: Page) -> None:
    """Switches web search on by its label, and waits for the server's word."""
    page.locator("#switch").click()
    expect(page.locator("#switch-state")).to_contain_text("Web search is on")


def box(page: Page) -> Locator:
    """Where the question is written."""
    return page.locator("#question")


def ask(page: Page, question: str = QUESTION) -> None:
    """Writes the question and presses Enter."""
    box(page).fill(question)
    box(page).press("Enter")


def asked(page: Page, question: str = QUESTION) -> Locator:
    """Asks one question more, and gives its turn once it is over."""
    turns = page.locator(".turn").count()
    ask(page, question)
    expect(page.locator(".turn")).to_have_count(turns + 1)
    return wait_for_answer(page)


def begun(page: Page, ollama: LedOllama, question: str, *answer: Any) -> Locator:
    """Asks the local model, which answers so; the turn once it has begun."""
    said = answer or ("Yes.",)
    ollama.script = lambda messages: (
        said[0]
        if isinstance(said[0], Reply)
        else [piece(messages) if callable(piece) else piece for piece in said]
    )
    if not page.locator('#model[data-id^="ollama:"]').count():
        choose_model(page, LOCAL)
    turns = page.locator(".turn").count()
    ask(page, question)
    expect(page.locator(".turn")).to_have_count(turns + 1)
    return last_turn(page)


def told(page: Page, ollama: LedOllama, question: str, *answer: Any) -> Locator:
    """The same once it is over."""
    begun(page, ollama, question, *answer)
    return wait_for_answer(page)


def give(page: Page, *files: tuple[str, str, bytes]) -> None:
    """Chooses files as the button's dialog does."""
    given = [{"name": n, "mimeType": kind, "buffer": data} for n, kind, data in files]
    page.locator("#files").set_input_files(given)  # type: ignore[arg-type]


def open_chat(page: Page, house: House, chat: str) -> None:
    """Goes to a chat by its address."""
    page.goto(f"{house.url}#/s/{chat}")


def chat_of(page: Page) -> str:
    """The id of the chat on show."""
    return page.url.rpartition("/")[2]


def row(page: Page, chat: str) -> Locator:
    """A chat in the list."""
    return page.locator(f'.session[data-id="{chat}"]')


def do(page: Page, chat: str, what: str) -> None:
    """An entry of the menu of a chat in the list."""
    row(page, chat).hover()
    row(page, chat).get_by_role("button", name="More for").click()
    page.get_by_role("menuitem", name=what, exact=True).click()


def hold(page: Page, path: str) -> list[Route]:
    """Requests that the server does not get before the test lets them go on."""
    held: list[Route] = []
    page.route(path, lambda route: held.append(route))
    return held


def came(page: Page, held: list[Route], count: int = 1) -> None:
    """Waits for so many of the requests that are held."""
    until(lambda: page.evaluate("1") and len(held) >= count)  # which lets the page go on


def place(locator: Locator) -> FloatRect:
    """Where it is on the screen."""
    found = locator.bounding_box()
    assert found, f"{locator} is not shown"
    return found


def model(page: Page) -> Locator:
    """The button that shows the chosen model and opens the list."""
    return page.get_by_role("button", name=re.compile("^Model "))


def choose_model(page: Page, wanted: str) -> None:
    """Picks a model by its id, and waits for the server's word."""
    model(page).click()
    with page.expect_response(lambda r: r.request.method in ("POST", "PATCH")):
        page.locator(f'[role="option"][data-id="{wanted}"]').click()
    expect(model(page)).to_have_attribute("data-id", wanted)


def choose(page: Page, button: str, value: str) -> None:
    """Takes an entry of a menu of the composer, and waits for the server's word."""
    page.locator(f"#{button}").click()
    names = {"ask": "Ask", "plan": "Plan", "agent": "Agent"}
    names |= {"auto": "Auto", "native": "Model", "local": "Local"}
    with page.expect_response(lambda r: r.request.method in ("POST", "PATCH")):
        page.get_by_role("menuitemradio", name=re.compile(f"^{names[value]}")).click()
    expect(page.locator(f"#{button}")).to_have_attribute("data-value", value)


def last_turn(page: Page) -> Locator:
    """The newest question with its answer."""
    return page.locator(".turn").last


def wait_for_answer(page: Page) -> Locator:
    """The newest turn once it is over."""
    turn = last_turn(page)
    expect(turn).to_have_attribute("aria-busy", "false")
    return turn
