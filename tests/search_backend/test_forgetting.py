"""What a chat brought goes with it: from the library, from the cache on disk and in memory."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.cache.chats import Owners
from searchloop.search_backend.cache.disk import NAME, Disk
from searchloop.search_backend.cache.pages import PageCache
from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.library import Library
from searchloop.search_backend.settings import Settings
from searchloop.search_backend.types import Chat, Page

URL = "https://a.example/page"
PAGE = Page(URL, URL, "Samovars", "The samovar is hot. " * 20)
MOST = 2**20
MANY = st.lists(
    st.tuples(st.sampled_from(["open", "forget"]), st.integers(0, 2), st.integers(0, 2)),
    max_size=25,
)


def fetched(url: str, **_: Any) -> Fetched:
    """A page for every address."""
    body = f"<title>Samovars</title><p>{PAGE.text}".encode()
    told = {"cache-control": "max-age=900"}
    return Fetched(url, url, 200, "text/html", "utf-8", body, headers=told)


def hits(library: Library) -> set[str]:
    """What a search in the library finds."""
    return {hit.url for hit in library.search("samovar", 50)}


@given(MANY)
def test_an_item_stays_as_long_as_one_of_its_chats(steps: list[tuple[str, int, int]]) -> None:
    """Whatever is opened and forgotten in whatever order; a forgotten chat brings nothing more."""
    owners, gone = Owners(), set[int]()
    held: dict[int, set[int]] = {}
    for step, chat, item in steps:
        if step == "forget":
            alone = set(owners.forget(str(chat)))
            assert alone == {i for i, chats in held.items() if chats == {chat}}
            for i in alone:
                owners.drop(i)
            held = {i: chats - {chat} for i, chats in held.items() if chats != {chat}}
            gone.add(chat)
        else:
            assert owners.add(item, str(chat)) == (chat not in gone)
            if chat not in gone:
                held.setdefault(item, set()).add(chat)


def test_a_page_that_comes_too_late_is_not_stored(tmp_path: Path) -> None:
    """Its chat was deleted while it was on its way."""
    library, disk = Library(tmp_path, dict), Disk(tmp_path, MOST)
    memory = PageCache(disk=disk)
    library.remember(PAGE, "a")
    disk.put("page", "x", {"text": "samovar"}, 900, Chat("a"))
    memory.put(URL, PAGE, Chat("a"))
    assert (library.forget("a"), disk.forget("a")) == (1, 2)
    memory.forget("a")
    library.remember(PAGE, "a")
    disk.put("page", "x", {"text": "samovar"}, 900, Chat("a"))
    memory.put(URL, PAGE, Chat("a"))
    assert (hits(library), disk.get("page", "x"), memory.get(URL)) == (set(), None, None)
    library.remember(PAGE, "b")
    assert hits(library) == {URL}


def test_only_chats_that_are_kept_bring_something(tmp_path: Path) -> None:
    """Asked for no chat, a page is in the cache alone; for a temporary one on no disk at all."""
    library = Library(tmp_path, dict)
    disk = Disk(tmp_path, MOST)
    app = create_app(Settings(tmp_path, ()), fetch=fetched, library=library, disk=disk)
    client = app.test_client()

    def opened(**chat: object) -> str:
        return str(client.post("/api/open-page", json={"url": URL, **chat}).json["origin"])

    assert opened(chat="passing", temporary=True) == "web"
    assert (hits(library), disk.get("page", URL)) == (set(), None)
    client.post("/api/forget", json={"chat": "passing"})
    assert opened() == "web"  # nothing was left of it
    assert disk.get("page", URL) is not None
    assert hits(library) == set()
    assert opened(chat="kept") == "cache"
    assert hits(library) == {URL}
    assert client.post("/api/forget", json={"chat": "kept"}).json == {"pages": 1, "kept": 1}
    assert (hits(library), opened()) == (set(), "web")


@pytest.mark.parametrize(
    "body", [{}, {"chat": 1}, {"chat": ""}, {"chat": "x" * 101}, {"chat": "x", "temporary": True}]
)
def test_a_wrong_request_is_refused(tmp_path: Path, body: dict[str, object]) -> None:
    """In words of the contract, and nothing is forgotten."""
    app = create_app(Settings(tmp_path, ()), library=Library(tmp_path, dict))
    refused = app.test_client().post("/api/forget", json=body)
    assert refused.status_code == 400
    assert refused.json["error"]["code"] == "bad_request"


def test_pages_of_unknown_chats_go_once(tmp_path: Path) -> None:
    """A library of an earlier version did not note who opened them; folders stay."""
    library = Library(tmp_path, dict)
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n\nMy samovar is cold.")
    library.add(notes)
    library.remember(PAGE, "a")
    with closing(sqlite3.connect(tmp_path / "library.sqlite3")) as db:
        db.execute("DROP TABLE chats")
    assert hits(Library(tmp_path, dict)) == {"library://" + tmp_path.name + "/notes.md#notes"}


def test_a_cache_that_is_held_by_another_goes_as_a_whole(tmp_path: Path) -> None:
    """Better no cache than one that keeps what was deleted."""
    disk = Disk(tmp_path, MOST)
    disk.put("page", "x", {"text": "samovar"}, 900, Chat("a"))
    with closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        disk.forget("a")
        assert not (tmp_path / NAME).exists()
    assert disk.get("page", "x") is None
