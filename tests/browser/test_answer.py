"""What an answer may hold, on a phone: tables, code, formulas, groups of chips, and their cards."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Enter
from tests.browser.house import House
from tests.browser.steps import last_turn, open_chat, place
from tests.browser.test_evidence import answered, cites, show
from tests.waiting import until

pytestmark = pytest.mark.integration

CODE = "def tide(hours):\n    return hours % 12.42  # and a comment that no phone has room for\n"
URL = "https://very-long.example/" + "x" * 200
TEXT = (
    f"High water comes **twice a day** [1][2][3][4]. Later there [3].\n\n"
    "| Coast | High water | Remark | Low water |\n|---|---|---|---|\n"
    f"| Northumberland | 06:12 and 18:37 | uninterrupted | 12:20 |\n\n```python\n{CODE}```\n\n"
    f"It follows $h = A \\cos(2\\pi t / T)$, says {URL}.\n"
)
PLACES = ("north", "south", "east", "west", "upper")
BROKEN_WORDS = """() => [...document.querySelectorAll(".answer :is(th, td)")].flatMap((cell) => {
  const text = cell.firstChild, range = document.createRange();
  return [...text.data.matchAll(/\\S+/g)].filter((word) => {
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    return range.getClientRects().length > 1;
  }).map((word) => word[0]);
})"""


def shown(page: Page, house: House) -> None:
    """Opens a chat whose log holds the answer."""
    sources: list[dict[str, Any]] = [
        {"n": n, "url": f"https://{at}.example/", "title": f"The {at} coast", "state": "found"}
        for n, at in enumerate(PLACES, 1)
    ]
    sources[0] |= {"published": "2026-03-09", "state": "opened"}
    cited = cites(TEXT, *[{"verified": None}] * 5)
    cited = [{**each, **source} for each, source in zip(cited, sources, strict=False)]
    show(page, house, answered(house, text=TEXT, citations=cited, sources=sources))


def test_everything_fits_a_phone_and_can_be_reached(enter: Enter, house: House) -> None:
    """No word of a table is broken, nothing sticks out, each source of a group has its own card."""
    page = enter(viewport={"width": 320, "height": 640}, has_touch=True, is_mobile=True)
    shown(page, house)
    answer = last_turn(page).locator(".answer")
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.evaluate(BROKEN_WORDS) == []
    table = answer.locator(".scroll-x")
    assert table.evaluate("n => n.scrollWidth > n.clientWidth"), "it can be scrolled"
    expect(table).to_have_attribute("tabindex", "0")
    formula = answer.locator("math")
    assert formula.evaluate("n => n.namespaceURI") == "http://www.w3.org/1998/Math/MathML"
    expect(formula).to_have_attribute("alttext", r"h = A \cos(2\pi t / T)")
    more = answer.get_by_role("button", name="3 more sources")
    expect(more).to_have_text("+3")
    more.focus()
    page.keyboard.press("Enter")
    expect(answer.locator(".chip").nth(1)).to_be_focused()
    expect(answer.locator("p").first.locator(".chip:visible")).to_have_text(
        ["1", "2", "3", "4", "3"]
    )
    card = page.locator("#card")
    expect(card).to_contain_text("The south coast")
    answer.locator(".chip").first.focus()
    expect(card).to_contain_text("The north coast")
    expect(card).to_contain_text("north.example · Mar 9, 2026")
    listed = last_turn(page).locator(".sources .source-host").first
    expect(listed).to_have_text("north.example · Mar 9, 2026")
    box = place(card)
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 320
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    expect(last_turn(page).locator(".sources .counts")).to_have_text("4 cited, 1 read, 5 found")


def test_code_is_coloured_and_copied_as_it_stands(enter: Enter, house: House) -> None:
    """The button puts the code and nothing else on the clipboard, and says so.

    Over plain HTTP from another machine there is no clipboard object: it is copied all the same.
    """
    page = enter()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown(page, house)
    code = last_turn(page).locator(".code")
    expect(code.locator(".key").first).to_have_text("def")
    expect(code.locator(".com")).to_contain_text("and a comment")
    code.get_by_role("button", name="Copy code").click()
    expect(code.get_by_role("button")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == CODE
    page.evaluate("navigator.clipboard.writeText('else')")
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })"
    )
    code.get_by_role("button").click()
    page.evaluate("delete navigator.clipboard")
    until(lambda: page.evaluate("navigator.clipboard.readText()") == CODE)
    expect(code.get_by_role("button")).to_have_text("Copy code")


def test_what_was_searched_and_read_is_told_and_folded(page: Page, house: House) -> None:
    """Who was asked in vain and why, what was read, how long; then one line, and the footer."""
    limited = {"engine": "brave", "status": "error", "ms": 80, "error": {"code": "rate"}}
    used = {"engine": "ddg", "status": "ok", "ms": 300}
    one, two = ({"query": query, "by": "local"} for query in ("tides north", "tides south"))
    done = {"status": "ok", "results": 5, "attempts": [limited, used]}
    read = [
        {"url": f"https://{place}.example/", "status": "ok", "title": place} for place in PLACES
    ]
    usage = {"searches": 2, "pages": 3, "seconds": 6.24, "input_tokens": 1200, "output_tokens": 80}
    ended = {"run_id": "r", "reason": "stop", "answer": "High.", "search_path": "local:ddg"}
    links = [{"text": "tide tables", "url": "https://provider.example/search?q=tide+tables"}]
    started = {"run_id": "r", **LUNA, "local": False}
    asked = [("user_message", {"text": "Tides?"}), ("search_started", one)]
    chat = house.chat(*asked, ("run_started", started), model=LUNA["model"])
    open_chat(page, house, chat)
    activity = last_turn(page).locator(".activity")
    expect(activity.locator("li")).to_have_text("Searching the web: “tides north”")
    expect(activity.locator(".spinner")).to_be_visible()
    more = [("search_finished", {**one, **done}), ("page_opened", read[0])]
    more += [("search_started", two), ("search_finished", {**two, **done, "attempts": [used]})]
    house.log.append(chat, [*more, ("page_opened", read[1]), ("page_opened", read[2])])
    expect(activity.locator("li")).to_have_text(
        [
            "Searched “tides north” · 5 results · Brave: too many requests · used DuckDuckGo",
            "Read north.example · north",
            "Searched “tides south” · 5 results · used DuckDuckGo",
            "Read south.example · south",
            "Read east.example · east",
        ]
    )
    expect(activity.locator(".spinner")).to_have_count(0)
    lists = {"citations": [], "sources": [], "usage": {**usage, "cost_usd": 0.0312}}
    message = {"text": "High.", "tool_calls": [], "suggestions": links}
    end = [("message", message), ("run_finished", {**ended, **lists})]
    house.log.append(chat, end)
    summary = activity.locator("summary").first
    expect(summary).to_have_text("Searched 2 queries, read 3 pages, 6.2\u00a0s")
    expect(activity.locator("li").first).to_be_hidden()
    facts = last_turn(page).locator(".facts > div")
    expect(facts).to_have_text(
        [
            "Answered byOpenAI · gpt-6-luna",
            "Searched bylocal: DuckDuckGo",
            "Time6.2\u00a0s",
            "Tokens1,200 tokens in, 80 out",
            "Costabout 0.03 USD",
            "Left this computerthe chat, to OpenAI, 2 search queries, 3 page requests",
        ]
    )
    dead = {"status": "error", "error": {"code": "timeout", "message": "Too slow.", "remedy": ""}}
    lost = [("page_opened", {"url": f"https://{place}.example/", **dead}) for place in PLACES[:3]]
    events = (*asked, ("run_started", started), *more[:1], *lost, *end)
    open_chat(page, house, house.chat(*events, model=LUNA["model"]))
    told = "Searched 1 query, 3 pages could not be read, 6.2\u00a0s"
    expect(last_turn(page).locator(".activity > summary")).to_have_text(told)
    page.go_back()
    related = last_turn(page).locator(".related")
    expect(related).to_contain_text("Related searches at provider.example")
    link = related.get_by_role("link", name="tide tables")
    expect(link).to_have_attribute("href", links[0]["url"])
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")


LUNA = {"model": "openai:gpt-6-luna", "mode": "ask", "search": "off"}
THOUGHT = {"input_tokens": 9, "output_tokens": 2400, "reasoning_tokens": 2150}
SPED = {"tokens_per_second": 23.456, "calls": "envelope"}
SEARCHED = {"query": "tides 2023", "by": "local"}
FOUND = ("search_finished", {**SEARCHED, "status": "ok", "results": 2, "attempts": []})
# How it ran, how it ended, what is told of that, and what is not.
TOLD: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...], tuple[str, ...]]] = {
    "here": ({"local": True}, {}, ("Left this computerNothing", "Time", "no search"), ()),
    "imported": ({"imported": True}, {}, ("Answered byOpenAI",), ("Left this computer", "Time")),
    "thinking, at a price": (
        {"effort": "high"},
        {"usage": THOUGHT, "performance": {"thinking_usd": 0.0215}},
        ("Thinking: High, 2,150 tokens", "Thinking2,150 of the tokens out, about 0.02 USD"),
        (),
    ),
    "thinking": ({}, {"usage": THOUGHT}, ("2,150 of the tokens out, cost unknown",), ()),
    "a local model": (
        {},
        {"performance": SPED},
        ("23.5 tokens/s", "asked in JSON what to look up"),
        (),
    ),
}


def test_what_was_recorded_is_told_whatever_is_set_now(page: Page, house: House) -> None:
    """Where the model was, what it thought at what cost, its speed, and the way of its calls;
    of an imported answer nothing is claimed."""
    for case, (run, end, said, unsaid) in TOLD.items():
        ended = {"run_id": "r", "reason": "stop", "answer": case, "search_path": "off", **end}
        started = {"run_id": "r", **LUNA, **run}
        events = [("user_message", {"text": "Tides?"}), ("run_started", started)]
        events += [("search_started", SEARCHED), FOUND]
        open_chat(page, house, house.chat(*events, ("run_finished", ended), model=LUNA["model"]))
        expect(last_turn(page).locator(".answer")).to_have_text(case)
        last_turn(page).locator(".activity > summary").click()
        told = last_turn(page).locator(".activity")
        for words in said:
            expect(told).to_contain_text(words)
        for words in unsaid:
            expect(told).not_to_contain_text(words)
