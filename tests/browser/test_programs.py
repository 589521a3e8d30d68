"""The room of other programs: addresses and lines to copy, and the switch that holds them."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Enter
from tests.browser.house import House
from tests.browser.test_settings import opened


def test_a_program_is_connected_by_what_the_room_shows(enter: Enter, house: House) -> None:
    """The addresses of this very server, lines for a program, and a switch that holds at once."""
    page = enter(house)
    room = opened(page, "programs")
    base = page.evaluate("location.origin")
    expect(room.locator("#programs-mcp")).to_contain_text(f"{base}/mcp")
    expect(room.locator("#programs-models")).to_contain_text(f"{base}/v1")
    room.get_by_text("Codex").first.click()
    shown = room.locator("#programs-mcp details[open] pre")
    expect(shown).to_contain_text(f'url = "{base}/mcp"')
    status = page.evaluate(f"fetch('{base}/v1/models').then(answer => answer.status)")
    assert status == 200
    room.get_by_label("Other programs may search").select_option("off")
    expect(room.get_by_label("Other programs may search")).to_be_enabled()
    page.reload()
    again = opened(page, "programs").get_by_label("Other programs may search")
    expect(again).to_have_value("off")
    again.select_option("auto")
    expect(again).to_be_enabled()
