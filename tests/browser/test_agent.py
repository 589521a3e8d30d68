"""The way of a change: the model asks, the person sees the diff and says yes, the file is new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.house import MODEL, House, LedOllama
from tests.browser.steps import ask, last_turn, wait_for_answer


def called(name: str, **arguments: Any) -> list[dict[str, Any]]:
    """A step that asks for one tool."""
    return [{"tool_calls": [{"function": {"name": name, "arguments": arguments}}]}]


def test_a_file_is_changed_by_a_yes_and_left_by_a_no(
    page: Page, house: House, ollama: LedOllama, tmp_path: Path
) -> None:
    """Nothing is on the disk while the card waits; a reload keeps it; Deny leaves all as it was."""
    notes = tmp_path / "notes.md"
    notes.write_text("old line\n")

    def script(messages: list[dict[str, Any]]) -> list[Any]:
        turn = [m["role"] for m in messages]
        if turn[-1] == "tool":
            return ["Done." if "declined" not in messages[-1]["content"] else "Left alone."]
        new = "new line" if turn.count("user") == 1 else "another line"
        old = notes.read_text().strip()
        return called("replace_in_file", path="notes.md", old_text=old, new_text=new)

    ollama.script = script
    chat = house.call(
        "POST",
        "/api/sessions",
        {"model": f"ollama:{MODEL}", "mode": "agent", "workspace": str(tmp_path)},
    )
    page.goto(f"{house.url}#/s/{chat['id']}")
    ask(page, "Change my notes")
    card = last_turn(page).locator(".approval")
    expect(card.locator(".diff .gone")).to_have_text("-old line\n")
    page.reload()
    card = last_turn(page).locator(".approval")
    expect(card).to_contain_text("Change a file?")
    assert notes.read_text() == "old line\n"
    card.get_by_role("button", name="Allow once").click()
    expect(wait_for_answer(page)).to_contain_text("Done.")
    assert notes.read_text() == "new line\n"
    ask(page, "And once more")
    last_turn(page).locator(".approval").get_by_role("button", name="Deny").click()
    expect(wait_for_answer(page)).to_contain_text("Left alone.")
    assert notes.read_text() == "new line\n"


def test_an_allowed_folder_asks_once(
    page: Page, house: House, ollama: LedOllama, tmp_path: Path
) -> None:
    """The card names the folder; the next file in it is made without a card, one above it is not.
    What waits is said in words, and where it leads.
    """
    (tmp_path / "notes").mkdir()
    made = iter(["notes/a.md", "notes/deep/b.md", "c.md"])
    ollama.script = lambda messages: called("create_file", path=next(made), content="x")
    body = {"model": f"ollama:{MODEL}", "mode": "agent", "workspace": str(tmp_path)}
    chat = house.call("POST", "/api/sessions", body)
    page.goto(f"{house.url}#/s/{chat['id']}")
    ask(page, "Make three files")
    card = last_turn(page).locator(".approval:not(.decided)")
    expect(card).to_contain_text("It writes to notes/a.md.")
    expect(last_turn(page).locator(".step")).to_contain_text("Making notes/a.md")
    card.get_by_role("button", name="Always allow edits in notes/ (this chat)").click()
    expect(card).to_contain_text("It writes to c.md.")
    assert [(tmp_path / name).exists() for name in ("notes/a.md", "notes/deep/b.md")] == [True] * 2
    assert not (tmp_path / "c.md").exists()
    page.get_by_role("button", name="Stop").click()
    expect(last_turn(page).locator(".approval").first).to_contain_text("notes/a.md")
