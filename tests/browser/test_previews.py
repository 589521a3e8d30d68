"""What an answer draws is seen beside it, and can neither load, send, store nor touch anything."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from tests.browser.house import House, LedOllama
from tests.browser.steps import last_turn, told

pytestmark = pytest.mark.integration

SVG = '<svg viewBox="0 0 9 9" width="90"><title>Quay</title><circle cx="4" cy="4" r="4"/></svg>'
ROWS = "".join(f"Friday {n};Quay 2\n" for n in range(1200))
CSV = 'Day;"From; ""here"""\n' + ROWS
BLOCKS = {"SVG": ("xml", SVG), "CSV": ("csv", CSV), "HTML": ("html", "<h1>Tides</h1>")}
HOSTILE = """<html><head><base href="{at}/base/"><meta http-equiv="refresh" content="0;url={at}/go">
<link rel="preconnect" href="{at}"><link rel="dns-prefetch" href="{at}">
<link rel="stylesheet" href="{at}/css"><link rel="icon" href="{at}/icon">
<style>@import url({at}/import); @font-face {{ font-family: f; src: url({at}/font) }}
  h1 {{ font-family: f; background: url({at}/background) }}</style></head>
<body onload="hacked = 1; fetch('{at}/onload')"><h1>Tides</h1>
<script>hacked = 1; for (;;) fetch("{at}/script")</script>
<script type="speculationrules">{{"prefetch": [{{"urls": ["{at}/soon"]}}]}}</script>
<script>parent.location = top.location = location = "{at}/away"</script>
<script>navigator.mediaDevices.getUserMedia({{ video: true }})</script>
<a id="link" href="{at}/link" ping="{at}/ping" target="_top">link</a>
<a id="code" href="javascript:hacked = 1">code</a>
<form action="{at}/form" method="post"><button id="send">send</button></form>
<img src="{at}/img" srcset="{at}/srcset 2x" onerror="hacked = 1">
<video src="{at}/video" poster="{at}/poster"></video>
<iframe src="{at}/frame"></iframe><object data="{at}/object"></object><embed src="{at}/embed">
<svg onload="hacked = 1"><image href="{at}/image"/><use href="{at}/use#x"/></svg></body></html>"""
REACH = """() => {
  const tries = { storage: () => localStorage.length, cookie: () => document.cookie,
    parent: () => parent.document.title, top: () => (top.location.hash = "#/p/stolen") };
  const reached = Object.keys(tries).filter((name) => {
    try { tries[name](); return true; } catch { return false; }
  });
  return [...reached, ...(window.hacked ? ["script"] : [])];
}"""


class _Canary(ThreadingHTTPServer):
    """A host that must never hear of anybody; a connection alone would be too much."""

    heard = 0

    def get_request(self) -> tuple[object, object]:  # type: ignore[override]
        """Counts connections, with or without a request."""
        self.heard += 1
        return super().get_request()


@pytest.fixture
def canary() -> Iterator[_Canary]:
    """It listens on this machine, where a browser could reach it."""
    server = _Canary(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def shown(page: Page, ollama: LedOllama, lang: str, code: str) -> FrameLocator:
    """The frame in which such a code block is drawn, after a press."""
    turn = told(page, ollama, f"Draw it as {lang}", f"Look:\n\n```{lang}\n{code}\n```\n")
    turn.get_by_role("button", name="Preview").click()
    return page.frame_locator("#preview iframe").frame_locator("iframe")


def test_a_preview_loads_sends_and_touches_nothing(
    browser: Browser, chromium: str, house: House, ollama: LedOllama, canary: _Canary
) -> None:
    """Whatever HTML may ask for, by itself or by a press; the page goes on as before.

    In the whole browser: the one without a window connects to nobody ahead of time.
    """
    at = f"http://127.0.0.1:{canary.server_port}"
    args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    with browser.browser_type.launch(executable_path=chromium, args=args) as whole:
        page = whole.new_page()
        page.goto(house.start_url)
        frame = shown(page, ollama, "html", HOSTILE.format(at=at))
        for link in ("#link", "#code"):
            frame.locator(link).click(force=True)
        frame.locator("#send").click()
        inside = frame.locator("html")
        assert inside.evaluate(REACH) == []
        frame.locator("#link").press("Enter")  # leads nowhere
        expect(told(page, ollama, "And now?", "Still here.")).to_contain_text("Still here.")
        assert not [f.url for f in page.frames if f.url.startswith(at)]
    assert canary.heard == 0
    with pytest.raises(OSError, match="501"):  # that it would have heard
        urlopen(at, timeout=60)
    assert canary.heard == 1


LIBRARY = """globalThis.mermaid = {{ initialize() {{}}, async render(id, text) {{
  if (text.includes("broken")) throw new Error("Lexical <error> on line 2");
  const tries = [() => fetch("{at}/fetch"), () => new Worker("{at}/worker"), () => eval("1"),
    () => localStorage.length, () => parent.document.title];
  const reached = await Promise.all(tries.map(async each => {{
    try {{ await each(); return "reached"; }} catch {{ return ""; }}
  }}));
  new Image().src = "{at}/image";
  new WebSocket("ws" + "{at}".slice(4));
  const bad = "<script>hacked = 1</scr" + "ipt>";
  return {{ svg: `<svg><text>${{text.slice(0, 12)}}${{reached.join("")}}</text>${{bad}}</svg>` }};
}} }};"""


def test_mermaid_is_drawn_by_a_library_that_reaches_nothing(
    browser: Browser, house: House, ollama: LedOllama, canary: _Canary
) -> None:
    """Without it the code stays, with the command that gets it; a wrong diagram says its error."""
    page = browser.new_page()
    page.goto(house.start_url)
    shown(page, ollama, "mermaid", "flowchart LR\n  Quay --> Ebb")
    note = last_turn(page).locator(".code .note")
    kept = house.home / "data" / "mermaid.min.js"
    expect(note).to_contain_text(f"curl -Lo '{kept}' https://")
    expect(page.locator("#preview")).to_have_count(0)
    last_turn(page).get_by_role("button", name="Preview").click()
    expect(note).to_have_count(1)
    kept.write_text(LIBRARY.format(at=f"http://127.0.0.1:{canary.server_port}"))
    frame = shown(page, ollama, "mermaid", "flowchart LR\n  Quay --> Ebb")
    expect(frame.locator("svg text")).to_have_text("flowchart LR")
    assert frame.locator("html").evaluate(REACH) == []
    assert canary.heard == 0
    expect(page.locator("#preview p")).to_contain_text("can load and send nothing")
    page.keyboard.press("Escape")
    frame = shown(page, ollama, "mermaid", "flowchart\n  broken")
    expect(frame.locator("pre")).to_have_text("Lexical <error> on line 2")
    page.keyboard.press("Escape")
    kept.unlink()
    page.close()


def test_drawings_pages_and_tables_open_beside_their_code(page: Page, ollama: LedOllama) -> None:
    """By a press; larger; saved as a file; Escape gives the focus back."""
    for name, (lang, code) in BLOCKS.items():
        frame = shown(page, ollama, lang, code)
        sheet = page.get_by_role("dialog", name=f"Preview: {name}")
        if name == "CSV":
            expect(sheet.locator("th")).to_have_text(["Day", 'From; "here"'])
            expect(sheet.locator("tbody tr")).to_have_count(1000)
            expect(sheet.locator("p")).to_contain_text("first 1000 rows")
        else:
            expect(frame.locator("h1, circle")).to_be_visible()
            expect(sheet.locator("p")).to_contain_text("can load and send nothing")
        with page.expect_download() as saved:
            sheet.get_by_role("button", name="Save as a file").click()
        assert saved.value.path().read_text().rstrip() == code.rstrip()
        sheet.get_by_role("button", name="Larger").click()
        assert sheet.evaluate("sheet => sheet.matches(':modal')")
        page.keyboard.press("Escape")
        expect(last_turn(page).get_by_role("button", name="Preview")).to_be_focused()
    turn = told(page, ollama, "Too much", "```html\n", "x" * 1_000_001)
    turn.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview p")).to_contain_text("too long to be drawn here")
    page.get_by_role("button", name="New chat", exact=True).click()
    expect(page.locator("#preview")).to_have_count(0)
