"""Every view at every width, light and dark: nothing sticks out, all can be read.

`PICTURES_TO=folder` takes pictures, to be laid beside others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Enter
from tests.browser.house import House, LedOllama
from tests.browser.test_axe import VIEWS
from tests.browser.test_evidence import checked, show
from tests.browser.test_looks import CONTRAST, DRAWN, MISTAKE, TOO_WIDE

pytestmark = pytest.mark.integration

SIZES = ((1600, 1000), (1280, 800), (768, 1024), (390, 844), (320, 640))
THEMES = ("light", "dark")


def unfolded(page: Page, house: House, **more: Any) -> None:
    """The six verdicts, and what the answer took."""
    show(page, house, checked(house))
    page.locator(".activity > summary").click()
    expect(page.locator(".facts")).to_be_visible()


def begun(page: Page, ollama: LedOllama, **more: Any) -> None:
    """A chat found by a word of its answer."""
    VIEWS["rich"](page, ollama=ollama)
    if not page.locator("#open-settings").is_visible():
        page.get_by_role("button", name="Show chats").click()
    page.get_by_label("Search chats").fill("quoted")
    expect(page.locator(".session").first).to_be_visible()


SHOWN: dict[str, Callable[..., None]] = {
    **{name: VIEWS[name] for name in ("empty", "rich", "failed", "asked leave", "planned")},
    "answer": unfolded,
    "found": begun,
}


def look(page: Page, name: str, folder: Path | None) -> None:
    """Checks the view at each width in both themes, and takes its pictures for a folder."""
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(DRAWN)
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            where = f"{name}-{width}-{theme}"
            assert page.evaluate(TOO_WIDE) == [], where
            assert page.evaluate("document.documentElement.scrollWidth") <= width, where
            assert page.evaluate(CONTRAST) == [], where
            if folder:
                picture = folder / f"{where.replace(' ', '-')}.png"
                page.screenshot(path=picture, animations="disabled")
    assert name in ("rich", "asked leave") or not re.search(MISTAKE, page.inner_text("body")), name
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.fixture
def folder() -> Path | None:
    """Where the pictures go, if anybody wants them."""
    wanted = os.environ.get("PICTURES_TO")
    if wanted:
        Path(wanted).mkdir(parents=True, exist_ok=True)
    return Path(wanted) if wanted else None


@pytest.mark.parametrize("view", SHOWN)
def test_a_view_fits_every_screen(
    enter: Enter, house: House, ollama: LedOllama, folder: Path | None, view: str
) -> None:
    """At five widths and in two themes."""
    page = enter(reduced_motion="reduce")
    with ExitStack() as after:
        SHOWN[view](page, house=house, ollama=ollama, after=after)
        look(page, view, folder)


def test_each_room_of_the_settings_fits_every_screen(enter: Enter, folder: Path | None) -> None:
    """At five widths and in two themes."""
    page = enter(reduced_motion="reduce")
    VIEWS["settings"](page)
    rooms = page.locator("#settings nav button").evaluate_all(
        "(all) => all.map((b) => b.dataset.page)"
    )
    assert len(rooms) > 5
    for room in rooms:
        page.locator(f'#settings nav [data-page="{room}"]').click()
        expect(page.locator(".settings-page .lead")).to_be_visible()
        expect(page.locator(".settings-page[aria-busy]")).to_have_count(0)
        look(page, "rich" if room == "advanced" else f"settings {room}", folder)
