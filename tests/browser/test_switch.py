"""The web-search switch says what is true, in every tab, and the model gets what it says."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.browser.house import LOCAL, MODEL, House, LedOllama
from tests.browser.steps import (
    ask,
    asked,
    box,
    chat_of,
    choose,
    choose_model,
    hold,
    model,
    open_chat,
    switch,
    turn_on,
    wait_for_answer,
)
from tests.browser.test_settings import opened


def tools(ollama: LedOllama) -> set[str]:
    """The names of the tools in the last request that the model got."""
    offered: list[dict[str, Any]] = ollama.chats[-1].get("tools") or []
    return {tool["function"]["name"] for tool in offered}


def saved(house: House, page: Page) -> Any:
    """The chat's settings as the server has them."""
    return house.call("GET", f"/api/sessions/{page.url.rpartition('/')[2]}")


def test_what_is_shown_is_what_the_next_request_holds(
    page: Page, house: House, ollama: LedOllama
) -> None:
    """After a switch, a reload, another model and a new chat: shown, saved and sent are one. A chat
    in which it was only tried leaves no trace."""
    ollama.script = lambda messages: ["Yes."]
    choose_model(page, LOCAL)
    turn_on(page)
    assert saved(house, page)["search"] == "auto"
    page.reload()
    expect(switch(page)).to_be_checked()
    asked(page, "One")
    assert "web_search" in tools(ollama)
    page.locator("#switch").click()
    expect(switch(page)).not_to_be_checked()
    asked(page, "Two")
    assert "web_search" not in tools(ollama)
    assert saved(house, page)["search"] == "off"
    turn_on(page)
    new = page.get_by_role("button", name="New chat", exact=True)
    new.click()
    expect(switch(page)).not_to_be_checked()
    turn_on(page)
    tried = chat_of(page)
    with page.expect_response(lambda r: r.request.method == "DELETE"):
        new.click()
    assert tried not in [s["id"] for s in house.call("GET", "/api/sessions")["sessions"]]


def test_what_cannot_be_done_is_said_with_the_next_step(page: Page) -> None:
    """The model's own search, for a model that has none: remembered, but not pretended. A change
    that the server did not get is not shown as if it had."""
    turn_on(page)
    choose(page, "via", "native")
    state = page.locator("#switch-state")
    expect(state).to_contain_text("not available")
    expect(state).to_contain_text("Choose Auto or Local")
    ask(page)
    expect(page.get_by_role("alert")).to_contain_text("own web search")
    expect(page.locator(".turn")).to_have_count(0)
    choose(page, "via", "local")
    expect(state).to_contain_text("searched from here with Library")
    expect(page.get_by_label("Your question")).not_to_have_value("")
    page.route("**/api/sessions/*", lambda route: route.abort())
    page.locator("#switch").click()
    expect(page.get_by_role("alert").last).to_contain_text("does not answer")
    expect(switch(page)).to_be_checked()


NATIVE = {
    "id": "openai:gpt-6-luna",
    "title": "Luna",
    "capabilities": {"native_search": True, "tools": True},
    "available": True,
    "local": False,
    "search_usd": 0.01,
}
MODELS = {"models": [NATIVE], "default": NATIVE["id"], "servers": [], "search": "auto"}
DDG = {"name": "ddg", "position": 1, "available": True, "remote": True, "needs": []}


def settings_changed(page: Page) -> None:
    """As another tab tells it: the models and engines are asked for anew."""
    page.evaluate("new BroadcastChannel('searchloop').postMessage('settings')")


def test_the_switch_says_what_leaves_and_what_it_costs(page: Page, house: House) -> None:
    """To who points at it: nothing leaves, who is told what, the price; in words, who searches."""
    label, state = page.locator("#switch"), page.locator("#switch-state")
    stays = "Only the library is ready: no search leaves this machine.\nSearching costs nothing."
    expect(label).to_have_attribute("title", stays)
    models = dict(MODELS)
    brave = {**DDG, "name": "brave", "position": 2, "needs": ["BRAVE_API_KEY"]}
    engines = {"engines": [DDG, brave], "offline": False}
    page.route("**/api/models", lambda route: route.fulfill(json=models))
    page.route("**/api/engines", lambda route: route.fulfill(json=engines))
    settings_changed(page)
    expect(model(page)).to_have_accessible_name("Model Luna")
    priced = "OpenAI sees this chat.*\nOpenAI charges about 0.01 USD for a search"
    expect(label).to_have_attribute("title", re.compile(priced))
    unlisted = {"model": "openai:gpt-6-new", "search": "auto"}
    open_chat(page, house, house.call("POST", "/api/sessions", unlisted)["id"])
    expect(state).to_contain_text("searched by OpenAI")  # as it would be
    page.goto(f"{house.url}#/")
    either = {"tools": True, "native_search": True, "tools_with_native_search": False}
    models["models"] = [{**NATIVE, "capabilities": either}]
    settings_changed(page)
    own = "Web search is on: searched by OpenAI itself"
    expect(state).to_have_text(f"{own}, or from here with DuckDuckGo beside tools.")
    models["models"] = [{**NATIVE, "capabilities": {"tools": True}}]
    settings_changed(page)
    told = "A search sends its words.*to DuckDuckGo, Brave, and opens pages.*\n"
    told += ".*may count against your key for Brave"
    expect(label).to_have_attribute("title", re.compile(told))
    engines["engines"] = [{**DDG, "resting": {"seconds": 30, "cause": "network"}}, brave]
    settings_changed(page)
    expect(state).to_have_text(
        "Web search is on: searched from here with Brave, read by Luna at OpenAI."
    )
    page.locator("#open-settings").click()
    room = page.locator('#settings nav [data-page="search"] small')
    expect(room).to_have_text("DuckDuckGo (not answering lately), Brave")


def test_rules_that_hold_the_own_search_back_are_told_before_asking(
    page: Page, house: House
) -> None:
    """Who will be asked instead, why, and what to do: in every chat once queries are to be shown
    first, and in one that has read private data."""

    def told(route: Route) -> None:
        held = house.call("GET", "/api/models")["held_back"]
        route.fulfill(json={**MODELS, "held_back": held})

    page.route("**/api/models", told)
    page.route("**/api/engines", lambda route: route.fulfill(json={"engines": [DDG]}))
    settings_changed(page)
    state = page.locator("#switch-state")
    own = "Web search is on: searched by OpenAI itself."
    expect(state).to_have_text(own)
    review = opened(page, "tools").get_by_label("Show me every search query")
    review.check()
    expect(state).to_have_text(
        "Web search is on: searched from here with DuckDuckGo, not by OpenAI itself: your rules "
        "show queries first, which it cannot. Change that in Settings, Tools."
    )
    page.keyboard.press("Escape")
    page.locator("#via").click()
    expect(page.get_by_role("menuitemradio").nth(1)).to_contain_text("Our engines for now")
    page.keyboard.press("Escape")
    house.call("PUT", "/api/policy", {})
    read = {"call_id": "c", "name": "read_file", "is_error": False, "content": "mine"}
    read |= {"details": {"private": True}, "sources": []}
    events = (("user_message", {"text": "Go"}), ("tool_result", read))
    chat = house.chat(*events, model=NATIVE["id"], search="auto")
    open_chat(page, house, chat)
    settings_changed(page)
    expect(state).to_contain_text("itself: your own data is in this chat")
    page.locator("#new-chat").click()
    expect(state).to_have_text(own)


def test_each_mode_and_each_place_says_what_it_is(page: Page) -> None:
    """One line each, for all of them at once, with what is chosen marked."""
    page.locator("#mode").click()
    modes = page.get_by_role("menuitemradio")
    expect(modes).to_have_text(
        [
            "AskAnswers, changes nothing.",
            "PlanLooks around, proposes steps, changes nothing.",
            "AgentMay use every tool you allow.",
        ]
    )
    expect(modes.first).to_be_checked()
    page.keyboard.press("Escape")
    turn_on(page)
    page.locator("#via").click()
    expect(modes).to_have_text(
        [
            "AutoOur engines: this model has no search of its own.",
            "Model’s ownThis model has no web search of its own.",
            "Local (Library)Our engines, asked in this order: Library.",
            "LibraryOnly your library and pages already read",
        ]
    )
    page.keyboard.press("ArrowDown")
    expect(modes.nth(1)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#via")).to_be_focused()


def test_a_question_sent_while_its_chat_opens_is_sent_once_it_is_open(
    page: Page, house: House, ollama: LedOllama
) -> None:
    """Enter is not lost while the page does not know yet how this chat searches."""
    ollama.script = lambda messages: ["Yes."]
    chat = house.call("POST", "/api/sessions", {"model": LOCAL})
    held = hold(page, f"**/api/sessions/{chat['id']}")
    with page.expect_request(f"**/api/sessions/{chat['id']}"):
        page.goto(f"{house.url}#/s/{chat['id']}")
    ask(page, "In time?")
    expect(box(page)).to_have_value("In time?")
    held[0].continue_()
    expect(wait_for_answer(page).locator(".answer")).to_have_text("Yes.")
    expect(page.locator(".bubble")).to_have_text(["In time?"])
    expect(box(page)).to_have_value("")


def test_the_model_picker_is_searched_and_walked_by_keys(page: Page) -> None:
    """What can be chosen comes first, badges say what it can do, keys do the rest."""
    model(page).click()
    options = page.locator(".picker").get_by_role("option")
    expect(options.first).not_to_have_attribute("aria-disabled", "true")
    groups = [
        bool(g.locator(":not([aria-disabled])[role=option]").count())
        for g in page.locator(".picker [role=group]").all()
    ]
    assert groups == sorted(groups, reverse=True)
    expect(page.locator(f'[data-id="ollama:{MODEL}"]')).to_contain_text("on this machine")
    find = page.get_by_role("combobox", name="Find a model")
    expect(find).to_be_focused()
    find.fill("needs nothing like it")
    expect(page.locator(".picker")).to_contain_text("No model matches")
    find.fill("QWEN")
    expect(options).to_have_count(1)
    with page.expect_response(lambda r: r.request.method == "POST"):
        page.keyboard.press("Enter")
    expect(model(page)).to_be_focused()
    expect(model(page)).to_have_accessible_name("Model qwen3:8b (8.2B)")
    model(page).click()
    expect(find).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".picker")).to_have_count(0)
    expect(model(page)).to_be_focused()
