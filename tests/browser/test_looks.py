"""How it looks: small and fast to load, fits every screen, readable in both themes.

The pictures in docs/screenshots are made here. One that is there is kept; delete it to have it made
anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Enter
from tests.browser.house import MODEL, ROOT, House, LedOllama
from tests.browser.steps import ask, choose_model, turn_on, wait_for_answer
from tests.waiting import until

pytestmark = pytest.mark.integration

PICTURES = ROOT / "docs" / "screenshots"
DESKTOP, PHONE, SMALL = (
    {"width": 1280, "height": 800},
    {"width": 390, "height": 844},
    {"width": 320, "height": 640},
)
MOST_REQUESTS, MOST_BYTES, FIRST_PAINT_MS = 30, 170_000, 200
MISTAKE = r"\b(null|undefined|NaN)\b|\[object|\{\w+\}"  # what a program says, and people do not
PAINT_SLACK = 4  # the suite may share its machine; the figure itself is for an idle one

CONTRAST = """() => {
  const parse = (c) => (c.match(/[\\d.]+/g) ?? []).map(Number);
  const over = ([r, g, b, a = 1], [R, G, B]) => [r*a + R*(1-a), g*a + G*(1-a), b*a + B*(1-a)];
  const light = (rgb) => {
    const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    const layers = [];
    for (let n = node; n; n = n.parentElement)
      layers.unshift(parse(getComputedStyle(n).backgroundColor));
    return layers.reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walk.nextNode(); text; text = walk.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || node.closest(".vh, .skip, option")) continue;
    if (!node.checkVisibility({ opacityProperty: true })) continue;
    const ground = behind(node);
    const [a, b] = [light(over(parse(getComputedStyle(node).color), ground)), light(ground)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${node.className}: ${text.data.trim()}`);
  }
  return bad;
}"""
DRAWN = "new Promise(requestAnimationFrame)"  # after a new size the page moves what it has to
TOO_WIDE = """() => [...document.querySelectorAll("#main *, dialog[open] *")]
  .filter((n) => n.checkVisibility() && !n.closest(".scroll-x, pre, .vh, svg, #settings nav"))
  .filter((n) => n.getBoundingClientRect().right > innerWidth + 1)
  .map((n) => n.id || n.className || n.tagName)"""


def answered(page: Page) -> None:
    """Brings the page to a cited answer with nothing hovered over."""
    turn_on(page)
    ask(page)
    wait_for_answer(page)
    page.mouse.move(0, 0)


def picture(page: Page, name: str, elsewhere: Path) -> None:
    """Takes a picture; into docs if there is none of this name."""
    kept = PICTURES / f"{name}.png"
    target = elsewhere / kept.name if kept.exists() else kept
    target.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=target, animations="disabled")
    assert target.stat().st_size > 5_000


# Each size in one theme: test_every_size has all of both.
LOOKS = [
    pytest.param(name, size, theme, marks=[pytest.mark.torture] * ((number + turn) % 2))
    for number, (name, size) in enumerate(
        (("desktop", DESKTOP), ("phone", PHONE), ("small", SMALL))
    )
    for turn, theme in enumerate(("light", "dark"))
]


@pytest.mark.parametrize(("name", "size", "theme"), LOOKS)
def test_it_fits_the_screen_and_can_be_read(
    enter: Enter, screenshots: Path, name: str, size: dict[str, int], theme: str
) -> None:
    """Nothing sticks out at 1280, 390 and 320 pixels, and text has AA contrast in both themes."""
    touch = size["width"] < 700
    page = enter(viewport=size, color_scheme=theme, has_touch=touch, is_mobile=touch)
    for view, prepare in (("empty", lambda: None), ("answer", lambda: answered(page))):
        prepare()
        assert page.evaluate(TOO_WIDE) == [], view
        assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
        assert page.evaluate(CONTRAST) == [], view
        assert not re.search(MISTAKE, page.inner_text("body")), view
        picture(page, f"{view}-{name}-{theme}", screenshots)
    if touch:
        low = page.evaluate(
            """() => [...document.querySelectorAll("button, select, .switch")]
              .filter((n) => n.checkVisibility() && n.getBoundingClientRect().height < 43.5)
              .filter((n) => !n.closest("[inert]"))
              .map((n) => n.id || n.className)"""
        )
        assert low == [], "smaller than a finger"


def test_the_picture_for_the_readme(enter: Enter, house: House, screenshots: Path) -> None:
    """A question, its searched answer and its sources on one screen."""
    for old in house.call("GET", "/api/sessions")["sessions"]:
        house.call("DELETE", f"/api/sessions/{old['id']}")
    page = enter(viewport={"width": 1280, "height": 860}, device_scale_factor=1)
    for n in (3, 1, 2):
        page.locator(".suggestions button").nth(n).click()
        wait_for_answer(page)
        page.get_by_role("button", name="New chat", exact=True).click()
    answered(page)
    expect(page.locator(".sources")).to_be_visible()
    picture(page, "answer", screenshots)


@pytest.mark.parametrize("locale", ["en-US", "de-DE"])
def test_the_page_is_small_and_paints_at_once(enter: Enter, locale: str) -> None:
    """Whole, with its headers and nothing cached, under 30 requests and 150 kB on the wire, a
    second catalogue included; and the first paint within its time."""
    page = enter(locale=locale)
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
    """At 200 % of a small window there is room to read; states show without colours of ours.

    On paper stands the whole chat, and nothing that could be pressed.
    """
    page = enter(viewport={"width": 640, "height": 400}, forced_colors="active")
    page.emulate_media(reduced_motion="reduce")
    track = page.locator("#switch .track")
    off = track.evaluate("n => getComputedStyle(n).backgroundColor")
    answered(page)
    assert track.evaluate("n => getComputedStyle(n).backgroundColor") != off
    assert track.evaluate("n => getComputedStyle(n).transitionDuration") == "0s"
    assert page.evaluate(TOO_WIDE) == []
    room = page.locator("#scroller").bounding_box()
    assert room
    assert room["height"] > 180
    page.emulate_media(reduced_motion="no-preference", media="print")
    for away in ("#sidebar", "#dock", ".turn .tools"):
        expect(page.locator(away).first).to_be_hidden()
    assert page.locator("#scroller").evaluate("n => n.scrollHeight <= n.clientHeight")  # all of it
    page.emulate_media(media="screen")


def test_on_paper_it_is_black_on_white_and_whole(enter: Enter, ollama: LedOllama) -> None:
    """Whatever the theme; no line of code is cut, and no button of it is printed."""
    page = enter(color_scheme="dark", viewport={"width": 720, "height": 1000})
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    choose_model(page, f"ollama:{MODEL}")
    ollama.script = lambda messages: ["```html\n<p>", "word " * 100, "\n```\n"]
    ask(page, "Write a line")
    turn = wait_for_answer(page)
    page.emulate_media(media="print", color_scheme="dark")
    assert turn.evaluate("n => getComputedStyle(n).color") == "rgb(27, 28, 32)"
    assert turn.locator("pre").evaluate("n => n.scrollWidth <= n.clientWidth")
    expect(turn.locator(".code-bar button").first).to_be_hidden()


def test_the_controls_have_room_at_every_width(enter: Enter) -> None:
    """With the longer words of German too, beside the list of chats and without it: all controls
    are inside the box, and the model's name can be read."""
    page = enter(locale="de-DE")
    page.locator("#switch").click()
    expect(page.locator("#via")).to_be_visible()
    for width in (320, 390, 560, 700, 761, 800, 860, 1000, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(DRAWN)
        inside = page.locator("#composer").bounding_box()
        model, send = (page.locator(f"#{part}").bounding_box() for part in ("model-name", "send"))
        assert inside
        assert model
        assert send
        assert send["x"] + send["width"] < inside["x"] + inside["width"], width
        assert model["width"] > 90, width
    page.set_viewport_size(DESKTOP)


def test_a_preview_leaves_room_for_the_controls(enter: Enter, ollama: LedOllama) -> None:
    """All of them, of a model that thinks too, in the longer words of German; two lines stay."""
    page = enter(locale="de-DE")
    page.locator("#model").click()
    page.locator(f'[role="option"][data-id="ollama:{MODEL}"]').click()
    expect(page.locator("#model")).to_have_attribute("data-id", f"ollama:{MODEL}")
    page.locator("#switch").click()
    ollama.script = lambda messages: ["```html\n<p>Ebb</p>\n```\n"]
    page.locator("#question").fill("Ebb?")
    page.locator("#question").press("Enter")
    wait_for_answer(page).locator(".code-bar button").first.click()
    expect(page.locator("#preview")).to_be_visible()
    page.locator("#question").fill("And what did the outer wall cost them in 1931? " * 2)
    page.evaluate(DRAWN)
    inside, send = (page.locator(part).bounding_box() for part in ("#composer", "#send"))
    assert inside
    assert send
    assert send["x"] + send["width"] < inside["x"] + inside["width"]
    assert page.locator("#model-name").evaluate("n => n.clientWidth") > 40
    expect(page.locator("#effort")).to_have_accessible_name("Nachdenken Üblich")
    page.set_viewport_size(SMALL)
    assert page.locator("#question").evaluate("n => n.scrollHeight <= n.clientHeight + 1")
    page.set_viewport_size(DESKTOP)


def test_the_drawer_of_a_phone(enter: Enter) -> None:
    """On a narrow screen the chats are a drawer: opened, closed by Escape, never in the way."""
    page = enter(viewport=PHONE, has_touch=True, is_mobile=True)
    sidebar = page.locator("#sidebar")
    expect(sidebar).not_to_be_in_viewport()
    page.get_by_role("button", name="Show chats").click()
    expect(sidebar).to_be_in_viewport()
    expect(page.get_by_role("button", name="New chat", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(sidebar).not_to_be_in_viewport()


def test_a_long_answer_starts_at_its_question(enter: Enter) -> None:
    """Reading begins at the top: the question stays in view, a button leads to the end."""
    page = enter(viewport={"width": 1280, "height": 420})
    answered(page)
    expect(page.locator(".bubble").last).to_be_in_viewport()
    page.get_by_role("button", name="Go to the newest text").click()
    expect(page.locator(".turn-foot").last).to_be_in_viewport()
    expect(page.get_by_role("button", name="Go to the newest text")).to_be_hidden()
