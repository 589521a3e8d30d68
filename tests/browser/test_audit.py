"""A report that somebody else wrote, checked on the page: pasted, and the findings worst first."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.checks import axe
from tests.browser.conftest import Enter

pytestmark = pytest.mark.integration
REPORT = """# A report

The licence of this program is the "Licence of the seven seas and oceans" [1]. It costs 46 crowns
([bank](http://127.0.0.1:9/money)). Off means that no request contains a search tool [1].
In 2025, 38,400 people used it.

[1]: library://docs/README.md
"""


def test_a_pasted_report_is_checked(enter: Enter, tmp_path: Path) -> None:
    """By keys alone: what needs a look, pages that were not read, numbers without a source."""
    page = enter(locale="de")
    page.locator("#open-audit").press("Enter")
    view = page.locator("#reader")
    expect(view.get_by_label("Text mit seinen Quellen")).to_be_focused()
    (tmp_path / "report.md").write_text(REPORT, "utf-8")
    view.get_by_label("Datei wählen").set_input_files(tmp_path / "report.md")
    expect(view.get_by_label("Text mit seinen Quellen")).to_have_value(REPORT)
    assert axe(page) == []
    view.get_by_role("button", name="Prüfen", exact=True).press("Enter")
    look = view.locator("ul.cards").first
    expect(look.get_by_role("listitem")).to_have_count(2)
    expect(look.get_by_role("listitem").first).to_contain_text("falsch zitiert")
    expect(view).to_contain_text("Nicht im öffentlichen Netz. Das ist eine Adresse eines privaten")
    expect(view).to_contain_text("In 2025, 38,400 people used it.")
    expect(view.locator(".answer .chip")).to_have_count(3)
    assert axe(page) == []
    page.context.grant_permissions(["clipboard-write"])
    view.get_by_role("button", name="Kopieren").click()
    expect(view.get_by_role("button", name="Kopiert")).to_be_visible()
    with page.expect_download() as saved:
        view.get_by_role("button", name="Als HTML speichern").click()
    saved.value.save_as(tmp_path / "audit.html")
    html = (tmp_path / "audit.html").read_text("utf-8")
    assert 'class="mark misquoted"' in html
    assert "<script" not in html
    view.get_by_role("button", name="Anderen Text prüfen").press("Enter")
    expect(view.get_by_label("Text mit seinen Quellen")).to_be_focused()
    expect(view.get_by_label("Prüfen mit")).to_have_value("")
    page.route("**/api/audit", lambda route: None)  # never answered
    view.get_by_label("Text mit seinen Quellen").fill(REPORT)
    view.get_by_role("button", name="Prüfen", exact=True).press("Enter")
    view.get_by_role("button", name="Stopp").click()
    expect(view).to_contain_text("Angehalten")
    expect(view.get_by_label("Text mit seinen Quellen")).to_have_value(REPORT)
