"""What a chat brought goes with it: from the library and from memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.api.app import create_app
from searchloop.search_backend.cache.kept import Cache
from searchloop.search_backend.engines import Engine, find_engines
from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.library import Library
from searchloop.search_backend.settings import SearchSettings
from searchloop.search_backend.types import Owner, Page, SearchResult
from tests.agent.log.test_rescue import as_a_user
from tests.agent.scripted import no_room
from tests.search_backend.documents import made
from tests.waiting import until

URL = "https://a.example/page"
PAGE = Page(URL, URL, "Samovars", "The samovar is hot. " * 20)
GOOD = SearchResult("Good", "https://good.example/", "x", "good")


def fetched(url: str, **_: Any) -> Fetched:
    """A page for every address."""
    body = f"<title>Samovars</title><p>{PAGE.text}".encode()
    told = {"cache-control": "max-age=900"}
    return Fetched(url, url, 200, "text/html", "utf-8", body, headers=told)


def hits(library: Library) -> set[str]:
    """What a search in the library finds."""
    return {hit.url for hit in library.search("samovar", 50)}


@given(st.lists(st.tuples(st.sampled_from(["open", "forget"]), *[st.integers(0, 2)] * 2)))
def test_an_item_stays_as_long_as_one_of_its_chats(steps: list[tuple[str, int, int]]) -> None:
    """Whatever is opened and forgotten in whatever order; a forgotten chat brings nothing more."""
    cache, gone, held = Cache(), set[int](), dict[int, set[int]]()
    for step, chat, item in steps:
        if step == "forget":
            assert cache.forget(str(chat)) == [*held.values()].count({chat})
            held = {i: chats - {chat} for i, chats in held.items() if chats != {chat}}
            gone.add(chat)
        elif item in held:
            assert cache.get(Page, str(item), Owner(str(chat))) is not None
            held[item] |= {chat} - gone
        else:
            cache.put(str(item), PAGE, 900, Owner(str(chat)))
            if chat not in gone:
                held[item] = {chat}
        assert [i for i in range(3) if cache.get(Page, str(i))] == sorted(held)


def test_a_page_that_comes_too_late_is_not_stored(tmp_path: Path) -> None:
    """Its chat was deleted while it was on its way."""
    library = Library(tmp_path, dict)
    library.remember(PAGE, "a")
    assert library.forget("a") == 1
    library.remember(PAGE, "a")
    assert hits(library) == set()
    library.remember(PAGE, "b")
    assert hits(library) == {URL}


def test_only_chats_that_are_kept_bring_something(tmp_path: Path) -> None:
    """Asked for no chat or for a temporary one, a page is in memory alone."""
    library = Library(tmp_path, dict)
    client = create_app(SearchSettings(tmp_path, ()), fetch=fetched, library=library).test_client()

    def opened(**chat: object) -> str:
        return str(client.post("/api/open-page", json={"url": URL, **chat}).json["origin"])

    assert opened(chat="passing", temporary=True) == "web"
    assert hits(library) == set()
    client.post("/api/forget", json={"chat": "passing"})
    assert opened() == "web"  # nothing was left of it
    assert hits(library) == set()
    assert opened(chat="kept") == "cache"
    assert hits(library) == {URL}
    assert client.post("/api/forget", json={"chat": "kept"}).json == {"pages": 1, "kept": 1}
    assert (hits(library), opened()) == (set(), "web")


def test_a_stored_page_stays_for_each_chat_that_opens_it(tmp_path: Path) -> None:
    """Also for one that gets the copy because the page cannot be had."""
    library = Library(tmp_path, dict)
    library.remember(PAGE, "a")
    client = create_app(SearchSettings(tmp_path, (), offline=True), library=library).test_client()
    opened = client.post("/api/open-page", json={"url": URL, "chat": "b"})
    assert opened.json["origin"] == "library"
    assert (library.forget("a"), hits(library)) == (0, {URL})
    assert (library.forget("b"), hits(library)) == (1, set())


def test_where_the_disk_is_full_the_index_goes_whole(tmp_path: Path) -> None:
    """What was opened is forgotten even then; with room again the folders are read anew."""
    home, folder = tmp_path / "home", made(tmp_path / "texts", ("a.txt", "About a kettle."))
    library = Library(home, dict)
    library.add(folder)
    library.remember(Page("a", "https://a.example/", "", "A samovar. " * 500), "chat")
    with no_room(folder / "a.txt"):
        assert library.forget("chat") == 0
    assert not (home / "library.sqlite3").exists()
    until(lambda: [hit.title for hit in library.search("kettle samovar", 5)] == ["a.txt"])


@contextmanager
def closed(home: Path) -> Iterator[Path]:
    """The home, which belongs to somebody else: nothing in it can be written."""
    home.parent.chmod(0o711)
    for file in home.iterdir():
        file.chmod(0o444)
    home.chmod(0o555)
    with as_a_user():
        yield home
    home.chmod(0o700)


@contextmanager
def full(home: Path) -> Iterator[Path]:
    """The home on a disk that takes nothing more."""
    (home / "small").write_text("x")
    with no_room(home / "small"):
        yield home


@pytest.mark.parametrize("state", [closed, full])
def test_a_home_that_takes_nothing(state: Any, tmp_path: Path) -> None:
    """Searching and opening go on, what cannot be kept is in memory, and is forgotten there; what
    cannot be deleted is told in one sentence."""

    def app(home: Path, **more: Any) -> Any:
        good = Engine("good", "Good", lambda _query, _access: [GOOD])
        own = SearchSettings(home, ("good", "library"), cache_seconds=300.0)
        engines = {"good": good, "library": find_engines()["library"]}
        return create_app(own, fetch=fetched, engines=engines, **more).test_client()

    for name in ("first", "home"):
        (tmp_path / name).mkdir()
        opened = {"url": URL, "chat": "old"}
        client = app(tmp_path / name, library=Library(tmp_path / name, dict))
        client.post("/api/open-page", json=opened)
        # What a first search reads of the program: the user may not see the folder of the clone.
        client.post("/api/web-search", json={"query": "coffee", "chat": "old"})
    with state(tmp_path / "home") as home:
        client = app(home, library=Library(home, dict))
        found = client.post("/api/web-search", json={"query": "tea", "chat": "new"}).json
        assert (found["status"], found["engine"]) == ("ok", "good")
        other = {"url": f"{URL}/2", "chat": "new"}
        origins = [client.post("/api/open-page", json=other).json["origin"] for _ in range(2)]
        assert origins == ["web", "cache"]
        for chat in ("new", "old"):
            told = client.post("/api/forget", json={"chat": chat})
            if state is closed:
                error = told.json["error"]
                assert (told.status_code, error["code"]) == (503, "library_unavailable")
                assert "make its folder writable" in error["remedy"]
            else:
                assert told.status_code == 200
        assert client.post("/api/open-page", json=other).json["origin"] == "web"
    left = b"".join(file.read_bytes() for file in (tmp_path / "home").iterdir())
    assert (b"samovar" in left) is (state is closed)
