"""Whatever page is asked for: a sentence with a remedy, in time.

Over real sockets: the guarded fetch, and a server of endless pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.fetch.fetch import fetch
from searchloop.search_backend.fetch.http import Fetched, FetchLimits
from searchloop.search_backend.pages.workers import WORKERS
from searchloop.search_backend.settings import SearchSettings
from tests.search_backend.hostile import HANG, Internet, answer, forever, serving
from tests.tables import cut
from tests.waiting import LATE, until

PAGE_SECONDS = 1.0


def endless(kind: str) -> Iterator[object]:
    """A page of far more than 100 MB."""
    yield answer(b"", f"Content-Length: {100 * 2**20}", kind=kind)
    yield from forever(b"x" * 65_536)


def hanging() -> Iterator[object]:
    """A server that takes the request and says nothing."""
    yield HANG


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """The application as users have it, with a web of bad pages."""
    routes = {
        "/100mb.txt": lambda: endless("text/plain"),
        "/100mb.bin": lambda: endless("application/octet-stream"),
        "/hang": hanging,
    }
    with serving(routes) as web:
        net = Internet(web.port)
        settings = SearchSettings.from_mapping({}, tmp_path_factory.mktemp("home"))

        def guarded(url: str, **more: Any) -> Fetched:
            seconds = PAGE_SECONDS if "/hang" in url else LATE
            limits = FetchLimits(seconds=seconds, failure_step=0.05)
            return fetch(url, limits=limits, resolve=net.resolve, sockets=net.sockets, **more)

        yield create_app(settings, fetch=guarded).test_client()


def ask(client: FlaskClient, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """Status and JSON of a POST that its deadline ends, for nothing else would."""
    response = client.post(path, json=body)
    assert "Traceback" not in response.get_data(as_text=True)
    return response.status_code, response.get_json()


@pytest.mark.parametrize(
    ("url", "code"),
    [
        *((url, "refused_url") for url in cut("ftp://example.org/a file:///etc/passwd // http://")),
        *(
            (f"http://{host}/", "not_reachable")
            for host in cut("127.0.0.1:3002 localhost 169.254.169.254 [::1] 10.0.0.1")
        ),
        ("http://2130706433/", None),
        ("http://big.example/100mb.bin", "too_large"),
        ("http://big.example/hang", "timeout"),
        ("http://big.example/" + "a" * 8_200, "bad_request"),
    ],
)
def test_a_page_that_cannot_be_opened(client: FlaskClient, url: str, code: str | None) -> None:
    """A typed answer, or 400, with the remedy; nothing of this machine or its network is shown."""
    status, told = ask(client, "/api/open-page", {"url": url})
    assert status in (200, 400)
    assert told["error"]["remedy"]
    assert code in (None, told["error"]["code"])
    if status == 200:
        assert (told["status"], told["content"]) == ("error", "")


def test_the_beginning_of_a_page_of_100_mb(client: FlaskClient) -> None:
    """What fits is read, and it says that it is not all."""
    about = {"url": "http://big.example/", "content_type": "text/html"}
    large = b"<p>Some words about tea.</p>" * 10_000
    until(lambda: WORKERS.read(large, **about).status == "ok")  # a process is there to read it
    status, told = ask(client, "/api/open-page", {"url": "http://big.example/100mb.txt"})
    assert (status, told["status"], told["truncated"]) == (200, "ok", True)
    assert told["content_length"] == len(told["content"]) == 8_000
