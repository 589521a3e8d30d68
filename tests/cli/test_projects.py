"""`searchloop projects`, `ask --project` and the archive, as a user types them."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli

ASK = ("ask", "-m", "builtin:extractive", "--no-web")


def ids(cli: Cli) -> list[str]:
    """The sessions that are listed."""
    return [each["id"] for each in cli("sessions", "-o", "json").json["sessions"]]


def test_a_project_from_made_to_deleted(cli: Cli, tmp_path: Path) -> None:
    """Its file is a source of a question; its chats are asked for before it goes."""
    notes = tmp_path / "walls.md"
    notes.write_text("The wall is 3 m high.\n")
    words = tmp_path / "words.txt"
    words.write_text("Answer in metres.")
    made = cli("projects", "create", "House", "--instructions", f"@{words}", "--search", "off")
    assert made.code == 0
    assert cli("projects", "add", "house", str(notes)).code == 0
    answer = cli(*ASK, "--project", "House", "How high is the wall?", "-o", "json").json
    assert [source["title"] for source in answer["sources"]] == ["walls.md"]
    assert "3 m high" in answer["answer"]
    shown = cli("projects", "show", "House", "-o", "json").json
    assert (shown["chats"], shown["instructions"]) == (1, "Answer in metres.")
    assert [each["name"] for each in shown["files"]] == ["walls.md"]
    assert "walls.md (document" in cli("projects", "show", "House").out
    folders = ("--folder", f"{tmp_path}/x/../y", "--folder", "pages")
    assert cli("projects", "edit", "House", *folders).code == 0
    assert f"searches the library in: {tmp_path}/y\n" in cli("projects", "show", "House").out
    more = ("--name", "Home", "--search", "", "--folder", "", "-o", "json")
    renamed = cli("projects", "edit", "House", *more).json
    assert (renamed["name"], renamed["search"], renamed["folders"]) == ("Home", None, [])
    assert cli("projects", "remove", "Home", "walls.md").code == 0
    assert cli("projects", "remove", "Home", "walls.md").code == 2
    refused = cli("projects", "delete", "Home")
    assert (refused.code, "--chats keep, archive or delete" in refused.err) == (2, True)
    assert "1 chat" in cli("projects").out
    assert cli("projects", "delete", "Home", "--chats", "archive").out == "Deleted Home.\n"
    assert (ids(cli), cli("projects").out) == ([], "No projects.\n")


def test_chats_are_moved_and_deleted_with_their_project(cli: Cli) -> None:
    """Into it, out of it, and away with it."""
    for name in ("One", "Two"):
        assert cli("projects", "create", name).code == 0
        assert cli(*ASK, "--project", name, f"Who is {name}?").code == 0
    [two, one] = ids(cli)
    assert cli("projects", "move", "One", two, one).out == "Moved 2 chats.\n"
    assert cli("projects", "move", "none", one).code == 0
    assert cli("projects", "delete", "One", "--chats", "delete").code == 0
    assert ids(cli) == [one]


def test_sessions_are_archived_and_come_back(cli: Cli) -> None:
    """Out of the list, found by their words."""
    assert cli(*ASK, "Where do puffins nest?").code == 0
    [session] = ids(cli)
    assert cli("sessions", "archive", session).out == "1 session archived.\n"
    assert cli("sessions").out == "No sessions.\n"
    assert "(archived)" in cli("sessions", "find", "puffins").out
    assert cli("sessions", "unarchive", session).out == "1 session unarchived.\n"
    assert ids(cli) == [session]
