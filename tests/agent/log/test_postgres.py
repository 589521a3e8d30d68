"""What may become of a PostgreSQL server, and of the way to it, while it is used: nothing is
written twice, and it goes on by itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.errors import Conflict, StoreError, UnsureError
from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import check
from searchloop.agent.log.contract import Write
from searchloop.agent.log.events import Event
from tests.crash.working import Working, check_once
from tests.ports import free_port
from tests.postgres import Postgres
from tests.waiting import eventually, until
from tests.wire import Wire

pytestmark = pytest.mark.integration

APPEND = b"INSERT INTO events"
NOTICE = ("notice", {"text": "x"})
Fault = Callable[[EventLog], AbstractContextManager[None]]


def through(wire: Wire, url: str) -> str:
    """The same address by way of the wire."""
    head, _, name = url.rpartition("/")
    return f"{head.rpartition(':')[0]}:{wire.port}/{name}"


def links(log: EventLog) -> Any:
    """The log's connections."""
    return log._db.connections  # type: ignore[attr-defined]


def end_all(postgres: Postgres) -> None:
    """An administrator ends every connection but their own, and waits until they are gone."""
    mine = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
    postgres.tell(f"SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE {mine}")


@contextmanager
def ended(postgres: Postgres) -> Iterator[None]:
    """Connections are ended while something happens in here."""
    ending = threading.Thread(target=end_all, args=(postgres,))
    ending.start()
    try:
        yield
    finally:
        ending.join()


@contextmanager
def read_only(postgres: Postgres, log: EventLog) -> Iterator[None]:
    """In here nothing can be written, on connections that are open either."""

    def becomes(value: str, change: str) -> None:
        setting = f"ALTER SYSTEM {change}"
        postgres.tell(setting, "SELECT pg_reload_conf()")
        until(lambda: shown(log, "default_transaction_read_only") == value)

    try:
        becomes("on", "SET default_transaction_read_only = on")
        yield
    finally:
        becomes("off", "RESET default_transaction_read_only")


def shown(log: EventLog, name: str) -> str:
    """What a connection of the log says of a setting."""
    with links(log).taken() as db:
        return str(db.execute(f"SHOW {name}".encode()).fetchone()[0])


@contextmanager
def frozen(postgres: Postgres, log: EventLog) -> Iterator[None]:
    """In here the server stands still for longer than the log waits."""
    try:
        with postgres.frozen():
            links(log).limit = links(log).patience = 0.3
            yield
    finally:
        links(log).limit = links(log).patience = 60.0


class Struck(EventLog):
    """A log to which something happens at its nth append."""

    def __init__(self, url: str, number: int, fault: Fault) -> None:
        super().__init__(url)
        self._left, self._fault = number, fault

    def append_all(self, writes: Sequence[Write]) -> list[list[Event] | Conflict]:
        """See EventLog."""
        self._left -= 1
        if self._left:
            return super().append_all(writes)
        with self._fault(self):
            return super().append_all(writes)


async def strikes(home: Path, url: str, number: int, fault: Fault) -> list[Event]:
    """A run to which something happens, what comes after, and all that there is of both."""
    machine = Working(home, lambda path: Struck(url, number, fault))
    with suppress(StoreError):
        await machine.ask("hi")
    await machine.goes_on()
    events = machine.log.read(machine.session)
    await machine.close()
    assert machine.saved <= 1
    return events


@pytest.mark.parametrize("name", ["ended", "frozen", "read_only"])
def test_a_run_to_which_something_happens(tmp_path: Path, postgres: Postgres, name: str) -> None:
    """Its connections are ended, the server stands still for longer than we wait, or can only be
    read: nothing is there twice, and all goes on by itself.
    """
    faults: dict[str, Fault] = {
        "ended": lambda log: ended(postgres),
        "frozen": lambda log: frozen(postgres, log),
        "read_only": lambda log: read_only(postgres, log),
    }
    url = postgres.url()
    for number in (1, 3, 5):
        home = tmp_path / str(number)
        home.mkdir()
        events = asyncio.run(strikes(home, url, number, faults[name]))
        check_once(events)
        if name == "ended":
            ends = [e.data["answer"] for e in events if e.type == "run_finished"]
            assert ends in (["Whole.", "More."], ["More."])
    assert check(url) == []


def test_connections_that_were_ended_are_not_used(postgres: Postgres) -> None:
    """By an administrator or a restart, while nobody used them: nothing is to be noticed."""
    url = postgres.url()
    with closing(EventLog(url)) as log, closing(EventLog(url)) as other:
        session = log.create_session(model="m").id
        heard: list[Any] = []
        log._db.listen(heard.append)
        until(lambda: heard)
        with links(log).taken(), links(log).taken():  # so that there are two
            pass
        heard.clear()
        end_all(postgres)
        assert log.append(session, [NOTICE])[0].seq == 1
        log.update_session(session, title="T")
        until(lambda: {} in heard)  # it listens anew
        other.append(session, [NOTICE])
        until(lambda: any(news.get("last") == 2 for news in heard))


def test_a_server_that_stands_still(postgres: Postgres) -> None:
    """For a moment: it is waited for. For longer: it is said, and what was sent is there at most
    once; the connections that it knew are not used again.
    """
    with closing(EventLog(postgres.url())) as log:
        session = log.create_session(model="m").id
        appended: list[list[Event]] = []
        with postgres.frozen():
            waiting = threading.Thread(
                target=lambda: appended.append(log.append(session, [NOTICE]))
            )
            waiting.start()
        waiting.join()
        assert appended[0][0].seq == 1
        with frozen(postgres, log):
            with pytest.raises(UnsureError) as caught:
                log.append(session, [NOTICE])
            assert "look before you send it again" in caught.value.remedy
            with pytest.raises(StoreError) as told:
                log.session(session)
            assert told.value.code == "store_down"
        stored = log.append(session, [NOTICE])[0].seq
        assert [event.seq for event in log.read(session)] == list(range(1, stored + 1))
        assert stored in (2, 3)


def test_limits_of_an_administrator_do_not_hold_for_us(postgres: Postgres) -> None:
    """Ours are set on every connection, also on that which waits for news."""
    given = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    names = (*given, "idle_session_timeout")
    url = postgres.url() + "".join(f"%20-c{name}%3D3s" for name in names)
    with closing(EventLog(url)) as log:
        session = log.create_session(model="m").id
        assert log.append(session, [NOTICE])[0].seq == 1
        assert [shown(log, name) for name in names] == ["10s", "5s", "4s", "0"]


def test_a_process_frozen_in_a_transaction_holds_nobody_up(postgres: Postgres) -> None:
    """What it had locked is free before its lease would be missed."""
    url = postgres.url()
    with closing(EventLog(url)) as log, closing(EventLog(url)) as frozen:
        session = log.create_session(model="m").id
        with suppress(StoreError), frozen._db.transaction() as db:
            db.execute("UPDATE sessions SET title = 'half'")
            assert log.append(session, [NOTICE])[0].seq == 1
        assert log.session(session).title == ""


def test_a_server_that_can_only_be_read(postgres: Postgres) -> None:
    """From one moment to the next, as when it is a standby now: all can be read, sending says why
    not, whoever starts meanwhile too; it goes on by itself.
    """
    url = postgres.url()
    with closing(EventLog(url)) as log, ExitStack() as later:
        session = log.create_session(model="m").id
        log.append(session, [NOTICE])
        with read_only(postgres, log):
            new = later.enter_context(closing(EventLog(url)))
            for each in (log, new):
                with pytest.raises(StoreError) as caught:
                    each.append(session, [NOTICE])
                assert caught.value.code == "store_read_only"
                assert "SEARCHLOOP_DATABASE_URL" in caught.value.remedy
                assert [event.seq for event in each.read(session)] == [1]
            assert new.trouble is not None
        assert [each.append(session, [NOTICE])[0].seq for each in (log, new)] == [2, 3]
        assert new.trouble is None


def test_the_server_has_no_connection_to_spare(postgres: Postgres) -> None:
    """It does not say that nobody answers: what the server said is told, and it goes on."""
    import psycopg

    url = postgres.url().replace("tests@", "few@")
    schema = url.rpartition("%3D")[2]
    postgres.tell(
        "CREATE ROLE few LOGIN CONNECTION LIMIT 2", f"GRANT ALL ON SCHEMA {schema} TO few"
    )
    with ExitStack() as taken:
        for _ in range(2):
            taken.enter_context(psycopg.connect(url))
        with closing(EventLog(url)) as log:
            with pytest.raises(StoreError) as caught:
                log.create_session(model="m")
            assert caught.value.code == "store_busy"
            taken.close()
            until(lambda: _goes_on(log))


def _goes_on(log: EventLog) -> bool:
    """The server counts a connection a moment longer than its view of activity shows it."""
    try:
        return log.create_session(model="m").title == ""
    except StoreError as error:
        if error.code != "store_busy":
            raise
        return False


def test_a_server_that_refuses_us(postgres: Postgres) -> None:
    """A wrong name is not called a server that is down."""
    url = postgres.url().replace("/postgres?", "/nobody?")
    with closing(EventLog(url)) as log, pytest.raises(StoreError) as caught:
        log.sessions()
    assert caught.value.code == "store_refused"
    assert "nobody" in caught.value.message


def test_several_hosts_in_one_address(postgres: Postgres) -> None:
    """The one that can be written is found, and no password is shown."""
    head, _, rest = postgres.url().partition(f"tests@127.0.0.1:{postgres.port}/")
    hosts = f"127.0.0.1:{free_port()},127.0.0.1:{postgres.port}"
    url = f"{head}tests:secret@{hosts}/{rest}&target_session_attrs=read-write"
    with closing(EventLog(url)) as log:
        session = log.create_session(model="m").id
        assert log.append(session, [NOTICE])[0].seq == 1
        assert log.where == f"postgresql://{hosts}/postgres"


async def breaks(home: Path, url: str, wire: Wire, arm: Callable[[], None]) -> bool:
    """A run in which the wire breaks, and what comes after; False if it did not break.

    Who follows meanwhile from another machine gets each event once, in order, and misses none.
    """
    log = EventLog(url)
    machine = Working(home, lambda path: log)
    other = EventLog(url.replace(f":{wire.port}/", f":{wire.server}/"))
    followed: list[Event] = []
    following = asyncio.create_task(follow(other, machine.session, followed))
    arm()
    with suppress(StoreError):
        await machine.ask("hi")
    wire.mend()
    hit = wire.lost.is_set()
    await machine.goes_on()
    events = machine.log.read(machine.session)
    await machine.close()
    await eventually(lambda: followed and followed[-1].seq == events[-1].seq)
    following.cancel()
    other.close()
    assert [e.seq for e in followed] == sorted({e.seq for e in followed})
    assert [e for e in events if e not in followed] == []
    check_once(events)
    assert machine.saved <= 1
    return hit


async def follow(log: EventLog, session: str, into: list[Event]) -> None:
    """Collects what a follower of the session gets."""
    async for batch in log.follow(session):
        into += batch


def cuts(folder: Path, postgres: Postgres, step: int, *, asks: bool) -> int:
    """How many cuts, one after each `step` bytes of a run, were met."""
    url, done = postgres.url(), 0
    with Wire(postgres.port, APPEND) as wire:
        while True:
            home = folder / str(done)
            home.mkdir()
            arm = partial(wire.cut, step * done + step // 2, asks=asks)
            if not asyncio.run(breaks(home, through(wire, url), wire, arm)):
                break
            done += 1
    assert check(url) == []
    return done


@pytest.mark.parametrize(
    ("asks", "step"),
    [
        (True, 2909),
        (False, 1009),
        pytest.param(True, 61, marks=pytest.mark.torture),
        pytest.param(False, 31, marks=pytest.mark.torture),
    ],
)
def test_a_connection_cut_at_any_byte(
    tmp_path: Path, postgres: Postgres, asks: bool, step: int
) -> None:
    """To the server or from it: no event is lost, doubled or out of order, for nobody."""
    assert cuts(tmp_path, postgres, step, asks=asks) > 5


def test_all_connections_are_taken(postgres: Postgres) -> None:
    """It says so, and works as soon as one is free."""
    with closing(EventLog(postgres.url())) as log:
        session = log.create_session(model="m").id
        links(log).patience, pool = 0.2, links(log).pool
        with ExitStack() as stack:
            for _ in range(pool.max_size):
                stack.enter_context(pool.connection())
            with pytest.raises(StoreError) as caught:
                log.append(session, [NOTICE])
            assert caught.value.code == "store_busy"
        assert log.append(session, [NOTICE])[0].seq == 1
