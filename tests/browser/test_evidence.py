"""What an answer rests on, as a reader sees it: quotes where they are cited."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Browser, Page, expect

from searchloop.agent.log import EventLog
from searchloop.agent.types import NOTHING
from tests.browser.house import House

URL = "https://tide.example/table"
TEXT = "Ebb is at six [1]. Flood is at noon [1]. Nobody swims [1]."
MARKS = [
    {"span": [14, 17], "quote": "Low water: 06:00", "verified": True},
    {"span": [36, 39], "quote": "High water: 12:00", "verified": False},
    {"span": [54, 57], "quote": None, "verified": False},
]


def answered(
    house: House, *events: tuple[str, dict[str, Any]], text: str = TEXT, **more: Any
) -> str:
    """A chat in the log of the server with one answer, and `events` before that; its id."""
    title = more.pop("title", "When is ebb?")
    log = EventLog(house.home / "data" / "sessions.sqlite3")
    chat = log.create_session(model="builtin:extractive").id
    cited = {"n": 1, "url": URL, "title": "Tides", "quote": None, "verified": False, "spans": []}
    source = {"n": 1, "url": URL, "title": "Tides", "state": "cited"}
    shared: dict[str, Any] = {
        "citations": [{**cited, "marks": MARKS}],
        "sources": [source],
        "usage": NOTHING.as_dict(),
        **more,
    }
    path = {"search_path": "local:ddg"}
    log.append(
        chat,
        [
            ("user_message", {"text": title}),
            (
                "run_started",
                {"run_id": "r", "model": "m:x", "mode": "ask", "search": "off", **path},
            ),
            *events,
            ("message", {"text": text, **shared}),
            ("run_finished", {"run_id": "r", "reason": "stop", "answer": text, **path, **shared}),
        ],
    )
    log.update_session(chat, title=title)
    log.close()
    return chat


def show(page: Page, house: House, chat: str) -> None:
    """Opens a chat by its address."""
    page.goto(f"{house.url}#/s/{chat}")
    expect(page.locator(".turn-foot")).to_be_visible()


ARABIC = (
    "المدّ يأتي عند الظهر [1]، انظر `tide --utc` هنا.\n\n1. אבג ראשון\n2. second\n\n"
    "| الميناء | Time |\n|---|---|\n| حيفا | 12:00 |\n\n```python\nprint('شمال')\n```\n"
)


def test_a_search_that_failed_is_not_folded_away(page: Page, house: House) -> None:
    """The one line that stays says that it failed, and how many did where others did not."""
    error = {"code": "resting", "message": "Brave failed a moment ago (rate).", "remedy": ""}
    asked = [{"engine": "brave", "status": "skipped", "ms": 0, "error": error}]
    found = {"query": "ebb", "by": "local:ddg", "status": "ok", "results": 2, "attempts": asked}
    lost = {"query": "flood", "by": "local", "status": "error", "results": 0, "attempts": []}
    summary = page.locator(".activity > summary")
    show(page, house, answered(house, ("search_finished", lost)))
    expect(summary).to_contain_text(re.compile(r"^Search failed, "))
    show(page, house, answered(house, ("search_finished", lost), ("search_finished", found)))
    expect(summary).to_contain_text(re.compile(r"^Searched 2 queries, 1 failed, "))
    summary.click()
    trail = "2 results · Brave failed a moment ago (rate)"
    expect(page.locator(".step").last).to_have_text(f"Searched “ebb” · {trail}")


def test_what_changes_the_meaning_of_a_result_is_shown(page: Page, house: House) -> None:
    """A search that was widened and a page that is an old copy say so in their lines."""
    lifted = "Nothing was found with time_range=d, so the search was repeated without."
    copy = "This is a stored copy of 2026-05-06, 200 days old."
    notes = [[{"code": code, "message": said}] for code, said in (("x", lifted), ("y", copy))]
    found = {"query": "ebb", "by": "local:ddg", "status": "ok", "results": 1, "notes": notes[0]}
    read = {"url": URL, "status": "ok", "title": "Ebb", "notes": notes[1]}
    show(page, house, answered(house, ("search_finished", found), ("page_opened", read)))
    page.locator(".activity > summary").click()
    expect(page.locator(".step").first).to_contain_text(lifted.removesuffix("."))
    expect(page.locator(".step").last).to_contain_text(copy.removesuffix("."))


SIDES = """() => {
  const of = (css) => getComputedStyle(document.querySelector(css)).direction;
  const found = {};
  for (const css of ["#title", ".session a", ".bubble", ".answer > p", ".answer > ol",
    ".answer > .scroll-x", ".answer .code", ".answer pre", ".answer p code",
    ".answer .chip"]) found[css] = of(css);
  const text = document.createRange();
  text.selectNodeContents(document.querySelectorAll(".answer li")[1]);
  const item = document.querySelectorAll(".answer li")[1].getBoundingClientRect();
  const gap = item.right - text.getBoundingClientRect().right;
  found["English in a Hebrew list"] = gap < 2 ? "rtl" : "ltr";
  return found;
}"""


def test_text_from_right_to_left_stands_on_its_side(page: Page, house: House) -> None:
    """Title, question, paragraph, list and table go by their own letters; code never turns."""
    read = {"url": URL, "status": "ok", "title": "לוח גאות", "invisible": 3}
    found = {"query": "ebb", "by": "local:ddg", "status": "ok", "results": 2, "invisible": 4}
    steps = [("search_finished", found), ("page_opened", read)]
    chat = answered(house, *steps, text=ARABIC, citations=[], title="متى الجزر؟")
    show(page, house, chat)
    expect(page.locator(".session a").first).to_have_text("متى الجزر؟")
    expect(page.locator(".answer .chip")).to_be_visible()
    sides = page.evaluate(SIDES)
    turned = {css for css, side in sides.items() if side == "rtl"}
    assert turned == {
        *("#title", ".bubble", ".answer > p", ".answer > ol", ".answer > .scroll-x"),
        *(".session a", ".answer .chip", "English in a Hebrew list"),
    }
    page.locator(".activity > summary").click()
    expect(page.locator(".step")).to_contain_text(
        ["4 invisible characters removed", "3 invisible characters removed"]
    )
    page.locator(".answer .chip").focus()
    expect(page.locator("#card")).to_contain_text("3 invisible characters removed")
    page.locator(".session").first.hover()
    page.get_by_role("button", name="Delete “").first.click()
    expect(page.locator(".toast")).to_have_text("Deleted “\u2068متى الجزر؟\u2069”.Undo")
    page.locator(".toast button").click()


PLACES = """async (urls) => {
  const { placeOf } = await import("/static/lib/dom.js");
  return urls.map(placeOf);
}"""


def test_documents_of_this_machine_have_names(browser: Browser, house: House) -> None:
    """A page of an archive is called by archive and title, a file of the library by its path."""
    told = {
        "zim://wikipedia_en/A/Low_water%20mark#Tides": "wikipedia_en · A/Low water mark",
        "zim://wikipedia_en": "wikipedia_en",
        "library://docs/search-switch.md#auto": "Library · docs/search-switch.md",
        "https://www.tide.example/a?b": "tide.example",
    }
    page = browser.new_context(bypass_csp=True).new_page()
    page.goto(house.start_url)
    assert page.evaluate(PLACES, list(told)) == list(told.values())
    page.context.close()


def test_a_chip_shows_the_quote_of_its_own_place(page: Page, house: House) -> None:
    """One source, three places: each has its own quote and its own verdict."""
    show(page, house, answered(house))
    chips, card = page.locator(".answer .chip"), page.locator("#card")
    told = [
        ("Low water: 06:00", "Quote found in the page"),
        ("High water: 12:00", "Quote not found in the page"),
        ("", "Quote not found in the page"),
    ]
    for place, (quote, verdict) in enumerate(told):
        chips.nth(place).focus()
        expect(card.locator("blockquote")).to_have_text([quote] if quote else [])
        expect(card.locator(".verdict")).to_have_text([verdict])
        expect(chips.nth(place)).to_have_accessible_description(re.compile(f"{quote}.*{verdict}$"))
    expect(page.locator(".source .verdict")).to_have_text("cited · 1 of 3 places verified")
