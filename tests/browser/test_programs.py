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


def test_a_program_gets_a_key_of_its_own(enter: Enter, house: House) -> None:
    """Its key is shown once and stands in the lines below; what it may and used is told; it is
    changed, and taken back with a second press."""
    page = enter(house)
    room = opened(page, "programs")
    room.get_by_text("Add a program").click()
    form = room.locator("details[open] form")
    form.get_by_label("Name").fill("editor")
    form.get_by_label("Tokens at most").fill("500")
    form.get_by_label("Models that it may ask").fill("openai-chat:*, ollama:*")
    form.get_by_role("button", name="Save").click()
    key = room.locator("#programs-own [role=status] code").inner_text()
    assert key.startswith("sl-")
    room.locator("#programs-models").get_by_text("Claude Code").click()
    expect(room.locator("#programs-models details[open] pre")).to_contain_text(key)
    row = room.locator("#programs-own li", has_text="editor")
    expect(row).to_contain_text(f"…{key[-4:]}")
    expect(row).to_contain_text("The web · may ask: openai-chat:*, ollama:* · today 0 answers")
    ask = """async key => (await fetch('/v1/models', {credentials: 'omit',
        headers: {Authorization: `Bearer ${key}`}})).status"""
    assert page.evaluate(ask, key) == 200
    row.get_by_text("What it may do").click()
    row.get_by_label("It may search").select_option("off")
    row.get_by_label("Models that it may ask").fill("")
    row.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("Nothing · may ask: no model · today 0")
    row.get_by_role("button", name="Take back").click()
    row.get_by_role("button", name="Its key ends now").click()
    expect(row).to_have_count(0)
    assert page.evaluate(ask, key) == 401
