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
from playwright.sync_api import Page

from tests.browser.checks import COLOURS, LOW, MISTAKE, axe, sticks_out
from tests.browser.conftest import PHONE, Enter
from tests.browser.house import House, LedOllama
from tests.browser.views import WALKS, settings, shut

pytestmark = pytest.mark.integration
THEMES = ("light", "dark")
SIZES = {"desktop": ((768, 1024), (320, 640), (1280, 800))}
SIZES["phone"] = ((320, 640), (390, 844))
# Every walk in one size; the other one finds little more and takes as long: torture.
BOTH = [
    pytest.param(size, walk, marks=[pytest.mark.torture] * ((number + turn) % 2), id=f"{size}-{n}")
    for turn, size in enumerate(SIZES)
    for number, walk in enumerate(WALKS)
    for n in [walk[0].__name__]
]


def look(page: Page, name: str, size: str) -> None:
    """At each width; at the last one by axe in both themes, of the second only what colours change.

    Pictures are taken of each width and theme for a folder.
    """
    if name not in ("rich", "tuning", "found", "asked_leave", "advanced"):
        assert not re.search(MISTAKE, page.inner_text("body")), name
    folder = os.environ.get("PICTURES_TO")
    for width, height in SIZES[size]:
        page.set_viewport_size({"width": width, "height": height})
        assert sticks_out(page) == [], f"{name} at {width}"
        if size == "phone" and name in ("empty", "cited"):
            assert page.evaluate(LOW) == [], "smaller than a finger"
        for theme in THEMES if folder else ():
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            picture = Path(folder or "") / f"{name.replace('_', '-')}-{size}-{width}-{theme}.png"
            page.screenshot(path=picture, animations="disabled")
    page.emulate_media(color_scheme="light")
    assert axe(page) == [], name
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(COLOURS) == [], name


@pytest.mark.parametrize(("size", "walk"), BOTH)
def test_a_view_fits_and_can_be_read_by_everybody(
    enter: Enter, house: House, ollama: LedOllama, size: str, walk: Any, tmp_path: Path
) -> None:
    """WCAG 2.2 A and AA, and axe's good practice, in both themes; each room of the settings."""
    options: dict[str, Any] = PHONE if size == "phone" else {}
    page = enter(bypass_csp=True, reduced_motion="reduce", **options)
    with ExitStack() as after:
        for view in walk:
            shut(page)
            view(page, house=house, ollama=ollama, tmp_path=tmp_path, after=after)
            if view is not settings:
                look(page, view.__name__, size)
                continue
            for room in page.locator("#settings nav button").all():
                name = room.get_attribute("data-page") or ""
                settings(page, name)
                look(page, name, size)
