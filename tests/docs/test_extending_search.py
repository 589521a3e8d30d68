"""The engine and the reader in docs/guides/extending.md work as they are printed there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from searchloop.search_backend import engines
from searchloop.search_backend.engines import Engine, own_engines
from searchloop.search_backend.library import Library
from searchloop.search_backend.pages.service_calls import ServiceCalls
from searchloop.search_backend.readers import Service, find_services, services
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import Query
from tests.fakes import FakeServer, json_reply

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "guides" / "extending.md").read_text("utf-8")
ENGINE, READER, *_ = re.findall(r"^```py\n(.*?)^```$", TEXT, re.M | re.S)


def placed(folder: Path, package: ModuleType, name: str, code: str) -> Iterator[None]:
    """The example as a file of the package."""
    (folder / f"{name}.py").write_text(code, "utf-8")
    package.__path__.append(str(folder))
    try:
        yield
    finally:
        package.__path__.remove(str(folder))
        sys.modules.pop(f"{package.__name__}.{name}", None)
        vars(package).pop(name, None)


@pytest.fixture
def heron(tmp_path: Path) -> Iterator[Engine]:
    """The engine, found by its file name."""
    for _ in placed(tmp_path, engines, "heron", ENGINE):
        yield own_engines.__wrapped__()["heron"]


@pytest.fixture
def otter(tmp_path: Path) -> Iterator[Service]:
    """The reader, found by its file name."""
    for _ in placed(tmp_path, services, "otter", READER):
        yield find_services.__wrapped__()["otter"]


def test_the_engine_searches(tmp_path: Path, heron: Engine) -> None:
    """Results, a refused key, and a wish that it cannot respect."""
    hit = {
        "url": "https://a.example/",
        "name": "A <b>bird</b>",
        "text": "Wades.",
        "day": "3 days ago",
    }
    replies = [json_reply({"hits": [hit]}), json_reply({"error": "no such key"}, 401)]
    with FakeServer(replies) as server:
        keys = {"HERON_API_KEY": "key-0123456789", "HERON_BASE_URL": server.url}
        own = SearchSettings(tmp_path, ("heron",), keys=keys)
        chain = Chain(own, Library(tmp_path, dict), {"heron": heron})
        query = Query("birds", language="de", safe_search="strict")
        found, refused = chain.search(query), chain.search(Query("bees"))
        assert server.requests[0].path == "/find?q=birds&n=8&lang=de"
        assert server.requests[0].headers["authorization"] == "Bearer key-0123456789"
    (one,) = found.results
    assert (one.title, one.source, found.not_applied) == ("A bird", "heron", ("safe_search",))
    assert one.published is not None
    assert refused.attempts[0].error is not None
    assert refused.attempts[0].error.code == "auth"


def test_the_reader_reads(otter: Service) -> None:
    """A page, one that it could not open, and an answer that is none."""
    page = {"markdown": "# Otters\n\nThey [swim](https://b.example/).", "at": "https://a.example/x"}
    replies = [json_reply(page), json_reply({"fault": "gone"}), json_reply([])]
    with FakeServer(replies) as server:
        calls = ServiceCalls({"OTTER_URL": server.url}, 5.0)
        read, gone, broken = (calls.read(otter, "https://a.example/") for _ in range(3))
        assert server.requests[0].json == {"address": "https://a.example/"}
    assert (read.status, read.title, read.links) == ("ok", "Otters", ("https://b.example/",))
    assert read.final_url == "https://a.example/x"
    assert gone.error is not None
    assert gone.error.message == "Otter could not open the page: gone."
    assert broken.error is not None
    assert broken.error.code == "reader_parse"
