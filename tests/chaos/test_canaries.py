"""Keys go into headers and nowhere else, whatever a server does with them.

A server of our own is given a canary for every key there is, and servers that throw each request
back, key and all, as errors of every kind. Then everything that came out of it is searched.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.chaos import dialects
from tests.crash.hosts import TOKEN, Host
from tests.fakes import FakeServer, Received, Reply, json_reply, sse_reply
from tests.waiting import until
from web.compose import every_setting

QUESTION = "When is high water?"
EXPORTS = ("md", "html", "json", "trace")


def canaries() -> dict[str, str]:
    """A key for each setting that holds one, all different from their first letters on."""
    names = [s.name for s in every_setting() if s.secret and not s.name.startswith("SEARCHLOOP_")]
    return {name: f"{hashlib.sha256(name.encode()).hexdigest()[:24]}+/Zz" for name in names}


def addresses(url: str) -> dict[str, str]:
    """Every provider, engine and reader is at this address."""
    own = ("SEARCHLOOP_", "SEARCH_BACKEND_")
    ends = ("_URL", "_HOST", "_ENDPOINT")
    names = [s.name for s in every_setting() if s.name.endswith(ends)]
    return {name: url for name in names if not name.startswith(own)}


def dresses(canary: str) -> Iterator[str]:
    """The forms in which a key turns up in what is written."""
    yield canary[:8]
    yield quote(canary, safe="")
    for skip in range(3):
        coded = base64.b64encode(b"\0" * skip + canary.encode()).decode().rstrip("=")
        yield coded[(0, 2, 3)[skip] : -1]


def found(told: Mapping[str, str], keys: Mapping[str, str]) -> list[str]:
    """Where a key stands, in whatever dress."""
    return [
        f"{name} in {where}"
        for where, text in told.items()
        for name, canary in keys.items()
        if any(dress in text for dress in dresses(canary))
    ]


def thrown_back(received: Received) -> str:
    """All that there was in a request, as an error message quotes it."""
    coded = base64.b64encode(" ".join(received.headers.values()).encode()).decode()
    return f"Incorrect key: {received.headers} ({coded}) for {received.path}"


def as_error(status: int) -> Callable[[Received], Reply]:
    """An error in the words of all vendors at once."""

    def reply(received: Received) -> Reply:
        said = thrown_back(received)
        error = {"message": said, "type": "invalid_request_error", "code": said, "status": said}
        return json_reply(
            {"error": error, "message": said, "detail": said, "type": "error"}, status
        )

    return reply


def as_page(received: Received) -> Reply:
    """A proxy's page, and headers."""
    said = thrown_back(received)
    return Reply([said.encode()], 403, {"content-type": "text/html", "www-authenticate": said})


def as_redirect(received: Received) -> Reply:
    """On to an address that holds it."""
    return Reply([], 302, {"location": f"/again?{quote(thrown_back(received))[:4000]}"})


def as_stream(received: Received) -> Reply:
    """A good beginning, then the error."""
    said = thrown_back(received)
    return sse_reply([{"type": "error", "error": {"message": said}, "message": said}])


def as_nonsense(received: Received) -> Reply:
    """No HTTP at all."""
    return Reply([f"KEY {thrown_back(received)}\r\n".encode()], raw=True)


WAYS: Mapping[str, Callable[[Received], Reply]] = {
    "401": as_error(401),
    "400": as_error(400),
    "403": as_error(403),
    "404": as_error(404),
    "413": as_error(413),
    "422": as_error(422),
    "500": as_error(500),
    "429": as_error(429),
    "200": as_error(200),
    "page": as_page,
    "redirect": as_redirect,
    "stream": as_stream,
    "nonsense": as_nonsense,
}


def seen(host: Host, path: str, method: str = "GET", body: object = None) -> str:
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", host.port, timeout=200)
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    reply = connection.getresponse()
    told = f"{reply.status} {reply.getheaders()} {reply.read().decode('utf-8', 'replace')}"
    connection.close()
    return told


def use(host: Host) -> Iterator[tuple[str, str]]:
    """All that a user can see: lists, searches, a question to each provider, and its exports."""
    for path in ("/", "/api/models", "/api/engines", "/api/settings", "/api/keys"):
        yield path, seen(host, path)
    engines = json.loads(seen(host, "/api/engines").partition("] ")[2])["engines"]
    for engine in engines:
        if engine["name"] not in ("ddg", "library"):
            asked = {"query": QUESTION, "engine": engine["name"]}
            yield engine["name"], seen(host, "/api/web-search", "POST", asked)
    for name in dialects.names():
        dialect = dialects.load(name)
        wanted = {"model": f"{dialect.name}:{dialect.models[0]}", "search": "off"}
        _, session = host.ask("POST", "/api/sessions", wanted)
        place = f"/api/sessions/{session['id']}"
        status, told = host.ask("POST", f"{place}/messages", {"text": QUESTION})
        yield name, json.dumps(told)
        if status == 202:
            yield f"{name} events", json.dumps(until_it_ends(host, session["id"]))
        for form in EXPORTS:
            yield f"{name} {form}", seen(host, f"{place}/export?format={form}")
    yield "/metrics", seen(host, "/metrics")


def until_it_ends(host: Host, session: str) -> list[object]:
    """The events of a run, up to its last."""
    events: list[object] = []
    for event in host.events(session):
        events.append(event)
        if event["type"] == "run_finished":
            break
    return events


def test_a_canary_is_found_in_any_dress() -> None:
    """The search itself: whole, cut short, URL-encoded and in base64 at any offset."""
    keys = canaries()
    assert len(keys) > 10
    name, key = next(iter(keys.items()))
    coded = [base64.b64encode(f"{'x' * n}{key}y".encode()).decode() for n in range(3)]
    for text in (key, key[:9], quote(key, safe=""), *coded):
        assert found({"there": f"before {text} after"}, keys) == [f"{name} in there"]


@pytest.mark.parametrize(
    ("way", "form"),
    [
        ("401", "json"),
        *(
            pytest.param(way, form, marks=pytest.mark.torture)
            for way in WAYS
            for form in ("json", "text")
        ),
    ],
)
def test_no_key_is_found_anywhere(tmp_path: Path, way: str, form: str) -> None:
    """At debug level, with content and traces on: not on the page, in the API, the event stream,
    exports, metrics, the log, the output of a crash, the command line, or any file.
    """
    keys = canaries()
    with FakeServer(WAYS[way]) as server:
        settings = {
            "SEARCHLOOP_LOG": form,
            "SEARCHLOOP_LOG_LEVEL": "debug",
            "SEARCHLOOP_LOG_CONTENT": "1",
            "SEARCHLOOP_TRACE": "1",
            "PYTHONFAULTHANDLER": "1",
            **addresses(server.url),
            **keys,
        }
        with Host(tmp_path, **settings) as host:
            told = dict(use(host))
            line = Path(f"/proc/{host.process.pid}/cmdline")
            told["command line"] = line.read_text() if line.exists() else ""
            host.signal(signal.SIGABRT)
            until(lambda: host.process.poll() is not None)
            assert host.process.stdout
            told["stdout"] = host.process.stdout.read()
        sent = " ".join(str(list(received.headers.values())) for received in server.requests)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            told[path.name] = path.read_bytes().decode("utf-8", "replace")
    assert "Fatal Python error: Aborted" in told["errors"]
    assert "sessions.sqlite3-wal" in told
    assert sum(key in sent for key in keys.values()) >= 8, "the servers saw no keys to throw back"
    assert found(told, keys) == []
