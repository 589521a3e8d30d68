"""Every view, in both themes, on a desk and on a phone: axe finds nothing, and nothing sticks out.

`PICTURES_TO=folder` takes pictures, to be laid beside others; docs/screenshots shows `cited`.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.checks import COLOURS, LOW, MISTAKE, axe, sticks_out
from tests.browser.conftest import PHONE, Enter
from tests.browser.house import House, LedOllama
from tests.browser.views import VIEWS

pytestmark = pytest.mark.integration
THEMES = ("light", "dark")
SIZES = {"desktop": ((1600, 1000), (768, 1024), (390, 844), (320, 640), (1280, 800))}
SIZES["phone"] = ((320, 640), (390, 844))
# Every view in one size; the other one finds little more and takes as long: torture.
BOTH = [
    pytest.param(size, view, marks=[pytest.mark.torture] * ((number + turn) % 2))
    for turn, size in enumerate(SIZES)
    for number, view in enumerate(VIEWS)
]


def look(page: Page, name: str, size: str) -> None:
    """At each width; at the last one by axe in both themes, of the second only what colours change.

    Pictures are taken of each width and theme for a folder.
    """
    if name not in ("rich", "found", "asked leave", "advanced"):
        assert not re.search(MISTAKE, page.inner_text("body")), name
    folder = os.environ.get("PICTURES_TO")
    for width, height in SIZES[size]:
        page.set_viewport_size({"width": width, "height": height})
        assert sticks_out(page) == [], f"{name} at {width}"
        if size == "phone" and name in ("empty", "cited"):
            assert page.evaluate(LOW) == [], "smaller than a finger"
        for theme in THEMES if folder else ():
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            picture = Path(folder or "") / f"{name.replace(' ', '-')}-{size}-{width}-{theme}.png"
            page.screenshot(path=picture, animations="disabled")
    page.emulate_media(color_scheme="light")
    assert axe(page) == [], name
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(COLOURS) == [], name


@pytest.mark.parametrize(("size", "view"), BOTH)
def test_a_view_fits_and_can_be_read_by_everybody(
    enter: Enter, house: House, ollama: LedOllama, size: str, view: str, tmp_path: Path
) -> None:
    """WCAG 2.2 A and AA, and axe's good practice, in both themes; each room of the settings."""
    options: dict[str, Any] = PHONE if size == "phone" else {}
    page = enter(bypass_csp=True, reduced_motion="reduce", **options)
    with ExitStack() as after:
        VIEWS[view](page, house=house, ollama=ollama, tmp_path=tmp_path, after=after)
        rooms = page.locator("#settings nav button").evaluate_all(
            "(all) => all.map((b) => b.dataset.page)"
        )
        if view != "settings":
            look(page, view, size)
        for room in rooms if view == "settings" else ():
            if page.locator("#settings .back").is_visible():
                page.locator("#settings .back").click()
            page.locator(f'#settings nav [data-page="{room}"]').click()
            expect(page.locator(".settings-page .lead")).to_be_visible()
            expect(page.locator(".settings-page[aria-busy]")).to_have_count(0)
            look(page, room, size)
