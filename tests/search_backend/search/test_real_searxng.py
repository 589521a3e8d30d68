"""A real SearXNG, where the machine has its source: what our engine makes of its answers.

REAL_SEARXNG is the folder of the source, REAL_SEARXNG_PYTHON the Python with its requirements; then
`pytest -m real tests/search_backend/search`. Its engines ask a server of this test, so no network
is needed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from searchloop.search_backend.types import Query
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.ports import free_port
from tests.search_backend.chains import chain_of
from tests.search_backend.search.engine_cases import BY_NAME
from tests.waiting import until

SOURCE = os.environ.get("REAL_SEARXNG", "")
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not SOURCE, reason="REAL_SEARXNG names no source of SearXNG"),
]
ROW = {"url": "https://a.example/tea", "title": "Tea", "content": "About tea"}
PLACES = {f"{name}_query": name for name in ("url", "title", "content")}


def behind(received: Received) -> Reply:
    """What the engines behind SearXNG are answered: by their names, and by the question."""
    if "/down" in received.path:
        return Reply(b"", 500)
    return json_reply({"results": [] if "nothing" in received.path else [ROW]})


def is_open(port: int) -> bool:
    """Whether somebody listens there."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def searxng(home: Path, url: str, formats: list[str], engines: list[str]) -> Iterator[str]:
    """The address of one with these engines and formats. JSON is YAML, too."""
    port = free_port()
    known = {"engine": "json_engine", "results_query": "results", "categories": "general"}
    made = [
        {"name": e, "shortcut": e, "search_url": f"{url}/{e}?q={{query}}", "enable_http": True}
        | (known | PLACES)
        for e in engines
    ]
    settings = {
        "use_default_settings": {"engines": {"keep_only": ["dummy"]}},
        "search": {"formats": formats},
        "server": {"secret_key": "k" * 32, "limiter": False, "port": port},
        "engines": made,
    }
    file = home / "settings.yml"
    file.write_text(json.dumps(settings), "utf-8")
    env = {**os.environ, "SEARXNG_SETTINGS_PATH": str(file), "PYTHONPATH": SOURCE}
    command = [os.environ.get("REAL_SEARXNG_PYTHON", "python3"), "-m", "searx.webapp"]
    with subprocess.Popen(command, cwd=SOURCE, env=env, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: is_open(port))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("formats", "engines", "text", "status", "told"),
    [
        (["html", "json"], ["good"], "tea", "ok", ""),
        (["html", "json"], ["good", "down"], "tea", "ok", ""),
        (["html", "json"], ["good"], "nothing", "empty", ""),
        (["html", "json"], ["good", "down"], "nothing", "error", "failed (down: "),
        (["html"], ["good"], "tea", "error", "refuses JSON"),
    ],
)
def test_a_real_searxng_is_understood(
    tmp_path: Path, formats: list[str], engines: list[str], text: str, status: str, told: str
) -> None:
    """What it found, that it found nothing, which of its engines failed, and that JSON is off."""
    with FakeServer(behind) as server, searxng(tmp_path, server.url, formats, engines) as url:
        own = {"searxng": BY_NAME["searxng"].engine}
        with closing(
            chain_of(tmp_path, own, time.monotonic, keys={"SEARXNG_URL": url}, seconds=9.0)
        ) as chain:
            found = chain.search(Query(text))
    assert (found.status, told in str(found.as_json())) == (status, True)
    assert [one.title for one in found.results] == (["Tea"] if status == "ok" else [])
