"""`python -m bench.store`: what the event log costs, on SQLite and (with --postgres) PostgreSQL."""

from __future__ import annotations

import argparse
import asyncio
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from statistics import median, quantiles

from agent.events import messages_from
from agent.log import EventLog

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
        "INSERT INTO events VALUES (?, ?, 'notice', ?, 1.0)",
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


def _say(what: str, seconds: list[float]) -> None:
    p50, p99 = median(seconds) * 1000, quantiles(seconds, n=100)[98] * 1000
    print(f"| {what} | {p50:.3f} | {p99:.3f} |")


def main() -> int:
    """Prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.store", description=__doc__)
    parser.add_argument("--postgres", metavar="URL", help="an empty database, to measure it too")
    args = parser.parse_args()
    print("| work | p50 ms | p99 ms |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        opened: list[tuple[str, Callable[[], EventLog]]] = [
            ("SQLite", lambda: EventLog(Path(folder) / "s.sqlite3"))
        ]
        if args.postgres:
            opened.append(("PostgreSQL", lambda: EventLog(args.postgres)))
        for name, make in opened:
            log, other = make(), make()
            appends(log, 200, durable=True)
            _say(f"{name}: append", appends(log, 2000, durable=False))
            _say(f"{name}: append that outlives a power cut", appends(log, 1000, durable=True))
            _say(f"{name}: to a follower elsewhere", asyncio.run(across(log, other, 300)))
            print(f"| {name}: an idle follower, CPU | {asyncio.run(watching(log, 3)):.2%} | |")
            _say(f"{name}: replay of 2,000 events (CPU)", [replay(log)] * 2)
            log.close()
            other.close()
        took, peak = million(Path(folder) / "big.sqlite3")
        print(
            f"| SQLite: open a log of 1,000,000 events | {took * 1000:.1f} | {peak:.0f} MB peak |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
