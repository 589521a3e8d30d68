"""Projects, the archive, titles, standing instructions and options, as people use them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.house import LOCAL, House, LedOllama
from tests.browser.steps import asked, chat_of, choose_model, do, row, told

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def tidy(house: House, ollama: LedOllama) -> Iterator[None]:
    """No chats and no projects of other tests, and none for them; a model that says yes."""
    ollama.script = lambda messages: ["Yes."]

    def empty() -> None:
        house.call("DELETE", "/api/sessions")
        for old in house.call("GET", "/api/projects")["projects"]:
            house.call("DELETE", f"/api/projects/{old['id']}?chats=delete")

    empty()
    yield
    empty()


def test_a_project_is_made_filled_and_asked(
    page: Page, house: House, ollama: LedOllama, tmp_path: Path
) -> None:
    """By keys: its name, instructions and a file; a question on its page begins a chat of it. What
    becomes of its chats is asked before it goes; archived, they are below the list."""
    ollama.script = lambda messages: ["In metres [1]."]
    page.get_by_role("button", name="New project").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Name of the project")).to_be_focused()
    page.keyboard.type("House")
    page.keyboard.press("Enter")
    heading = page.get_by_role("heading", name="House", exact=True)
    expect(heading).to_be_visible()
    words = page.get_by_role("textbox", name="Instructions")
    words.fill("Answer in metres.")
    words.blur()
    expect(page.locator("#project-instructions-state")).to_have_text("Saved.")
    note = {"name": "walls.md", "mimeType": "text/markdown", "buffer": b"The wall is 3 m high."}
    page.get_by_label("Add files").last.set_input_files(note)  # type: ignore[arg-type]
    expect(page.locator(".project-files")).to_contain_text("walls.md")
    page.get_by_text("New chats begin with").click()
    page.locator("#project-search").select_option("auto")
    expect(page.get_by_role("switch", name="Web search")).to_be_checked()
    page.reload()
    expect(words).to_have_value("Answer in metres.")
    expect(page.get_by_role("switch", name="Web search")).to_be_checked()
    page.get_by_text("New chats begin with").click()
    page.locator("#project-search").select_option("off")
    expect(page.get_by_role("switch", name="Web search")).not_to_be_checked()
    expect(page.locator(".project-files")).to_contain_text("walls.md")
    choose_model(page, LOCAL)
    asked(page, "How high is the wall?")
    heard = json.dumps(ollama.chats[-1]["messages"])
    assert "Answer in metres." in heard
    assert "The wall is 3 m high." in heard
    expect(page.locator(".turn")).to_contain_text("walls.md")
    home = page.get_by_role("link", name="Project House")
    expect(home).to_be_visible()
    expect(page.locator("#projects .count")).to_have_text("1")
    home.click()
    expect(page.locator(".project-list a")).to_have_text("How high is the wall?")
    page.get_by_role("button", name="Rename the project").click()
    page.get_by_role("textbox", name="Name of the project").fill(" ")
    page.keyboard.press("Enter")
    expect(page.locator("#project-name-problem")).to_contain_text("name")
    page.get_by_role("textbox", name="Name of the project").fill("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#projects a")).to_contain_text("Home")
    page.get_by_role("button", name="Delete the project").click()
    page.get_by_role("menuitem", name="Delete it and archive its chat").click()
    expect(page.locator("#projects a")).to_have_count(0)
    page.get_by_role("button", name="Archived (1)").click()
    expect(page.locator(".session a")).to_have_text("How high is the wall?")


def test_a_chat_is_moved_by_its_menu(page: Page, house: House) -> None:
    """Into one project and out again; the project's own page, if it is on show, lists it or not,
    also once it is deleted."""
    one = house.call("POST", "/api/projects", {"name": "One"})
    made = house.asked("Trains at night", model=LOCAL)
    page.goto(f"{house.url}#/p/{one['id']}")
    expect(page.locator("#welcome")).to_contain_text("0 chats")

    def project() -> str | None:
        found: str | None = house.call("GET", f"/api/sessions/{made}")["settings"].get("project")
        return found

    do(page, made, "Move to project…")
    page.get_by_role("menuitemradio", name="One").click()
    expect(page.locator("#projects li").first.locator(".count")).to_have_text("1")
    assert project() == one["id"]
    listed = page.locator(".project-list a")
    expect(listed).to_have_text("Trains at night")
    do(page, made, "Move to project…")
    expect(page.get_by_role("menuitemradio", name="One")).to_be_checked()
    page.get_by_role("menuitemradio", name="No project").click()
    expect(listed).to_have_count(0)
    assert project() is None
    do(page, made, "Move to project…")
    page.get_by_role("menuitemradio", name="One").click()
    expect(listed).to_have_count(1)
    do(page, made, "Delete")
    page.get_by_role("button", name="New chat", exact=True).click()
    page.goto(f"{house.url}#/p/{one['id']}")
    page.get_by_role("button", name="Undo").click()
    expect(listed).to_have_count(1)


def test_several_chats_are_tagged_saved_and_archived_at_once(page: Page, house: House) -> None:
    """Tags are typed with commas and listed by a press; several chats leave as one file. Archived
    ones leave the list; a search finds them, with a word; they are listed by themselves."""
    chats = [house.asked(text, model=LOCAL) for text in ("Puffins nest here", "Terns", "Gulls")]
    page.reload()
    for one, tags in zip(chats, ("birds, cliffs,, birds", "birds", ""), strict=True):
        do(page, one, "Tags…")
        page.get_by_label("Tags, with commas").fill(tags)
        page.keyboard.press("Enter")
        expect(page.get_by_label("Tags, with commas")).to_have_count(0)
    kept = [house.call("GET", f"/api/sessions/{one}")["settings"].get("tags") for one in chats]
    assert kept == [["birds", "cliffs"], ["birds"], None]
    tag = page.get_by_role("group", name="Chats with a tag").get_by_role("button", name="birds")
    tag.press("Enter")
    expect(tag).to_have_attribute("aria-pressed", "true")
    expect(tag).to_be_focused()
    expect(page.locator(".session")).to_have_count(2)
    do(page, chats[0], "Select several…")
    tick = page.get_by_role("checkbox", name="Select “Terns”")
    tick.focus()
    page.keyboard.press("Space")
    expect(page.locator(".pick-bar")).to_contain_text("2 selected")
    expect(tick).to_be_focused()
    page.get_by_role("button", name="With these…").click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name="Save as one file").click()
    text = saved.value.path().read_text("utf-8")
    assert [word in text for word in ("Puffins nest here", "Terns", "Gulls")] == [True, True, False]
    page.get_by_role("button", name="With these…").click()
    page.get_by_role("menuitem", name="Archive").click()
    expect(page.locator(".session")).to_have_count(1)
    page.get_by_label("Search chats").fill("puffins")
    expect(row(page, chats[0])).to_contain_text("archived")
    page.get_by_label("Search chats").fill("")
    page.get_by_role("button", name="Archived (2)").click()
    row(page, chats[0]).locator("a").click()
    expect(page.locator("#archived")).to_be_visible()
    do(page, chats[0], "Bring back")
    expect(page.locator("#archived")).to_be_hidden()
    expect(row(page, chats[0])).to_have_count(0)
    page.get_by_role("button", name="Back to the chats").click()
    expect(row(page, chats[0])).to_be_visible()


def test_a_rating_and_options_stay_in_the_chat(page: Page, house: House, ollama: LedOllama) -> None:
    """A rating is pressed once more to be taken back, is exported, and reaches no model. Options
    are those that the model takes; a wrong one is refused in words; empty again, none is sent."""
    turn = told(page, ollama, "Really?")
    good, poor = (turn.get_by_role("button", name=f"{how} answer") for how in ("Good", "Poor"))
    for pressed, shown in ((good, "1"), (good, "0"), (poor, "-1")):
        pressed.click()
        expect(good).to_have_attribute("aria-pressed", str(shown == "1").lower())
        expect(poor).to_have_attribute("aria-pressed", str(shown == "-1").lower())
    expect(page.locator("#announcer")).to_contain_text("It is never sent.")
    session = chat_of(page)
    exported = house.call("GET", f"/api/sessions/{session}/export?format=json")["events"]
    assert [e["rating"] for e in exported if e["type"] == "turn_rated"] == [1, 0, -1]
    page.reload()
    expect(poor).to_have_attribute("aria-pressed", "true")
    asked(page, "And now?")
    assert "rat" not in json.dumps(ollama.chats[-1]["messages"][1:])
    page.get_by_role("button", name="This chat", exact=True).click()
    page.get_by_role("menuitem", name="Model options").click()
    heat = page.get_by_label("Temperature")
    expect(heat).to_be_focused()
    heat.fill("hot")
    page.keyboard.press("Enter")
    expect(page.locator("form.menu .problem")).not_to_be_empty()
    heat.fill("0.25")
    page.get_by_label("Seed").fill("7")
    page.keyboard.press("Enter")
    expect(heat).to_be_hidden()
    held = house.call("GET", f"/api/sessions/{session}")["settings"]["options"]
    assert held == {"temperature": 0.25, "seed": 7}
    page.get_by_role("button", name="This chat", exact=True).click()
    page.get_by_role("menuitem", name="Model options").click()
    expect(heat).to_have_value("0.25")
    page.get_by_role("button", name="Reset all").click()
    expect(heat).to_be_hidden()
    assert "options" not in house.call("GET", f"/api/sessions/{session}")["settings"]


def test_a_chat_gets_its_title_while_one_looks_on(
    enter: Any, tmp_path: Path, ollama: LedOllama
) -> None:
    """In the head, in the list and in the tab, without a reload; what is typed stays."""
    ollama.script = lambda messages: (
        ["Capital <b>of</b> France"]
        if "a title of two to six words" in messages[0]["content"]
        else ["Paris."]
    )
    settings = {"SEARCHLOOP_OFFLINE": "1", "OLLAMA_HOST": ollama.url, "SEARCHLOOP_TITLES": "1"}
    with House(tmp_path, settings) as own:
        page = enter(own, fresh=True)
        asked(page, "What is the capital of France?")
        expect(page.locator("#title")).to_have_text("Capital <b>of</b> France")
        expect(page.locator(".session a")).to_have_text("Capital <b>of</b> France")
        expect(page).to_have_title(re.compile("^Capital <b>of</b> France"))
