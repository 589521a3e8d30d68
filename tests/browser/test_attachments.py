"""Pictures, PDFs and documents on the page: given in every way, looked at, sent, cited, refused."""

from __future__ import annotations

import base64
import os
import random
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.attached import LOCKED_PDF, pdf_of, png, png_of
from tests.browser.house import LOCAL, MODEL, SEES, LedOllama
from tests.browser.steps import (
    ask,
    asked,
    box,
    came,
    choose_model,
    give,
    hold,
    last_turn,
    told,
    wait_for_answer,
)

HEAVY = "It weighs 318 kilograms. The lid is of brass."
PAGES = ("The unit runs on 24 volts.", HEAVY, "The warranty is five years.")
REPORT = ("data sheet.pdf", "application/pdf", pdf_of(PAGES))


@pytest.fixture
def page(page: Page) -> Page:
    """An empty chat whose model sees."""
    choose_model(page, f"ollama:{SEES}")
    return page


def put(page: Page, kind: str, name: str, media: str, data: bytes) -> None:
    """Drops or pastes a file."""
    page.evaluate(
        """([kind, name, type, data]) => {
          const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
          const given = new DataTransfer();
          given.items.add(new File([bytes], name, { type }));
          const at = document.querySelector(kind === "paste" ? "#question" : "#main");
          const more = { bubbles: true, cancelable: true };
          at.dispatchEvent(kind === "paste"
            ? new ClipboardEvent("paste", { clipboardData: given, ...more })
            : new DragEvent("drop", { dataTransfer: given, ...more }));
        }""",
        [kind, name, media, base64.b64encode(data).decode()],
    )


def shelf(page: Page) -> Locator:
    """The files that wait beside the box."""
    return page.locator("#shelf li")


def images_of(ollama: LedOllama) -> list[list[bytes]]:
    """The pictures of each question that the model got last."""
    asked = [m for m in ollama.chats[-1]["messages"] if m["role"] == "user"]
    return [[base64.b64decode(image) for image in m.get("images", ())] for m in asked]


def test_a_picture_goes_along(page: Page, ollama: LedOllama) -> None:
    """Chosen, pasted or dropped, with a thumbnail and its size; the model gets its bytes, the
    question shows it, and takes it along when it is edited."""
    ollama.script = lambda messages: ["A dial."]
    file = ("dial.png", "image/png", png(40, 30))
    for way in ("paste", "drop", "choose"):
        give(page, file) if way == "choose" else put(page, way, *file)
        expect(shelf(page)).to_have_text("dial.png1 kB")
        expect(shelf(page).locator("img")).to_have_js_property("naturalWidth", 40)
        expect(page.locator("#switch-state")).to_contain_text("The file stays on this computer.")
        expect(page.locator("#announcer")).to_contain_text("dial.png is attached: 1 kB")
        if way != "choose":
            page.get_by_role("button", name="Leave dial.png out").click()
            expect(page.locator("#shelf")).to_be_hidden()
            page.locator("#announcer").evaluate("node => node.replaceChildren()")
    shown = asked(page, "What is it?").locator(".bubble img")
    expect(shown).to_have_attribute("alt", "dial.png")
    expect(shown).to_have_js_property("naturalWidth", 40)
    expect(page.locator("#shelf")).to_be_hidden()
    assert images_of(ollama) == [[file[2]]]
    last_turn(page).locator(".bubble").hover()
    page.get_by_role("button", name="Edit the question").click()
    editor = page.locator(".editing textarea")
    editor.fill("Yours")
    editor.press("Enter")
    expect(page.locator(".versions")).to_have_text("2/2")
    expect(wait_for_answer(page).locator(".bubble img")).to_have_count(1)
    assert images_of(ollama) == [[file[2]]]


def test_a_picture_is_seen_at_full_size(page: Page, ollama: LedOllama) -> None:
    """Pressed or by keys; the arrows lead to the next one, Escape back."""
    give(page, ("dial.png", "image/png", png(40, 30)), ("plan.png", "image/png", png(60, 20)))
    expect(page.locator("#shelf")).to_contain_text("plan.png")
    told(page, ollama, "What is this?").locator(".shot").first.focus()
    page.keyboard.press("Enter")
    large = page.locator("#preview")
    expect(large.get_by_role("img", name="dial.png")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(large.get_by_role("heading", name="plan.png")).to_be_visible()
    expect(large.get_by_role("button", name="Next picture")).to_be_disabled()
    expect(large.get_by_role("link", name="Save")).to_have_attribute("download", "plan.png")
    page.keyboard.press("Escape")
    expect(page.locator(".shot").last).to_be_focused()
    assert "#/s/" in page.url


def test_a_large_picture_is_made_smaller(page: Page, ollama: LedOllama) -> None:
    """By the browser, to what models see; both sizes are told."""
    noise = random.Random(7)
    picture = png_of([noise.randbytes(2600) for _ in range(900)])
    give(page, ("photo.png", "image/png", picture))
    expect(shelf(page)).to_contain_text("2.3 MB, resized to")
    expect(told(page, ollama, "What is it?").locator(".bubble img")).to_have_js_property(
        "naturalWidth", 2000
    )
    assert images_of(ollama)[0][0].startswith(b"\xff\xd8\xff")


def test_a_pdf_is_cited_by_its_page(page: Page, ollama: LedOllama) -> None:
    """The shelf counts its pages; a mark leads to the words on the page that they stand on, with
    its verdict, and from the list to all of them in turn."""
    ollama.script = lambda messages: ["It weighs 318 kilograms [2]. The lid is of brass [2]."]
    give(page, REPORT, ("scan.pdf", "application/pdf", pdf_of(["", ""])))
    expect(shelf(page)).to_have_text(["data sheet.pdf3 pages", "scan.pdf2 pages, no text in it"])
    page.get_by_role("button", name="Leave scan.pdf out").press("Enter")
    turn = asked(page, "How heavy is it?")
    expect(turn.get_by_role("link", name="data sheet.pdf 3 pages")).to_be_visible()
    assert PAGES[1] in ollama.chats[-1]["messages"][-1]["content"]
    turn.locator(".answer .chip").first.click()
    card = page.locator("#card")
    expect(card).to_contain_text("data sheet.pdf, page 2")
    expect(card).to_contain_text("Attached file · data sheet.pdf")
    card.get_by_role("button").click()
    reader = page.locator("#reader")
    expect(reader.locator("mark")).to_have_text("It weighs 318 kilograms.")
    opened = reader.get_by_role("link", name="Open the file")
    assert (opened.get_attribute("href") or "").endswith("#page=2")
    expect(reader.locator(".verdict")).to_have_text(["The source says so, by words"])
    expect(reader.get_by_role("status")).to_have_text("Passage 1 of 1")
    page.keyboard.press("Escape")
    turn.locator(".source button").click()
    for at, words in enumerate(HEAVY.split(". "), 1):
        expect(reader.get_by_role("status")).to_have_text(f"Passage {at} of 2")
        expect(reader.locator("mark").nth(at - 1)).to_contain_text(words)
        reader.get_by_role("button", name="Next passage").click()
    expect(reader.get_by_role("status")).to_have_text("Passage 1 of 2")
    find = reader.get_by_role("searchbox", name="Find on this page")
    for typed, at, of in (("OF BRASS", 1, 1), ("é", 0, 0), ("O", 1, 2), ("", 1, 2)):
        find.fill(typed)
        expect(reader.get_by_role("status")).to_have_text(f"Passage {at} of {of}")
        assert page.evaluate("CSS.highlights.get('found').size") == (of if typed else 0)
    find.fill("o")
    find.press("Enter")
    expect(reader.get_by_role("status")).to_have_text("Passage 2 of 2")


def test_a_model_that_cannot_see_keeps_the_question(page: Page, ollama: LedOllama) -> None:
    """One sentence, nothing is sent; with another model the same question goes."""
    ollama.script = lambda messages: ["A dial."]
    choose_model(page, LOCAL)
    sent = len(ollama.chats)
    give(page, ("dial.png", "image/png", png()))
    ask(page, "What is it?")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(f"{MODEL} cannot see images, and dial.png is one.")
    expect(box(page)).to_have_value("What is it?")
    expect(shelf(page)).to_have_count(1)
    assert len(ollama.chats) == sent
    alert.get_by_role("button", name="Use ").click()
    expect(alert).to_be_empty()
    box(page).press("Enter")
    wait_for_answer(page)
    assert images_of(ollama) == [[png()]]
    choose_model(page, LOCAL)
    asked(page, "And in words?")
    assert images_of(ollama) == [[], []]


BAD = {
    "locked.pdf": ("application/pdf", LOCKED_PDF, "is damaged or needs a password."),
    "giant.png": ("image/png", b"\x89PNG\r\n\x1a\n", "giant.png"),
    "long.txt": ("text/plain", b"x" * 200_001, "long.txt is too long"),
    "a.png": ("image/png", b"\x89PNG\x00", "a.png is not what it says"),
}


def test_a_bad_file_is_refused_at_once(page: Page, ollama: LedOllama, tmp_path: Path) -> None:
    """Before anybody asks, each with its own reason; the others stay, and the question goes with
    them. Each kind of bad file is in tests/web/api/test_attachments_api.py.
    """
    box(page).fill("What is it?")
    for name, (_, data, _) in BAD.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "dial.png").write_bytes(png())
    os.truncate(tmp_path / "giant.png", 100 * 2**20)
    page.locator("#files").set_input_files([*tmp_path.iterdir()])
    notes = page.get_by_role("alert").locator(".note")
    expect(notes).to_have_count(len(BAD))
    for _, _, words in BAD.values():
        expect(notes.filter(has_text=words)).to_have_count(1)
    expect(shelf(page)).to_have_count(1)
    expect(box(page)).to_have_value("What is it?")
    told(page, ollama, "What is it?")
    assert images_of(ollama) == [[png()]]


# What the server or the disk keeps waiting while somebody turns to another chat.
SLOW_DISK = """() => {
  const read = Blob.prototype.arrayBuffer;
  const slow = new Promise((ready) => (window.ready = ready));
  Blob.prototype.arrayBuffer = function () { return slow.then(() => read.call(this)); };
}"""
NOTE = ("note.md", "text/markdown", b"# Tea")


@pytest.mark.integration
@pytest.mark.parametrize("slow", ["script", "disk", "answer"])
def test_a_file_stays_with_the_chat_that_it_was_given_to(
    page: Page, ollama: LedOllama, slow: str
) -> None:
    """However late it is there; that of a temporary chat goes with it, to no other such chat."""
    for start in ("#new-temporary", "#new-chat"):
        a_late_file(page, slow, start)


def a_late_file(page: Page, slow: str, start: str) -> None:
    """Given in a chat that began so, and there once another is on show."""
    late = {"script": "**/attachments.js", "answer": "**/api/attachments"}.get(slow)
    page.reload()
    held = hold(page, late) if late else []
    if not late:
        page.evaluate(SLOW_DISK)
    page.locator(start).click()
    give(page, ("dial.png", "image/png", png()), NOTE)
    if late:
        came(page, held)
    page.locator("#new-temporary").click()
    for route in held:
        route.continue_()
    page.unroute_all()
    page.evaluate("window.ready?.()")
    give(page, ("own.png", "image/png", png()))
    expect(shelf(page)).to_have_text(["own.png1 kB"])
    page.locator("#new-chat").click()
    names = [] if start == "#new-temporary" else ["dial.png", "note.md"]
    expect(shelf(page)).to_have_count(len(names))
    for name in names:
        expect(page.locator("#shelf")).to_contain_text(name)


@pytest.mark.integration
@pytest.mark.parametrize("start", ["#new-chat", "#new-temporary"])
def test_a_refused_question_comes_back_to_its_own_chat(
    page: Page, ollama: LedOllama, start: str
) -> None:
    """With its picture and its text, while another chat is on show, and to no other chat."""
    page.locator(start).click()
    choose_model(page, f"ollama:{SEES}")
    told(page, ollama, "One")
    held = hold(page, "**/messages")
    give(page, ("dial.png", "image/png", png()), NOTE)
    expect(shelf(page)).to_have_text(["dial.png1 kB", "note.md5 characters"])
    ask(page, "Two")
    came(page, held)
    page.locator("#new-temporary").click()
    with page.expect_response("**/messages"):
        held[0].fulfill(status=503, json={"error": {"code": "busy", "message": "No."}})
    expect(page.get_by_role("alert")).to_contain_text("No.")
    expect(box(page)).to_have_value("")
    expect(shelf(page)).to_have_count(0)
    if start == "#new-chat":
        page.locator("#sessions").get_by_role("link", name="One").first.click()
        expect(box(page)).to_have_value("Two")
        expect(shelf(page)).to_have_text(["dial.png1 kB", "note.md5 characters"])
