"""The chain over real sockets: fake engines that answer, hang, lie, refuse and break off."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from searchloop.search_backend.cache.kept import SingleFlight
from searchloop.search_backend.engines import Engine, Wire
from searchloop.search_backend.fetch.client import run
from searchloop.search_backend.fetch.engine_client import MOST_BYTES, EngineHttp, explain
from searchloop.search_backend.library import Library
from searchloop.search_backend.plugin import HttpRequest, HttpResponse, Keys, get
from searchloop.search_backend.plugin.answers import checked, result, rows
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.search.limits import LONGEST_WAIT, TokenBuckets
from searchloop.search_backend.search.schedule import PATIENCE
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import EngineError, Query, SearchAnswer, SearchResult
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.search_backend.chains import Clock, chain_of
from tests.search_backend.hostile import DATA, serving
from tests.search_backend.hostile import answer as hostile_answer

Answer = Callable[[Received], Reply]
SECONDS = 1.0  # of a search: hanging engines are waited for that long, others answer meanwhile


class Hanging(Clock):
    """A clock that an engine without an answer moves on."""

    def hang(self, _: Received) -> Reply:
        """No answer, for longer than the chain waits; nothing else makes an engine late."""
        self.now += PATIENCE * SECONDS + 0.01
        return HANG


def found(*urls: str) -> Reply:
    """An answer with these results."""
    return json_reply({"results": [{"url": url, "title": url, "content": "x"} for url in urls]})


HANG = Reply(before="stall")


def wired(name: str, server: FakeServer, rate: float = 0.0) -> Engine:
    """An engine that asks `server`."""

    def request(query: Query, _keys: Keys) -> HttpRequest:
        return get(f"{server.url}/{name}", {"q": query.text})

    def parse(response: HttpResponse, _keys: Keys) -> list[SearchResult]:
        made = (
            result(name, r.get("url"), r.get("title"), r.get("content"))
            for r in rows(checked(response, name.title()), "results", title=name.title())
        )
        return [one for one in made if one is not None]

    return Engine(name, name.title(), wire=Wire(request, parse), rate=rate)


class House:
    """A chain over fake engines, one server each."""

    def __init__(self, chain: Chain, servers: dict[str, FakeServer]) -> None:
        self.chain = chain
        self.servers = servers

    def ask(self, text: str = "tea", engine: str | None = None) -> SearchAnswer:
        """One search."""
        return self.chain.search(Query(text), engine)

    def asked(self, name: str) -> int:
        """How many requests came to this engine's server."""
        return len(self.servers[name].requests)


@contextmanager
def house(
    tmp_path: Path,
    answers: Mapping[str, Answer | Reply | Sequence[Reply]],
    clock: Callable[[], float] | None = None,
    rates: Mapping[str, float] | None = None,
    **settings: Any,
) -> Iterator[House]:
    """Engines named like the keys, each answering so; the time stands still without `clock`."""
    with ExitStack() as stack:
        servers, engines = {}, {}
        for name, answer in answers.items():
            script = [answer] * 99 if isinstance(answer, Reply) else answer
            servers[name] = stack.enter_context(FakeServer(script))
            engines[name] = wired(name, servers[name], (rates or {}).get(name, 0.0))
        chain = chain_of(tmp_path, engines, clock, **({"seconds": SECONDS} | settings))
        stack.callback(chain.close)
        yield House(chain, servers)


def trail(answer: SearchAnswer) -> list[tuple[str, str, str]]:
    """(engine, status, code of the error) of each attempt."""
    return [(a.engine, a.status, a.error.code if a.error else "") for a in answer.attempts]


def test_connections_are_kept_and_replaced_when_they_are_gone(tmp_path: Path) -> None:
    """Ten searches use one connection; one that the server closed meanwhile, or on which it hangs
    up before any answer, costs no failure: it is asked again, once."""
    good, seen = found("https://a.example/"), Counter[int]()
    body = b'{"results": [{"url": "https://a.example/"}]}'

    def moody(received: Received) -> Reply:
        seen[received.connection] += 1
        return good if seen[received.connection] == 1 else Reply(before="cut")

    closing = Reply(body, headers={"connection": "close"})
    for reply, searches, connections in ((good, 10, 1), (closing, 3, 3), (moody, 3, 3)):
        with house(tmp_path, {"one": reply}) as h:
            answers = [h.ask(f"q{n}") for n in range(searches)]
            assert [trail(answer) for answer in answers] == [[("one", "ok", "")]] * searches
            assert len({r.connection for r in h.servers["one"].requests}) == connections


def test_bytes_behind_an_answer_are_not_the_next_one(tmp_path: Path) -> None:
    """A server sends two answers to one request: the second is never given to anybody."""

    def twice(_: Received) -> Reply:
        wanted, stray = ("https://a.example/", "https://evil.example/")
        bodies = [
            json.dumps({"results": [{"url": u, "title": u}]}).encode() for u in (wanted, stray)
        ]
        return Reply(
            [b"".join(HTTP + b"content-length: %d\r\n\r\n" % len(b) + b for b in bodies)], raw=True
        )

    with house(tmp_path, {"one": twice}) as h:
        for text in "abc":
            assert [r.url for r in h.ask(text).results] == ["https://a.example/"]


HTTP = b"HTTP/1.1 200 OK\r\n"
BOMB = gzip.compress(b" " * (9 * 2**20))


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(before="cut"), "network"),
        (Reply([b'{"results":'], end="cut"), "network"),
        (Reply([b"SSH-2.0-OpenSSH\r\n"], raw=True), "network"),
        (Reply([HTTP, b"x: " + b"y" * 2**16], raw=True), "network"),
        (Reply([b"HTTP/1.1 103 Wait\r\n\r\n" * 5_000], raw=True), "network"),
        (Reply([b" " * (MOST_BYTES + 2)]), "network"),
        (Reply(BOMB, headers={"content-encoding": "gzip"}), "network"),
        (Reply(b"{}", headers={"content-encoding": "gzip"}), "network"),
        (Reply(b"{}", headers={"content-encoding": "br"}), "network"),
        (Reply(BOMB[:-20], headers={"content-encoding": "gzip"}), "network"),
        (Reply(b"", 202), "blocked"),
        (json_reply({"results": "none"}), "parse"),
    ],
)
def test_a_bad_answer_is_named_and_passed_over(tmp_path: Path, reply: Reply, code: str) -> None:
    """Whatever a server does, its attempt tells what, and the search goes on."""
    with house(tmp_path, {"bad": reply, "good": found("https://g.example/")}) as h:
        answer = h.ask()
    assert answer.engine == "good"
    assert [(e, c) for e, _, c in trail(answer)] == [("bad", code), ("good", "")]


def test_unreachable_servers_are_told_apart(tmp_path: Path) -> None:
    """A name is looked up; a closed port and a name that is none are no answer."""
    http = EngineHttp()
    with FakeServer(lambda _: Reply(b"{}")) as server:
        request = HttpRequest("GET", f"http://localhost:{server.port}/tea")
        assert run(http.send(request, "Tea"), timeout=60).body == b"{}"
    http.close()
    key = ConnectionKey("tea.example", 80, False, False, None, None, None)
    unknown = explain(aiohttp.ClientConnectorDNSError(key, OSError("unknown")), "Tea")
    assert (unknown.kind, "could not be reached" in unknown.message) == ("network", True)
    closed = chain_of(tmp_path, {"one": wired("one", server)}).search(Query("tea"))
    assert closed.attempts[0].error is not None
    assert "could not be reached" in closed.attempts[0].error.message


def over_tls(trust: Callable[[], ssl.SSLContext], size: int) -> Iterator[HttpResponse]:
    """What comes of three requests to a server whose certificate is for another name."""
    page = hostile_answer(b"x" * size, f"Content-Length: {size}", kind="text/plain")
    http = EngineHttp(trust)
    with serving({"/": page}, tls=True) as server:
        for _ in range(3):
            request = HttpRequest("GET", f"https://127.0.0.1:{server.port}/")
            yield run(http.send(request, "Tea"), timeout=60)
    http.close()


@pytest.mark.parametrize("authority", [None, str(DATA / "ca.pem")])
def test_engines_are_asked_over_tls(authority: str | None) -> None:
    """A certificate counts when the authority is trusted, and a large answer comes whole; one of
    nobody or for another name is refused, and the error says how to trust one's own authority."""
    known = ssl.create_default_context(cafile=str(DATA / "ca.pem"))
    known.check_hostname = False
    assert [len(answer.body) for answer in over_tls(lambda: known, 300_000)] == [300_000] * 3
    strict = ssl.create_default_context(cafile=authority)
    with pytest.raises(EngineError) as raised:
        list(over_tls(lambda: strict, 10))
    assert "certificate of Tea is not trusted" in raised.value.message
    assert "SSL_CERT_FILE" in raised.value.remedy


def test_a_password_in_the_address_is_sent_as_basic_authentication(tmp_path: Path) -> None:
    """A SearXNG behind a password works with the address a browser would take."""
    body = json.dumps({"results": [{"url": "https://a.example/", "title": "A"}]}).encode()
    with FakeServer(lambda _: Reply(body)) as server:
        address = server.url.replace("http://", "http://me:s%40y@")
        settings = SearchSettings.from_mapping(
            {"SEARXNG_URL": address, "SEARCH_ENGINES": "searxng"}, home=tmp_path
        )
        chain = Chain(settings, Library(tmp_path, dict))
        assert chain.search(Query("tea")).status == "ok"
        chain.close()
    headers = server.requests[0].headers
    assert headers["authorization"] == "Basic bWU6c0B5"
    assert headers["host"] == f"127.0.0.1:{server.port}"


def test_five_searches_at_once_keep_to_the_rate_and_the_order(tmp_path: Path) -> None:
    """No request comes too early, nobody is refused, and the wait is told."""
    came: list[float] = []

    def limited(_: Received) -> Reply:
        came.append(time.monotonic())
        return found("https://a.example/")

    with house(tmp_path, {"one": limited}, rates={"one": 8.0}) as h:
        together = threading.Barrier(5)

        def search(n: int) -> tuple[float, SearchAnswer]:
            together.wait()
            return time.monotonic(), h.ask(f"q{n}")

        with ThreadPoolExecutor(5) as pool:
            asked = list(pool.map(search, range(5)))
    assert [answer.status for _, answer in asked] == ["ok"] * 5
    # A busy machine makes requests later, never earlier; without turns all would come at once.
    first = min(began for began, _ in asked)
    assert all(at - first >= turn / 8 for turn, at in enumerate(sorted(came)))


def test_turns_are_given_in_order_and_the_queue_is_bounded() -> None:
    """At one request a second, callers wait a little over a second more each, six at the most."""
    clock = Clock()
    buckets = TokenBuckets(clock)
    waits = [buckets.reserve("x", 1.0) for _ in range(8)]
    assert waits[:6] == pytest.approx([0, 1.05, 2.1, 3.15, 4.2, 5.25])
    assert waits[6:] == [None, None]
    clock.now += 100
    assert buckets.reserve("x", 1.0) == 0
    assert buckets.reserve("y", 0) == 0
    assert LONGEST_WAIT == 6


def test_an_engine_whose_queue_is_full_is_passed_over(tmp_path: Path) -> None:
    """Rather the next engine now than this one in ten seconds; the attempt says what helps."""
    answers = {"one": found("https://a.example/"), "two": found("https://b.example/")}
    with house(tmp_path, answers, rates={"one": 0.1}) as h:
        assert h.ask("first").engine == "one"
        second = h.ask("second")
    assert trail(second) == [("one", "skipped", "busy"), ("two", "ok", "")]
    assert "allows 0.1 requests a second" in str(second.as_json())


def test_retry_after_is_kept_to_exactly(tmp_path: Path) -> None:
    """429 with Retry-After: 7: the engine is left alone for seven seconds and asked then."""
    script, clock = [Reply(b"", 429, {"retry-after": "7"}), found("https://a.example/")], Clock()
    with house(tmp_path, {"one": script, "two": found("https://b.example/")}, clock) as h:
        first = h.ask("a")
        assert trail(first) == [("one", "blocked", "rate"), ("two", "ok", "")]
        assert "asked again in 7 s" in str(first.as_json())
        clock.now += 6.9
        assert trail(h.ask("b"))[0] == ("one", "skipped", "resting")
        clock.now += 0.2
        assert h.ask("c").engine == "one"


def test_a_refused_key_is_not_tried_again_soon(tmp_path: Path) -> None:
    """Asking with the same key is of no use; by name it is asked all the same."""
    answers, clock = {"one": json_reply({}, 401), "two": found("https://b.example/")}, Clock()
    with house(tmp_path, answers, clock) as h:
        h.ask("a")
        clock.now += 1_800
        h.ask("b")
        assert h.asked("one") == 1
        assert h.ask("c", engine="one").status == "error"
        assert h.asked("one") == 2


def test_an_engine_is_asked_again_after_its_rest(tmp_path: Path) -> None:
    """One that hangs is passed over until then, and for longer if it hangs still."""
    stuck, clock = threading.Event(), Hanging()

    def moody(received: Received) -> Reply:
        return clock.hang(received) if stuck.is_set() else found("https://a.example/")

    stuck.set()
    with house(tmp_path, {"one": moody, "two": found("https://b.example/")}, clock) as h:
        assert trail(h.ask("a")) == [("one", "error", "timeout"), ("two", "ok", "")]
        assert trail(h.ask("b")) == [("one", "skipped", "resting"), ("two", "ok", "")]
        clock.now += 6
        assert trail(h.ask("c"))[0] == ("one", "error", "timeout")
        assert trail(h.ask("d"))[0] == ("one", "skipped", "resting")
        stuck.clear()
        clock.now += 12
        assert [trail(h.ask(text)) for text in "ef"] == [[("one", "ok", "")]] * 2


def test_the_first_of_two_late_engines_may_still_win(tmp_path: Path) -> None:
    """The second is asked beside the first and takes longer: the first answer counts, and the
    second is neither waited for nor blamed."""
    clock, replaced = Clock(), threading.Event()

    def late(_: Received) -> Reply:
        clock.now += PATIENCE * SECONDS + 0.01
        assert replaced.wait(60)
        return found("https://a.example/")

    def second(_: Received) -> Reply:
        replaced.set()
        return HANG

    with house(tmp_path, {"one": late, "two": second}, clock) as h:
        assert trail(h.ask("a")) == [("one", "ok", ""), ("two", "skipped", "overtaken")]


def test_equal_searches_at_once_are_one(tmp_path: Path) -> None:
    """Sixteen at the same moment cost what one costs, and all get its answer."""
    never = threading.Event()

    def slow(_: Received) -> Reply:
        never.wait(0.2)
        return found("https://a.example/")

    with house(tmp_path, {"one": slow}, cache_seconds=60.0) as h:
        with ThreadPoolExecutor(16) as pool:
            given = list(pool.map(lambda _: h.ask(), range(16)))
        assert h.asked("one") == 1
    assert len({answer.results for answer in given}) == 1


def test_whoever_joins_a_search_that_breaks_searches_alone(tmp_path: Path) -> None:
    """A fault of the first is not the fault of the others, and no search waits for ever."""
    shared = SingleFlight[str]()
    entered, go = threading.Event(), threading.Event()

    def breaks() -> str:
        entered.set()
        go.wait(60)
        raise ZeroDivisionError

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shared.run, "k", breaks, 60)
        assert entered.wait(60)
        assert shared.run("k", lambda: "too late", 0) == "too late"
        second = pool.submit(shared.run, "k", lambda: "good", 60)
        go.set()
        assert second.result() == "good"
        with pytest.raises(ZeroDivisionError):
            first.result()
    assert shared.run("k", lambda: "anew", 60) == "anew"


def test_many_searches_leave_no_sockets_behind(tmp_path: Path) -> None:
    """After hangs, failures and good answers only the kept connections are open."""
    clock, good = Hanging(), found("https://a.example/")
    answers = {"one": clock.hang, "two": Reply(before="reset"), "three": good}
    with house(tmp_path, answers, clock) as h:
        for n in range(12):
            h.ask(f"q{n}")
            clock.now += 1
        open_files = {p.resolve() for p in Path("/proc/self/fd").glob("*")} if LINUX else set()
    assert len([p for p in open_files if "socket:" in str(p)]) < 22


LINUX = Path("/proc/self/fd").is_dir()
