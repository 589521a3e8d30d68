"""What an answer rests on, as a reader sees it: quotes where they are cited."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from agent.log import EventLog
from agent.types import NOTHING
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
            ("user_message", {"text": "When is ebb?"}),
            (
                "run_started",
                {"run_id": "r", "model": "m:x", "mode": "ask", "search": "off", **path},
            ),
            *events,
            ("message", {"text": text, **shared}),
            ("run_finished", {"run_id": "r", "reason": "stop", "answer": text, **path, **shared}),
        ],
    )
    log.close()
    return chat


def show(page: Page, house: House, chat: str) -> None:
    """Opens a chat by its address."""
    page.goto(f"{house.url}#/s/{chat}")
    page.reload()
    expect(page.locator(".turn-foot")).to_be_visible()


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
    expect(page.locator(".source .verdict")).to_have_text("cited · 1 of 3 places verified")
