"""A chat as a page for others: opened from a file, it is whole, accessible and silent."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from searchloop.agent.log.events import Event, event_of
from searchloop.agent.log.session import Session
from searchloop.render.export import html
from tests.browser.checks import axe
from tests.browser.views import RICH
from tests.six_verdicts import answer

pytestmark = pytest.mark.integration


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
