"""The file of the library: who has it open, and in how many parts its words lie."""

import os
import sqlite3
from pathlib import Path

from searchloop.search_backend.library import Library
from searchloop.search_backend.library.index import Index
from searchloop.search_backend.types import Page


def shelf(home: Path, word: str) -> Library:
    """Makes a library of one file that holds `word`."""
    (home / "texts").mkdir(parents=True, exist_ok=True)
    (home / "texts" / "a.txt").write_text(f"About a {word}.", "utf-8")
    library = Library(home, dict)
    library.add(home / "texts")
    return library


def test_a_search_sees_what_others_write(tmp_path: Path) -> None:
    """Whether another object of this process wrote, or a connection of its own."""
    library = shelf(tmp_path, "kettle")
    assert library.search("kettle", 3)
    assert not library.search("samovar", 3)
    Library(tmp_path, dict).remember(Page("a", "https://a.example/", "", "A samovar."), "chat")
    assert library.search("samovar", 3)
    with sqlite3.connect(tmp_path / "library.sqlite3") as other:
        other.execute("DELETE FROM terms")
    other.close()
    assert not library.search("samovar", 3)


def test_another_file_in_the_same_place_is_opened(tmp_path: Path) -> None:
    """A library that was replaced or deleted is not read through a connection of before."""
    library = shelf(tmp_path / "one", "kettle")
    assert library.search("kettle", 3)
    shelf(tmp_path / "two", "samovar")
    os.replace(tmp_path / "two" / "library.sqlite3", tmp_path / "one" / "library.sqlite3")
    assert library.search("samovar", 3)
    assert not library.search("kettle", 3)
    index = Index(tmp_path / "one" / "library.sqlite3")
    for left in (1, 0):
        with index.open() as connection:
            assert connection.execute("SELECT count(*) FROM documents").fetchone() == (left,)
        index.path.unlink()


def test_a_write_waits_for_no_reader_and_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    """Readers go on until it is stored."""
    library = shelf(tmp_path, "kettle")
    index = Index(tmp_path / "library.sqlite3")
    with index.open(write=True) as writer:
        writer.execute("UPDATE documents SET text = ?", ("x" * 10_000_000,))
        assert library.search("kettle", 3)
    assert sorted(path.name for path in tmp_path.glob("library.sqlite3*")) == ["library.sqlite3"]


def test_words_lie_in_one_part_after_a_reading(tmp_path: Path) -> None:
    """Each transaction adds a part to the index, and each search looks into all of them."""
    library = shelf(tmp_path, "kettle")
    for word in ("samovar", "teapot", "urn"):
        shelf(tmp_path, word)
    with sqlite3.connect(tmp_path / "library.sqlite3") as connection:
        query = "SELECT count(DISTINCT segid) FROM terms_idx"
        assert connection.execute(query).fetchone() == (1,)
    connection.close()
    assert library.search("urn", 3)
    assert not library.search("teapot", 3)
