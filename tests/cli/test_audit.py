"""`searchloop audit`: a report from a file, a pipe or the web, in each form, and for CI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.fakes import FakeServer, json_reply
from tests.searchloop.auditing.pages import WALL, Pages

REPORT = """The council approved 64 million crowns for the outer wall [1].
The council approved 46 million crowns for the outer wall [1]. It has 12 bells [2].

[1]: https://council.example/wall
[2]: https://gone.example/
"""


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The settings that lead to a search backend of a few pages."""
    (tmp_path / "report.md").write_text(REPORT, "utf-8")
    pages = Pages()
    with FakeServer(lambda asked: json_reply(pages.answer(asked.json))) as server:
        yield {"SEARCH_BACKEND_URL": server.url}


def test_a_report_is_audited(cli: Cli, env: dict[str, str]) -> None:
    """What needs a look stands first, with its line, the page's words and its day."""
    ran = cli("audit", "report.md", **env)
    assert (ran.code, ran.err) == (0, "")
    first, _, found, *_ = ran.out.splitlines()
    assert "3 sentences with a source, pages: 2; 1 supported, 1 contradicted, 1 not read" in first
    assert found.startswith("contradicted, line 2: The council approved 46 million")
    assert "The council approved 64 million crowns" in ran.out
    assert "(2025-06-02)" in ran.out
    assert "Dead address: https://gone.example/" in ran.out
    told = cli("audit", "-", "-o", "json", stdin=REPORT, **env).json
    assert told["summary"]["by_verdict"] == {"supported": 1, "contradicted": 1, "unread": 1}
    assert json.loads(cli("audit", "report.md", "-o", "sarif", **env).out)["version"] == "2.1.0"
    html = cli("audit", "report.md", "-o", "html", **env).out
    assert html.startswith("<!doctype html>")
    for names, code in {"misquoted,dead": 1, "moved, uncited": 0, "contradicted": 1}.items():
        assert cli("audit", "report.md", "--fail-on", names, **env).code == code


def test_a_report_of_markup_and_one_on_the_web_are_read(
    cli: Cli, env: dict[str, str], tmp_path: Path
) -> None:
    """HTML is read as text with its links; an address is opened as any page."""
    said = f"<p>{WALL}</p><p>It costs 46 crowns. (<a href='https://council.example/wall'>c</a>)</p>"
    (tmp_path / "report.html").write_text(f"<main><h1>Wall</h1>{said * 3}</main>", "utf-8")
    for name in ("report.html", "-"):
        told = cli("audit", name, "-o", "json", stdin=f"\n<html>{said}</html>", **env).json
        assert [each["text"] for each in told["sentences"]][-1] == "It costs 46 crowns."
        urls = {c["url"] for s in told["sentences"] for c in s["citations"]}
        assert urls == {"https://council.example/wall"}
    told = cli("audit", "https://council.example/wall", "-o", "json", **env).json
    assert (told["title"], told["summary"]["cited"]) == ("A page", 0)
    ran = cli("audit", "https://gone.example/", **env)
    assert (ran.code, ran.out) == (2, "")
    assert "https://gone.example/ could not be read" in ran.err


def test_check_fails_on_verdicts_too(cli: Cli, env: dict[str, str], tmp_path: Path) -> None:
    """One claim, and a batch whose lines are all answered."""
    (tmp_path / "page.txt").write_text(WALL, "utf-8")
    claim = "The council approved 46 million crowns for the outer wall."
    assert cli("check", claim, "page.txt").code == 0
    ran = cli("check", claim, "page.txt", "--fail-on", "contradicted,misquoted")
    assert (ran.code, ran.out[:12]) == (1, "contradicted")
    assert cli("check", claim, "page.txt", "--fail-on", "misquoted").code == 0
    lines = "".join(json.dumps({"id": n, "claim": claim, "text": WALL}) + "\n" for n in (1, 2))
    ran = cli("check", "--batch", "-", "--fail-on", "contradicted", stdin=lines)
    assert (ran.code, len(ran.events)) == (1, 2)
