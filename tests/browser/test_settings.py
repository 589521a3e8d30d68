"""Settings: changed on the page, kept, in force; what cannot be used is said where it was typed."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from base64 import b64encode
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from searchloop.web.gate import MAX_IMPORT
from tests.browser.checks import axe, sticks_out
from tests.browser.conftest import DESKTOP, Enter
from tests.browser.house import LOCAL, ROOT, House, LedOllama
from tests.browser.steps import asked, choose, choose_model, open_chat, switch

pytestmark = pytest.mark.integration
SERVER = ROOT / "tests" / "agent" / "mcp" / "hostile_server.py"
SUMS = ["-I", "-S", str(SERVER), "sums"]  # four tools; Python's arguments


def opened(page: Page, room: str) -> Locator:
    """The settings in this room, once all of it is there."""
    dialog = page.get_by_role("dialog")
    if not dialog.is_visible():
        page.locator("#open-settings").click()
    dialog.locator(f'nav [data-page="{room}"]').click()
    expect(dialog.locator(".settings-page[aria-busy]")).to_have_count(0)
    return dialog


def test_settings_are_kept_and_hold_at_once(page: Page, house: House) -> None:
    """Theme, limits, the default of the switch and the order of engines, in one visit."""
    opened(page, "appearance").get_by_role("radio", name="Dark").check()
    assert page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"
    dialog = opened(page, "advanced")
    expect(dialog.get_by_role("button", name="Advanced")).to_be_focused()
    dialog.get_by_label("Searches", exact=True).fill("none")
    dialog.get_by_label("Searches", exact=True).blur()
    expect(dialog.get_by_role("alert").filter(has_text="a whole number above 0")).to_be_visible()
    dialog.get_by_label("Searches", exact=True).fill("7")
    with page.expect_response(lambda r: r.request.method == "PATCH"):
        dialog.get_by_label("Searches", exact=True).blur()
    dialog = opened(page, "search")
    with page.expect_response(lambda r: r.request.method == "PATCH" and r.ok):
        dialog.get_by_label("Web search in a new chat").select_option("local")
    expect(dialog).to_contain_text("engines elsewhere are not asked")
    dialog.get_by_role("button", name="Test Library").click()
    tried = dialog.locator("#engine-library")
    expect(tried).to_contain_text(re.compile(r"\d results? in \d+ ms"))
    blocked = dialog.locator("#set-SEARCH_BLOCKED_DOMAINS")
    blocked.fill("ads.example")
    with page.expect_response(lambda r: r.request.method == "PATCH" and r.ok):
        blocked.blur()
    dialog.get_by_role("button", name="Add its key: Brave").click()
    expect(dialog.get_by_label("Key of Brave")).to_be_focused()
    page.keyboard.press("Escape")
    expect(switch(page)).to_be_checked()
    written = (house.home / "data" / "config.toml").read_text("utf-8")
    assert 'SEARCHLOOP_LIMITS = "searches=7"' in written
    page.reload()
    expect(switch(page)).to_be_checked()
    assert page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"
    assert 'SEARCH_BLOCKED_DOMAINS = "ads.example"' in written
    names = ("SEARCHLOOP_LIMITS", "SEARCHLOOP_SEARCH", "SEARCH_BLOCKED_DOMAINS")
    house.call("PATCH", "/api/settings", {"settings": dict.fromkeys(names)})


def test_a_projects_servers_are_trusted_as_they_were_seen(
    page: Page, house: House, tmp_path: Path
) -> None:
    """What the folder's file would run is shown; a file that changed meanwhile is shown anew."""
    file = tmp_path / ".mcp.json"
    file.write_text('{"mcpServers": {"clock": {"command": "no-such-program"}}}', "utf-8")
    chat = house.call("POST", "/api/sessions", {"workspace": str(tmp_path)})["id"]
    open_chat(page, house, chat)
    expect(page.get_by_role("button", name=f"Folder {tmp_path.name}")).to_be_visible()
    dialog = opened(page, "tools")
    waits = dialog.get_by_role("region", name="They are not used until you trust this file")
    expect(waits.locator("li")).to_have_text("clock no-such-program")
    file.write_text('{"mcpServers": {"clock": {"command": "other", "args": ["-x"]}}}', "utf-8")
    waits.get_by_role("button", name="Trust this file").click()
    expect(dialog.get_by_role("alert").first).to_contain_text("is not the file that you looked at")
    expect(waits.locator("li")).to_have_text("clock other -x")
    waits.get_by_role("button", name="Trust this file").click()
    expect(waits).to_have_count(0)
    server = dialog.locator(".server")
    server.locator("summary").click()
    expect(server).to_contain_text(str(file))
    expect(server.get_by_label("Use clock")).to_have_count(0)


def offered(ollama: LedOllama) -> set[str]:
    """Names of the tools of the server `sums` in the last request to the model."""
    names = {tool["function"]["name"] for tool in ollama.chats[-1].get("tools", ())}
    return {name for name in names if name.startswith("mcp_sums_")}


def tokens(text: Locator) -> int:
    """What a line says of tokens."""
    found = re.search(r"([\d,]+) tokens", text.inner_text())
    assert found, text.inner_text()
    return int(found[1].replace(",", ""))


def test_each_tool_of_a_server_has_a_switch(page: Page, ollama: LedOllama, tmp_path: Path) -> None:
    """The seconds of its first start are told. What a tool costs is shown; one that is off costs
    nothing and is not offered to a model."""
    ollama.script = lambda messages: ["Noted."]
    dialog = opened(page, "tools")
    run = shlex.join([sys.executable, *SUMS, os.devnull, "a" * 80])
    os.mkfifo(tmp_path / "go")
    script = f"read go < {shlex.quote(str(tmp_path / 'go'))}; exec {run}"
    command = {"command": "sh", "args": ["-c", script]}
    dialog.get_by_label("The same as JSON").fill(json.dumps({"mcpServers": {"sums": command}}))
    dialog.get_by_role("button", name="Show what would run").click()
    expect(dialog.locator("li code")).to_contain_text(
        re.compile(r"hostile_server\.py'? sums")  # quoted where the clone's path has blanks
    )
    dialog.get_by_role("button", name="Add", exact=True).click()
    server = dialog.locator(".server")
    summary = server.locator("summary")
    expect(summary).to_contain_text("connecting")
    (tmp_path / "go").write_text("go\n", "utf-8")
    expect(summary).to_contain_text("ready 4 tools")
    row = server.locator(".row").filter(has_text="Add two numbers.")
    expect(row).to_contain_text("runs a program")
    page.set_viewport_size({"width": 320, "height": 640})
    assert sticks_out(page) == []
    page.set_viewport_size(DESKTOP)
    before, own = tokens(summary), tokens(row)
    assert 0 < own < before
    row.get_by_label("Use add").press("Space")
    expect(summary).to_contain_text(f"{before - own} tokens")
    expect(row.get_by_label("Use add")).to_be_focused()
    expect(row.get_by_label("Use add")).not_to_be_checked()
    page.keyboard.press("Escape")
    choose_model(page, LOCAL)
    choose(page, "mode", "agent")
    asked(page, "What is 1 + 1?")
    assert offered(ollama) == {"mcp_sums_count", "mcp_sums_fail", "mcp_sums_grow"}
    row = opened(page, "tools").locator(".server .row").filter(has_text="Add two numbers.")
    summary.click()
    row.get_by_label("Use add").check()
    expect(summary).to_contain_text(f"{before} tokens")
    page.keyboard.press("Escape")
    asked(page, "And 2 + 2?")
    assert "mcp_sums_add" in offered(ollama)
    opened(page, "tools").locator(".server summary").click()
    server.get_by_role("button", name="Forget sums").click()
    server.get_by_role("button", name="Forget it for good").click()
    expect(server).to_have_count(0)


# Whatever a script of the page could read, now or after a reload; cookies that it cannot are told
# apart by the browser.
_KEPT = """async () => {
  const kept = [location.href, document.referrer, document.cookie, JSON.stringify(history.state),
    name, document.documentElement.outerHTML];
  for (const field of document.querySelectorAll("input, textarea")) kept.push(field.value);
  for (const store of [localStorage, sessionStorage])
    for (const [key, value] of Object.entries(store)) kept.push(key, value);
  for (const more of [await indexedDB.databases(), await caches.keys()])
    if (more.length) throw new Error("the page keeps things elsewhere too");
  return kept;
}"""


def test_no_secret_stays_in_the_browser(page: Page, house: House) -> None:
    """A key that is typed in goes to the server and is nowhere on the page afterwards; what opens
    the server is in a cookie that no script can read, and in no address."""
    key = "bsa-canary-9f8e7d6c5b4a3210"
    row = opened(page, "search").locator("#engine-brave")
    row.get_by_role("button", name="Add its key").click()
    row.get_by_label("Key of Brave").fill(key)
    assert any(key in place for place in page.evaluate(_KEPT))  # the search itself
    row.get_by_role("button", name="Test and save").click()
    expect(row.get_by_role("button", name="Remove the key of Brave")).to_be_visible()
    for again in (False, True):
        if again:
            page.reload()
            page.locator(".suggestions").wait_for()
        places = " ".join(page.evaluate(_KEPT))
        for secret in (key, house.token):
            for dress in (secret, secret[:12], secret[::-1], b64encode(secret.encode()).decode()):
                assert dress not in places
    cookies = page.context.cookies()
    assert not any(key in str(cookie.values()) for cookie in cookies)
    assert all(c.get("httpOnly") for c in cookies if house.token in c.get("value", ""))
    house.call("DELETE", "/api/keys/BRAVE_API_KEY")


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


MESSAGES = [{"sender": "human", "text": "Wann ist Ebbe?"}, {"sender": "assistant", "text": "Um 6."}]
CHATS = [{"uuid": f"c{n}", "name": f"Tide {n}", "chat_messages": MESSAGES} for n in range(3)]


def test_a_cut_export_is_brought_in_by_keys_alone(
    house: House, enter: Enter, tmp_path: Path
) -> None:
    """The whole chats are in the list and can be asked on; what was cut is said; axe is content."""
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(CHATS)[:-20])
    house.call("DELETE", "/api/sessions")
    page = enter(fresh=True, locale="de")
    page.locator("#open-settings").press("Enter")
    page.locator('nav [data-page="privacy"]').press("Enter")
    expect(page.get_by_role("heading", name="Chats als Datei", exact=True)).to_be_visible()
    button = page.get_by_role("button", name="Chats übernehmen…")
    with page.expect_file_chooser() as chooser:
        button.press("Enter")
    chooser.value.set_files(file)
    section = page.locator("section", has=button)
    expect(section.get_by_role("status")).to_contain_text("2 Chats sind neu hier.")
    expect(section).to_contain_text("1 Teil der Datei")
    expect(section.get_by_role("listitem")).to_have_text("Chat 3: the file is cut here.")
    assert axe(page) == []
    with page.expect_download() as download:
        section.get_by_role("button").last.press("Enter")
    whole = json.loads(Path(download.value.path()).read_bytes())
    assert {chat["session"]["title"] for chat in whole} == {"Tide 0", "Tide 1"}
    page.keyboard.press("Escape")
    page.locator(".session a", has_text="Tide 1").click()
    expect(page.locator(".turn")).to_contain_text("Um 6.")


def test_a_file_that_is_none_is_a_sentence(page: Page, tmp_path: Path) -> None:
    """Foreign or huge; the next file can be chosen at once."""
    opened(page, "privacy")
    button = page.get_by_role("button", name="Bring in chats…")
    (tmp_path / "cat.zip").write_bytes(b"no zip at all")
    for size, words in ((13, "The file holds no chats"), (MAX_IMPORT + 1, "larger than 2 GB")):
        os.truncate(tmp_path / "cat.zip", size)
        with page.expect_file_chooser() as chooser:
            button.click()
        chooser.value.set_files(tmp_path / "cat.zip")
        expect(page.locator("section", has=button)).to_contain_text(words)
        expect(button).to_be_enabled()
