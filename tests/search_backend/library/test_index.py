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


def test_a_kept_connection_sees_what_others_write(tmp_path: Path) -> None:
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


def test_the_log_of_writes_goes_with_each_write(tmp_path: Path) -> None:
    """Also while a reader is at work: its connection is not kept after a write."""
    library = shelf(tmp_path, "kettle")
    index = Index(tmp_path / "library.sqlite3")
    assert library.search("kettle", 3)
    index.close()
    with index.open() as reader:
        assert reader.execute("SELECT count(*) FROM documents").fetchone() == (1,)
        with index.open(write=True) as writer:
            writer.execute("DELETE FROM documents")
    del library
    assert not [*tmp_path.glob("*-wal")]


def test_a_fork_finds_no_open_connection(tmp_path: Path) -> None:
    """SQLite breaks when a child goes on with what its parent opened."""
    library = shelf(tmp_path, "kettle")
    file = tmp_path / "library.sqlite3"
    assert library.search("kettle", 3)
    assert Path(f"{file}-wal").exists()
    if not (child := os.fork()):
        os._exit(0 if not Path(f"{file}-wal").exists() and library.search("kettle", 3) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert library.search("kettle", 3)


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
