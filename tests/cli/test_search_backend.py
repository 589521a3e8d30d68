"""`searchloop search-backend`: the program alone, as other programs and machines meet it."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from searchloop.search_backend.other_apis import find_shapes
from searchloop.search_backend.types import Problem
from tests.cli.conftest import CLEAN, Cli

TOKEN = "a-token-long-enough-0123"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}


@contextmanager
def served(home: Path, *args: str, **settings: str) -> Iterator[int]:
    """The backend on a free port; gives the port."""
    env = {**CLEAN, "HOME": str(home), "SEARCHLOOP_HOME": str(home), **settings}
    command = [sys.executable, "-m", "searchloop.cli", "search-backend", "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, *args], env=env, stdout=subprocess.PIPE, text=True, cwd=home
    ) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(":")[2].split()[0])
        finally:
            process.kill()


def ask(
    port: int, method: str, path: str, body: str | None = None, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    """Status, JSON and headers of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        told = {name.lower(): value for name, value in response.getheaders()}
        return response.status, json.loads(response.read()), told
    finally:
        connection.close()


def test_other_machines_are_counted_and_known(tmp_path: Path) -> None:
    """Token in two forms, a name that was given, forms where they belong, and the quota."""
    began = time.monotonic()
    with served(
        tmp_path, *("--host", "0.0.0.0", "--name", "backend.example"), SEARCHLOOP_TOKEN=TOKEN
    ) as port:
        assert ask(port, "GET", "/api/health")[0] == 200
        found = "/search?q=search+engines&format=json"
        assert ask(port, "GET", found)[0] == 401
        status, answer, _ = ask(port, "GET", found, **BEARER)
        assert (status, bool(answer["results"])) == (200, True)
        basic = "Basic YW55OmEtdG9rZW4tbG9uZy1lbm91Z2gtMDEyMw=="
        named = {"Host": f"backend.example:{port}", "Authorization": basic}
        assert ask(port, "POST", "/search", "q=tea&format=json", **named, **FORM)[0] == 200
        assert ask(port, "POST", "/api/web-search", "q=tea", **BEARER, **FORM)[0] == 415
        other = {"Host": f"other.example:{port}"}
        assert ask(port, "GET", "/api/engines", **BEARER, **other)[0] == 403
        query = json.dumps({"query": "tea"})
        assert ask(port, "POST", "/v1/search", query, **BEARER, **JSON)[0] == 200
        granted = 4  # so far: another name, a wrong form and the question about health do not count
        while ask(port, "GET", "/api/engines", **BEARER)[0] == 200:
            granted += 1
        # Meanwhile a slow machine may have earned one more.
        while (reply := ask(port, "POST", "/v1/search", query, **BEARER, **JSON))[0] == 200:
            granted += 1
        status, answer, headers = reply
        assert (status, 1 <= int(headers["retry-after"]) <= 10) == (429, True)
        assert granted <= 120 + (time.monotonic() - began) * 2
        assert "too often" in answer["error"]["message"]


def test_the_gate_refuses_in_the_shape_of_the_address(tmp_path: Path) -> None:
    """No JSON, too much, a method nobody uses, another site: a client of someone else's API can
    read what is wrong, whoever refuses it."""
    large = "x" * 8_000_000
    with served(tmp_path) as port:
        for shape in find_shapes():
            for route in shape.routes:
                told = [
                    ask(port, "POST", route.path, "x", Content_Type="text/plain"),
                    ask(port, "POST", route.path, large, **JSON),
                    ask(port, "OPTIONS", route.path),
                    ask(port, "POST", route.path, "{}", Origin="http://evil.example", **JSON),
                ]
                assert [status for status, *_ in told] == [415, 413, 405, 403]
                for status, body, _ in told:
                    expected = shape.error(status, Problem("", "", ""))
                    assert set(body) == set(expected)
                    assert type(body["error"]) is type(expected["error"])
                assert "must be JSON" in str(told[0][1])
        status, ours, _ = ask(port, "POST", "/api/web-search", "x", Content_Type="text/plain")
        assert (status, ours["error"]["code"]) == (415, "not_json")


def test_other_users_of_the_machine_find_no_private_document(cli: Cli, tmp_path: Path) -> None:
    """Without a token the library holds our own documents alone, whatever was added or opened;
    with one it is whole, for whoever has it. The start says so, and guesses are counted."""
    home = tmp_path / "home"
    notes = home / "notes"
    notes.mkdir(parents=True)
    (notes / "diary.md").write_text("# Diary\n\nThe zanzibar plan is secret.\n")
    own = {"SEARCHLOOP_HOME": str(home), "HOME": str(home)}
    assert cli("library", "add", str(notes), **own).code == 0
    query, address = json.dumps({"query": "zanzibar plan", "engine": "library"}), "/api/web-search"
    with served(home) as port:
        status, answer, _ = ask(port, "POST", address, query, **JSON)
        assert (status, "zanzibar" in json.dumps(answer["results"])) == (200, False)
        assert ask(port, "GET", "/api/library/notes/diary.md")[0] == 404
        opened = json.dumps({"url": "library://notes/diary.md"})
        assert "secret" not in str(ask(port, "POST", "/api/open-page", opened, **JSON)[1])
    with served(home, SEARCHLOOP_TOKEN="abc") as port:
        assert ask(port, "POST", address, query, **JSON)[0] == 401
        mine = {**JSON, "Authorization": "Bearer abc"}
        assert "secret" in str(ask(port, "POST", address, query, **mine)[1])
        wrong = [ask(port, "GET", "/api/engines", X_API_Key=str(n))[0] for n in range(12)]
        assert wrong == [401] * 10 + [429] * 2
        assert ask(port, "GET", "/api/engines", X_API_Key="abc")[0] == 200
