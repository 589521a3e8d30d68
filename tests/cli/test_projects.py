"""`searchloop projects`, `ask --project` and the archive, as a user types them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from searchloop import EventLog
from searchloop.agent.run.prompts import make_project
from searchloop.testing import offline
from tests.cli.conftest import Cli

ASK = ("ask", "-m", "builtin:extractive", "--no-web")


def ids(cli: Cli) -> list[str]:
    """The sessions that are listed."""
    return [each["id"] for each in cli("sessions", "-o", "json").json["sessions"]]


def test_a_question_is_put_into_a_project(cli: Cli, tmp_path: Path) -> None:
    """What the page made is listed and named."""
    assert cli("projects").out == "No projects. The page makes them.\n"
    settings = offline(tmp_path / "home")
    with closing(EventLog(settings.store)) as log:
        make_project(log, settings, {"name": "House", "instructions": "Answer in metres."})
    assert cli(*ASK, "--project", "house", "How high is the wall?").code == 0
    [project] = cli("projects", "-o", "json").json["projects"]
    assert (project["chats"], project["instructions"]) == (1, "Answer in metres.")
    assert "House" in cli("completions", "--names", "projects").out
    assert cli("projects").out.endswith("1 chat\n")


def test_sessions_are_archived_and_come_back(cli: Cli) -> None:
    """Out of the list, found by their words."""
    assert cli(*ASK, "Where do puffins nest?").code == 0
    [session] = ids(cli)
    assert cli("sessions", "archive", session).out == "1 session archived.\n"
    assert cli("sessions").out == "No sessions.\n"
    assert "(archived)" in cli("sessions", "find", "puffins").out
    assert cli("sessions", "unarchive", session).out == "1 session unarchived.\n"
    assert ids(cli) == [session]
