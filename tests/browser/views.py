"""The views of the page: what a person sees, and the steps that bring it there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.house import LOCAL, House, LedOllama
from tests.browser.steps import (
    ask,
    asked,
    box,
    choose_model,
    do,
    give,
    last_turn,
    model,
    open_chat,
    told,
    turn_on,
)
from tests.browser.test_approvals import asking_chat
from tests.browser.test_evidence import ARABIC, URL, answered, checked, show
from tests.browser.test_settings import SUMS
from tests.browser.test_voice import LISTENS, SPEECH

RICH = (
    "## Head\n\n#### Deep\n\n# Top\n\n"
    "Text with `code` and $x^2$ [1].\n\n```python\nif True: # no\n    pass\n```\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n\n1. one\n2. two\n"
)


def shut(page: Page) -> None:
    """Leaves what stands over the chat."""
    for _ in range(4):
        if page.evaluate("document.querySelector('dialog[open], :popover-open')"):
            page.keyboard.press("Escape")


def empty(page: Page, **more: Any) -> None:
    """An empty chat."""
    expect(page.locator(".suggestions")).to_be_visible()


def cited(page: Page, **more: Any) -> None:
    """A cited answer."""
    turn_on(page)
    asked(page)
    page.mouse.move(0, 0)


def rich(page: Page, ollama: LedOllama, **more: Any) -> None:
    """Every kind of block, and two versions of it."""
    turn = told(page, ollama, "Show everything", {"thinking": "Hm."}, RICH)
    turn.locator(".activity > summary").click()
    turn.locator(".thoughts summary").click()
    turn.hover()
    turn.get_by_role("button", name="Ask again").click()
    page.get_by_role("menuitem", name="Same settings").click()
    expect(page.locator(".versions")).to_be_visible()
    expect(last_turn(page)).to_have_attribute("aria-busy", "false")


def asked_leave(page: Page, house: House, **more: Any) -> None:
    """A tool that waits for leave."""
    open_chat(page, house, asking_chat(house))
    expect(page.locator(".approval")).to_be_visible()


def reading(page: Page, **more: Any) -> None:
    """A page read inside the page."""
    page.locator(".chip").first.click()
    page.get_by_role("button", name="Open the page").click()
    expect(page.locator("#reader mark").first).to_be_visible()


def listed(page: Page) -> None:
    """The list of chats, which a phone opens."""
    if not page.locator("#open-settings").is_visible():
        page.get_by_role("button", name="Show chats").click()


def settings(page: Page, room: str = "", **more: Any) -> None:
    """The settings, at their first page or in a room."""
    if not page.locator("#settings").is_visible():
        listed(page)
        page.locator("#open-settings").click()
    if page.locator("#settings .back").is_visible():
        page.locator("#settings .back").click()
    expect(page.locator("#settings nav button").first).to_be_visible()
    if room:
        page.locator(f'#settings nav [data-page="{room}"]').click()
        expect(page.locator(".settings-page .lead")).to_be_visible()
        expect(page.locator(".settings-page[aria-busy]")).to_have_count(0)


def found(page: Page, **more: Any) -> None:
    """A chat found by a word of its answer."""
    listed(page)
    page.get_by_label("Search chats").fill("quoted")
    expect(page.locator(".session").first).to_be_visible()


def picking(page: Page, **more: Any) -> None:
    """The model picker."""
    model(page).click()
    expect(page.locator(".picker")).to_be_visible()


def commanding(page: Page, **more: Any) -> None:
    """The commands, and a file that goes along."""
    give(page, ("a.md", "text/plain", b"hi"))
    box(page).press_sequentially("/se")
    expect(page.locator('#slash [role="option"]').first).to_be_visible()


def planned(page: Page, house: House, ollama: LedOllama, **more: Any) -> None:
    """A plan, a change that can be undone, and the list of agents over it."""
    ollama.script = lambda messages: ["Nothing more."]
    steps = [{"text": "Write", "files": ["a.md"], "sources": []}]
    plan = {"plan_id": "a", "title": "Notes", "steps": steps}
    change = {"kind": "file_change", "path": "a.md", "new": True, "diff": "+a"}
    call = {"call_id": "c", "name": "create_file", "arguments": {}, "effect": "write"}
    done = {"call_id": "c", "name": "create_file", "is_error": False, "content": "", "sources": []}
    events = [("user_message", {"text": "Go"}), ("plan", plan), ("tool_call", call)]
    done_so = ("tool_result", {**done, "details": change})
    open_chat(page, house, house.chat(*events, done_so, mode="plan"))
    expect(page.locator(".changes")).to_be_visible()
    last_turn(page).get_by_text("Made a.md").click()
    expect(page.locator(".diff")).to_be_visible()


def thinking(page: Page, **more: Any) -> None:
    """How long a model may think."""
    choose_model(page, LOCAL)
    page.locator("#effort").click()
    expect(page.get_by_role("radio", name="Usual")).to_be_focused()


def choosing(page: Page, **more: Any) -> None:
    """The list of agents."""
    page.locator("#agent").click()
    expect(page.get_by_role("menuitemradio").first).to_be_visible()


def naming(page: Page, **more: Any) -> None:
    """The form of the folder, with an error in it."""
    page.locator("#workspace").click()
    page.get_by_label("Full path of a folder").fill("nowhere")
    page.keyboard.press("Enter")
    expect(page.locator("#workspace-path-problem")).to_contain_text("not a folder")


def menu(page: Page, **more: Any) -> None:
    """The menu under an answer."""
    last_turn(page).hover()
    last_turn(page).get_by_role("button", name="Export").click()
    expect(page.get_by_role("menu")).to_be_visible()


def failed(page: Page, ollama: LedOllama, **more: Any) -> None:
    """An answer that failed, with what to do."""
    choose_model(page, LOCAL)
    ollama.script = lambda messages: []
    asked(page, "Say nothing")


def vouched(page: Page, house: House, **more: Any) -> None:
    """Text from right to left, and the card of a place whose quote is in doubt."""
    read = {"url": URL, "status": "ok", "title": "T", "invisible": 3}
    show(page, house, answered(house, ("page_opened", read), text=ARABIC, title="متى الجزر؟"))
    page.locator(".activity > summary").click()
    page.locator(".answer .chip").first.focus()
    expect(page.locator("#card")).to_be_visible()


def judged(page: Page, house: House, **more: Any) -> None:
    """An answer with each of the six verdicts, what it took, and the card of one verdict."""
    show(page, house, checked(house))
    page.locator(".activity > summary").click()
    expect(page.locator(".facts")).to_be_visible()
    page.locator(".answer .chip").nth(1).click()
    expect(page.locator("#card")).to_be_focused()


def untrusted(page: Page, house: House, tmp_path: Path, **more: Any) -> None:
    """A folder's servers that wait for trust."""
    servers = '{"mcpServers": {"clock": {"command": "no-such-program"}}}'
    (tmp_path / ".mcp.json").write_text(servers, "utf-8")
    chat = house.call("POST", "/api/sessions", {"workspace": str(tmp_path)})["id"]
    open_chat(page, house, chat)
    expect(page.get_by_role("button", name=f"Folder {tmp_path.name}")).to_be_visible()
    settings(page, "tools")
    expect(page.get_by_role("button", name="Trust this file")).to_be_visible()


def serving(page: Page, house: House, after: ExitStack, **more: Any) -> None:
    """A running server, its tools and their switches, one of them off."""
    command = {"command": sys.executable, "args": SUMS, "startup_timeout": 120}
    config = json.dumps({"mcpServers": {"sums": command}})
    house.call("POST", "/api/mcp", {"config": config, "save": True})
    after.callback(house.call, "DELETE", "/api/mcp/sums")
    settings(page, "tools")
    server = page.locator(".server")
    server.locator("summary").click()
    server.get_by_role("button", name="Test").click()
    expect(server.locator("summary")).to_contain_text("ready 4 tools")
    server.get_by_label("Use add").uncheck()
    expect(server.get_by_label("Use add")).not_to_be_checked()


def removed(page: Page, **more: Any) -> None:
    """A chat with a removed question, and several files that were refused."""
    last_turn(page).hover()
    last_turn(page).get_by_role("button", name="Remove this question").click()
    expect(page.locator("#removed")).to_be_visible()
    give(page, *((f"{n}.png", "image/png", b"\0") for n in range(9)))
    expect(page.locator("#composer-notice .note")).to_have_count(9)


def explained(page: Page, **more: Any) -> None:
    """An error in the server's own words, under those of the page."""
    error = {"code": "forbidden", "message": "It said: not you.", "remedy": "Ask them."}
    page.route("**/messages", lambda r: r.fulfill(status=502, json={"error": error}))
    ask(page, "Why?")
    expect(page.locator("#composer-notice .note")).to_be_visible()


def sought(page: Page, **more: Any) -> None:
    """What a search over all settings found."""
    settings(page)
    page.locator("#settings-find").fill("key")
    expect(page.locator(".hit").nth(3)).to_be_visible()


def blamed(page: Page, **more: Any) -> None:
    """The form of a server with what is wrong at its fields, and a key about to be pasted."""
    settings(page, "tools")
    page.get_by_label("Name", exact=True).fill("a")
    page.get_by_role("button", name="Show what would run").click()
    expect(page.locator("#mcp-command-problem")).not_to_be_empty()


def at_home(page: Page, house: House, after: ExitStack, **more: Any) -> None:
    """A project's page with a file and a chat, and the list of chats while several are picked."""
    made = house.call("POST", "/api/projects", {"name": "House"})["id"]
    after.callback(house.call, "DELETE", f"/api/projects/{made}?chats=delete")
    data = {"name": "a.md", "data": "aGk="}
    house.call("POST", f"/api/projects/{made}/files", data)
    chat = house.asked("Who are you?", project=made)
    folder = house.home / "papers"
    folder.mkdir(exist_ok=True)
    (folder / "a.md").write_text("# Tides\n\nEbb is at six.", "utf-8")
    house.call("POST", "/api/library", {"path": str(folder)})
    after.callback(house.call, "DELETE", "/api/library", {"path": str(folder)})
    page.goto(f"{house.url}#/p/{made}")
    expect(page.locator(".project-list a")).to_have_count(1)
    with page.expect_response(lambda r: r.request.method == "PATCH"):
        page.get_by_label(str(folder)).check()
    assert house.call("GET", f"/api/projects/{made}")["folders"] == [str(folder)]
    page.locator(".project-defaults summary").click()
    listed(page)
    do(page, chat, "Select several…")
    expect(page.locator(".pick-bar")).to_be_visible()


def tuning(page: Page, **more: Any) -> None:
    """The options of a model."""
    page.get_by_role("button", name="This chat", exact=True).click()
    page.get_by_role("menuitem", name="Model options").click()
    expect(page.get_by_label("Temperature")).to_be_focused()


def previewing(page: Page, ollama: LedOllama, **more: Any) -> None:
    """A table beside the code that made it."""
    told(page, ollama, "A table", "```csv\nDay,From\nFriday,Quay 2\n```\n").get_by_role(
        "button", name="Preview"
    ).click()
    expect(page.locator("#preview td").first).to_be_visible()


def speaking(page: Page, ollama: LedOllama, **more: Any) -> None:
    """An answer is read aloud while a question is dictated, and a folder is looked for."""
    page.add_init_script(f"({SPEECH})(); few = 2; ({LISTENS})()")
    page.reload()
    page.evaluate("Object.assign(document.documentElement.dataset, {aloud: 'on', dictate: 'on'})")
    told(page, ollama, "When?", "Ebb.\n\nFlood.").get_by_role("button", name="Read aloud").click()
    page.get_by_role("button", name="Dictate").click()
    expect(page.get_by_role("group", name="Listening")).to_be_visible()
    page.get_by_role("button", name="Folder No folder").click()
    page.get_by_role("button", name="Choose…").click()
    expect(page.locator(".folders summary").first).to_be_visible()


# What is seen in one visit, each view from where the one before it ended.
WALKS: tuple[tuple[Callable[..., None], ...], ...] = (
    (empty, picking, choosing, naming, commanding),
    (cited, menu, reading, removed),
    (rich, tuning, found),
    (failed, previewing),
    (explained, thinking),
    (asked_leave, planned, vouched, judged),
    (settings, sought, blamed, serving),
    (untrusted, at_home),
    (speaking,),
)
