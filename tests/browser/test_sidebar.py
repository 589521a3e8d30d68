"""The list of chats: found, renamed, deleted and taken back."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Enter
from tests.browser.house import LOCAL, STALL, House, LedOllama
from tests.browser.steps import ask, asked, came, chat_of, do, hold, model, place, row
from tests.waiting import until

pytestmark = pytest.mark.integration

TITLES = ("Trains at night", "Résumé שלום 🚂")


@pytest.fixture
def chats(house: House, ollama: LedOllama) -> list[str]:
    """Two chats with something in them, the newest first; no others."""
    house.call("DELETE", "/api/sessions")
    ollama.script = lambda messages: ["Yes."]
    return [house.asked(title, model=LOCAL) for title in TITLES][::-1]


def test_chats_are_listed_opened_renamed_and_pinned(
    chats: list[str], page: Page, house: House, ollama: LedOllama
) -> None:
    """Today's chats stand under Today; a click opens one with its settings, the browser's Back
    returns. Enter keeps a new name, Escape the old one. A pin survives a reload; a temporary chat
    is not listed and is gone once it is left."""
    expect(page.locator("#sessions h2")).to_have_text(["Today"])
    row(page, chats[0]).locator("a").click()
    expect(page.locator("#title")).to_have_text(TITLES[1])
    row(page, chats[1]).locator("a").click()
    expect(page.locator("#title")).to_have_text(TITLES[0])
    expect(page.locator(".bubble")).to_have_text(TITLES[0])
    expect(model(page)).to_have_attribute("data-id", LOCAL)
    page.go_back()
    expect(page.locator("#title")).to_have_text(TITLES[1])
    line = row(page, chats[1])
    for typed, key in (("Night trains", "Enter"), ("something else", "Escape")):
        do(page, chats[1], "Rename")
        page.keyboard.type(typed)
        page.keyboard.press(key)
        expect(line.locator("a")).to_have_text("Night trains")
    assert house.call("GET", f"/api/sessions/{chats[1]}")["title"] == "Night trains"
    ollama.script = lambda messages: ["Between us."]
    do(page, chats[1], "Pin")
    expect(page.locator("#sessions h2")).to_have_text(["Pinned", "Today"])
    page.reload()
    expect(page.locator(".session").first).to_have_attribute("data-id", chats[1])
    page.get_by_role("button", name="New temporary chat").click()
    expect(page.locator("#temporary")).to_be_visible()
    ask(page, "/pl")
    expect(page.get_by_role("button", name="Mode Plan")).to_be_visible()
    asked(page, "Not to be kept")
    chat = chat_of(page)
    expect(page.locator(".session")).to_have_count(2)
    with page.expect_response(lambda r: r.request.method == "DELETE" and chat in r.url):
        page.get_by_role("button", name="New chat", exact=True).click()
    expect(page.locator("#temporary")).to_be_hidden()


def test_search_narrows_the_list(chats: list[str], page: Page) -> None:
    """Letters leave what has them; nothing found is said; what was found for earlier letters does
    not stand under the later ones."""
    late = hold(page, "**/api/sessions?*q=late*")
    page.get_by_label("Search chats").fill("late")
    came(page, late)
    page.get_by_label("Search chats").fill("night")
    expect(page.locator(".session")).to_have_count(1)
    with page.expect_response("**/api/sessions?*q=late*") as found:
        late[0].continue_()
    found.value.finished()
    page.evaluate("new Promise(requestAnimationFrame)")
    expect(page.locator(".session")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(page.locator(".session > a")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("Search chats")).to_be_focused()
    page.get_by_label("Search chats").fill("zebra")
    expect(page.locator("#sessions")).to_contain_text("No chat matches “zebra”.")
    page.get_by_label("Search chats").fill("")
    expect(page.locator(".session")).to_have_count(2)


def test_deleting_can_be_taken_back(chats: list[str], page: Page, house: House) -> None:
    """Undo opens the chat again; without it the chat is gone when the page is left. A deletion that
    the server did not hear of in that moment is made by the next page."""
    line = row(page, chats[0])
    line.locator("a").click()
    do(page, chats[0], "Delete")
    expect(line).to_have_count(0)
    expect(page.locator("#title")).to_have_text("New chat")
    undo = page.get_by_role("button", name="Undo")
    toast, composer = place(undo), place(page.locator("#composer"))
    assert toast["y"] + toast["height"] <= composer["y"], "it hides the question"
    undo.click()
    expect(line).to_have_count(1)
    expect(page.locator("#title")).to_have_text(TITLES[1])
    do(page, chats[0], "Delete")
    expect(line).to_have_count(0)
    page.goto(house.url + "?left")
    expect(page.locator(".session")).to_have_count(1)
    left = [s["id"] for s in house.call("GET", "/api/sessions")["sessions"]]
    assert left == [chats[1]]
    page.evaluate("(id) => sessionStorage.setItem('searchloop.deleting', id)", chats[1])
    page.reload()
    expect(page.locator(".session")).to_have_count(0)
    until(lambda: house.call("GET", "/api/sessions")["sessions"] == [])
    until(lambda: not page.evaluate("sessionStorage.getItem('searchloop.deleting')"))


def test_a_chat_that_answers_has_a_dot(chats: list[str], page: Page, ollama: LedOllama) -> None:
    """One sees from another chat that this one is busy, and that it is done."""
    ollama.script = lambda messages: ["Slowly", STALL]
    row(page, chats[0]).locator("a").click()
    expect(page.locator("#title")).to_have_text(TITLES[1])
    ask(page, "Go on")
    busy = row(page, chats[0]).get_by_role("img", name="answering now")
    expect(busy).to_be_visible()
    row(page, chats[1]).locator("a").click()
    expect(busy).to_be_visible()
    row(page, chats[0]).locator("a").click()
    page.get_by_role("button", name="Stop answering").click()
    expect(busy).to_have_count(0)


def test_the_list_is_put_away_and_stays_so(enter: Enter) -> None:
    """By mouse and keys, over a reload; a search for a chat brings it back."""
    page = enter(fresh=True)
    hide, bring = page.locator("#close-sidebar"), page.locator("#open-sidebar")
    expect(bring).to_be_hidden()
    hide.click()
    expect(page.locator("#sidebar")).to_be_hidden()
    expect(bring).to_be_focused()
    assert place(page.locator("#main"))["x"] == 0
    page.reload()
    expect(page.locator(".suggestions")).to_be_visible()
    expect(page.locator("#sidebar")).to_be_hidden()
    bring.press("Enter")
    expect(page.locator("#sidebar")).to_be_visible()
    expect(page.locator("#new-chat")).to_be_focused()
    hide.press("Enter")
    page.keyboard.press("Control+k")
    expect(page.get_by_label("Search chats")).to_be_focused()
    page.reload()
    expect(page.locator("#sidebar")).to_be_visible()


def test_older_chats_are_a_click_away(page: Page, house: House) -> None:
    """The list holds the newest; who asks gets more, and the focus stands at the first of them."""
    known = {"id": "", "title": "", "model": "m:x", "mode": "ask", "search": "off", "messages": 1}

    def answer(route: Route) -> None:
        most = int(parse_qs(urlsplit(route.request.url).query)["limit"][0])
        many = range(min(most, 205))
        listed = [{**known, "id": f"c{n}", "title": f"Chat {n}", "updated": -n} for n in many]
        route.fulfill(json={"sessions": listed})

    page.route("**/api/sessions?*", answer)
    page.reload()
    expect(page.locator(".session")).to_have_count(200)
    page.get_by_role("button", name="Show older chats").press("Enter")
    expect(page.locator(".session")).to_have_count(205)
    expect(page.get_by_role("link", name="Chat 200", exact=True)).to_be_focused()
    expect(page.get_by_role("button", name="Show older chats")).to_have_count(0)


def test_words_of_a_chat_are_found_and_lead_to_their_turn(
    page: Page, house: House, ollama: LedOllama
) -> None:
    """Snippets with marked words; a click scrolls to the turn, also to another version of it."""
    ollama.script = lambda messages: ["The samovar is hot. " + "It rains. " * 400]
    chat = house.asked("Where is the zeppelin?", "And tea?", "And then?", model=LOCAL)
    path = f"/api/sessions/{chat}"
    first = next(event.seq for event in house.log.read(chat) if event.type == "user_message")
    page.get_by_role("searchbox", name="Search chats").fill("zeppelins")
    place = page.locator(".places a")
    expect(place).to_have_count(1)
    expect(place.locator("mark")).to_have_text("zeppelin")
    expect(page.locator("#sessions h2")).to_have_text(["Found"])
    place.click()
    turn = page.locator(f'.turn[data-seq="{first}"]')
    expect(turn).to_be_in_viewport()
    expect(turn).to_have_class(re.compile("sought"))
    house.call("POST", f"{path}/messages", {"text": "Another?", "replaces": first})
    until(lambda: not house.call("GET", path)["running"])
    expect(turn).to_have_count(0)
    address = page.url.partition("#")[0]
    page.goto("about:blank")
    page.goto(f"{address}#/s/{chat}/{first}")
    expect(turn).to_be_in_viewport()
