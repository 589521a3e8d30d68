"""`searchloop export`: the last session or one by id, in each format, to a file or to a pipe."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.conftest import Cli

QUESTION = "How does the search switch decide between native and local search?"


def test_a_session_is_written_in_each_format(cli: Cli, tmp_path: Path) -> None:
    """Markdown has footnotes; JSON says which session; a file that is there is not replaced."""
    asked = cli("ask", "--web", "-o", "json", QUESTION).json
    text = cli("export").out
    assert QUESTION in text
    assert re.search(r"\[\^\d\]:", text)
    told = cli("export", asked["session_id"], "--format", "json").json
    assert told["session"]["id"] == asked["session_id"]
    file = tmp_path / "chat.html"
    assert cli("export", "--format", "html", "-f", str(file)).code == 0
    assert file.read_text().startswith("<!doctype html>")
    again = cli("export", "-f", str(file))
    assert (again.code, file.read_text()[:9]) == (2, "<!doctype")
    assert "--force" in again.err
    trace = cli("export", "--format", "trace").out.splitlines()
    assert [json.loads(line)["type"] for line in trace][-1] == "run_finished"


def test_what_is_not_there_is_said(cli: Cli) -> None:
    """No session yet, and none of that id."""
    assert "no session yet" in cli("export").err
    gone = cli("export", "nothing")
    assert gone.code != 0
    assert "no session 'nothing'" in gone.err
