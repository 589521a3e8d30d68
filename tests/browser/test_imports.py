"""Chats of elsewhere come in by the page, and all of them go out as one file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from searchloop.web.gate import MAX_IMPORT
from tests.browser.checks import axe
from tests.browser.conftest import Enter
from tests.browser.house import House
from tests.browser.test_settings import opened

pytestmark = pytest.mark.integration
MESSAGES = [{"sender": "human", "text": "Wann ist Ebbe?"}, {"sender": "assistant", "text": "Um 6."}]
CHATS = [{"uuid": f"c{n}", "name": f"Tide {n}", "chat_messages": MESSAGES} for n in range(3)]
WORDS = {  # what each language says: heading, button, result, cut file
    "en": ("Chats as a file", "Bring in chats…", "2 chats are new here.", "1 part of the file"),
    "de": ("Chats als Datei", "Chats übernehmen…", "2 Chats sind neu hier.", "1 Teil der Datei"),
    "zh": ("聊天文件", "导入聊天…", "新增 2 个聊天。", "文件中有 1 处"),
}


# One language in the suite: the others differ in words alone.
@pytest.mark.parametrize(
    "language", ["de", *(pytest.param(name, marks=pytest.mark.torture) for name in ("en", "zh"))]
)
def test_a_cut_export_is_brought_in_by_keys_alone(
    language: str, house: House, enter: Enter, tmp_path: Path
) -> None:
    """The whole chats are in the list and can be asked on; what was cut is said; axe is content."""
    subject, choose, done, cut = WORDS[language]
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(CHATS)[:-20])
    house.call("DELETE", "/api/sessions")
    page = enter(fresh=True, locale=language)
    page.locator("#open-settings").press("Enter")
    page.locator('nav [data-page="privacy"]').press("Enter")
    expect(page.get_by_role("heading", name=subject, exact=True)).to_be_visible()
    button = page.get_by_role("button", name=choose)
    with page.expect_file_chooser() as chooser:
        button.press("Enter")
    chooser.value.set_files(file)
    section = page.locator("section", has=button)
    expect(section.get_by_role("status")).to_contain_text(done)
    expect(section).to_contain_text(cut)
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
