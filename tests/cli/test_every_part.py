"""`search` and `open` on the command line: dates, reasons, what was left out, who read a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from searchloop.cli.main import main
from searchloop.search_backend.engines import find_engines
from searchloop.search_backend.readers import find_services
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.search_backend.pages.test_reading import case

# Public, and written out: no name is looked up for it.
PAGE = "http://93.184.216.34/tea"
Env = Mapping[str, str]


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


def test_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page's text, for people and for programs, and who read it."""
    with FakeServer(lambda _: json_reply(case("jina", "").good)) as service:
        env, argv = case("jina", service.url).settings, ("open", PAGE, "--reader", "jina")
        assert run(monkeypatch, tmp_path, env, *argv, "-o", "json") == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["status"], told["reader"], told["error"]) == ("ok", "jina", None)
        assert "is brewed" in told["content"]
        assert run(monkeypatch, tmp_path, env, *argv) == 0
        shown = capsys.readouterr()
        assert "is brewed" in shown.out
        assert "Read by" in shown.err
