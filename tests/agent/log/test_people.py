"""Several people on one store: nobody reads, changes, follows or stops what is somebody else's."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from searchloop.agent.errors import Conflict
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Write
from tests.waiting import LATE

HERS = "anna's secret"


def filled(log: EventLog) -> str:
    """A session with a question and a run under way."""
    session = log.create_session(model="m", settings={"pinned": True})
    log.update_session(session.id, title=HERS)
    log.append(session.id, [("user_message", {"text": HERS}), ("text_delta", {"text": HERS})])
    log.leases.claim(session.id, "run", "box/1/x")
    return session.id


def state(log: EventLog, session: str) -> Any:
    """A session, its events and its leases, whose silence grows."""
    return (
        log.session(session),
        log.read(session),
        [replace(x, silent=0) for x in log.leases.held()],
    )


def calls_of(owner: object) -> list[tuple[str, Callable[..., Any]]]:
    """The public methods that name a session first."""
    names = ("session_id", "session")
    found = []
    for name, method in inspect.getmembers(owner, callable):
        first = next(iter(inspect.signature(method).parameters), "") if name[0] != "_" else ""
        if first in names:
            found.append((name, method))
    return found


MORE: dict[str, tuple[Any, ...]] = {  # further arguments of those methods
    "append": ([("user_message", {"text": "bob was here"})],),
    "name_session": ("bob's", {"usage": {}}),
    "claim": ("run2", "box/2/y"),
}
NOTHING = (None, [], False, "no_session", "fenced")  # what somebody else's session looks like


def outcome(method: Callable[..., Any], *args: Any) -> Any:
    """What a call returns, what it yields, or the code of its error."""
    try:
        found = method(*args)
        if inspect.isasyncgen(found):

            async def first() -> list[Any]:
                async with asyncio.timeout(60):
                    return [batch async for batch in found]

            return asyncio.run(first())
    except Conflict as conflict:
        return conflict.code
    return found


def test_no_method_reaches_somebody_elses_session(log: EventLog) -> None:
    """Every public method of the log and of its leases that takes a session, those of tomorrow as
    well: called by another person it finds nothing, and nothing has changed after all of them."""
    anna, bob = log.of_person("anna"), log.of_person("bob")
    hers = filled(anna)
    before = state(anna, hers)
    tried = 0
    for other in (bob, log, log.of_person("Anna")):
        for owner in (other, other.leases):
            for name, method in calls_of(owner):
                tried += 1
                answer = outcome(method, hers, *MORE.get(name, ()))
                assert answer in NOTHING, name
        deltas = [Write(hers, [("text_delta", {"text": "bob"})])]
        assert [type(each) for each in other.append_all(deltas)] == [Conflict]
        assert other.sessions() == other.leases.held() == []
        assert other.find(HERS) == {}
    assert tried >= 3 * 9
    assert state(anna, hers) == before
    assert list(anna.find(HERS)) == [hers]


def test_a_list_holds_ones_own(log: EventLog) -> None:
    """Pinned ones beyond the limit and found ones included; each person has their own count."""
    log.chat_search.moment = LATE  # which a slow machine may need
    people = {name: log.of_person(name) for name in ("anna", "bob")}
    made = {name: [filled(own) for _ in range(3)] for name, own in people.items()}
    for name, own in people.items():
        for listed in (own.sessions(), own.sessions(limit=1)):
            assert {s.id for s in listed} == set(made[name])
        assert own.find("secret").keys() == set(made[name])
    assert log.sessions() == []
    assert set(log.people_running()) == {"anna", "bob"}


def test_use_is_counted_and_outlives_the_session(log: EventLog) -> None:
    """By person and day; an unknown price is counted, not taken for nothing; the holder of the
    token counts nobody."""
    usage = {"input_tokens": 10, "output_tokens": 3, "searches": 1, "pages": 2}
    ends = [{**usage, "cost_usd": 0.25}, {**usage, "cost_usd": None}]
    for own in (log.of_person("anna"), log):
        session = own.create_session(model="m").id
        for each in ends:
            own.append(session, [("run_finished", {"usage": each, "answer": HERS})])
        own.append(session, [("check", {"usage": ends[0]}), ("message", {"usage": usage})])
        own.delete_session(session)
    [row] = log.used()
    day = row.pop("day")
    assert len(day) == 10
    assert row == {
        "person": "anna",
        "answers": 2,
        "input_tokens": 30,
        "output_tokens": 9,
        "searches": 3,
        "pages": 6,
        "cost_usd": 0.5,
        "unpriced": 1,
    }
    assert log.used("bob") == []
    assert len(log.used("anna")) == 1
