"""How it looks: small and fast to load, in large print, on paper, and with room for its words."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from searchloop.agent.log.events import Event, event_of
from searchloop.agent.log.session import Session
from searchloop.render.export import html
from tests.browser.checks import DRAWN, axe, sticks_out
from tests.browser.conftest import DESKTOP, SMALL, Enter
from tests.browser.house import LOCAL, House, LedOllama
from tests.browser.steps import asked, place, told, turn_on
from tests.browser.views import RICH
from tests.six_verdicts import answer
from tests.waiting import until

pytestmark = pytest.mark.integration

MOST_REQUESTS, MOST_BYTES, FIRST_PAINT_MS = 32, 160_000, 200
PAINT_SLACK = 4  # the suite may share its machine; the figure itself is for an idle one


def test_the_page_is_small_and_paints_at_once(enter: Enter, house: House) -> None:
    """Whole, with its headers and nothing cached, in the language with the longest words, under 32
    requests and 160 kB on the wire; and the first paint within its time."""
    page = enter(locale="de-DE")
    asked: set[str] = set()
    ended: dict[str, float] = {}
    watching = page.context.new_cdp_session(page)
    watching.on("Network.requestWillBeSent", lambda sent: asked.add(sent["requestId"]))
    watching.on(
        "Network.loadingFinished",
        lambda done: ended.update({done["requestId"]: done["encodedDataLength"]}),
    )
    watching.send("Network.enable")
    watching.send("Network.setCacheDisabled", {"cacheDisabled": True})
    page.reload()
    page.locator(".suggestions").wait_for()
    until(lambda: page.evaluate("document.readyState") == "complete" and asked == ended.keys())
    watching.detach()
    wire = [size for size in ended.values() if size]  # a data: address costs nothing
    assert 20 < len(wire) < MOST_REQUESTS
    assert 50_000 < sum(wire) < MOST_BYTES, "on the wire"
    until(lambda: painted(page) < FIRST_PAINT_MS * PAINT_SLACK)


def painted(page: Page) -> float:
    """Milliseconds to the first paint of one more load; a machine in use has its bad moments."""
    page.reload()
    page.locator(".suggestions").wait_for()
    times = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return float(times)


def test_large_print_forced_colours_and_calm(enter: Enter) -> None:
    """At 200 % of a small window there is room to read; states show without colours of ours."""
    page = enter(viewport={"width": 640, "height": 400}, forced_colors="active")
    page.emulate_media(reduced_motion="reduce")
    track = page.locator("#switch .track")
    off = track.evaluate("n => getComputedStyle(n).backgroundColor")
    turn_on(page)
    asked(page)
    assert track.evaluate("n => getComputedStyle(n).backgroundColor") != off
    assert track.evaluate("n => getComputedStyle(n).transitionDuration") == "0s"
    assert sticks_out(page) == []
    assert place(page.locator("#scroller"))["height"] > 180


def test_on_paper_it_is_black_on_white_and_whole(enter: Enter, ollama: LedOllama) -> None:
    """Whatever the theme; no line of code is cut, and nothing is printed that could be pressed."""
    page = enter(color_scheme="dark", viewport={"width": 720, "height": 400})
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    turn = told(page, ollama, "Write a line", "```html\n<p>", "word " * 100, "\n```\n")
    page.emulate_media(media="print", color_scheme="dark")
    assert turn.evaluate("n => getComputedStyle(n).color") == "rgb(27, 28, 32)"
    assert turn.locator("pre").evaluate("n => n.scrollWidth <= n.clientWidth")
    for away in ("#sidebar", "#dock", ".turn .tools", ".code-bar button"):
        expect(page.locator(away).first).to_be_hidden()
    assert page.locator("#scroller").evaluate("n => n.scrollHeight <= n.clientHeight")  # all of it


def send_is_inside(page: Page) -> bool:
    """Whether the last control of the box is inside it."""
    page.evaluate(DRAWN)
    inside, send = place(page.locator("#composer")), place(page.locator("#send"))
    return send["x"] + send["width"] < inside["x"] + inside["width"]


def test_the_controls_have_room_at_every_width(enter: Enter, ollama: LedOllama) -> None:
    """With the longer words of German too, beside the list of chats and without it, of a model that
    thinks, beside a preview: all controls are inside the box, the model's name can be read, whole
    in a box of 600 pixels, and two lines of a question stay. What is rare has its word."""
    page = enter(locale="de-DE")
    page.locator("#model").click()
    page.locator(f'[role="option"][data-id="{LOCAL}"]').click()
    expect(page.locator("#model")).to_have_attribute("data-id", LOCAL)
    page.locator("#switch").click()
    expect(page.locator("#via")).to_be_visible()
    for width in (320, 390, 560, 700, 761, 800, 860, 1000, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        assert send_is_inside(page), width
        assert place(page.locator("#model-name"))["width"] > 60, width
    for word in ("Agent", "Ordner", "Temporär"):
        expect(page.get_by_text(word, exact=True).first).to_be_visible()
    both = [place(page.locator(f"#new-{kind}"))["y"] for kind in ("chat", "temporary")]
    assert abs(both[0] - both[1]) < 9, "in one row"
    page.locator("#composer").evaluate("n => n.style.setProperty('width', '600px')")
    assert page.locator("#model-name").evaluate("n => n.scrollWidth <= n.clientWidth")
    page.locator("#composer").evaluate("n => n.style.removeProperty('width')")
    page.set_viewport_size(DESKTOP)
    ollama.script = lambda messages: ["```html\n<p>Ebb</p>\n```\n"]
    asked(page, "Ebb?").locator(".code-bar button").first.click()
    expect(page.locator("#preview")).to_be_visible()
    page.locator("#question").fill("And what did the outer wall cost them in 1931? " * 2)
    assert send_is_inside(page)
    assert page.locator("#model-name").evaluate("n => n.clientWidth") > 40
    expect(page.locator("#effort")).to_have_accessible_name("Nachdenken Üblich")
    page.set_viewport_size(SMALL["viewport"])
    assert page.locator("#question").evaluate("n => n.scrollHeight <= n.clientHeight + 1")


def test_a_phone_has_one_row_and_a_drawer(enter: Enter) -> None:
    """Plus, switch with its position, question and Send; a second row only while the question needs
    it. File, mode and templates are under the plus, in a sheet from below, as all menus there. The
    chats are a drawer that Escape closes."""
    page = enter(**SMALL)
    sidebar = page.locator("#sidebar")
    expect(sidebar).not_to_be_in_viewport()
    page.get_by_role("button", name="Show chats").click()
    expect(sidebar).to_be_in_viewport()
    expect(page.get_by_role("button", name="New chat", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(sidebar).not_to_be_in_viewport()
    page.locator("#switch").click()
    expect(page.locator("#via")).to_be_visible()
    question = page.locator("#question")
    parts = [page.locator(f"#{part}") for part in ("attach", "switch", "via", "question", "send")]

    def rows() -> int:
        page.evaluate(DRAWN)
        boxes = [place(part) for part in parts]
        return len({round((box["y"] + box["height"] / 2) / 12) for box in boxes})

    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 640})
        assert rows() == 1
        assert place(question)["width"] > 72
        lefts = [place(part)["x"] for part in parts]
        assert lefts == sorted(lefts)
        for words, expected in (("Ebb?", 1), ("When is low water at the quay? " * 3, 2), ("Eb", 2)):
            question.fill(words)
            assert rows() == expected, words
        question.fill("")
        assert rows() == 1
    parts[0].click()
    sheet = place(page.get_by_role("menu"))
    assert (sheet["x"], sheet["width"], sheet["y"] + sheet["height"]) == (0, 320, 640)
    expect(page.get_by_role("menuitem").first).to_contain_text("Attach images, PDFs or text")
    page.get_by_role("menuitemradio", name="Plan").click()
    expect(page.locator("#mode-effect")).to_contain_text("Plan")
    parts[0].click()
    page.get_by_role("menuitem", name="Template or command").click()
    expect(page.locator("#slash [role=option]").first).to_be_visible()


def test_a_long_answer_starts_at_its_question(enter: Enter) -> None:
    """Reading begins at the top: the question stays in view, a button leads to the end."""
    page = enter(viewport={"width": 1280, "height": 420})
    turn_on(page)
    asked(page)
    expect(page.locator(".bubble").last).to_be_in_viewport()
    page.get_by_role("button", name="Go to the newest text").click()
    expect(page.locator(".turn-foot").last).to_be_in_viewport()
    expect(page.get_by_role("button", name="Go to the newest text")).to_be_hidden()


def test_a_shared_page_is_whole_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    """In both themes axe finds nothing on a desk and a phone, nothing is asked for, and it is
    printed in black."""
    said = answer()
    ended = {**said, "answer": f"{said['text']}\n\n{RICH}", "reason": "stop", "model": "m:x"}
    session = Session("a", "Tides & harbours", "m", "ask", "off", "off", None, 9.0, 9.0, 1, False)
    asked = Event(1, "user_message", {"text": "When is low water?"}, 0.0)
    finished = event_of(2, "run_finished", {**ended, "search_path": "off"}, 0.0)
    file = tmp_path / "chat.html"
    file.write_text(html(session, [asked, finished]), "utf-8")
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    page.goto(file.as_uri())
    for width, scheme in product((1280, 320), ("light", "dark")):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(media="screen", color_scheme=scheme)  # type: ignore[arg-type]
        assert axe(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert dark == ("rgb(21, 22, 24)" if scheme == "dark" else "rgb(251, 250, 247)")
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 28, 32)"
    assert asked_for == [file.as_uri()]
    context.close()
