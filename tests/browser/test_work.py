"""A plan is made, run and undone on the page; agents and folders are chosen, made and refused."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.house import LOCAL, MODEL, ROOT, House, LedOllama, called
from tests.browser.steps import (
    asked,
    box,
    choose,
    choose_model,
    hold,
    last_turn,
    wait_for_answer,
)
from tests.browser.test_settings import opened
from tests.waiting import until

pytestmark = pytest.mark.integration


def command(page: Page, typed: str, offered: str = "") -> None:
    """Types a command and takes it once it is offered."""
    box(page).press_sequentially(typed)
    expect(page.locator('#slash [role="option"] code').first).to_have_text(offered or typed)
    box(page).press("Enter")


def test_a_question_calls_a_model_and_a_file(page: Page, house: House, ollama: LedOllama) -> None:
    """By @ and # within the text: one question goes to another model, a file goes along."""
    until(lambda: house.call("GET", "/api/library?q=search-switch")["documents"])
    ollama.script = lambda messages: [messages[-1]["content"][:40]]
    offered = page.locator('#slash [role="option"]')
    box(page).press_sequentially("me@example.org, issue #12 @qw")
    expect(offered).to_have_count(1)
    expect(page.locator("#slash [role=presentation]")).to_have_text(["Models"])
    box(page).press("Escape")
    expect(offered.first).to_be_hidden()
    box(page).press_sequentially("e")
    expect(offered.first).to_be_hidden()  # it was closed
    box(page).fill("")
    box(page).press_sequentially("@qw")
    box(page).press("Enter")
    expect(box(page)).to_have_value(f"@{MODEL} ")
    expect(page.locator("#switch-state")).to_contain_text("This question alone is answered by")
    box(page).press_sequentially("Sum up #search-swit")
    expect(page.locator("#slash [role=presentation]")).to_have_text(["Library"])
    expect(offered).to_have_text(["The web-search switchin your library"])
    offered.click()
    expect(page.locator("#shelf li")).to_contain_text("library://docs/search-switch.md")
    page.route("**/api/sessions?*", lambda route: route.abort())  # what the server says comes late
    box(page).press("Enter")
    expect(wait_for_answer(page).locator(".answer")).to_contain_text("Sum up")
    expect(page.locator("#model")).to_have_attribute("data-id", "builtin:extractive")
    page.unroute("**/api/sessions?*")
    assert "library://docs/search-switch.md" in ollama.chats[-1]["messages"][-1]["content"]
    expect(page.locator("#model")).to_have_attribute("data-id", "builtin:extractive")


HABITS = {"/web": "/search on", "/clear": "/new", "/help": "/help"}


def test_a_command_is_no_question_before_the_commands_are_there(page: Page) -> None:
    """On a slow line Enter waits for them. The words of other programs are commands too."""
    held = hold(page, "**/slash_commands.js")
    with page.expect_request("**/slash_commands.js"):
        box(page).fill("/plan")
    box(page).press("Enter")
    held[0].continue_()
    expect(page.get_by_role("button", name="Mode Plan")).to_be_visible()
    expect(page.locator(".turn")).to_have_count(0)
    for typed, offered in HABITS.items():
        command(page, typed, offered)
        expect(box(page)).to_have_value("")
    expect(page.locator("#shortcuts")).to_be_visible()
    expect(page.locator(".turn")).to_have_count(0)


def test_a_question_is_searched_in_one_folder(page: Page, house: House, ollama: LedOllama) -> None:
    """By #: it waits beside the box, is told and can be left out; asked again it holds still."""
    folder = house.home / "tide tables"
    folder.mkdir()
    for name in ("ebb", "flood"):
        (folder / f"{name}.md").write_text(f"# The {name}\n\nThe {name} of the quay is at six.")
    house.call("POST", "/api/library", {"path": str(folder)})
    ollama.script = lambda messages: (
        ["At six."]
        if messages[-1]["role"] == "tool"
        else called("web_search", query="ebb of the quay")
    )
    choose_model(page, LOCAL)
    for _ in range(2):
        box(page).press_sequentially("When? #tide")
        expect(page.locator('#slash [role="option"]').first).to_have_text(
            "tide-tablesfolder, 2 documents"
        )
        box(page).press("Enter")
        expect(page.locator("#switch-state")).to_have_text(
            "For this question only tide-tables is searched, on this computer."
        )
        if not _:
            page.get_by_role("button", name="Leave tide-tables").click()
            expect(page.locator("#switch-state")).to_contain_text("Web search is off")
            box(page).fill("")
    box(page).press("Enter")
    turn = wait_for_answer(page)
    expect(turn.locator(".bubble .attached")).to_have_text(f"{folder}")
    expect(turn.locator(".activity > summary")).to_contain_text("Searched 1 query")
    turn.get_by_role("button", name="Ask again").click()
    page.get_by_role("menuitem", name="Same settings").click()
    expect(page.get_by_role("img", name="Version 2 of 2")).to_be_visible()
    expect(wait_for_answer(page).locator(".bubble .attached")).to_have_text(f"{folder}")
    assert page.locator("#web-search").is_checked() is False
    command(page, "/search offline")
    expect(page.locator("#via")).to_have_accessible_name("Where the search happens Library")
    house.call("DELETE", "/api/library", {"path": str(folder)})


def test_a_project_offers_its_own_templates_first(page: Page, house: House) -> None:
    """Made on its page or of a question in it; taken along as a file and brought into another."""
    made = [house.call("POST", "/api/projects", {"name": name})["id"] for name in ("Quay", "Pier")]
    kept = [{"command": name, "content": f"All {name}"} for name in ("a-general", "fares")]
    house.call("POST", "/api/templates", {"templates": kept})
    page.goto(f"{house.url}#/p/{made[0]}")
    own = page.get_by_role("region", name="Templates")
    own.get_by_role("button", name="New template").click()
    own.locator("#template-name").fill("fares")
    own.locator("#template-text").fill("Fares to {{where}}")
    own.get_by_role("button", name="Save").click()
    expect(own.locator(".card")).to_contain_text("Fares to {{where}}")
    with page.expect_download() as saved:
        own.get_by_role("button", name="Export all").click()
    box(page).press_sequentially("/")
    heads = ["Templates of this project", "Commands", "Templates"]
    expect(page.locator("#slash [role=presentation]")).to_have_text(heads)
    offered = page.locator('#slash [role="option"] code')
    expect(offered.first).to_have_text("/fares")
    expect(offered.filter(has_text="/fares")).to_have_count(1)
    expect(offered.filter(has_text="/a-general")).to_have_count(1)
    box(page).fill("")
    page.goto(f"{house.url}#/p/{made[1]}")
    expect(page.locator("#welcome h2")).to_have_text("Pier")
    expect(own.locator(".card")).to_have_count(0)
    own.locator("input[type=file]").set_input_files(saved.value.path())
    expect(own.locator(".card")).to_contain_text("/fares")
    asked(page, "Ferries?").get_by_role("button", name="Ask again").click()
    page.get_by_role("menuitem", name="Make a template of this question").click()
    expect(page.get_by_label("Offered in")).to_have_value(made[1])
    expect(page.locator("#template-text")).to_have_value("Ferries?")
    page.locator("#template-name").fill("/Ferries")
    page.locator("#template-name").press("Enter")
    expect(page.locator("#settings .card")).to_have_count(2)
    names = [t["command"] for t in house.call("GET", f"/api/projects/{made[1]}")["templates"]]
    assert names == ["fares", "ferries"]
    for name in ("a-general", "fares"):
        house.call("DELETE", f"/api/templates/{name}")
    for project in made:
        house.call("DELETE", f"/api/projects/{project}?chats=delete")


def test_a_template_is_filled(page: Page, house: House) -> None:
    """Field by field; one within itself is text."""
    words = "/fares: {{what}} in {{where}}, {{ what }}"
    house.call("POST", "/api/templates", {"templates": [{"command": "fares", "content": words}]})
    command(page, "/far", "/fares")
    page.keyboard.type("trains")
    page.keyboard.press("Enter")  # a field is left
    page.keyboard.type("Lisbon")
    page.keyboard.press("Enter")
    expect(page.locator(".bubble").last).to_have_text("/fares: trains in Lisbon, trains")
    house.call("DELETE", "/api/templates/fares")  # other tests look for braces in the settings


def test_a_prompt_of_a_server_waits_in_the_box(page: Page, house: House) -> None:
    """Listed with what it takes, filled by the words after it, unsent; a wrong one is told."""
    server = str(ROOT / "tests" / "agent" / "mcp" / "sdk_server.py")
    command = {"command": sys.executable, "args": [server, "stdio"], "startup_timeout": 90}
    config = json.dumps({"mcpServers": {"sdk": command}})
    house.call("POST", "/api/mcp", {"config": config, "save": True})
    box(page).press_sequentially("/sdk:nothing x")
    box(page).press("Enter")  # which starts the server
    expect(page.get_by_role("alert")).to_contain_text("There are: review.")
    box(page).fill("")
    box(page).press_sequentially("/sdk:r")
    offered = page.locator('#slash [role="option"]')
    expect(offered).to_have_text(["/sdk:review code style · Ask for a review."])
    box(page).press("Enter")
    box(page).press_sequentially("a.py very kind")
    box(page).press("Enter")
    expect(box(page)).to_have_value(re.compile("^Review a.py, very kind."))
    expect(page.locator(".turn")).to_have_count(0)
    house.call("DELETE", "/api/mcp/sdk")


STEPS = [{"text": "Write <b>one</b> line", "files": ["notes.md", "javascript:alert(1)"]}]


def script(messages: list[dict[str, Any]]) -> list[Any]:
    """A model that plans, and carries plans out."""
    asked = [m for m in messages if m["role"] == "user"][-1]["content"]
    if messages[-1]["role"] == "tool":
        return ["Done."]
    if "Carry out this plan" in asked:
        return called("create_file", path="notes.md", content="one line\n")
    return called("present_plan", title="One line of notes", steps=STEPS)


def choose_folder(page: Page, folder: Path) -> None:
    """Names a folder that is not there, then one that is."""
    page.get_by_role("button", name="Folder No folder").click()
    path = page.get_by_label("Full path of a folder")
    path.fill(str(folder / "absent"))
    path.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="is not a folder")).to_be_visible()
    page.get_by_role("button", name="Choose…").click()
    top = page.locator(".folders summary").first
    top.focus()
    expect(path).to_have_value(top.inner_text().strip())
    path.fill(str(folder))
    path.press("Enter")
    chosen = page.get_by_role("button", name=f"Folder {folder.name}")
    expect(chosen).to_have_attribute("title", str(folder))


def test_a_plan_is_run_and_its_changes_undone(
    page: Page, ollama: LedOllama, tmp_path: Path
) -> None:
    """Folder refused and taken, plan card, run, yes, file, diff, undo; a reload shows the same.
    /run and /undo act on a later plan."""
    notes = tmp_path / "notes.md"
    ollama.script = script
    choose_model(page, LOCAL)
    choose_folder(page, tmp_path)
    choose(page, "mode", "plan")
    asked(page, "Plan my notes")
    card = page.get_by_role("region", name="Plan: One line of notes")
    expect(card.locator("li")).to_contain_text("Write <b>one</b> line")
    expect(card.locator("code")).to_have_text(["notes.md", "javascript:alert(1)"])
    assert card.locator("a").count() == 0
    card.get_by_role("button", name="Run this plan").click()
    expect(card).to_contain_text("Handed over to agent mode.")
    expect(page.locator("#mode")).to_have_attribute("data-value", "agent")
    last_turn(page).get_by_role("button", name="Allow once").click()
    changed = page.get_by_role("region", name="Changed 1 file")
    wait_for_answer(page)
    assert notes.read_text() == "one line\n"
    page.reload()
    expect(page.locator(".plan")).to_contain_text("Run it again")
    last_turn(page).locator(".activity > summary").click()
    last_turn(page).get_by_text("Made notes.md").click()
    made = last_turn(page).get_by_role("region", name="Difference in notes.md")
    expect(made.locator(".added")).to_have_text("+one line\n")
    notes.write_text("mine\n")
    changed.get_by_role("button", name="Undo these changes").click()
    expect(page.locator("#composer-notice .note")).to_have_attribute("data-code", "changed_since")
    notes.write_text("one line\n")
    changed.get_by_role("button", name="Undo these changes").click()
    expect(changed).to_contain_text("Undone: notes.md.")
    assert not notes.exists()
    choose(page, "mode", "plan")
    asked(page, "Plan it again")
    command(page, "/run")
    last_turn(page).get_by_role("button", name="Allow once").click()
    wait_for_answer(page)
    assert notes.exists()
    command(page, "/undo")
    expect(last_turn(page)).to_contain_text("Undone: notes.md.")
    assert not notes.exists()


def test_agents_are_made_chosen_and_removed(page: Page, house: House, tmp_path: Path) -> None:
    """A copy is edited and saved, refused with its reason, taken by a chat, and outlived by it."""
    dialog = opened(page, "agents")
    dialog.get_by_role("button", name="Copy planner").click()
    dialog.get_by_label("Name", exact=True).fill("Bad Name")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert").filter(has_text="Use small letters")).to_be_visible()
    dialog.get_by_label("Name", exact=True).fill("tide-planner")
    dialog.get_by_label("Description").fill("Plans by the tides")
    dialog.get_by_label("MCP servers it may use").fill("none")
    dialog.get_by_label("Web search at the start").select_option("local")
    dialog.get_by_role("button", name="Save").click()
    row = dialog.locator(".card").filter(has_text="Plans by the tides")
    expect(row).to_contain_text("no MCP servers")
    expect(row.get_by_role("button", name="Edit tide-planner")).to_be_focused()
    saved = {a["name"]: a for a in house.call("GET", "/api/agents")["agents"]}
    made, copied = saved["tide-planner"], saved["planner"]
    assert (made["tools"], made["servers"], made["model"]) == (copied["tools"], [], None)
    assert (made["system"], made["search"]) == (copied["system"], "local")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Agent No agent").click()
    item = page.get_by_role("menuitemradio", name="tide-planner")
    expect(item).to_contain_text("Plans by the tides · Sets mode: Plan, web search: Local")
    item.click()
    expect(page.get_by_role("button", name="Agent tide-planner")).to_be_visible()
    expect(page.locator("#mode")).to_have_attribute("data-value", "plan")
    expect(page.locator("#via")).to_have_attribute("data-value", "local")
    choose(page, "mode", "ask")
    command(page, "/agent res", "/agent researcher")
    expect(page.get_by_role("button", name="Agent researcher")).to_be_visible()
    command(page, "/agent nobody")
    expect(page.locator("#composer-notice")).to_contain_text("There is no agent 'nobody'")
    command(page, f"/workspace {tmp_path}")
    page.get_by_role("button", name=f"Folder {tmp_path.name}").click()
    page.get_by_role("button", name="No folder any more").click()
    expect(page.get_by_role("button", name="Folder No folder")).to_be_focused()
    dialog = opened(page, "agents")
    dialog.get_by_role("button", name="Delete tide-planner").click()
    expect(dialog.get_by_text("tide-planner")).to_have_count(0)
    expect(dialog.get_by_role("button", name="Delete planner")).to_have_count(0)
    dialog.get_by_role("button", name="Edit planner").click()
    dialog.get_by_label("Description").fill("Mine")
    dialog.get_by_role("button", name="Save").click()
    mine = dialog.locator(".card").filter(has_text="planner")
    expect(mine).to_contain_text("built in, changed by you")
    mine.get_by_role("button", name="Put planner back as it came").click()
    dialog.get_by_role("button", name="Drop my changes").click()
    expect(mine).to_contain_text(copied["description"])
