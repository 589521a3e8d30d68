"""`python -m bench.store`: what the event log costs, on SQLite and PostgreSQL, beside its aims.

PostgreSQL is started here, if it is installed, and waits for the disk as a user's does.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, aclosing
from pathlib import Path
from statistics import median, quantiles

from bench.told import Figure, say
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import messages_from
from tests.postgres import Postgres, programs

_DELTA = ("text_delta", {"text": "seven c" * 3})
_RESULT = ("notice", {"text": "x" * 400})


def appends(log: EventLog, count: int, *, durable: bool) -> list[float]:
    """Seconds of each of so many appends of one event."""
    session, took = log.create_session(model="m").id, []
    for _ in range(count):
        began = time.perf_counter()
        log.append(session, [_RESULT if durable else _DELTA], durable=durable)
        took.append(time.perf_counter() - began)
    return took


async def across(ours: EventLog, theirs: EventLog, count: int) -> list[float]:
    """Seconds from the append in one process's log to the follower of another's."""
    session, took = ours.create_session(model="m").id, []
    async with aclosing(theirs.follow(session)) as batches:
        ours.append(session, [_DELTA])
        await anext(batches)
        for _ in range(count):
            began = time.perf_counter()
            await asyncio.to_thread(ours.append, session, [_DELTA])
            await anext(batches)
            took.append(time.perf_counter() - began)
    return took


async def watching(log: EventLog, seconds: float) -> float:
    """CPU seconds a second that a follower costs to whom nothing happens."""
    session = log.create_session(model="m").id
    log.append(session, [_DELTA])
    async with aclosing(log.follow(session)) as batches:
        await anext(batches)
        began, silent = time.process_time(), asyncio.ensure_future(anext(batches))
        await asyncio.wait([silent], timeout=seconds)
        used = time.process_time() - began
        silent.cancel()
        await asyncio.wait([silent])
    return used / seconds


def million(path: Path) -> tuple[float, float]:
    """Seconds to open a log of 1,000,000 events and list its sessions, and the peak in MB."""
    EventLog(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = OFF")
    columns = "id, title, model, mode, search, search_path, created, updated, messages, last_seq"
    rows = ((f"s{n}", "T", "m", "ask", "off", "off", 1.0, float(n), 1, 1000) for n in range(1000))
    db.executemany(f"INSERT INTO sessions ({columns}) VALUES ({', '.join('?' * 10)})", rows)
    text = '{"text": "' + "x" * 150 + '"}'
    db.executemany(
        "INSERT INTO events VALUES (?, ?, 'notice', ?, 1.0, NULL)",
        ((f"s{n}", seq, text) for n in range(1000) for seq in range(1, 1001)),
    )
    db.commit()
    db.close()
    began = time.perf_counter()
    log = EventLog(path)
    assert len(log.sessions()) == 200
    assert len(log.read("s999", limit=500)) == 500
    took = time.perf_counter() - began
    log.close()
    return took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def replay(log: EventLog) -> float:
    """CPU seconds to read a session of 2,000 events and fold it to a transcript."""
    session = log.create_session(model="m").id
    for n in range(1000):
        said = {"text": f"answer {n} " * 20, "step": 1, "usage": {}, "stop_reason": "stop"}
        log.append(session, [("user_message", {"text": f"question {n}"}), ("message", said)])
    took = []
    for _ in range(7):
        began = time.process_time()
        assert len(messages_from(log.read(session))) == 2000
        took.append(time.process_time() - began)
    return median(took)


def _spread(what: str, seconds: list[float], most: float | None = None) -> Iterator[Figure]:
    yield Figure(f"{what}, p50", median(seconds) * 1000, "ms", most)
    yield Figure(f"{what}, p99", quantiles(seconds, n=100)[98] * 1000, "ms")


def measured(name: str, make: Callable[[], EventLog], most: float, away: float) -> Iterator[Figure]:
    """Everything about one store; in ms an append may take `most`, its way elsewhere `away`."""
    log, other = make(), make()
    appends(log, 200, durable=True)
    yield from _spread(f"{name}: append", appends(log, 2000, durable=False), most)
    durable = appends(log, 1000, durable=True)
    yield from _spread(f"{name}: append that outlives a power cut", durable)
    elsewhere = asyncio.run(across(log, other, 20))
    yield from _spread(f"{name}: to a follower elsewhere", elsewhere, away)
    idle = asyncio.run(watching(log, 3)) * 100
    yield Figure(f"{name}: an idle follower, share of a core", idle, "%")
    read = replay(log) * 1000
    yield Figure(f"{name}: a session of 2,000 events read and folded, CPU", read, "ms", 20)
    log.close()
    other.close()


def main() -> int:
    """Prints a table; 1 when an aim was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.store", description=__doc__)
    parser.add_argument("--postgres", metavar="URL", help="an empty database instead of our own")
    args = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = args.postgres
        if url is None and programs():
            url = stack.enter_context(Postgres(careful=True)).url()
        figures = say(measured("SQLite", lambda: EventLog(folder / "s.sqlite3"), 0.1, 1100))
        if url:
            figures += say(measured("PostgreSQL", lambda: EventLog(url), 0.5, 10))
        took, peak = million(folder / "big.sqlite3")
        name = "SQLite: a log of 1,000,000 events opened, listed, a page of it read"
        figures += say([Figure(name, took * 1000, "ms", 2000), Figure("the same", peak, "MB", 200)])
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
