"""Serving on a real socket: the start line, what is refused, and how it stops."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from searchloop.agent.errors import ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.settings import Environment
from searchloop.compose import Services, open_services
from searchloop.web.api.openapi import document
from searchloop.web.serve import BAD_INPUT, FAILED, OK, WebServer, serve
from tests.fakes import FakeServer, Reply, json_reply, sse
from tests.tables import each_row
from tests.waiting import until
from tests.web.house import TOKEN, make_house

PIPES: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
ROOT = Path(__file__).resolve().parents[2]


Sent = tuple[int, http.client.HTTPMessage, bytes]  # status, headers and body of an answer


class Running:
    """A server in a thread, on a free port."""

    def __init__(self, house: Any, host: str = "127.0.0.1") -> None:
        self.house: Any = house
        self.out, self.err = io.StringIO(), io.StringIO()
        self.code: int | None = None
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(host,))
        self._thread.start()
        assert self._up.wait(90)

    def _run(self, host: str) -> None:
        try:
            self.code = serve(
                self.house, host, 0, out=self.out, err=self.err, on_start=self._started
            )
        finally:
            self._up.set()

    def _started(self, serving: WebServer) -> None:
        self.serving = serving
        self._up.set()

    def stop(self) -> int | None:
        """Stops it in order; the exit code."""
        self.serving.stop()
        self._thread.join(90)
        return self.code

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.stop() == OK

    def connect(self) -> http.client.HTTPConnection:
        """A client's connection."""
        return http.client.HTTPConnection("127.0.0.1", self.serving.access.port, timeout=90)

    def send(self, method: str, path: str, body: Any = None, **more: str) -> Sent:
        """One request on a connection of its own, with the token and with more headers."""
        headers = {"Authorization": f"Bearer {self.serving.access.token}", **more}
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, raw, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def ask(self, method: str, path: str, body: Any = None, **more: str) -> tuple[int, Any]:
        """The same. Returns the JSON of the answer, of a stream that of its first event."""
        status, headers, raw = self.send(method, path, body, **more)
        if headers.get_content_type() == "text/event-stream":
            raw = raw.partition(b"data: ")[2]
        return status, json.loads(raw) if raw else None

    def follow(self, path: str) -> Iterator[dict[str, Any]]:
        """The events of a stream, up to the end of a run."""
        headers = {"Authorization": f"Bearer {self.serving.access.token}"}
        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", path, headers=headers)
            for line in connection.getresponse():
                if line.startswith(b"data: "):
                    event = json.loads(line[6:])
                    yield event
                    if event["type"] == "run_finished":
                        return


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A server that is stopped after the test."""
    with Running(make_house(tmp_path)) as server:
        yield server


def refused(house: Services, host: str, port: int) -> str:
    """What a start that must fail says."""
    out, err = io.StringIO(), io.StringIO()
    assert serve(house, host, port, out=out, err=err) == BAD_INPUT
    assert out.getvalue() == ""
    assert err.getvalue().count("\n") == 1
    assert "Traceback" not in err.getvalue()
    return err.getvalue()


def test_one_line_says_where_the_page_is(running: Running) -> None:
    """The address with a one-time code, and how to stop; nothing else on either stream."""
    line = running.out.getvalue()
    address = r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}"
    assert re.fullmatch(rf"searchloop is running at {address}  \(Ctrl-C stops it\)\n", line)
    assert running.serving.access.token not in line
    assert running.stop() == OK
    assert (running.out.getvalue(), running.err.getvalue()) == (line, "")


def test_the_real_house_answers_with_sources(tmp_path: Path) -> None:
    """No key, no network: the switch on, and the built-in model quotes the built-in library."""
    env = {"SEARCHLOOP_HOME": str(tmp_path), "SEARCHLOOP_OFFLINE": "1"}
    with Running(open_services(Environment({"flag": env}))) as running:
        made = {"model": "builtin:extractive", "search": "auto"}
        path = f"/api/sessions/{running.ask('POST', '/api/sessions', made)[1]['id']}"
        question = {"text": "How does the search switch decide between native and local search?"}
        started = running.ask("POST", f"{path}/messages", question)
        assert started[0] == 202
        *_, last = running.follow(f"{path}/events?after={started[1]['seq']}")
        assert (last["type"], last["reason"]) == ("run_finished", "stop")
        described = document()
        jsonschema.validate(last, {**described, "$ref": "#/components/schemas/RunFinished"})
        assert all(mark["verified"] for mark in last["citations"][0]["marks"])
        *_, message, ended = running.follow(f"{path}/events?view=page&after={started[1]['seq']}")
        assert '"cite"' in json.dumps(message["blocks"])
        assert set(last) - set(ended) == {"answer"}, "what the page has is not sent to it again"
        assert running.ask("GET", "/api/engines")[1]["engines"]
        assert running.ask("GET", "/api/models")[1]["models"]
        call = {"name": "web_search", "arguments": {"query": "search switch"}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        takes = {"Accept": "application/json, text/event-stream"}
        for more, expected in (
            ({}, 200),
            ({"Authorization": "Bearer x"}, 401),
            ({"Origin": "https://a.example"}, 403),
            ({"Host": "a.example"}, 403),
        ):
            assert running.ask("POST", "/mcp", asked, **takes, **more)[0] == expected
        unknown = running.ask("POST", "/api/sessions", {"model": "nobody:x"})
        assert (unknown[0], unknown[1]["error"]["code"]) == (400, "unknown_provider")


def test_a_request_of_megabytes_gets_its_answer(running: Running) -> None:
    """The refusal arrives, though the client is still sending."""
    status, data = running.ask("POST", "/api/check", {"claim": "x" * 3_000_000})
    assert (status, data["error"]["code"]) == (413, "too_large")


def test_a_port_in_use_is_one_sentence(running: Running, tmp_path: Path) -> None:
    """It says which port, and what to type instead."""
    port = running.serving.access.port
    words = refused(make_house(tmp_path / "b"), "127.0.0.1", port)
    assert f"Port {port} is in use." in words
    assert f"--port {port + 1}" in words


PUBLIC = "SEARCHLOOP_PUBLIC_URL"
HEADER, PROXIES = "SEARCHLOOP_USER_HEADER", "SEARCHLOOP_TRUSTED_PROXIES"
LOCKED = {"SEARCHLOOP_TOKEN": "a-long-enough-token"}


@each_row(
    ("host", "port", "env", "words"),
    [
        ("127.0.0.1", 65536, {}, "65536 is not a port"),
        ("127.0.0.1", -1, {}, "-1 is not a port"),
        ("198.51.100.1", 0, {}, "no token is set"),
        ("198.51.100.1", 0, LOCKED, "is not an address of this machine"),
        ("", 0, {}, "'' is not an address of this machine"),
        ("0.0.0.0", 0, {}, "SEARCHLOOP_TOKEN"),
        ("::", 0, {}, "SEARCHLOOP_TOKEN"),
        ("127.0.0.1", 0, {PUBLIC: "chat.example.org"}, PUBLIC),
        ("127.0.0.1", 0, {PUBLIC: "https://h/path"}, PUBLIC),
        ("127.0.0.1", 0, {PUBLIC: "https://u@h"}, PUBLIC),
        ("127.0.0.1", 0, {PUBLIC: "ftp://h"}, PUBLIC),
        ("127.0.0.1", 0, {PUBLIC: "https://a b"}, PUBLIC),
        ("127.0.0.1", 0, {PUBLIC: "https://h:"}, PUBLIC),
        ("127.0.0.1", 0, {HEADER: "X User"}, HEADER),
        ("127.0.0.1", 0, {HEADER: "X-\u00dcser"}, HEADER),
        ("127.0.0.1", 0, {HEADER: "X", PROXIES: "proxy.example.org"}, PROXIES),
        ("127.0.0.1", 0, {HEADER: "X", PROXIES: "10.0.0.0/33"}, PROXIES),
    ],
)
def test_a_start_that_cannot_be_is_one_sentence(
    host: str, port: int, env: dict[str, str], words: str, tmp_path: Path
) -> None:
    """Wrong port, host, public address or proxy of people, or an open door without a lock: said
    before anything is opened. With a token another machine's address is tried, and said alike."""
    assert words in refused(make_house(tmp_path, **env), host, port)


def test_an_open_door_with_a_lock_comes_with_a_warning(tmp_path: Path) -> None:
    """With the user's own token it starts, and names the risk."""
    house = make_house(tmp_path, SEARCHLOOP_TOKEN="sixteen of these!")
    with Running(house, "0.0.0.0") as running:
        assert "other machines can reach 0.0.0.0" in running.err.getvalue()
        assert running.serving.link().startswith("http://127.0.0.1:")
        assert running.ask("GET", "/api/sessions")[0] == 200


def test_behind_a_proxy_with_tls(tmp_path: Path) -> None:
    """The public name and origin are ours, exactly; its cookie is for TLS only; and the line
    names the public address, but where a token was set no link is written to a file."""
    token = "a-long-enough-token"
    public = "https://Chat.example.org:443/"
    env = {"SEARCHLOOP_TOKEN": token, "SEARCHLOOP_PUBLIC_URL": public}
    with Running(make_house(tmp_path, **env)) as running:
        assert running.serving.link().startswith("https://chat.example.org/?token=")
        assert "is running at https://chat.example.org/  (" in running.out.getvalue()
        statuses = []
        for host, origin in (
            ("chat.example.org", "https://chat.example.org"),
            ("chat.example.org", "http://chat.example.org.evil.org"),
            ("chat.example.org", "https://evil.org"),
            ("evil.org", "https://chat.example.org"),
        ):
            told = running.send("GET", "/api/sessions", Host=host, Origin=origin)
            statuses.append(told[0])
        assert statuses == [200, 403, 403, 403]
        cookies = []
        for host in ("chat.example.org", f"127.0.0.1:{running.serving.access.port}"):
            with contextlib.closing(running.connect()) as connection:
                connection.request("GET", f"/?token={token}", headers={"Host": host})
                cookies.append(connection.getresponse().headers["Set-Cookie"])
        assert ["Secure" in cookie for cookie in cookies] == [True, False]


def test_a_start_that_fails_behind_the_door_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was wrong and what to do, exit code 1, nothing else."""
    house = make_house(tmp_path)

    async def recover() -> int:
        raise ConfigError("no_start", "The start failed.", "Mend it.")

    house.runner.recover = recover
    out, err = io.StringIO(), io.StringIO()
    assert serve(house, "127.0.0.1", 0, out=out, err=err) == FAILED
    assert out.getvalue() == ""
    assert err.getvalue() == "searchloop: The start failed. Mend it.\n"
    assert capfd.readouterr() == ("", "")


def test_a_store_that_can_only_be_read_is_served(tmp_path: Path) -> None:
    """It says at the start what will not work, and starts."""
    make_house(tmp_path).log.close()
    for path in tmp_path.rglob("*.sqlite3"):
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 99")
    out, err = io.StringIO(), io.StringIO()
    house = make_house(tmp_path)
    assert serve(house, "127.0.0.1", 0, out=out, err=err, on_start=WebServer.stop) == OK
    assert "is running at" in out.getvalue()
    assert re.search(r"is of a newer searchloop .* Update searchloop", err.getvalue())


def test_a_server_told_to_stop_drains(tmp_path: Path) -> None:
    """Ctrl-C with an answer under way and a page that follows it: the stream ends whole,
    the run is closed in the log with what was said, the provider's connection and the port are
    closed, and the program is gone in time with exit code 0."""
    words = ("It leaves at ", "noon from the old harbour, ", "as ever.")
    said = [sse({"choices": [{"index": 0, "delta": {"content": word}}]}) for word in words]
    stalled, unknown = Reply(pieces=said, end="stall"), json_reply({}, 404)
    with FakeServer(lambda r: stalled if r.method == "POST" else unknown) as provider:
        env = {
            "PATH": "/usr/bin:/bin",
            "SEARCHLOOP_HOME": str(tmp_path),
            "SEARCHLOOP_TOKEN": TOKEN,
            "SEARCHLOOP_LOG": "json",
            "OPENAI_CHAT_BASE_URL": provider.url,
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", "searchloop.cli", "serve", "--port", "0"]
        with subprocess.Popen(command, text=True, cwd=tmp_path, env=env, **PIPES) as process:
            try:
                found = re.search(r":(\d+)/", process.stdout.readline())
                assert found
                address = ("127.0.0.1", int(found[1]))
                session = drained(address, process)
                assert process.wait(90) == OK
                complaints = process.stderr.read()
            finally:
                process.kill()
        assert all(r.gone.wait(90) for r in provider.requests if r.method == "POST")
    assert complaints == ""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)
    with contextlib.closing(EventLog(tmp_path / "sessions.sqlite3")) as log:
        last = log.last_event(session)
        assert (last.type, last.data["reason"]) == ("run_finished", "cancelled")
        assert last.data["answer"].startswith("It leaves")


def drained(address: tuple[str, int], process: Any) -> str:
    """Asks, follows until there is text, has the process stop, and reads to the stream's end."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    ask = http.client.HTTPConnection(*address, timeout=90)
    follow = http.client.HTTPConnection(*address, timeout=90)
    with contextlib.closing(ask), contextlib.closing(follow):
        ask.request("POST", "/api/sessions", '{"model": "openai-chat:m"}', headers)
        session: str = json.loads(ask.getresponse().read())["id"]
        follow.request("GET", f"/api/sessions/{session}/events", headers=headers)
        stream = follow.getresponse()
        ask.request("POST", f"/api/sessions/{session}/messages", '{"text": "When?"}', headers)
        assert ask.getresponse().read()
        assert any(b"It leaves" in line for line in iter(stream.readline, b""))
        process.send_signal(signal.SIGINT)
        stream.read()  # raises unless the last chunk came
    return session


def open_stream(running: Running, session: str, version: str, view: str) -> socket.socket:
    """A connection that has asked for the session's events, with little room for what comes."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", running.serving.access.port))
    client.settimeout(90)
    client.sendall(
        f"GET /api/sessions/{session}/events?view={view} HTTP/{version}\r\n"
        f"Host: 127.0.0.1:{running.serving.access.port}\r\n"
        f"Authorization: Bearer {running.serving.access.token}\r\n\r\n".encode()
    )
    return client


def numbers_of(client: socket.socket, last: int) -> list[int]:
    """The numbers of the events that come, up to this one, read by a strict client."""
    response = http.client.HTTPResponse(client)
    response.begin()
    found: list[int] = []
    for line in response:
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:])["seq"])
            if found[-1] == last:
                break
    return found


@pytest.mark.parametrize(
    ("version", "view"), [("1.1", "events"), ("1.1", "page"), ("1.0", "events")]
)
def test_a_reader_that_sleeps_is_bounded_and_gets_all(
    version: str, view: str, running: Running
) -> None:
    """It reads nothing while 4 MB come: the server holds a fraction of that, the one beside it has
    everything long since, and when it wakes it gets each event once, in order, well framed."""
    log = running.house.log
    session = log.create_session(model="m:x").id
    sleeper = open_stream(running, session, version, view)
    awake = open_stream(running, session, "1.1", view)
    with contextlib.closing(sleeper), contextlib.closing(awake):
        until(lambda: len(running.serving.app.streams) == 2)
        log.append(session, [("notice", {"message": "first"})])
        for _ in range(40):
            log.append(session, [("notice", {"message": "x" * 25_000})] * 4)
        assert numbers_of(awake, 161) == list(range(1, 162))
        transports = [c.transport for c in running.serving.server_state.connections]
        held = sorted(each.get_write_buffer_size() for each in transports)
        assert held[-1] < 1_500_000
        assert numbers_of(sleeper, 161) == list(range(1, 162))
