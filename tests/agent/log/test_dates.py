"""Which day it is: told to the model, without changing a word of what was sent before."""

from __future__ import annotations

import itertools
import json
import sqlite3
from datetime import UTC, date, datetime
from pathlib import Path

from searchloop import Agent, Settings
from searchloop.agent.settings import load_environment
from searchloop.analysis.dates import iso_date
from tests.agent.scripted import SearchApp
from tests.fake_ollama import FakeOllama, Model, say
from tests.fakes import FakeServer, Reply
from tests.source_tree import ROOT
from tests.tables import each_row

DAY = 86_400


def agent_on(server: FakeOllama, home: Path, app: SearchApp | None = None) -> Agent:
    """An agent of its own, as after a restart."""
    flags = {"SEARCHLOOP_HOME": str(home), "OLLAMA_HOST": server.url}
    settings = Settings.load(load_environment(flags, {}, home))
    return Agent(settings, search_backend=app or SearchApp(), store=home / "sessions.sqlite3")


def make_older(home: Path) -> None:
    """All that was said so far was said a day earlier."""
    with sqlite3.connect(home / "sessions.sqlite3") as db:
        db.execute("UPDATE events SET at = at - ?, checksum = NULL", (DAY,))
    db.close()


def asked_on(home: Path) -> list[str]:
    """The days of all questions, by the log."""
    with sqlite3.connect(home / "sessions.sqlite3") as db:
        rows = db.execute("SELECT at FROM events WHERE type = 'user_message' ORDER BY seq")
        days = [date.fromtimestamp(at).isoformat() for (at,) in rows]
    db.close()
    return days


def test_midnight_changes_nothing_that_was_sent(tmp_path: Path) -> None:
    """A session begun yesterday: the prompt only grows, and the new question names its day."""
    with FakeOllama([Model("m")], [say(f"Answer {n}.") for n in range(4)]) as server:
        with agent_on(server, tmp_path) as agent:
            session = agent.ask("First?", model="ollama:m").session_id
        make_older(tmp_path)
        for again in (False, True):  # from the log, then as the same process goes on
            with agent_on(server, tmp_path) as agent:
                agent.ask("Second?", session=session)
                if again:
                    agent.ask("Third?", session=session)
    bodies = [request.body for request in server.requests if request.path == "/api/chat"]
    for before, after in itertools.pairwise(bodies[1:]):
        assert after.startswith(before[: -len(b"]}")])
    said = [m["content"] for m in json.loads(bodies[-1])["messages"]]
    first, *days = asked_on(tmp_path)
    assert f"Today is {first}, unless a question names its own day." in said[0]
    assert said[1] == "First?"
    assert [text for text in said[2:] if "?" in text] == [
        f"{text}?\n\n[Asked on {day}.]"
        for text, day in zip(("Second", "Second", "Third"), days, strict=True)
    ]


NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)


@each_row(
    ("told", "day"),
    [
        ("April 30, 2025", "2025-04-30"),
        ("Sept. 1st, 2025", "2025-09-01"),
        ("2025-09-11", "2025-09-11"),
        ("Mar 4, 2026", "2026-03-04"),
        ("4 Mar 2026", "2026-03-04"),
        ("04. März 2026", None),
        *((either, None) for either in ("3/4/2026", "04/03/2026", "12/1/2026")),
        *((sure, "2026-03-14") for sure in ("3/14/2026", "14/3/2026", "14/03/2026")),
        *((sure, "2026-03-03") for sure in ("3/3/2026", "2026/3/3")),
        ("2026/03/04", "2026-03-04"),
        ("Wed, 04 Mar 2026 10:00:00 GMT", "2026-03-04"),
        (1772582400, "2026-03-04"),
        ("2025-11-14T23:34:21.151000+00:00", "2025-11-14"),
        ("3 hours ago", "2026-03-31"),
        ("13 hours ago", "2026-03-30"),
        ("1 day ago", "2026-03-30"),
        ("3 weeks ago", "2026-03-10"),
        ("A month ago", "2026-03-01"),
        ("2 years ago", "2024-03-31"),
        *(
            (odd, None)
            for odd in (None, 7, 20260304, "", "soon", "June", "May 32, 2025", "2025-13-01")
        ),
        *((odd, None) for odd in ("9999 years ago", "0000-01-01", "x" * 5_000, "in 3 days")),
    ],
)
def test_the_day_of_a_page_as_providers_tell_it(told: object, day: str | None) -> None:
    """Written out, as ISO, or as so long ago; in figures where only one order of day and month can
    be meant. Whatever else it is, it is no day."""
    assert iso_date(told, NOON) == day


def test_a_provider_that_searches_by_itself_tells_the_day_of_its_sources(tmp_path: Path) -> None:
    """From its bytes to what every surface gets: a day where it told one, none where it did not."""
    recorded = ROOT / "tests" / "recordings" / "anthropic" / "web_search_stream.json"
    told = json.loads(recorded.read_text("utf-8"))["exchanges"][0]["response"]["text"]
    days = {iso_date("2 days ago")}
    with FakeServer([Reply([told.encode()])]) as server:
        flags = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k" * 20}
        settings = Settings.load(load_environment(flags, {"SEARCHLOOP_HOME": str(tmp_path)}))
        with Agent(settings, search_backend=SearchApp()) as agent:
            answer = agent.ask("When?", model="anthropic:claude-sonnet-5-5", search="native")
    days.add(iso_date("2 days ago"))
    assert answer.sources[0].published in days - {None}
    assert answer.sources[1].published is None
