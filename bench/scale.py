"""`python -m bench.scale`: many runs, many readers, several servers; each figure beside its aim.

Servers, the model, readers and PostgreSQL are processes of their own on this machine, with its real
disk. Delays are from the moment a word was due at the model to its arrival at a reader, by one
clock: reading from the model, log, wake-up and the way to the reader are all in it. PostgreSQL is
started here (Debian's package), and waits for the disk.

    crowd     1,000 readers of 200 answers of 20 words a second, on SQLite and on PostgreSQL
    idle      5,000 readers of sessions in which nothing happens
    slow      300 readers that read nothing while 200 answers go on
    across    from one server to a reader of another
    takeover  ten servers killed, five frozen and woken
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from statistics import median
from typing import Any

from bench.hosts import TOKEN, Aside, Host
from bench.told import Figure, say
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event
from searchloop.agent.log.leases import LEASE
from tests.postgres import Postgres, programs

MODEL = "openai-chat:paced"
RUNS, READERS = 200, 1000


@contextmanager
def paced(deltas: int, seconds: float, at_once: int = 1) -> Iterator[tuple[Aside, dict[str, str]]]:
    """The model, and the settings with which a server uses it."""
    order = {"deltas": deltas, "seconds": seconds, "at_once": at_once}
    with Aside("bench.paced_model", order) as model:
        url = f"http://127.0.0.1:{model.hear()}/v1"
        yield model, {"OPENAI_CHAT_BASE_URL": url, "OPENAI_CHAT_API_KEY": "bench"}


def readers(hosts: Sequence[Host], sessions: Sequence[str], **order: Any) -> Aside:
    """A crowd that is connected and waits for `go`."""
    where = {"ports": [host.port for host in hosts], "token": TOKEN, "sessions": sessions}
    crowd = Aside("bench.crowd", {**where, **order})
    crowd.hear()
    return crowd


def crowd(
    url: str | None,
    hosts: int,
    *,
    view: str,
    deltas: int = 150,
    runs: int = RUNS,
    at_once: int = READERS,
) -> Iterator[Figure]:
    """Runs under way at the same time, some readers each."""
    name = f"{'PostgreSQL' if url else 'SQLite'}, {hosts} server{'s' * (hosts > 1)}, view {view}"
    with ExitStack() as stack:
        model, settings = stack.enter_context(paced(deltas, 0.05, runs))
        settings |= {"SEARCHLOOP_DATABASE_URL": url} if url else {}
        servers = [stack.enter_context(Host(settings)) for _ in range(hosts)]
        sessions = [servers[0].session(MODEL) for _ in range(runs)]
        before = sum(server.memory() for server in servers)
        told = {"at_once": at_once, "wanted": at_once * deltas, "view": view}
        reading = stack.enter_context(readers(servers, sessions, **told))
        reading.go()
        for n, session in enumerate(sessions):
            servers[n % hosts].start(session)
        model.hear()
        used, began = sum(server.cpu() for server in servers), time.monotonic()
        late = reading.hear()
        seconds = time.monotonic() - began
        memory = sum(server.memory() for server in servers)
        used = sum(server.cpu() for server in servers) - used
    yield Figure(f"delay p50, {name}", late["p50"] * 1000, "ms")
    most = 250 if view == "events" else None  # a page is rendered as well, for each session once
    yield Figure(f"delay p99, {name}", late["p99"] * 1000, "ms", most)
    yield Figure("memory of the servers then", memory, "MB")
    yield Figure("of that for readers and runs", memory - before, "MB")
    yield Figure("cores that the servers took", used / seconds, "")
    yield Figure("cores that the readers took", late["cpu"] / seconds, "")


def idle(count: int = 5000, seconds: float = 16.0) -> Iterator[Figure]:
    """Readers of 500 sessions in which nothing happens, but for the heartbeat."""
    with Host({}) as host:
        sessions = [host.session("builtin:extractive") for _ in range(500)]
        before = host.memory()
        with readers([host], sessions, at_once=count, wanted=1) as crowd:
            crowd.go()
            memory, used = host.memory(), host.cpu()
            time.sleep(seconds)
            used = (host.cpu() - used) / seconds
    yield Figure(f"memory a reader, {count} idle", (memory - before) / count * 1024, "KB")
    yield Figure("memory of the server then", memory, "MB")
    yield Figure("share of a core that they take", used * 100, "%")


def slow() -> Iterator[Figure]:
    """Readers that never read: what the server holds for them, and what the others notice."""
    deltas = 100
    with paced(deltas, 0.05, RUNS) as (_, settings), Host(settings) as host, ExitStack() as stack:
        sessions = [host.session(MODEL) for _ in range(RUNS)]
        sleeping = {"at_once": 300, "wanted": 1, "slow": True}
        stack.enter_context(readers([host], sessions, **sleeping))
        before = host.memory()
        awake = {"at_once": RUNS, "wanted": RUNS * deltas}
        reading = stack.enter_context(readers([host], sessions, **awake))
        reading.go()
        for session in sessions:
            host.start(session)
        late = reading.hear()
        grown = host.memory() - before
    yield Figure("delay p99 beside 300 readers that read nothing", late["p99"] * 1000, "ms", 250)
    yield Figure("memory that it grew by", grown, "MB")


def across(url: str) -> Iterator[Figure]:
    """One run on one server, one reader on the other; nothing else goes on."""
    deltas = 300
    with ExitStack() as stack:
        _, settings = stack.enter_context(paced(deltas, 0.04))
        settings |= {"SEARCHLOOP_DATABASE_URL": url}
        ours, other = (stack.enter_context(Host(settings)) for _ in range(2))
        session = ours.session(MODEL)
        reading = stack.enter_context(readers([other], [session], at_once=1, wanted=deltas))
        reading.go()
        ours.start(session)
        late = reading.hear()
    name = "from the model by one server to a reader of another"
    yield Figure(f"{name}, p50", late["p50"] * 1000, "ms", 10)
    yield Figure("the same, p99", late["p99"] * 1000, "ms")


def takeover(url: str) -> Iterator[Figure]:
    """From the moment a server dies to the first event of whoever goes on with its run."""
    with ExitStack() as stack:
        _, settings = stack.enter_context(paced(2000, 0.05))
        settings |= {"SEARCHLOOP_DATABASE_URL": url}
        log = EventLog(url)
        stack.callback(log.close)
        taken = _Takeovers(log)
        stack.enter_context(Host(settings))
        killed = [taken.one(Host(settings), stack, signal.SIGKILL) for _ in range(10)]
        first = [end() for end in killed]
        frozen = [taken.one(Host(settings), stack, signal.SIGSTOP) for _ in range(5)]
        second = [end() for end in frozen]
        wrong = sum(taken.wakes(n) for n in range(10, 15))
    yield Figure("takeover after kill -9, of 10 the longest", max(first), "s", 2 * LEASE)
    yield Figure("the same, median", median(first), "s")
    yield Figure("takeover from a frozen server, of 5 the longest", max(second), "s", 2 * LEASE)
    yield Figure("words that frozen servers wrote after they woke", wrong, "", 0)


class _Takeovers:
    """Servers that each answer something, and what becomes of it."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._victims: list[tuple[Host, str]] = []

    def one(self, host: Host, stack: ExitStack, number: signal.Signals) -> Callable[[], float]:
        """Starts an answer there, ends the server in the middle; gives what waits for the rest."""
        stack.enter_context(host)
        session = host.session(MODEL)
        host.start(session)
        self._victims.append((host, session))
        self._wait(lambda: any(e.type == "text_delta" for e in self._log.read(session)))
        host.signal(number)
        at = time.time()

        def seconds() -> float:
            self._wait(lambda: self._resumed(session))
            return self._resumed(session)[0].at - at

        return seconds

    def _resumed(self, session: str) -> list[Event]:
        return [event for event in self._log.read(session) if event.type == "run_resumed"]

    def wakes(self, n: int) -> int:
        """Wakes a frozen server; how many words are there then that its own model said to it."""
        host, session = self._victims[n]
        host.signal(signal.SIGCONT)
        time.sleep(1.5)
        since = self._resumed(session)[0].seq
        said = [e.data["text"] for e in self._log.read(session, since) if e.type == "text_delta"]
        due = [float(stamp) for stamp in "".join(said).replace(";", " ").split()]
        return sum(later - sooner < 0.04 for sooner, later in pairwise(due))

    @staticmethod
    def _wait(true: Callable[[], Any]) -> None:
        end = time.monotonic() + 60
        while not true():
            if time.monotonic() > end:
                raise SystemExit("it never came to that")
            time.sleep(0.01)


def main() -> int:
    """Prints a table; 1 when an aim was missed."""
    parts = ("crowd", "idle", "slow", "across", "takeover")
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("part", nargs="*", choices=[*parts, []], help=f"of {', '.join(parts)}")
    wanted = parser.parse_args().part or parts
    with ExitStack() as stack:
        server = stack.enter_context(Postgres(careful=True)) if programs() else None
        figures: list[Figure] = []
        if "crowd" in wanted:
            figures += say(crowd(None, 1, view="events"))
            figures += say(crowd(None, 1, view="page"))
            figures += say(crowd(server.url(), 2, view="events")) if server else []
        if "idle" in wanted:
            figures += say(idle())
        if "slow" in wanted:
            figures += say(slow())
        if server and "across" in wanted:
            figures += say(across(server.url()))
        if server and "takeover" in wanted:
            figures += say(takeover(server.url()))
    if server is None:
        print("PostgreSQL is not installed: its figures are missing.", file=sys.stderr)
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
