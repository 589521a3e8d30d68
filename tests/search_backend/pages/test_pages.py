"""open_page over a fake fetch: slices, passages, cache, refusals, and what happens offline."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.library import Library
from searchloop.search_backend.pages.open_page import Pages
from searchloop.search_backend.pages.reading import Reading
from searchloop.search_backend.types import FetchFailed, FetchRefused, NotReachable, Owner

DATA = Path(__file__).parents[1] / "data"
CHALLENGE, SHELL = ((DATA / f"{name}.html").read_bytes() for name in ("challenge", "shell"))
LONG = "https://example.org/long"
WORDS = "".join(f"Sentence number {n} about tea and kettles.\n\n" for n in range(200))


class FakeFetch:
    """Answers from a table; an exception is raised. Counts what was fetched."""

    def __init__(self, **answers: Fetched | Exception) -> None:
        self.answers = answers
        self.urls: list[str] = []

    def __call__(self, url: str, *, host_allowed: Callable[[str], bool] | None = None) -> Fetched:
        self.urls.append(url)
        answer = self.answers[url.rpartition("/")[2]]
        if isinstance(answer, Exception):
            raise answer
        return answer


def fetched(
    name: str, body: str | bytes, *, status: int = 200, kind: str = "text/plain", cut: bool = False
) -> Fetched:
    """An answer from https://example.org/NAME."""
    data = body if isinstance(body, bytes) else body.encode()
    url = f"https://example.org/{name}"
    return Fetched(url, url, status, kind, None, data, truncated=cut)


def pages(tmp_path: Path, fetch: FakeFetch, *, offline: bool = False) -> Pages:
    """Pages over this fetch and a library without documents."""
    return Pages(Reading(fetch), Library(tmp_path, dict), offline=offline)


@pytest.fixture
def long(tmp_path: Path) -> tuple[Pages, FakeFetch]:
    """A long text at https://example.org/long."""
    fetch = FakeFetch(long=fetched("long", WORDS))
    return pages(tmp_path, fetch), fetch


def test_a_long_page_comes_in_slices(long: tuple[Pages, FakeFetch]) -> None:
    """next_offset leads on, the slices joined are the text, and the page is fetched once."""
    opened, fetch = long
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        shape = opened.open_page(LONG, offset=offset, max_length=700).as_json()
        assert shape["content_length"] == len(shape["content"]) <= 700
        assert shape["original_length"] == len(WORDS.strip())
        assert (shape["offset"], shape["truncated"], shape["status"]) == (offset, True, "ok")
        parts.append(shape["content"])
        offset = shape["next_offset"]
    assert "".join(parts) == WORDS.strip()
    assert fetch.urls == [LONG]


def test_a_source_longer_than_the_caps_is_told(tmp_path: Path) -> None:
    """What was cut while fetching counts as truncated although there is no next slice."""
    opened = pages(tmp_path, FakeFetch(long=fetched("long", "Start", cut=True)))
    view = opened.open_page(LONG)
    assert (view.truncated, view.next_offset, view.as_json()["cut"]) == (True, None, True)


def test_words_are_found_on_a_page(long: tuple[Pages, FakeFetch]) -> None:
    """Passages with exact offsets; next_offset leads to the matches that did not fit."""
    opened, _ = long
    one = opened.open_page(LONG, find="number 77 about")
    assert one.content == "Sentence number 77 about tea and kettles."
    assert (one.match_count, one.next_offset) == (1, None)
    many = opened.open_page(LONG, find="kettles", max_length=500)
    assert many.match_count == 200
    assert many.next_offset is not None
    assert many.matches is not None
    assert all(WORDS[m.start : m.end] == m.text for m in many.matches)
    further = opened.open_page(LONG, find="kettles", offset=many.next_offset, max_length=500)
    assert further.matches is not None
    assert further.matches[0].start >= many.next_offset
    none = opened.open_page(LONG, find="samovar")
    assert (none.content, none.match_count, none.page.status) == ("", 0, "ok")
    assert (none.truncated, none.next_offset) == (False, None)
    assert (one.truncated, many.truncated) == (False, True)


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (fetched("a", CHALLENGE, kind="text/html"), "blocked", "blocked"),
        (fetched("a", "No.", status=403), "blocked", "blocked"),
        (fetched("a", "Lost.", status=404), "error", "not_found"),
        (fetched("a", "Oops.", status=500), "error", "http_500"),
        (fetched("a", SHELL, kind="text/html"), "needs_js", "needs_js"),
        (fetched("a", b"\x89PNG\0", kind="image/png"), "error", "unsupported_type"),
        (fetched("a", ""), "error", "no_text"),
        (NotReachable("10.0.0.1 is private"), "error", "not_reachable"),
        (FetchRefused("refused_url", "Not a web address.", "Use one."), "error", "refused_url"),
        (FetchFailed("timeout", "Too slow.", "Later."), "error", "timeout"),
    ],
)
def test_what_is_no_page_has_no_content(
    tmp_path: Path, answer: Fetched | Exception, status: str, code: str
) -> None:
    """A refusal, a fault or a shell is never shown as if it were the page, and is not kept."""
    fetch = FakeFetch(a=answer)
    opened = pages(tmp_path, fetch)
    shape, _ = (opened.open_page("https://example.org/a").as_json() for _ in range(2))
    assert len(fetch.urls) == 2
    assert (shape["status"], shape["content"], shape["next_offset"]) == (status, "", None)
    assert shape["error"]["code"] == code
    assert shape["error"]["message"]
    assert "10.0.0.1" not in str(shape)


def test_a_page_read_before_is_there_without_a_network(tmp_path: Path) -> None:
    """The library answers when offline or when the site cannot be reached, and says so; what is
    not in it is refused with the name of the setting."""
    pages(tmp_path, FakeFetch(long=fetched("long", WORDS))).open_page(LONG, chat=Owner("a"))
    silent = FakeFetch()
    offline = pages(tmp_path, silent, offline=True)
    stored, new = offline.open_page(LONG), offline.open_page("https://example.org/a")
    assert new.page.error is not None
    assert "SEARCHLOOP_OFFLINE" in new.page.error.message
    assert (stored.origin, stored.page.status, silent.urls) == ("library", "ok", [])
    down = FakeFetch(long=FetchFailed("timeout", "Too slow.", "Later."))
    assert pages(tmp_path, down).open_page(LONG).origin == "library"


def test_a_stored_copy_says_how_old_it_is_and_why_it_is_shown(tmp_path: Path) -> None:
    """Days later, with the site down; a page that was opened again is as old as that."""
    url, there = LONG, FakeFetch(long=fetched("long", WORDS))
    down = FakeFetch(long=FetchFailed("timeout", "Too slow.", "Later."))
    pages(tmp_path, there).open_page(url, chat=Owner("a"))
    with sqlite3.connect(tmp_path / "library.sqlite3") as db:
        db.execute("UPDATE documents SET added = added - ?", (200 * 86_400,))
    db.close()
    shape = pages(tmp_path, down).open_page(url, find="kettles").as_json()
    assert 200 * 86_400 <= shape["age"] < 200 * 86_400 + 60
    assert (shape["origin"], shape["stale"]["message"]) == ("library", "Too slow.")
    assert "stale" not in pages(tmp_path, FakeFetch(), offline=True).open_page(url).as_json()
    pages(tmp_path, there).open_page(url, chat=Owner("a"))
    assert pages(tmp_path, down).open_page(url).as_json().get("age", 0) < 60


def test_library_documents_open_without_fetching(tmp_path: Path) -> None:
    """A fragment begins at its section unless an offset is given."""
    text = "# Top\n\nintro\n\n## Below\n\nbody"
    fetch = FakeFetch()
    opened = Pages(Reading(fetch), Library(tmp_path, lambda: {"a.md": text}))
    section = opened.open_page("library://docs/a.md#below")
    assert (section.content, section.offset) == ("## Below\n\nbody", text.index("## Below"))
    assert opened.open_page("library://docs/a.md#below", offset=0).content == text
    assert opened.open_page("library://docs/a.md", find="intro").match_count == 1
    missing = opened.open_page("library://docs/b.md")
    assert (missing.page.status, fetch.urls) == ("error", [])
