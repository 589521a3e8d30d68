"""What people and times do to a page: many tabs, two questions at once, a server that is gone."""

from __future__ import annotations

import threading

import pytest
from playwright.sync_api import Page, Route, expect

from bench.page import long_session
from tests.browser.checks import sticks_out
from tests.browser.conftest import Enter
from tests.browser.house import LOCAL, House, LedOllama
from tests.browser.steps import (
    ask,
    begun,
    box,
    came,
    chat_of,
    choose_model,
    last_turn,
    open_chat,
    switch,
    told,
    wait_for_answer,
)
from tests.waiting import until

pytestmark = pytest.mark.integration

SLOW = 180_000  # milliseconds that so long a chat may take on a machine that does much else

SEEN = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
  if (!hidden) dispatchEvent(new Event("focus"));
}"""


def test_eight_tabs_on_one_chat(page: Page, ollama: LedOllama) -> None:
    """All of them load and show the answer, though a browser has six connections to a server. A tab
    that is gone back to is told twice, as seen and as focused: it goes on all the same."""
    gate = threading.Event()
    begun(page, ollama, "Count", "One. ", gate, "Two.")
    expect(last_turn(page).locator(".answer")).to_contain_text("One.")
    tabs = [page.context.new_page() for _ in range(7)]
    for tab in tabs:
        tab.goto(page.url)
    for tab in tabs:
        expect(last_turn(tab).locator(".answer")).to_contain_text("One.")
    for hidden in (True, False):
        tabs[0].evaluate(SEEN, hidden)
    gate.set()
    for tab in (page, *tabs):
        expect(wait_for_answer(tab).locator(".answer")).to_have_text("One. Two.")
        expect(tab.locator(".spinner:visible")).to_have_count(0)
    tabs[-1].locator("#switch").click()
    for tab in (page, *tabs):
        expect(switch(tab)).to_be_checked()


def test_two_questions_at_once(page: Page, house: House, ollama: LedOllama) -> None:
    """Two tabs send at the same moment: one is answered, the other keeps its words."""
    gate = threading.Event()
    ollama.script = lambda messages: [gate, "Yes."]
    choose_model(page, LOCAL)
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("#model")).to_have_attribute("data-id", LOCAL)
    send = """(text) => {
      const box = document.querySelector("#question");
      box.value = text;
      box.form.requestSubmit();
    }"""
    held: list[Route] = []
    for tab in (page, other):
        tab.route("**/messages", lambda route: held.append(route))
    page.evaluate(send, "first")
    other.evaluate(send, "second")
    until(lambda: page.evaluate("1") and len(held) == 2)  # neither tab has seen the other's turn
    for route in held:
        route.continue_()
    expect(page.locator(".turn")).to_have_count(1)
    expect(other.locator(".turn")).to_have_count(1)
    boxes = [tab.locator("#question") for tab in (page, other)]
    until(lambda: any(box.input_value() for box in boxes))  # one of them was refused
    gate.set()
    asked = wait_for_answer(page).locator(".bubble").inner_text()
    loser = other if asked == "first" else page
    expect(loser.locator("#question")).to_have_value("second" if asked == "first" else "first")


def test_a_chat_that_is_left_keeps_what_was_asked_of_it(page: Page, ollama: LedOllama) -> None:
    """What comes late is not taken for the chat on show, and no question is sent to it."""
    told(page, ollama, "first")
    first = page.url
    page.locator("#new-chat").click()
    told(page, ollama, "second")
    second = page.url
    slow: list[Route] = []
    page.route("**/api/sessions/*", lambda r: slow.append(r) if _is_change(r) else r.continue_())
    page.locator("#switch").click()
    came(page, slow)
    ask(page, "third")
    page.locator(f'.session[data-id="{first.rpartition("/")[2]}"] a').click()
    expect(last_turn(page).locator(".bubble")).to_have_text("first")
    with page.expect_response("**/messages"):
        slow[0].continue_()
    expect(page.locator("#title")).to_have_text("first")
    expect(switch(page)).not_to_be_checked()
    expect(page.locator(".turn")).to_have_count(1)
    page.goto(second)
    expect(last_turn(page).locator(".bubble")).to_have_text("third")
    expect(switch(page)).to_be_checked()


def _is_change(route: Route) -> bool:
    return route.request.method == "PATCH"


def test_five_hundred_models_are_searched_and_called(
    page: Page, house: House, ollama: LedOllama
) -> None:
    """The picker stays on the screen and finds one by a word; the list of @ names eight at most,
    and each menu under an answer six, with a way to search all of them."""
    turn = told(page, ollama, "Which?")
    known = house.call("GET", "/api/models")
    local = next(model for model in known["models"] if model["id"] == LOCAL)
    many = [{**local, "id": f"ollama:m{n}", "title": f"Model number {n}"} for n in range(500)]
    given = {**known, "models": [*known["models"], *many]}
    page.route("**/api/models", lambda route: route.fulfill(json=given))
    page.evaluate("new BroadcastChannel('searchloop').postMessage('settings')")
    box(page).fill("Kept")
    page.locator("#model").click()
    options = page.locator(".picker").get_by_role("option")
    expect(options.nth(500)).to_be_attached()
    assert sticks_out(page) == []
    page.get_by_role("combobox", name="Find a model").fill("number 499")
    expect(options).to_have_count(1)
    page.keyboard.press("Escape")
    expect(box(page)).to_have_value("Kept")
    box(page).fill("@number")
    expect(page.locator('#slash [role="option"]')).to_have_count(8)
    for tool, entry in (("Ask again", "With "), ("Side by side", "Beside ")):
        turn.get_by_role("button", name=tool).click()
        expect(page.get_by_role("menuitem", name=entry)).to_have_count(6 + (tool == "Ask again"))
        page.get_by_role("menuitem", name="Another model…").click()
        page.get_by_role("combobox", name="Find a model").fill("number 499")
        expect(options).to_have_count(1)
        page.keyboard.press("Escape")


def test_a_chat_of_five_thousand_turns_opens_and_is_asked(
    page: Page, house: House, ollama: LedOllama
) -> None:
    """At its newest turn, which is drawn first; the next question is answered at once."""
    chat = long_session(house.home / "data", turns=5_000, said="Words.", model=LOCAL)
    ollama.script = lambda messages: ["Still here."]
    open_chat(page, house, chat)
    expect(page.locator(".turn")).to_have_count(5_000, timeout=SLOW)
    newest = last_turn(page).locator(".answer")
    expect(newest).to_be_in_viewport()
    page.locator("#question").fill("And now?")  # by roles and names a browser looks at all turns
    page.locator("#question").press("Enter")
    # A look by `expect` while 5,000 turns are drawn takes a busy machine a minute.
    said = "() => [...document.querySelectorAll('.turn .answer')].at(-1).textContent"
    until(lambda: page.evaluate(said) == "Still here.")
    expect(newest).to_be_in_viewport()


def test_a_tab_that_slept_for_a_day_shows_what_came(
    enter: Enter, house: House, ollama: LedOllama
) -> None:
    """What was answered meanwhile is there, what was typed is kept, and today is yesterday."""
    page = enter(fresh=True)
    page.clock.install()
    page.reload()
    told(page, ollama, "Asleep soon?")
    heads = page.locator("#sessions h2")
    expect(heads.first).to_have_text("Today")
    box(page).fill("half a th")
    page.evaluate(SEEN, True)
    path = f"/api/sessions/{chat_of(page)}"
    house.call("POST", f"{path}/messages", {"text": "From elsewhere?"})
    until(lambda: not house.call("GET", path)["running"])
    page.clock.fast_forward("24:00:00")
    page.evaluate(SEEN, False)
    expect(page.locator(".turn")).to_have_count(2)
    expect(wait_for_answer(page).locator(".answer")).to_have_text("Yes.")
    expect(heads.first).to_have_text("Yesterday")
    expect(box(page)).to_have_value("half a th")
    expect(page.locator("#connection")).to_be_hidden()
    expect(page.locator(".spinner:visible")).to_have_count(0)


def test_a_server_of_another_version_offers_a_reload(enter: Enter) -> None:
    """Once, in words of the page's language; what was typed is there after the reload, and so is
    nothing of the offer."""
    page = enter(fresh=True, locale="de-DE")
    other = {"name": "searchloop", "status": "ok", "version": "99.0"}
    page.route("**/api/health", lambda route: route.fulfill(json=other))
    page.locator("#question").fill("Half a thou")
    for _ in range(2):
        page.evaluate("dispatchEvent(new Event('focus'))")
        expect(page.locator("#updated")).to_contain_text("aktualisiert")
    expect(page.locator("#updated")).to_have_count(1)
    page.unroute("**/api/health")
    page.locator("#updated button").press("Enter")
    page.locator(".suggestions").wait_for()
    expect(page.locator("#question")).to_have_value("Half a thou")
    expect(page.locator("#updated")).to_have_count(0)


GONE = {"s/abcdefghijklmnopqrstuvwx": "deleted", "p/nothing": "no project"}


def test_a_link_to_what_is_gone_says_so(page: Page, house: House) -> None:
    """A bookmark of a chat or a project: a sentence, an empty chat, and the words in the box."""
    box(page).fill("Kept")
    for address, words in GONE.items():
        page.goto(f"{house.url}#/{address}")
        expect(page.get_by_role("alert").filter(has_text=words)).to_be_visible()
        expect(box(page)).to_have_value("Kept")
        expect(page).to_have_url(f"{house.url}#/")
