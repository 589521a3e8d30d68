"""Keys go into headers and nowhere else, whatever a server does with them.

A server of our own is given a canary for every key there is, and servers that throw each request
back, key and all, as errors of every kind. Then everything that came out of it is searched.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from searchloop.compose import every_setting
from tests.chaos import dialects
from tests.crash.hosts import ROOT, TOKEN, Host
from tests.fakes import FakeServer, Received, Reply, json_reply, sse_reply
from tests.waiting import until

QUESTION = "When is high water?"
EXPORTS = ("md", "html", "json", "trace")
READERS = ("jina", "tavily", "firecrawl", "crawl4ai")
COMMANDS = (
    ["config", "--origin"],
    ["mcp", "list"],
    ["mcp", "test", "program"],
)
# What an MCP server says when it cannot start, as many do.
CONFESSES = "import os, sys; sys.exit(f'cannot start: {sys.argv} {dict(os.environ)}')"


def canaries() -> dict[str, str]:
    """A key for each setting that holds one, all different from their first letters on."""
    names = [s.name for s in every_setting() if s.secret and not s.name.startswith("SEARCHLOOP_")]
    return {name: canary(name) for name in names}


def addresses(url: str) -> dict[str, str]:
    """Every provider, engine and reader is at this address."""
    own = ("SEARCHLOOP_", "SEARCH_BACKEND_")
    ends = ("_URL", "_HOST", "_ENDPOINT")
    names = [s.name for s in every_setting() if s.name.endswith(ends)]
    return {name: url for name in names if not name.startswith(own)}


def canary(name: str) -> str:
    """A key, different from all others from its first letters on."""
    return f"{hashlib.sha256(name.encode()).hexdigest()[:24]}+/Zz"


def hidden_in_settings(url: str, keys: dict[str, str], home: Path) -> dict[str, str]:
    """Addresses with passwords and keys inside, and MCP servers with keys of their own; these are
    `keys` as well from now on."""

    def more(name: str) -> str:
        keys[name] = canary(name).replace("+/", "")
        return keys[name]

    def behind(name: str) -> str:
        return url.replace("://", f"://me:{more(name)}@")

    servers = {
        "program": {
            "command": sys.executable,
            "args": ["-I", "-S", "-c", CONFESSES, f"--api-key={more('argument of an MCP server')}"],
            "env": {"SERVICE_TOKEN": more("environment of an MCP server")},
        },
        "elsewhere": {
            "url": f"{url}/mcp?apiKey={more('address of an MCP server')}",
            "headers": {"Authorization": f"Bearer {more('header of an MCP server')}"},
        },
    }
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return {
        "SEARXNG_URL": behind("password of SearXNG"),
        "OLLAMA_HOST": behind("password of Ollama"),
        "CRAWL4AI_URL": behind("password of a reader"),
        "SEARCH_ENDPOINT": f"{url}/find?token={more('key of an endpoint')}",
        "HTTPS_PROXY": behind("password of a proxy"),
        "SEARCH_READERS": f"local,{','.join(READERS)}",
    }


def dresses(canary: str) -> Iterator[str]:
    """The forms in which a key turns up in what is written."""
    yield canary[:8]
    yield canary[::-1][-8:]
    yield canary[8:24]
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
    **{str(n): as_error(n) for n in (401, 400, 403, 404, 413, 422, 500, 429, 200)},
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
    for reader in READERS:  # an address that nobody has to look up
        asked = {"url": "https://93.184.216.34/", "reader": reader}
        yield f"reader {reader}", seen(host, "/api/open-page", "POST", asked)
    for server in ("program", "elsewhere"):
        yield f"MCP {server}", seen(host, f"/api/mcp/{server}/test", "POST", {})
    for path in ("/api/mcp", "/metrics"):
        yield path, seen(host, path)


def commands(settings: Mapping[str, str], home: Path) -> Iterator[tuple[str, str]]:
    """What the command line says of the same settings."""
    given = {"PATH": os.environ["PATH"], "HOME": str(home), "SEARCHLOOP_HOME": str(home)}
    for words in COMMANDS:
        ran = subprocess.run(
            [sys.executable, "-m", "searchloop.cli", *words],
            cwd=ROOT,
            env={**given, **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        yield " ".join(words), ran.stdout + ran.stderr


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
    """At debug level: not on the page, in the API, the event stream,
    exports, metrics, the log, the output of a crash, the command line, what commands say, or any
    file. Keys are settings of their own, inside addresses, and what MCP servers are given; these
    tell all they know when they cannot start.
    """
    keys = canaries()
    with FakeServer(WAYS[way]) as server:
        settings = {
            "SEARCHLOOP_LOG": f"{form},debug",
            "PYTHONFAULTHANDLER": "1",
            **addresses(server.url),
            **keys,
        }
        settings |= hidden_in_settings(server.url, keys, tmp_path)
        with Host(tmp_path, **settings) as host:
            told = dict(use(host))
            line = Path(f"/proc/{host.process.pid}/cmdline")
            told["command line"] = line.read_text() if line.exists() else ""
            host.signal(signal.SIGABRT)
            until(lambda: host.process.poll() is not None)
            assert host.process.stdout
            told["stdout"] = host.process.stdout.read()
        told |= dict(commands(settings, tmp_path))
        sent = " ".join(f"{received.path} {received.headers}" for received in server.requests)
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "mcp.json":
            told[path.name] = path.read_bytes().decode("utf-8", "replace")
    assert "Fatal Python error: Aborted" in told["errors"]
    assert "sessions.sqlite3-wal" in told
    assert "cannot start" in told["MCP program"]
    assert len(found({"": sent}, keys)) >= 16, "the servers saw no keys to throw back"
    assert found(told, keys) == []
