"""The rooms of the settings: a key is tested before it stays, models come and go, servers start."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.checks import sticks_out
from tests.browser.conftest import SMALL, Enter
from tests.browser.house import House
from tests.browser.steps import came, hold
from tests.browser.test_settings import opened
from tests.fake_ollama import FakeOllama, Model
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.waiting import until

pytestmark = pytest.mark.integration
GOOD, BAD = "sk-good-0123456789abcdef", "sk-wrong-0123456789abcd"
TINY = Model("tiny:1b", disk=1_300_000_000)
REFUSAL = {"error": {"type": "authentication_error", "message": f"invalid x-api-key: {BAD}"}}


def vendor(received: Received) -> Reply:
    """A server that lists two models to whoever has the key."""
    if GOOD not in str(received.headers):
        return json_reply(REFUSAL, 401)
    return json_reply({"data": [{"id": "claude-opus-5"}, {"id": "claude-haiku-5"}]})


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server with an Ollama of one model, an Anthropic nearby, and a key in the environment."""
    models, library = [Model("qwen3:8b", disk=5_200_000_000)], [TINY]
    with FakeOllama(models, library=library) as local, FakeServer(vendor) as cloud:
        settings = {"OLLAMA_HOST": local.url, "ANTHROPIC_BASE_URL": cloud.url}
        settings |= {"XAI_BASE_URL": cloud.url, "XAI_API_KEY": GOOD, "SEARCHLOOP_TITLES": ""}
        with House(tmp_path_factory.mktemp("desk"), settings) as served:
            yield served


def config(house: House) -> str:
    """The settings that were saved."""
    file = house.home / "data" / "config.toml"
    return file.read_text("utf-8") if file.exists() else ""


def unset(house: House, name: str) -> None:
    """As if it had never been set."""
    house.call("PATCH", "/api/settings", {"settings": {name: None}})


def test_a_pasted_key_is_tested_and_then_its_models_are_there(enter: Enter, desk: House) -> None:
    """Refused in words and not saved; accepted, it brings models; one becomes the usual. The card
    of a key of the environment says who sets it, and offers no field for another. An address where
    nobody is stays in its field, with the reason; one that answers is saved."""
    page = enter(desk)
    card = opened(page, "models").locator("#provider-xai")
    expect(card.locator(".tag").first).to_have_text("works")
    expect(card).to_contain_text("The key is set by the environment, so it is changed there.")
    expect(card.locator("input:enabled")).to_have_count(0)
    card = page.locator("#provider-anthropic")
    expect(card.locator(".tag").first).to_have_text("no key yet")
    expect(card.get_by_role("link")).to_have_text("platform.claude.com")
    card.get_by_label("Key of Anthropic").fill(BAD)
    card.get_by_role("button", name="Test and save").click()
    expect(card).to_contain_text("key refused")
    expect(card.get_by_role("alert")).to_contain_text("Nothing was saved.")
    assert BAD not in page.inner_text("body")
    assert not (desk.home / "data" / "keys.json").exists()
    card.get_by_label("Key of Anthropic").fill(GOOD)
    card.get_by_label("Key of Anthropic").press("Enter")
    expect(card.locator(".tag").first).to_have_text("works")
    expect(card).to_contain_text("2 models")
    expect(card).to_be_focused()
    card.get_by_text("Its models").click()
    card.get_by_role("button", name="Use claude-haiku-5 for new chats").click()
    expect(page.get_by_label("Model of a new chat")).to_have_value("anthropic:claude-haiku-5")
    assert 'SEARCHLOOP_MODEL = "anthropic:claude-haiku-5"' in config(desk)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Model claude-haiku-5")).to_be_visible()
    card = opened(page, "models").locator("#provider-anthropic")
    card.get_by_role("button", name="Remove the key").click()
    card.get_by_role("button", name="Remove it for good").click()
    expect(card.locator(".tag").first).to_have_text("no key yet")
    assert GOOD not in (desk.home / "data" / "keys.json").read_text()
    card = page.locator("#provider-openai-chat")
    expect(card.locator(".tag").first).to_have_text("not set up")
    with FakeServer(lambda received: json_reply({"data": [{"id": "own"}]})) as server:
        card.get_by_label("Address").fill("http://127.0.0.1:9/v1")
        card.get_by_role("button", name="Test and save").click()
        expect(card.get_by_role("alert")).to_contain_text("Nothing was saved.")
        assert "127.0.0.1:9" not in config(desk)
        card.get_by_label("Address").fill(server.url)
        card.get_by_role("button", name="Test and save").click()
        expect(card.locator(".tag").first).to_have_text("works")
        assert server.url in config(desk)
    unset(desk, "SEARCHLOOP_MODEL")


def test_models_of_an_own_server_come_and_go(enter: Enter, desk: House) -> None:
    """Got by name, told with their size, chosen, and deleted after one more question."""
    page = enter(desk)
    pull = {"model": "ollama:half:1b", "state": "running", "status": "pulling", "error": None}
    half = {"pulls": [{**pull, "done": 50, "total": 200}]}
    page.route("**/api/models/pull", lambda route: route.fulfill(json=half))
    card = opened(page, "models").locator("#provider-ollama")
    expect(card.get_by_role("progressbar")).to_have_attribute("value", "50")
    page.unroute("**/api/models/pull")
    expect(card.locator(".tag").first).to_have_text("works")
    expect(card.locator(".row").first).to_contain_text("5.2 GB")
    card.get_by_label("Get another model").fill("nobody:1b")
    card.get_by_role("button", name="Get", exact=True).click()
    expect(card).to_contain_text("Ollama's library has no model")
    card.get_by_label("Get another model").fill("tiny:1b")
    card.get_by_role("button", name="Get", exact=True).click()
    row = card.locator(".row").filter(has_text="1.3 GB")
    expect(row).to_be_visible()
    row.get_by_role("button", name=re.compile("^Use tiny")).click()
    expect(row).to_contain_text("for new chats")
    row.get_by_role("button", name=re.compile("^Delete tiny")).click()
    card.locator(".row").first.get_by_role("button", name=re.compile("^Use ")).click()
    expect(card.locator(".row").first).to_contain_text("for new chats")  # drawn anew, still asked
    row.get_by_role("button", name="Delete for good").click()
    expect(row).to_have_count(0)
    card.get_by_text("Address, window and cloud").click()
    window = card.get_by_label(re.compile("^Context window in tokens"))
    window.fill("many")
    window.blur()
    expect(card.get_by_role("alert").filter(has_text="not a number of tokens")).to_be_visible()
    unset(desk, "SEARCHLOOP_MODEL")


def order(page: Page) -> list[str]:
    """The engines as they stand."""
    return page.locator(".engines strong").all_inner_texts()


def test_engines_are_put_in_order(enter: Enter, desk: House) -> None:
    """The room comes by itself once the server answers, and the focus stays. What else is asked
    stays as it was; sites have their switch; a change that was not kept is taken back, in words."""
    page = enter(desk)
    page.route("**/api/settings", lambda route: route.abort())
    dialog = opened(page, "search")
    expect(dialog.get_by_text("this page tries again by itself")).to_be_visible()
    find = dialog.get_by_label("Search all settings")
    find.focus()
    page.unroute("**/api/settings")
    expect(dialog.locator(".engines strong").first).to_be_visible()
    expect(find).to_be_focused()
    before = order(page)
    assert len(before) > 1
    sites = dialog.get_by_label("Also ask official sites")
    sites.uncheck()
    expect(sites).not_to_be_checked()
    assert "sites" not in config(desk)
    dialog.get_by_role("button", name=f"Ask {before[1]} earlier").press("Enter")
    expect(dialog.get_by_role("status").filter(has_text="is now number 1")).to_be_attached()
    moved = [before[1], before[0], *before[2:]]
    expect(page.locator(".engines strong")).to_have_text(moved)
    assert "sites" not in config(desk)
    sites.check()
    expect(sites).to_be_checked()
    name = (page.locator(".engines li").first.get_attribute("id") or "").removeprefix("engine-")
    until(lambda: re.search(f'SEARCH_ENGINES = "{name},.*,sites"', config(desk)))
    page.route("**/api/settings", lambda route: route.abort())
    dialog.get_by_role("button", name=f"Ask {before[0]} earlier").click()
    expect(dialog.locator("#engines").get_by_role("alert")).not_to_be_empty()
    expect(page.locator(".engines strong")).to_have_text(moved)
    page.unroute("**/api/settings")
    unset(desk, "SEARCH_ENGINES")


def written(page: Page) -> dict[str, Any]:
    """The JSON beside the form."""
    found: dict[str, Any] = json.loads(page.get_by_label("The same as JSON").input_value())
    return found["mcpServers"]


def test_a_tool_server_is_a_form_and_its_json(enter: Enter, desk: House) -> None:
    """Each follows the other; what is wrong is told at its field, in both."""
    page = enter(desk)
    dialog = opened(page, "tools")
    dialog.get_by_label("Name", exact=True).fill("notes")
    dialog.get_by_label("Command with its arguments").fill('npx -y "a b" --dir ~/n')
    dialog.get_by_label("Secrets and other variables").fill("TOKEN=a=b\nEMPTY=")
    args, env = ["-y", "a b", "--dir", "~/n"], {"TOKEN": "a=b", "EMPTY": ""}
    assert written(page) == {"notes": {"command": "npx", "args": args, "env": env}}
    two = {
        "one": {"url": "https://a.example/mcp", "headers": {"X-Key": "k"}},
        "two": {"command": "x"},
    }
    dialog.get_by_label("The same as JSON").fill(json.dumps({"mcpServers": two}))
    expect(dialog.get_by_role("radio", name="An address")).to_be_checked()
    expect(dialog.get_by_label("Address", exact=True)).to_have_value("https://a.example/mcp")
    expect(dialog.get_by_label("Headers")).to_have_value("X-Key=k")
    expect(dialog.get_by_text("The JSON holds 2 servers.")).to_be_visible()
    dialog.get_by_label("The same as JSON").fill('{"mcpServers"')
    expect(dialog.get_by_label("The same as JSON")).to_have_attribute("aria-invalid", "true")
    expect(dialog.get_by_label("Address", exact=True)).to_have_value("https://a.example/mcp")
    dialog.get_by_label("Address", exact=True).fill("not an address")
    dialog.get_by_role("button", name="Show what would run").click()
    expect(dialog.get_by_label("Address", exact=True)).to_be_focused()
    expect(dialog.locator("#mcp-url-problem")).to_contain_text("http://")
    dialog.get_by_role("radio", name="A program here").check()
    dialog.get_by_label("Command with its arguments").fill("")
    dialog.get_by_role("button", name="Show what would run").click()
    expect(dialog.locator("#mcp-command-problem")).not_to_be_empty()
    expect(dialog.get_by_label("Command with its arguments")).to_be_focused()


def test_a_folder_is_picked(enter: Enter, desk: House) -> None:
    """As a tree, from the home folder down, by the keyboard; no folder of keys is offered. The
    button says whether it is open; one that could not be shown is not."""
    for name in ("papers/2026", ".ssh"):
        (desk.home / name).mkdir(parents=True)
    (desk.home / "papers" / "2026" / "a.md").write_text("# Night trains\n\nThey run.", "utf-8")
    page = enter(desk)
    dialog = opened(page, "library")
    choose = dialog.get_by_role("button", name="Choose…")
    page.route("**/api/folders*", lambda route: route.abort())
    choose.click()
    expect(dialog.locator("#add-folder [role=status]")).not_to_be_empty()
    page.unroute("**/api/folders*")
    for shown in (True, False, True):
        expect(choose).to_have_attribute("aria-expanded", str(not shown).lower())
        choose.click()
        expect(dialog.locator(".folders")).to_have_count(int(shown))
    picker = dialog.get_by_role("group", name="Choose…")
    papers = picker.locator("summary", has_text="papers")
    expect(papers).to_be_visible()
    expect(picker).not_to_contain_text(".ssh")
    papers.focus()
    page.keyboard.press("ArrowRight")
    expect(picker.locator("summary", has_text="2026")).to_be_visible()
    page.keyboard.press("ArrowRight")
    path = dialog.get_by_label("Folder or file")
    expect(path).to_have_value(str(desk.home / "papers" / "2026"))
    page.keyboard.press("Enter")
    expect(picker).to_contain_text("There are no folders in here.")
    for _ in range(2):  # it is shut, then left
        page.keyboard.press("ArrowLeft")
    expect(papers).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(path).to_have_value(str(desk.home / "papers"))
    dialog.get_by_role("button", name="Add", exact=True).click()
    row = dialog.locator(".row").filter(has_text=str(desk.home / "papers"))
    expect(row).to_contain_text("1 document")
    desk.call("DELETE", "/api/library", {"path": str(desk.home / "papers")})


def test_a_folder_that_is_read_may_be_forgotten(enter: Enter, desk: House) -> None:
    """Its progress goes on under the question, which keeps the focus; then it is as it was."""
    page, done = enter(desk), iter(range(1, 9999))
    folder = {"name": "notes", "path": "/notes", "kind": "files", "documents": 3, "total": 9999}

    def told(route: Route) -> None:
        now = {"done": next(done), "state": state}
        route.fulfill(json={"collections": [{**folder, **now}]})

    state = "reading"
    page.route("**/api/library", told)
    row = opened(page, "library").locator(".row").filter(has_text="/notes")
    row.get_by_role("button", name="Forget notes").click()
    seen = row.locator("progress").get_attribute("value")
    expect(row.locator("progress")).not_to_have_attribute("value", seen or "")
    expect(row.get_by_role("button", name="Forget it for good")).to_be_visible()
    expect(row.locator("button:focus")).to_be_visible()
    state = "ready"
    expect(row.locator("progress")).to_have_count(0)


FOUND = {  # words -> the room and the place in it
    "en-US": {
        **dict.fromkeys(("theme", "dark"), ("appearance", "#set-theme")),
        **dict.fromkeys(("import", "export", "export data"), ("privacy", "#chat-files")),
        "brave": ("search", "#engine-brave"),
        "XAI_API_KEY": ("models", "#provider-xai"),
        "dollars": ("advanced", "#set-SEARCHLOOP_LIMITS-cost_usd"),
        "searchloop_log": ("advanced", "#set-SEARCHLOOP_LOG"),
        "window tokens": ("models", "#set-OLLAMA_CONTEXT_LENGTH"),
        "notifications": ("appearance", "#notices"),
        "text to speech": ("appearance", "#voice"),
        "personalization": ("agents", "#words-about"),
        "functions": ("tools", "#mcp-name"),
        "mermaid": ("advanced", "#diagrams"),
        "pdf": ("library", "#library-path"),
    },
    "de-DE": {
        "schriftgröße": ("appearance", "#set-size"),
        **dict.fromkeys(("dunkel", "nachtmodus", "design"), ("appearance", "#set-theme")),
        "vorlesen": ("appearance", "#voice"),
    },
    "zh-CN": {"字号": ("appearance", "#set-size"), "深色": ("appearance", "#set-theme")},
}


@pytest.mark.parametrize("locale", FOUND)
def test_every_setting_is_found_by_its_words(enter: Enter, desk: House, locale: str) -> None:
    """By its label, its help or its variable, in the language of the page; Enter goes there. The
    dialog gives way to what no room has."""
    page = enter(desk, locale=locale)
    focused = "(at) => document.querySelector(at).contains(document.activeElement)"
    page.locator("#open-settings").click()
    for words, (room, target) in FOUND[locale].items():
        page.locator("#settings-find").fill(words)
        page.locator(".hit").first.press("Enter")
        there = page.locator(f'#settings nav [data-page="{room}"]')
        expect(there).to_have_attribute("aria-current", "page")
        expect(page.locator(f"#settings {target}")).to_be_visible()
        until(lambda at=f"#settings {target}": page.evaluate(focused, at))  # type: ignore[misc]
    page.keyboard.press("Escape")
    expect(page.locator("#settings")).not_to_be_visible()
    elsewhere = {"shortcut": "#shortcuts", "temperature": "[role=menu]"}
    for words, target in elsewhere.items() if locale == "en-US" else ():
        page.locator("#open-settings").click()
        page.locator("#settings-find").fill(words)
        page.locator(".hit").first.click()
        expect(page.locator("#settings")).not_to_be_visible()
        expect(page.locator(target).first).to_be_visible()
        page.keyboard.press("Escape")
    if locale == "en-US":
        late_hits(page)


def late_hits(page: Page) -> None:
    """What was found for the first letters gives way to what is written now."""
    page.reload()
    dialog = opened(page, "appearance")
    late = hold(page, "**/api/providers")
    for n, words in enumerate(("brave", "XAI_API_KEY"), 1):
        dialog.get_by_label("Search all settings").fill(words)
        until(lambda n=n: page.evaluate("1") and len(late) == n)  # type: ignore[misc]
    hits = dialog.locator(".hit")
    for route in reversed(late):
        with page.expect_response("**/api/providers"):
            route.continue_()
        expect(hits).to_have_count(1)
        expect(hits).to_contain_text("XAI_API_KEY")


def test_no_setting_was_lost(enter: Enter, desk: House) -> None:
    """Each that the server lists has a field in some room; so has each key. What is on by itself is
    switched off by a word of its own, for nothing would mean the default again."""
    page = enter(desk)
    settings = {s["name"] for s in desk.call("GET", "/api/settings")["settings"]}
    keys = {k["name"] for k in desk.call("GET", "/api/keys")["keys"]}
    rooms = ("models", "search", "library", "privacy", "programs", "advanced")
    shown = " ".join(opened(page, room).inner_html() for room in rooms)
    listed = {name for name in settings | keys if name in shown}
    assert listed == settings | keys
    for on, kept in ((False, '"0"'), (True, '"1"')):
        title = opened(page, "advanced").get_by_label("gives a new chat its title")
        with page.expect_response(lambda r: r.request.method == "PATCH" and r.ok):
            title.set_checked(on)
        assert f"SEARCHLOOP_TITLES = {kept}" in config(desk)
    unset(desk, "SEARCHLOOP_TITLES")


def test_on_a_phone_rooms_are_a_list_with_a_way_back(enter: Enter, desk: House) -> None:
    """At once, while a room is being fetched. A line about each says what is there; back gives
    the focus to the room that was left."""
    page = enter(desk, **SMALL)
    page.locator("#open-sidebar").click()
    held = hold(page, "**/api/settings")
    page.locator("#open-settings").click()
    came(page, held)
    expect(page.locator("#settings nav button").first).to_be_focused()
    held[0].continue_()
    page.unroute("**/api/settings")
    state = page.locator("#settings nav small")
    expect(state).to_contain_text(
        ["Ollama: ", "Library", "No MCP server", "documents", "agents", "the switch", "system", ""]
    )
    expect(state.first).to_be_visible()
    expect(page.locator(".settings-body")).not_to_be_visible()
    for room in page.locator("#settings nav button").all():
        room.click()
        expect(page.locator("#settings nav")).not_to_be_visible()
        expect(page.locator(".settings-page[aria-busy]")).to_have_count(0)
        assert sticks_out(page) == [], room.inner_text()
        page.get_by_role("button", name="All settings").click()
        expect(room).to_be_focused()
