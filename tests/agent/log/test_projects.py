"""Projects and archived chats in the log, on each store."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import backup, restore
from searchloop.agent.log.contract import AttachedFile
from searchloop.agent.types.attachments import Attachment


def file(name: str, data: bytes = b"some words") -> AttachedFile:
    """A text as it is stored."""
    known = Attachment(
        name, "text/plain", len(data), f"{name:0<64}"[:64], pages=1, length=len(data)
    )
    return AttachedFile(known, data, (data.decode(),))


def count(log: EventLog, table: str) -> int:
    """How many rows a table has."""
    with log._db.reading() as db:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_project_holds_chats_files_and_instructions(log: EventLog) -> None:
    """They are changed one by one; what it held goes with it, apart from what a chat holds."""
    made = log.projects.create("Thesis", {"instructions": "Cite page numbers."})
    chat = log.create_session(model="m", settings={"project": made.id})
    log.create_session(model="m")
    log.projects.add_files(made.id, [file("a"), file("b")])
    log.projects.add_files(made.id, [file("a")])
    found = log.projects.change(made.id, lambda now: replace(now, name="My thesis", search="auto"))
    assert (found.name, found.search, found.chats) == ("My thesis", "auto", 1)
    assert found.instructions == "Cite page numbers."
    assert sorted(each.name for each in found.files) == ["a", "b"]
    assert [s.id for s in log.sessions(project=made.id)] == [chat.id]
    [b] = [each for each in found.files if each.name == "b"]
    assert log.projects.attachments.data(made.id, b.digest) == b"some words"
    lent = log.projects.lend(replace(found, files=(b,)), chat.id)
    assert (lent, log.attachments.texts(chat.id, b.digest)) == ([b], ["some words"])
    for digest in [each.digest for each in found.files]:
        log.projects.remove_file(made.id, digest)
    assert (count(log, "files"), log.projects.get(made.id).files) == (1, ())
    log.projects.delete(made.id)
    assert log.projects.all() == []
    assert log.attachments.data(chat.id, b.digest) == b"some words"
    log.delete_session(chat.id)
    assert count(log, "files") == count(log, "attachments") == 0


def test_nobody_sees_the_projects_of_others(log: EventLog) -> None:
    """They cannot be read, changed, asked for files or deleted, and the error is the same."""
    anna, bob = log.of_person("anna").projects, log.of_person("bob").projects
    hers = anna.create("Hers", {})
    anna.add_files(hers.id, [file("a")])
    digest = anna.get(hers.id).files[0].digest
    for other in (bob, log.projects):
        assert other.all() == []
        assert other.attachments.data(hers.id, digest) is None
        for attempt in (
            lambda other=other: other.get(hers.id),
            lambda other=other: other.named("Hers"),
            lambda other=other: other.change(hers.id, lambda now: replace(now, name="x")),
            lambda other=other: other.add_files(hers.id, [file("b")]),
            lambda other=other: other.remove_file(hers.id, digest),
            lambda other=other: other.delete(hers.id),
        ):
            with pytest.raises(ConfigError) as caught:
                attempt()
            assert caught.value.code == "no_project"
    assert [(p.name, len(p.files)) for p in anna.all()] == [("Hers", 1)]


def test_a_project_is_found_by_its_name(log: EventLog) -> None:
    """In any case; of two with the same name only by its id."""
    one = log.projects.create("House", {})
    assert log.projects.named(" house ").id == log.projects.named(one.id).id == one.id
    log.projects.create("HOUSE", {})
    with pytest.raises(ConfigError, match="2 projects are called"):
        log.projects.named("house")
    with pytest.raises(ConfigError, match="There is no project"):
        log.projects.named("Boat")


def test_a_copy_keeps_whose_it_is(store: Path | str, tmp_path: Path) -> None:
    """Chats and projects with their files come back once, for whom they belong to."""
    second, copy = tmp_path / "b.sqlite3", tmp_path / "copy"
    with closing(EventLog(store)) as log:
        made = log.of_person("anna").projects.create("Hers", {})
        log.of_person("anna").projects.add_files(made.id, [file("a")])
        log.of_person("anna").create_session(model="m", settings={"project": made.id})
    backup(store, copy)
    for _ in range(2):
        restore(second, copy)
    with closing(EventLog(second)) as log:
        assert log.projects.all() == log.sessions() == []
        [found] = log.of_person("anna").projects.all()
        assert (found.name, found.chats, len(found.files)) == ("Hers", 1, 1)
        data = log.of_person("anna").projects.attachments.data(found.id, found.files[0].digest)
        assert data == b"some words"
