"""A model judges the marks of an answer, when the user asks for it."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from searchloop.agent.log import EventLog
from tests import six_verdicts
from tests.browser.conftest import Enter
from tests.browser.house import MODEL, House, LedOllama
from tests.browser.test_evidence import answered, show

pytestmark = pytest.mark.integration


def test_a_model_gives_its_verdicts_beside_ours(
    page: Page, house: House, ollama: LedOllama
) -> None:
    """Each card shows both; the foot says who read how much; a reload keeps it."""
    said = {"verdict": "supported", "reason": "<b>It says so.</b>"}
    ollama.script = lambda messages: [json.dumps(said)]
    show(page, house, answered(house, **six_verdicts.answer()))
    page.locator(".turn").hover()
    page.get_by_role("button", name="Check with a model").click()
    page.get_by_role("menuitem", name=MODEL).click()
    copy = page.get_by_role("button", name="Copy the answer with its sources")
    copy.focus()
    foot = page.locator(".turn-foot [role=status]")
    expect(foot).to_contain_text(f"ollama:{MODEL} has read 5 passages")
    expect(copy).to_be_focused()  # though it is drawn anew
    page.reload()
    expect(foot).to_contain_text(f"ollama:{MODEL} has read 5 passages")
    chip, card = page.locator(".answer .chip").nth(3), page.locator("#card")
    chip.hover()
    expect(card.locator(".verdict")).to_have_text([six_verdicts.WORDS["contradicted"]])
    second = card.locator(".second")
    expect(second).to_contain_text(f"would say: {six_verdicts.WORDS['supported']}.")
    expect(second.locator("q")).to_have_text("<b>It says so.</b>")


def test_what_cannot_be_read_is_said(page: Page, house: House, ollama: LedOllama) -> None:
    """An answer that is no verdict says so, and the button is there again."""
    ollama.script = lambda messages: ["no verdict at all"]
    show(page, house, answered(house, **six_verdicts.answer()))
    page.locator(".turn").hover()
    page.get_by_role("button", name="Check with a model").click()
    page.get_by_role("menuitem", name=MODEL).click()
    expect(page.locator(".turn-foot [role=status]")).to_contain_text("has read 5 passages")
    page.locator(".answer .chip").first.hover()
    expect(page.locator("#card .second q")).to_have_text("The model gave no verdict.")
    expect(page.get_by_role("button", name="Check with a model")).to_be_visible()


def test_a_reading_that_stopped_with_its_server_may_begin_again(enter: Enter, house: House) -> None:
    """Nobody waits for it; what was read and paid counts once, also where the model then fails."""
    page, chat = enter(fresh=True), answered(house, **six_verdicts.answer())
    foot = page.locator(".turn-foot [role=status]")
    ask = page.get_by_role("button", name="Check with a model")
    log = EventLog(house.home / "data" / "sessions.sqlite3")

    def judge(left: int, **more: object) -> None:
        said = {
            "n": 1,
            "mark": 0,
            "verdict": "unclear",
            "reason": "So.",
            "usage": {"cost_usd": 0.5},
        }
        log.append(chat, [("second_reading", {"model": "m:x", "left": left, **said, **more})])

    page.clock.install()
    judge(3)
    show(page, house, chat)
    expect(foot).to_have_text("m:x reads 3 more passages…")
    expect(ask).to_have_count(0)
    page.clock.fast_forward("20:00")
    page.reload()
    expect(foot).to_have_text(
        "m:x has read 1 passage; its verdict stands beside ours · about 0.50 USD"
    )
    expect(ask).to_be_visible()
    judge(3)
    judge(2)
    error = {"code": "rate_limit", "message": "The model is busy.", "remedy": ""}
    judge(0, verdict=None, usage=None, error=error)
    expect(foot).to_have_text("The model is busy. · about 1.00 USD")
    log.close()


def test_a_verdict_that_comes_takes_nothing_from_the_reader(page: Page, house: House) -> None:
    """A chip in focus, its open card and what is selected stay while marks are judged."""
    chat = answered(house, **six_verdicts.answer())
    show(page, house, chat)
    log = EventLog(house.home / "data" / "sessions.sqlite3")
    left = iter(range(9, 0, -1))

    def judge() -> None:
        n = next(left)
        reading = {"n": 1, "mark": 0, "model": "m:x", "verdict": "unclear", "reason": f"reason {n}"}
        log.append(chat, [("second_reading", {**reading, "left": n})])
        expect(page.locator(".turn-foot [role=status]")).to_contain_text(f"{n}")

    chip, card = page.locator(".answer .chip").first, page.locator("#card")
    judge()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.answer > *'))")
    selected = page.evaluate("getSelection().toString()")
    judge()
    assert selected == page.evaluate("getSelection().toString()") != ""
    chip.focus()
    judge()
    expect(chip).to_be_focused()
    chip.press("Enter")
    expect(card).to_be_focused()
    judge()
    page.keyboard.press("Escape")
    expect(chip).to_be_focused()
    page.locator("#question").focus()
    chip.focus()
    expect(card.locator(".second q")).to_have_text("reason 6")
    log.close()
