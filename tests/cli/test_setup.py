"""`searchloop setup`, and every engine and reader from the command line, against fakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from searchloop.search_backend.readers import find_services
from tests.cli.conftest import Cli, Ran
from tests.cli.screen import Terminal
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.search_backend.pages.test_reading import NAMES, case
from tests.search_backend.search.engine_cases import BY_NAME

KEY = "k-0123456789"
# An address that needs no look-up; only a fake is told it.
PAGE = "http://93.184.215.14/app"


Here = Callable[..., Ran]


@pytest.fixture
def here(cli: Cli) -> Here:
    """Runs `searchloop ARGS` online; keyword arguments are settings that stay set."""
    kept = {"SEARCHLOOP_OFFLINE": ""}

    def run(*args: str, stdin: str = "", **settings: str) -> Ran:
        kept.update(settings)
        return cli(*args, stdin=stdin, **kept)

    return run


def readers(here: Here) -> str:
    """Those that are set."""
    told = here("config", "-o", "json").json["settings"]
    return str(next(row["value"] for row in told if row["name"] == "SEARCH_READERS"))


def always(reply: Reply) -> Callable[[Received], Reply]:
    """The same answer to everything."""
    return lambda _received: reply


def test_an_engine_is_set_up_with_one_command(here: Here) -> None:
    """The key comes on standard input, is kept, used from then on, and never shown."""
    brave = BY_NAME["brave"]
    with FakeServer(always(Reply([brave.recording("results")]))) as server:
        address = {"BRAVE_BASE_URL": server.url}
        made = here(
            *("setup", "--engine", "brave", "--key-stdin", "--file", "-o", "json"),
            stdin=f"{KEY}\n",
            **address,
        )
        found = here("search", "--engine", "brave", "tea")
        listed = here("setup", "-o", "json").json
        told = here("config", "--origin")
    assert made.json["key"] == {"setting": "BRAVE_API_KEY", "place": "keys.json"}
    assert (made.code, made.json["test"]["works"], found.code) == (0, True, 0)
    assert [asked.headers["x-subscription-token"] for asked in server.requests] == [KEY, KEY]
    assert (listed["parts"]["engine"]["brave"], listed["saved"]) == ("ready", ["BRAVE_API_KEY"])
    assert "BRAVE_API_KEY = (set, not shown)  # keys.json" in told.out
    for ran in (made, found, told):
        assert KEY not in ran.out + ran.err
    # Another address gets no key.
    with FakeServer(always(Reply([brave.recording("results")]))) as stranger:
        lost = here("search", "--engine", "brave", "tea", BRAVE_BASE_URL=stranger.url)
        assert stranger.requests == []
    assert (lost.code, "BRAVE_API_KEY" in lost.err) == (2, True)
    state = here("setup", "-o", "json").json["parts"]["engine"]["brave"]
    assert (
        state == "its saved key is not used: BRAVE_BASE_URL leads elsewhere than when it was saved"
    )


def test_a_changed_address_drops_the_key(here: Here, tmp_path: Path) -> None:
    """And that is said; forgetting does the same on purpose."""
    for name in ("tavily", "exa"):
        here("setup", "--engine", name, "--key-stdin", "--file", "--no-test", stdin=KEY)
    moved = here("setup", "--set", "TAVILY_BASE_URL=https://proxy.example/")
    assert "TAVILY_API_KEY was forgotten" in moved.err
    assert "EXA_API_KEY is forgotten." in here("setup", "--forget", "EXA_API_KEY").err
    assert "There was no saved EXA_API_KEY." in here("setup", "--forget", "EXA_API_KEY").err
    assert KEY not in (tmp_path / "home" / "keys.json").read_text()


def test_a_key_that_is_refused_is_said(here: Here) -> None:
    """The exit code tells a script; the key is saved all the same."""
    with FakeServer(always(json_reply({"error": f"bad key {KEY}"}, 401))) as server:
        ran = here(
            *("setup", "--engine", "tavily", "--key-stdin", "--file"),
            stdin=KEY,
            TAVILY_BASE_URL=server.url,
        )
    assert ran.code == 1
    assert "The engine tavily does not work: Tavily does not accept the key" in ran.err
    assert KEY not in ran.err


def test_a_reader_is_set_up_and_chosen(here: Here) -> None:
    """Who sets up a reader elsewhere wants it asked; local stays first."""
    with FakeServer(always(json_reply(case("jina", "").good))) as server:
        ran = here(
            *("setup", "--reader", "jina", "--key-stdin", "--file", "--test-url", PAGE),
            stdin=KEY,
            JINA_READER_BASE_URL=server.url,
        )
    assert (ran.code, "The reader jina works: it read" in ran.err) == (0, True)
    assert readers(here) == "local,jina"
    again = here("setup", "--reader", "crawl4ai", "--set", "CRAWL4AI_URL=http://x", "--no-test")
    assert (again.code, readers(here)) == (0, "local,jina,crawl4ai")
    kept = here(
        "setup", "--reader", "tavily", "--no-test", TAVILY_API_KEY=KEY, SEARCH_READERS="local"
    )
    assert "Add tavily to SEARCH_READERS: environment sets it." in kept.err
    assert set(NAMES) == set(find_services())


def test_a_provider_is_tried_by_its_list_of_models(here: Here) -> None:
    """The key of a model's provider is saved and tried in the same way."""
    models = json_reply({"object": "list", "data": [{"id": "gpt-x", "object": "model"}]})
    with FakeServer(always(models)) as server:
        ran = here(
            *("setup", "--provider", "openai", "--key-stdin", "--file"),
            stdin=KEY,
            OPENAI_BASE_URL=server.url,
        )
    assert "OPENAI_API_KEY is saved in" in ran.err
    assert (ran.code, "The provider openai works" in ran.err) == (0, True)
    without = here("setup", "--provider", "anthropic")
    assert (without.code, "ANTHROPIC_API_KEY" in without.err) == (1, True)


def test_all_parts_are_listed(here: Here) -> None:
    """Without options each engine, reader and provider is named, with what it needs."""
    said = here("setup", BRAVE_API_KEY=KEY).out
    lines = dict(line.split(maxsplit=1) for line in said.splitlines() if line.startswith("  "))
    assert lines["brave"] == "ready"
    assert lines["searxng"] == "needs SEARXNG_URL"
    assert {"jina", "anthropic"} < {*lines}
    assert "searchloop setup --engine NAME" in said


def test_a_terminal_is_asked_for_a_key_without_echo(tmp_path: Path) -> None:
    """Nobody there needs `--key-stdin`; the key is kept, tried, and never on the screen."""
    with FakeServer(always(Reply([BY_NAME["brave"].recording("results")]))) as server:
        online = {"BRAVE_BASE_URL": server.url, "SEARCHLOOP_OFFLINE": ""}
        with Terminal(tmp_path, "setup", "--engine", "brave", "--file", **online) as at:
            at.until("(BRAVE_API_KEY, Enter = as it is): ")
            at.type(KEY)
            code, shown = at.ended()
    assert (code, KEY in shown, "The engine brave works" in shown) == (0, False, True)
    assert KEY in (tmp_path / "home" / "keys.json").read_text("utf-8")


def test_as_a_process_of_its_own(cli: Cli, tmp_path: Path) -> None:
    """With a real keyring of the package `keyring`: the file holds no key, the keyring does."""
    ring = tmp_path / "rings" / "fake_ring.py"
    ring.parent.mkdir()
    ring.write_text(RING)
    settings = {
        "PYTHONPATH": f"{Path(__file__).resolve().parents[2]}:{ring.parent}",
        "PYTHON_KEYRING_BACKEND": "fake_ring.FileRing",
        "RING_FILE": str(tmp_path / "ring.json"),
    }
    made = cli("setup", "--engine", "exa", "--key-stdin", "--no-test", stdin=KEY, **settings)
    assert (made.code, "EXA_API_KEY is saved in the system's keyring." in made.err) == (0, True)
    assert KEY not in (tmp_path / "home" / "keys.json").read_text()
    assert KEY in (tmp_path / "ring.json").read_text()
    told = cli("config", "--origin", **settings)
    assert "EXA_API_KEY = (set, not shown)  # keyring" in told.out


RING = """
import json, os
from keyring.backend import KeyringBackend

class FileRing(KeyringBackend):
    priority = 5

    def _held(self):
        path = os.environ["RING_FILE"]
        return json.load(open(path)) if os.path.exists(path) else {}

    def get_password(self, service, name):
        return self._held().get(f"{service}/{name}")

    def set_password(self, service, name, value):
        held = {**self._held(), f"{service}/{name}": value}
        with open(os.environ["RING_FILE"], "w") as file:
            json.dump(held, file)
"""
