"""The sources of an answer are checked at a press; the marks change in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import axe
from tests.browser.conftest import Enter
from tests.browser.house import LOCAL, MODEL, STALL, House, LedOllama
from tests.browser.test_evidence import answered, cites, show

pytestmark = pytest.mark.integration
DOC = "library://docs/search-switch.md"
TEXT = "A turn has exactly one search path [1]. Nobody knows more [2]."
GONE = "library://docs/no-such-page.md"


def native(house: House) -> str:
    """A chat whose answer cites two pages that nobody has read, one of which is not there."""
    unread = {"verdict": "unread", "passage": None, "by": None, "verified": None}
    citations = cites(TEXT, unread, unread)
    citations[0]["url"], citations[1]["url"] = DOC, GONE
    sources = [{"n": c["n"], "url": c["url"], "title": "T", "state": "cited"} for c in citations]
    path = {"search_path": "native:openai"}
    return answered(house, text=TEXT, citations=citations, sources=sources, **path)


def checking(house: House, chat: str, **more: Any) -> None:
    """What a check of the chat's turn tells, of the server or another process."""
    turn = next(e.seq for e in house.log.read(chat) if e.type == "user_message")
    house.log.append(chat, [("check", {"turn": turn, **more})])


def test_cited_pages_are_read_at_a_press(page: Page, house: House, ollama: LedOllama) -> None:
    """That nobody here read them is said above the answer. Each mark gets its verdict and says who
    compared; what cannot be read is said, stays unread and may be tried again; a reload and a
    second tab show the same."""
    chat = native(house)
    show(page, house, chat)
    second = page.context.new_page()
    show(second, house, chat)
    offer = page.locator(".offer")
    expect(offer).to_contain_text("OpenAI read these pages; this computer has not")
    offer.get_by_role("button", name="Never, ask me or always…").click()
    expect(page.locator("#set-SEARCHLOOP_CHECK")).to_be_focused()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Check sources (2 unread marks)").click()
    for each in (page, second):
        foot = each.locator(".turn-foot [role=status]")
        expect(foot).to_contain_text("1 of 2 marks checked")
        expect(foot).to_contain_text("1 by words")
        expect(foot).to_contain_text("1 page could not be read")
        expect(each.locator(".answer .chip").first).to_have_class("chip supported")
        expect(each.locator(".offer")).to_be_empty()
    page.reload()
    expect(page.locator(".turn-foot [role=status]")).to_contain_text("1 page could not be read")
    chip, card = page.locator(".answer .chip").first, page.locator("#card")
    chip.hover()
    expect(card.locator(".verdict")).to_contain_text("The source says so, by words")
    expect(page.get_by_role("button", name="Check sources (1 unread mark)")).to_be_visible()


def test_an_answer_that_names_no_page_is_told(page: Page, house: House) -> None:
    """One sentence, and a press to check it anyway; the verdicts that come take its place."""
    source = {"n": 1, "url": DOC, "title": "Tides", "state": "opened"}
    chat = answered(house, text="Ebb is at six.", citations=[], sources=[source])
    show(page, house, chat)
    foot = page.locator(".turn-foot [role=status]")
    expect(foot).to_have_text("This answer read 1 page and names none.")
    press = page.get_by_role("button", name="Check it against the pages read")
    with page.expect_response("**/check") as answer:
        press.click()
    assert answer.value.status == 202
    mark = {"span": [0, 14], "verdict": "supported", "passage": "Ebb is at six.", "by": "words"}
    cited = {"n": 1, "url": DOC, "title": "Tides", "marks": [{**mark, "quote": None}]}
    checking(house, chat, left=0, citations=[cited])
    expect(foot).to_contain_text("1 of 1 marks checked")
    expect(press).to_have_count(0)


def test_a_model_reads_what_words_leave_unclear(
    page: Page, house: House, ollama: LedOllama
) -> None:
    """The way is chosen from a menu with its estimate; an answer in no form changes nothing."""
    ollama.script = lambda messages: ["no verdict at all"]
    show(page, house, native(house))
    page.get_by_role("button", name="Check with …").click()
    item = page.get_by_role("menuitem").filter(has_text=MODEL)
    expect(item).to_contain_text("about 800 tokens")
    item.click()
    expect(page.locator(".turn-foot [role=status]")).to_contain_text("1 of 2 marks checked")


def test_a_check_that_stopped_with_its_server_may_begin_again(enter: Enter, house: House) -> None:
    """Nobody waits for it."""
    page, chat = enter(fresh=True), native(house)
    checking(house, chat, url=DOC, status="timeout", left=1)
    page.clock.install()
    show(page, house, chat)
    told, ask = page.locator(".offer [role=status]"), page.get_by_role("button", name="Check s")
    expect(told).to_have_text("Pages read: 1, to go: 1…")
    expect(page.locator(".offer progress")).to_have_attribute("value", "1")
    expect(ask).to_have_count(0)
    page.clock.fast_forward("20:00")
    page.reload()
    expect(ask).to_be_visible()


def test_a_verdict_that_comes_takes_nothing_from_the_reader(page: Page, house: House) -> None:
    """A chip in focus, its open card and what is selected stay while pages are read."""
    chat = native(house)
    show(page, house, chat)
    left = iter(range(9, 0, -1))

    def read_one() -> None:
        n = next(left)
        checking(house, chat, url=GONE, status="gone", error="", left=n)
        expect(page.locator(".offer [role=status]")).to_contain_text(f"to go: {n}")

    chip, card = page.locator(".answer .chip").first, page.locator("#card")
    read_one()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.answer > *'))")
    selected = page.evaluate("getSelection().toString()")
    read_one()
    assert selected == page.evaluate("getSelection().toString()") != ""
    chip.focus()
    read_one()
    expect(chip).to_be_focused()
    chip.press("Enter")
    expect(card).to_be_focused()
    read_one()
    page.keyboard.press("Escape")
    expect(chip).to_be_focused()


REPORT = """# A report

The licence of this program is the "Licence of the seven seas and oceans" [1]. It costs 46 crowns
([bank](http://127.0.0.1:9/money)). Off means that no request contains a search tool [1].
In 2025, 38,400 people used it.

[1]: library://docs/README.md
"""


def test_a_pasted_report_is_checked(enter: Enter, ollama: LedOllama, tmp_path: Path) -> None:
    """By keys alone: what needs a look, pages that were not read, numbers without a source."""
    page = enter(locale="de")
    page.locator("#open-audit").press("Enter")
    view = page.locator("#reader")
    expect(view.get_by_label("Text mit seinen Quellen")).to_be_focused()
    (tmp_path / "report.md").write_text(REPORT, "utf-8")
    view.get_by_label("Datei wählen").set_input_files(tmp_path / "report.md")
    expect(view.get_by_label("Text mit seinen Quellen")).to_have_value(REPORT)
    assert axe(page) == []
    view.get_by_role("button", name="Prüfen", exact=True).press("Enter")
    look = view.locator("ul.cards").first
    expect(look.get_by_role("listitem")).to_have_count(2)
    expect(look.get_by_role("listitem").first).to_contain_text("falsch zitiert")
    expect(view).to_contain_text("Nicht im öffentlichen Netz. Das ist eine Adresse eines privaten")
    expect(view).to_contain_text("In 2025, 38,400 people used it.")
    expect(view.locator(".answer .chip")).to_have_count(3)
    assert axe(page) == []
    page.context.grant_permissions(["clipboard-write"])
    view.get_by_role("button", name="Kopieren").click()
    expect(view.get_by_role("button", name="Kopiert")).to_be_visible()
    with page.expect_download() as saved:
        view.get_by_role("button", name="Als HTML speichern").click()
    saved.value.save_as(tmp_path / "audit.html")
    html = (tmp_path / "audit.html").read_text("utf-8")
    assert 'class="mark misquoted"' in html
    assert "<script" not in html
    view.get_by_role("button", name="Anderen Text prüfen").press("Enter")
    expect(view.get_by_label("Text mit seinen Quellen")).to_be_focused()
    expect(view.get_by_label("Prüfen mit")).to_have_value("")
    ollama.script = lambda messages: [STALL]
    view.get_by_label("Prüfen mit").select_option(LOCAL)
    unclear = f"Nobody knows more about the search path [1].\n\n[1]: {DOC}\n"
    view.get_by_label("Text mit seinen Quellen").fill(unclear)
    view.get_by_role("button", name="Prüfen", exact=True).press("Enter")
    expect(view.get_by_label("Text mit seinen Quellen")).to_be_hidden()  # the pages stand first
    expect(view.get_by_role("listitem")).to_have_count(1)
    expect(view.get_by_role("progressbar")).to_have_attribute("value", "1")
    expect(view.get_by_role("button", name="Stopp")).to_be_focused()
    page.keyboard.press("Enter")
    expect(view).to_contain_text("Angehalten")
    expect(view.get_by_label("Text mit seinen Quellen")).to_be_focused()
    expect(view.get_by_label("Text mit seinen Quellen")).to_have_value(unclear)
