"""`searchloop sessions` and `export`: copies, checks, and stopping what a dead process left."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from searchloop.agent.log import EventLog
from searchloop.agent.log.leases import holder
from tests.cli.conftest import Cli


@pytest.fixture
def left(tmp_path: Path) -> str:
    """A session that another process, which is alive, is answering."""
    log = EventLog(tmp_path / "home" / "sessions.sqlite3")
    session = log.create_session(model="builtin:extractive").id
    started = {"run_id": "r", "model": "builtin:extractive", "mode": "ask", "search": "off"}
    lease = log.leases.claim(session, "r", holder())
    log.append(session, [("user_message", {"text": "hi"}), ("run_started", started)])
    log.append(session, [("text_delta", {"text": "Half"})], fence=lease.fence)
    log.leases.hand_over(lease)
    log.close()
    return session


def test_a_copy_is_made_checked_and_brought_back(cli: Cli, left: str, tmp_path: Path) -> None:
    """What is copied comes back after everything was lost; a file that is there is not touched."""
    assert cli("sessions", "cancel", left).out == "Stopped.\n"
    made = cli("sessions", "backup", str(tmp_path / "copy"))
    assert (made.code, made.out.startswith("1 session copied")) == (0, True)
    assert cli("sessions", "backup", str(tmp_path / "copy")).code == 2
    assert cli("sessions", "backup").code == 2
    for file in (tmp_path / "home").iterdir():
        if file.name.startswith("sessions"):
            file.unlink()
    told = cli("sessions", "restore", str(tmp_path / "copy"), "-o", "json").json
    assert told == {"restored": 1, "kept": 0, "saved": 0, "gaps": 0, "aside": None}
    checked = cli("sessions", "check")
    assert (checked.code, checked.out) == (0, "The sessions are whole.\n")


def test_a_damaged_store_is_named_and_restored(cli: Cli, left: str, tmp_path: Path) -> None:
    """Each command says that it is damaged, `check` what is wrong, and `restore` mends it."""
    assert cli("sessions", "cancel", left).code == 0
    store = tmp_path / "home" / "sessions.sqlite3"
    with closing(sqlite3.connect(store)) as db:
        root = "SELECT rootpage FROM sqlite_master WHERE name = 'sessions_owner'"
        at = (db.execute(root).fetchone()[0] - 1) * 4096
    whole = store.read_bytes()
    store.write_bytes(whole[:at] + b"\xff" * 4096 + whole[at + 4096 :])
    checked = cli("sessions", "check")
    assert checked.code == 1
    assert "is damaged" in checked.out
    told = {f["what"]: f for f in cli("doctor", "-o", "json").json["findings"]}["Sessions"]
    assert (told["state"], told["command"]) == ("missing", "searchloop sessions restore")
    refused = cli("ask", "and now?", "--session", left)
    assert refused.code == 1
    assert "`searchloop sessions restore`" in refused.err
    assert "1 session read from the damaged store. It is kept: " in cli("sessions", "restore").out
    assert cli("sessions", "check").out == "The sessions are whole.\n"
    assert left in cli("sessions").out
    assert cli("sessions", "restore").code == 2


def test_what_a_dead_process_left_can_be_stopped(cli: Cli, left: str, tmp_path: Path) -> None:
    """The run ends as stopped, with what had come; after that there is nothing to stop."""
    assert cli("sessions", "cancel", left, "-o", "json").json == {"cancelled": True}
    log = EventLog(tmp_path / "home" / "sessions.sqlite3")
    end = log.last_event(left).data
    log.close()
    assert (end["reason"], end["answer"], end["session_id"]) == ("cancelled", "Half", left)
    assert cli("sessions", "cancel", left).out == "Nothing was running.\n"
    assert cli("sessions", "cancel", "nobody").code != 0


def test_chats_are_deleted_all_of_them_or_none(cli: Cli, left: str) -> None:
    """With what they left behind, and whoever is answering in one stops first."""
    assert cli("ask", "Hello").code == 0
    (other,) = (s["id"] for s in cli("sessions", "-o", "json").json["sessions"] if s["id"] != left)
    assert cli("sessions", "delete", left, "nowhere").code == 2
    gone = cli("sessions", "delete", left, other)
    assert (gone.code, gone.out) == (0, "2 sessions deleted.\n")
    assert cli("sessions", "-o", "json").json == {"sessions": []}


def test_chats_are_found_by_what_was_said(cli: Cli, tmp_path: Path) -> None:
    """By `find` and by words alone; the places are shown, and told in JSON."""
    with closing(EventLog(tmp_path / "home" / "sessions.sqlite3")) as log:
        session = log.create_session(model="m:x").id
        said = {"text": "A samovar boils.", "sources": []}
        log.append(session, [("user_message", {"text": "Tea?"}), ("message", said)])
    for way in (["find", "samovars"], ["samovars"]):
        shown = cli("sessions", *way).out.splitlines()
        assert shown[0].startswith(session)
        assert shown[1] == "    answer: A samovar boils."
    [told] = cli("sessions", "find", "samovar", "-o", "json").json["sessions"]
    assert told["found"] == [
        {
            "turn": 1,
            "part": "answer",
            "snippet": "A samovar boils.",
            "marks": [[2, 9]],
            "words": ["samovar"],
        }
    ]
    assert cli("sessions", "find", "zeppelin").out == "No sessions.\n"
    assert cli("sessions", "find").code == 2


CHAT = {
    "uuid": "c",
    "name": "Tides",
    "chat_messages": [
        {"sender": "human", "text": "When is low water?"},
        {"sender": "assistant", "text": "At six."},
    ],
}


def test_chats_of_elsewhere_are_brought_in_and_written_out(cli: Cli, tmp_path: Path) -> None:
    """Once, however often; a cut file says so; all chats are one file, and one chat is a page."""
    file, out = tmp_path / "conversations.json", tmp_path / "all.json"
    file.write_text(json.dumps([CHAT]))
    done = cli("sessions", "import", str(file))
    assert (done.code, done.out) == (0, "1 chat brought in, 0 there already.\n")
    assert cli("sessions", "import", str(file), "-o", "json").json["known"] == 1
    file.write_text(json.dumps([CHAT, {**CHAT, "uuid": "d"}])[:-9])
    cut = cli("sessions", "import", str(file), "-o", "json").json
    assert (cut["known"], cut["problems"]) == (1, ["Chat 2: the file is cut here."])
    file.write_text("nothing")
    assert cli("sessions", "import", str(file)).code == 1
    assert cli("sessions", "import", str(tmp_path / "gone")).code == 2
    assert cli("sessions", "export", str(out)).out == f"1 chat written to {out}.\n"
    assert cli("sessions", "export", str(out)).code == 2
    assert cli("sessions", "import", str(out), "-o", "json").json["known"] == 1
    assert "At six." in cli("export", "--format", "html").out


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
    assert "Name another, or remove this one." in again.err
    trace = cli("export", "--format", "trace").out.splitlines()
    assert [json.loads(line)["type"] for line in trace][-1] == "run_finished"
