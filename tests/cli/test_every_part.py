"""`search` and `open` for every engine and every reader there is, against fakes of their APIs.

Engines and readers are found by name, as the program finds them: a new one without a fake fails.
What asks the web by itself (ddg) or opens pages here is reached through a backend of the test's,
whose network is the fake; all else is led to its fake by the settings that users have.
"""

from __future__ import annotations

import json
import pkgutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from searchloop.cli.main import main
from searchloop.search_backend import readers
from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.engines import find_engines
from searchloop.search_backend.engines.ddg import make_engine
from searchloop.search_backend.fetch.fetch import fetch
from searchloop.search_backend.library import Library
from searchloop.search_backend.readers import find_services, services
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.settings import Settings
from searchloop.web.text.words import words_of
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.search_backend.documents import docx, epub, notebook, odt, words
from tests.search_backend.hostile import Internet, answer, serving
from tests.search_backend.pages.test_reading import case
from tests.search_backend.search.engine_cases import BY_NAME
from tests.search_backend.search.zim_archives import write

# Public, and written out: no name is looked up for it.
PAGE = "http://93.184.216.34/tea"
PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 99]/Contents 5 0 R/Resources<</Font<</F 4 0 R>>>>
>>endobj
4 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
5 0 obj<</Length 47>>stream
BT /F 12 Tf 9 50 Td (Green tea is brewed) Tj ET
endstream endobj
trailer<</Root 1 0 R>>"""
RSS = (
    b"<rss><channel><title>Tea</title><item><title>Green</title>"
    b"<description>Green tea is brewed in a kettle.</description></item></channel></rss>"
)
HTML = (
    "<title>Tea</title><main><h1>Tea</h1><p>Green tea is brewed in a kettle, and it takes two "
    "minutes at seventy degrees, or a little longer when the leaves are large and dark.</p></main>"
)
Env = Mapping[str, str]


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing to print."""


@contextmanager
def backend(app: Any) -> Iterator[Env]:
    """The settings that lead to this search backend."""
    with make_server("127.0.0.1", 0, app, handler_class=_Silent) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield {"SEARCH_BACKEND_URL": f"http://127.0.0.1:{server.server_port}"}
        server.shutdown()
        thread.join()


@contextmanager
def over_http(name: str) -> Iterator[Env]:
    """An engine that is led to its fake by its settings."""
    own = BY_NAME[name]
    with FakeServer(own.reply) as server:
        yield own.keys(server.url)


@contextmanager
def by_package(home: Path) -> Iterator[Env]:
    """ddg: its package is given rows instead of a network."""

    class Client:
        def text(self, query: str, **_: Any) -> list[dict[str, str]]:
            return [{"title": "Tea", "href": "https://tea.example/", "body": f"About {query}."}]

    own = Settings(home, ("ddg",))
    library = Library(home)
    chain = Chain(own, library, {"ddg": make_engine(Client)})
    with backend(create_app(own, library=library, chain=chain)) as env:
        yield env
    chain.close()


ENGINES: Mapping[str, Callable[[Path], AbstractContextManager[Env]]] = {
    **{name: (lambda n: lambda _: over_http(n))(name) for name in BY_NAME},
    "ddg": by_package,
    "library": lambda _: nullcontext({}),
    "zim": lambda home: nullcontext({"ZIM_FILES": str(write(home / "tea.zim"))}),
}


@contextmanager
def opened_here(home: Path, body: bytes, kind: str) -> Iterator[Env]:
    """A page that the backend opens itself, through the guard."""
    with serving({"/tea": answer(body, kind=kind)}) as server:
        net = Internet(server.port)
        guarded = partial(fetch, resolve=net.resolve, sockets=net.sockets)
        with backend(create_app(Settings(home, ()), fetch=guarded)) as env:
            yield env


@contextmanager
def opened_elsewhere(name: str) -> Iterator[Env]:
    """A page that a service opens."""
    with FakeServer(lambda _: json_reply(case(name, "").good)) as server:
        yield case(name, server.url).settings


SAID = "Green tea is brewed."
OFFICE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
DOCUMENTS: Mapping[str, tuple[bytes, str]] = {
    "docx": (docx(words(SAID)), OFFICE),
    "epub": (epub({"one": f"<p>{SAID}</p>"}), "application/epub+zip"),
    "mail": (f"From: a@b.example\nSubject: Tea\n\n{SAID}\n".encode(), "message/rfc822"),
    "notebook": (notebook(("markdown", SAID, "")), "application/x-ipynb+json"),
    "odt": (odt(f"<text:p>{SAID}</text:p>"), "application/vnd.oasis.opendocument.text"),
}
READERS: Mapping[str, tuple[str, Callable[[Path], AbstractContextManager[Env]]]] = {
    "html": ("local", lambda home: opened_here(home, HTML.encode(), "text/html")),
    "feed": ("local", lambda home: opened_here(home, RSS, "application/rss+xml")),
    "pdf": ("local", lambda home: opened_here(home, PDF, "application/pdf")),
    "plain": ("local", lambda home: opened_here(home, b"Green tea is brewed.", "text/plain")),
    **{
        name: ("local", (lambda body, kind: lambda home: opened_here(home, body, kind))(*made))
        for name, made in DOCUMENTS.items()
    },
    **{
        name: (name, (lambda n: lambda _: opened_elsewhere(n))(name))
        for name in ("crawl4ai", "firecrawl", "jina", "tavily")
    },
}


def run(monkeypatch: pytest.MonkeyPatch, home: Path, env: Env, *argv: str) -> int:
    """The exit code of `searchloop ARGV` with these settings and no others."""
    for name in find_settings():
        monkeypatch.delenv(name, raising=False)
    for name, value in {"SEARCHLOOP_HOME": str(home), "NO_PROXY": "127.0.0.1", **env}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home)
    return main(list(argv))


def find_settings() -> set[str]:
    """Variables that decide who is asked."""
    parts = (*find_engines().values(), *find_services().values())
    declared = [setting for part in parts for setting in part.settings]
    own = {"SEARCH_ENGINES", "SEARCH_BACKEND_URL", "SEARCHLOOP_OFFLINE", "SEARCH_READERS"}
    return own | {name for setting in declared for name in (setting.name, *setting.aliases)}


def test_every_part_has_its_fake() -> None:
    """Those that are found, and no others."""
    assert set(find_engines()) == set(ENGINES)
    folders = [*readers.__path__, *services.__path__]
    names = {module.name for module in pkgutil.iter_modules(folders)} - {"services"}
    # tests/search_backend/fetch/test_browser.py starts the browser.
    assert {name for name in names if not name.startswith("_")} == {*READERS, "browser"}


@pytest.mark.parametrize("name", sorted(find_engines()))
def test_search(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named or as the only one of the chain: results, for people and for programs."""
    with ENGINES[name](tmp_path) as env:
        code = run(monkeypatch, tmp_path, env, "search", "tea", "-o", "json", "--engine", name)
        told = json.loads(capsys.readouterr().out)
        assert (code, told["status"], told["engine"]) == (0, "ok", name)
        assert all(result["url"] and result["source"] == name for result in told["results"])
        chosen = {**env, "SEARCH_ENGINES": name}
        assert run(monkeypatch, tmp_path, chosen, "search", "tea", "-n", "1") == 0
        shown = capsys.readouterr()
        assert shown.out.startswith("1. ")
        assert shown.err == f"1 result · used {words_of('en').name(name)}\n"


@pytest.mark.parametrize("name", sorted(READERS))
def test_open(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page's text, for people and for programs, and who read it."""
    reader, fake = READERS[name]
    with fake(tmp_path) as env:
        argv = ("open", PAGE, "--reader", reader)
        assert run(monkeypatch, tmp_path, env, *argv, "-o", "json") == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["status"], told["reader"], told["error"]) == ("ok", reader, None)
        assert "is brewed" in told["content"]
        assert run(monkeypatch, tmp_path, env, *argv) == 0
        shown = capsys.readouterr()
        assert "is brewed" in shown.out
        assert ("Read by" in shown.err) is (reader != "local")


def test_what_a_wish_left_out_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing in a time range: searched again without it; what is outside the sites is counted."""
    hit = {"url": "https://a.example/", "title": "A", "content": "x"}
    other = {"url": "https://b.example/", "title": "B", "content": "x"}

    def moody(received: Received) -> Reply:
        return json_reply({"results": [] if "time_range" in received.path else [hit, other]})

    with FakeServer(moody) as server:
        env = {"SEARXNG_URL": server.url, "SEARCH_ENGINES": "searxng"}
        assert run(monkeypatch, tmp_path, env, "search", "tea", "--time-range", "d") == 0
        lifted = "Nothing was found with time_range=d, so the search was repeated without."
        assert lifted in capsys.readouterr().err
        assert run(monkeypatch, tmp_path, env, "search", "tea", "--domain", "a.example") == 0
        assert "1 result left out by allowed_domains=a.example." in capsys.readouterr().err


def test_dates_are_shown_and_the_order_is_explained_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--explain` says why each result stands where it does; a date stands beside its title."""
    dated = {
        "url": "https://a.example/",
        "title": "A",
        "content": "x",
        "publishedDate": "2026-03-04",
    }
    with FakeServer(lambda _: json_reply({"results": [dated]})) as server:
        env = {"SEARXNG_URL": server.url, "SEARCH_ENGINES": "searxng"}
        assert run(monkeypatch, tmp_path, env, "search", "tea") == 0
        shown = capsys.readouterr().out
        assert shown.startswith("1. A (2026-03-04)\n   https://a.example/\n   x\n")
        assert "Why here" not in shown
        assert run(monkeypatch, tmp_path, env, "search", "tea", "--explain") == 0
        assert "   Why here: place 1 of searxng.\n" in capsys.readouterr().out
        argv = ("search", "tea", "--explain", "-o", "json")
        assert run(monkeypatch, tmp_path, env, *argv) == 0
        assert json.loads(capsys.readouterr().out)["ranking"] == [
            {"url": "https://a.example/", "reasons": ["place 1 of searxng"]}
        ]
