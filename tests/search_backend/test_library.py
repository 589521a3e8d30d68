"""The library: finds the right passage, keeps up to date, survives odd input and neighbours."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from searchloop.search_backend.library import Library, builtin_documents
from searchloop.search_backend.text.passages import MOST_WORDS, anchor_of, section_offset, split
from searchloop.search_backend.types import Page, SearchBackendError
from tests.search_backend.documents import made
from tests.waiting import until

DATA = Path(__file__).parent / "data" / "docs"
QUESTION = "How does the search switch decide between native and local search?"


def documents() -> dict[str, str]:
    """The documents a library of these tests begins with."""
    return {path.name: path.read_text("utf-8") for path in sorted(DATA.glob("*.md"))}


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """A library that holds the test documents."""
    return Library(tmp_path / "home", documents)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three files."""
    page = "<title>Cups</title><p>Cups hold <b>tea</b> for drinkers.</p>"
    kettles = ("a.md", "# Kettles\n\nA kettle boils water.\n")
    return made(tmp_path / "My notes", kettles, ("sub/b.txt", "Teapots pour."), ("page.html", page))


def test_a_question_finds_its_passage(library: Library) -> None:
    """A question in plain words leads to the section that answers it, the answer in sight."""
    best = library.search(QUESTION, 5)[0]
    assert best.url == "library://docs/switch.md#how-it-is-decided"
    assert best.title == "The switch: How it is decided"
    assert "decides for native search if the model has its own" in best.snippet


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """One library for many generated questions."""
    return Library(tmp_path_factory.mktemp("shared"), documents)


@given(st.text(max_size=80))
@example('switch AND NEAR("title:switch* OR -\0')
@example("的🦉")
def test_any_question_can_be_asked(shared: Library, text: str) -> None:
    """No text makes the index fail: its operators and quotes are just text; without a known word
    nothing is found."""
    assert len(shared.search(text, 3)) <= (3 if re.search(r"\w", text) else 0)


def test_documents_open_by_their_address(library: Library) -> None:
    """Whole text from the index; the fragment names a section."""
    page = library.open("library://docs/switch.md#what-is-stored")
    assert page is not None
    assert page.text == documents()["switch.md"]
    assert page.text[library.section(page) :].startswith("## What is stored")
    assert library.open("library://docs/../switch.md") is None
    assert library.open("library://nowhere/x.md") is None


def test_adding_again_reads_only_what_changed(library: Library, folder: Path) -> None:
    """Unchanged, updated, removed and touched files are told apart."""
    library.add(folder)
    (folder / "a.md").write_text("# Kettles\n\nA samovar is better.\n")
    (folder / "page.html").unlink()
    os.utime(folder / "sub" / "b.txt", ns=(1, 1))
    again = library.add(folder)
    assert (again.added, again.updated, again.unchanged, again.removed) == (0, 1, 1, 1)
    assert library.search("samovar", 5)
    assert not library.search("boils", 5)
    assert library.open("library://My-notes/page.html") is None


def test_collections_are_listed_and_removed(library: Library, folder: Path, tmp_path: Path) -> None:
    """Names are unique, one file can be added alone, and removing forgets the documents."""
    other = made(tmp_path / "elsewhere" / "My notes", ("z.md", "zeppelin"))
    library.add(folder)
    library.add(other / "z.md")
    rows = {row.name: (row.kind, row.documents) for row in library.list()}
    assert rows == {"docs": ("docs", 3), "My-notes": ("folder", 3), "My-notes-2": ("file", 1)}
    assert library.remove(folder) == 3
    assert library.remove("My-notes-2") == 1
    assert not library.search("kettle zeppelin", 5)
    with pytest.raises(SearchBackendError, match="not in the library"):
        library.remove(folder)
    with pytest.raises(SearchBackendError, match="always in the library"):
        library.remove("docs")
    with pytest.raises(SearchBackendError, match="nothing-here"):
        library.add(tmp_path / "nothing-here")


def test_opened_pages_are_found_by_their_own_address(tmp_path: Path) -> None:
    """Pages that were read can be found and opened again; the oldest make room."""
    library = Library(tmp_path, dict, most_pages=2)
    for name in ("one", "two", "three"):
        url = f"https://example.org/{name}"
        library.remember(Page(url, url, f"Page {name}", f"The samovar of {name} is hot."), "chat")
    three = Page("x", "https://example.org/three", "Page three", "Now it is cold.")
    library.remember(three, "chat")
    assert {hit.url for hit in library.search("samovar", 5)} == {"https://example.org/two"}
    page = library.open("https://example.org/three")
    assert page is not None
    assert page.text == "Now it is cold."
    assert library.open("https://example.org/one") is None


def test_our_own_documents_answer_the_same_question(tmp_path: Path) -> None:
    """The library that is shipped holds this project's documents and finds the switch; a new
    version of the program brings its new documents."""
    assert "README.md" in builtin_documents()
    best = Library(tmp_path).search(QUESTION, 5)[0]
    assert best.url.startswith("library://docs/")
    assert {"native", "local"} <= {*best.snippet.split()}
    Library(tmp_path, lambda: {"a.md": "kettle"}).search("kettle", 1)
    renewed = Library(tmp_path, lambda: {"a.md": "samovar"})
    assert renewed.search("samovar", 1)
    assert not renewed.search("kettle", 1)


@pytest.mark.skipif(os.name != "posix", reason="Windows has other rights of files")
def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """Also when it was made readable for others, and with a generous umask."""
    old = os.umask(0)
    try:
        Library(tmp_path / "home", documents).search("tea", 1)
        path = tmp_path / "home" / "library.sqlite3"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        path.chmod(0o644)
        Library(tmp_path / "home", documents).search("tea", 1)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(old)


@pytest.mark.parametrize(("kept", "damage"), [(0, b"this is no database"), (4096, b"\0" * 19)])
def test_a_damaged_file_is_made_anew(kept: int, damage: bytes, tmp_path: Path) -> None:
    """With one sentence; the user's folders are read again, with what they leave out."""
    home, folder = tmp_path / "home", made(tmp_path / "texts", ("a.txt", "A kettle."), "b.log")
    Library(home, documents).add(folder, exclude=["*.log"])
    index = home / "library.sqlite3"
    index.write_bytes(index.read_bytes()[:kept] + damage * 9000)
    library = Library(home, documents)
    with pytest.raises(SearchBackendError, match="being read anew") as failure:
        library.search("kettle", 1)
    assert failure.value.code == "library_rebuilt"
    until(lambda: [hit.title for hit in library.search("kettle samovar", 5)] == ["a.txt"])
    assert [one.exclude for one in library.list() if one.kind == "folder"] == [("*.log",)]


def test_a_file_that_was_deleted_is_made_anew(tmp_path: Path, folder: Path) -> None:
    """Whoever deletes the index keeps the folders; one that was removed stays so."""
    library = Library(tmp_path, documents)
    library.add(folder)
    library.remove(folder)
    other = made(tmp_path / "other", ("a.txt", "About a kettle."))
    library.add(other)
    for file in tmp_path.glob("library.sqlite3*"):
        file.unlink()
    again = Library(tmp_path, documents)
    until(lambda: [hit.title for hit in again.search("kettle", 5)] == ["a.txt"])
    assert [one.path for one in again.list() if one.kind == "folder"] == [str(other)]


def test_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    """An older program does not write into what it does not understand."""
    connection = sqlite3.connect(tmp_path / "library.sqlite3")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(SearchBackendError, match="newer version"):
        Library(tmp_path, documents).search("tea", 1)


def test_many_may_use_it_at_once(tmp_path: Path, folder: Path) -> None:
    """Threads with a library each on one file: first use, adding and searching side by side."""
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            library = Library(tmp_path / "home", documents)
            library.search(QUESTION, 3)
            url = f"https://example.org/{number}"
            library.remember(Page(url, url, "t", f"samovar number {number}"), "chat")
            library.add(folder)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    rows = {row.name: row.documents for row in Library(tmp_path / "home", documents).list()}
    assert rows == {"docs": 3, "pages": 6, "My-notes": 3}


MARKDOWN = st.lists(
    st.sampled_from(["# A", "## B b", "", "some words", "```", "- item", "w " * 200, "。" * 900])
).map("\n".join)


@given(MARKDOWN)
def test_passages_are_slices_that_cover_every_word(text: str) -> None:
    """Nothing but headings and blanks lies between passages, and none is much too long."""
    passages = list(split(text))
    assert all(text[p.start : p.end] == p.text for p in passages)
    assert all(len(p.text.split()) <= MOST_WORDS + 120 for p in passages)
    starts = [p.start for p in passages]
    assert starts == sorted(starts)
    left = text
    for passage in reversed(passages):
        left = left[: passage.start] + left[passage.end :]
    assert all(not line.strip() or line.strip().startswith("#") for line in left.split("\n"))


def test_sections_are_found_by_their_anchor() -> None:
    """The anchor is the heading in lower case with hyphens, as on the web."""
    text = "# One\n\ntext\n\n## `Two` and [three](x)!\n\nmore"
    assert anchor_of("Two and three!") == "two-and-three"
    assert section_offset(text, "two-and-three") == text.index("## `Two`")
    assert section_offset(text, "four") is None
