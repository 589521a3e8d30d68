"""What a search in the library finds: any script or question, big files, old and new indexes."""

from __future__ import annotations

import os
import sqlite3
import unicodedata
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from searchloop.search_backend.library import Library, builtin_documents
from searchloop.search_backend.library.index import Index
from searchloop.search_backend.text.slices import find
from searchloop.search_backend.types import Page
from tests.search_backend.documents import made
from tests.tables import each_row

TEXTS = {
    "zh.txt": "北京是中华人民共和国的首都，也是全国的政治中心。\n",
    "ja.txt": "富士山は静岡県と山梨県にまたがる、日本で一番高い山である。\n",
    "th.txt": "กรุงเทพมหานครเป็นเมืองหลวงและนครที่มีประชากรมากที่สุดของประเทศไทย\n",
    "ko.txt": "서울은 대한민국의 수도이자 최대 도시이다.\n",
    "de.txt": "Der Dom zu Köln ist eine Kirche; die Türme sind 157 Meter hoch.\n",
    "nfd.txt": unicodedata.normalize("NFD", "Zürich liegt am See und an der Limmat.\n"),
    "ar.txt": "القاهرة هي عاصمة جمهورية مصر العربية وأكبر مدنها.\n",
    "ru.txt": "Москва - столица России, город федерального значения.\n",
    "code.txt": "Call `max_results` of the HTTPServer; about 1,000 rows in C++.\n",
    "en.txt": "The lighthouse keeper repaired the old lamp during the storm.\n",
}
UNKNOWN = ["zq" + "".join(letters) for letters in product("bcdfghjkmn", repeat=4)]
ASKED = {
    "zh.txt": ["首都", "中国的首都是哪个城市？", "京"],
    "ja.txt": ["富士山", "一番高い山は何ですか", "Tokyo 富士山 köln mountain 一番高い"],
    "th.txt": ["เมืองหลวง", "เมืองหลวงของประเทศไทยคืออะไร"],
    "ko.txt": ["수도"],
    "de.txt": [unicodedata.normalize("NFD", "köln"), "KÖLN", "koln"],
    "nfd.txt": ["zürich"],
    "ar.txt": ["ما هي عاصمة مصر؟", "القاهره"],
    "ru.txt": ["столицы"],
    "code.txt": ["max_results", "httpserver", "1000 rows", "c++"],
    "en.txt": [
        'lighthouse* AND NEAR(keeper) OR title:lamp NOT "storm',
        *("storm lamp " + " ".join(UNKNOWN[:300]), "lighthouse " + " ".join(UNKNOWN)),
        "where did they all of the lamps go " * 1250,
    ],
}


def shelf(home: Path, texts: dict[str, str], own: Any = builtin_documents) -> Library:
    """A library that holds a folder of these files, and our own documents as users have them."""
    library = Library(home, own)
    library.add(made(home / "texts", *texts.items()))
    return library


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SEARCHLOOP_HOME with texts in many scripts."""
    path = tmp_path_factory.mktemp("home")
    shelf(path, TEXTS)
    return path


@each_row(("name", "questions"), ASKED.items())
def test_each_script_is_found(home: Path, name: str, questions: list[str]) -> None:
    """A word, a question, one letter, 10,000 words, operators, several scripts at once."""
    found = [Library(home).search(question, 5)[0].url for question in questions]
    assert found == [f"library://texts/{name}"] * len(questions)


def test_notes_that_are_all_alike_are_found(tmp_path: Path) -> None:
    """Words that stand in every note, beside some that stand nowhere."""
    notes = {
        f"note{n}.md": f"# Note {n}\n\nmeeting notes about project planning, part {n}\n"
        for n in range(200)
    }
    question = "what did the project meeting notes say about planning and budget overrun"
    hits = shelf(tmp_path, notes).search(question, 10)
    assert len(hits) == 10
    assert all(hit.url.startswith("library://texts/note") for hit in hits)


def test_a_big_file_hides_no_others(tmp_path: Path) -> None:
    """Each document comes once before any comes again, and three times at most."""
    big = "\n\n".join(f"## Part {n}\n\nThe samovar recipe, samovar tea. " * 60 for n in range(300))
    small = {
        f"s{n}.md": f"# Letter {n}\n\nAunt {n} has a samovar in her house.\n" for n in range(8)
    }
    library = shelf(tmp_path, {"big.md": big, **small})
    hits = library.search("samovar recipe", 20)
    names = [hit.url.partition("#")[0].rpartition("/")[2] for hit in hits]
    assert {*names} >= {"big.md", *small}
    assert names.count("big.md") == 3


def test_what_answers_is_found_though_the_rarest_word_stands_elsewhere(tmp_path: Path) -> None:
    """Among many that hold the rarest word, or one word, that with two of the others is first."""
    notes = {f"{n}.md": f"The quartz of day {n} was grey.\n" for n in range(40)}
    notes |= {f"h{n}.md": f"The harbour of day {n} was full.\n" for n in range(50)}
    notes |= {f"l{n}.md": f"The lantern of day {n} was lit.\n" for n in range(50)}
    notes["both.md"] = "A lantern hung in the harbour.\n"
    hits = shelf(tmp_path, notes).search("quartz lantern harbour", 5)
    assert hits[0].url == "library://texts/both.md"


def test_few_with_two_words_hide_none_with_one(tmp_path: Path) -> None:
    """What holds one of the words comes after what holds more of them, as long as there is room."""
    notes = {"both.md": "A lantern hung in the harbour of quartz.\n"}
    notes |= {f"{n}.md": f"The lantern of day {n} was lit.\n" for n in range(4)}
    notes |= {f"h{n}.md": f"The harbour of day {n} was full.\n" for n in range(4)}
    found = [hit.url for hit in shelf(tmp_path, notes).search("quartz lantern harbour", 20)]
    assert found[0] == "library://texts/both.md"
    assert {*found} >= {f"library://texts/{name}" for name in notes}


def test_copies_of_a_file_come_once(tmp_path: Path) -> None:
    """A folder inside another one, or the same file twice, gives no hit twice; small words are
    looked for where no other is known."""
    library = shelf(tmp_path, dict.fromkeys(("a.txt", "b.txt"), TEXTS["en.txt"]), dict)
    assert [len(library.search(words, 10)) for words in ("lamp", "the zqx")] == [1, 1]


def test_the_documents_of_version_1_are_analysed_again(tmp_path: Path) -> None:
    """They are read from the file itself; its old table of words goes at once."""
    path = tmp_path / "library.sqlite3"
    old = sqlite3.connect(path)
    old.executescript(VERSION_1)
    text = "Zeppelin museum. 富士山は日本で一番高い山である。"
    for n in range(1, 61):
        row = (n, f"{n}.txt", f"library://old/{n}.txt", f"Title {n}", f"{text} number{n}")
        old.execute("INSERT INTO documents VALUES (?, 1, ?, ?, ?, ?, 0, 0, ?, 0)", (*row, str(n)))
        old.execute(
            "INSERT INTO passages (rowid, title, heading, body, anchor) VALUES (?, ?, '', ?, '')",
            (n * 65_536, row[3], row[4]),
        )
    old.commit()
    old.close()
    index, library = Index(path), Library(tmp_path, dict)
    assert library.search("富士山 number42", 3)[0].url == "library://old/42.txt"
    with index.open() as connection:
        query = "SELECT name FROM sqlite_schema WHERE name = 'passages'"
        assert connection.execute(query).fetchall() == []
    assert Library(tmp_path, dict).search("zeppelin", 3)


VERSION_1 = """
CREATE TABLE roots (
    id INTEGER PRIMARY KEY, collection TEXT NOT NULL UNIQUE, path TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL, digest TEXT NOT NULL DEFAULT '', updated REAL NOT NULL DEFAULT 0);
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, root INTEGER NOT NULL REFERENCES roots(id), path TEXT NOT NULL,
    url TEXT NOT NULL UNIQUE, title TEXT NOT NULL, text TEXT NOT NULL,
    mtime INTEGER NOT NULL, size INTEGER NOT NULL, digest TEXT NOT NULL, added REAL NOT NULL,
    UNIQUE (root, path));
CREATE VIRTUAL TABLE passages USING fts5(
    title, heading, body, anchor UNINDEXED,
    tokenize = 'porter unicode61 remove_diacritics 2');
INSERT INTO roots (id, collection, path, kind) VALUES (1, 'old', '/nowhere/old', 'folder');
INSERT INTO roots (id, collection, path, kind) VALUES (2, 'other', '/elsewhere', 'folder');
PRAGMA user_version = 1;
"""


def test_a_removed_document_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither its terms nor its share of the totals."""
    library = shelf(tmp_path, TEXTS)
    Library(tmp_path).remove("texts")
    assert all(
        hit.url.startswith("library://docs/") for hit in library.search("首都 lighthouse", 5)
    )
    with Index(tmp_path / "library.sqlite3").open() as connection:
        own = len(builtin_documents())
        rows, total = connection.execute("SELECT passages, length FROM totals").fetchone()
        counted = connection.execute("SELECT count(*), sum(length) FROM terms").fetchone()
        assert (rows, total) == counted
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (own,)


LONG = "\n\n".join(
    f"## Section {n}\n\n" + f"Nothing but filler of part {n} stands here. " * 40 for n in range(30)
).replace("of part 17 ", "The harbour freezes in winter. ", 1)


@pytest.mark.parametrize(
    "words",
    ["does the harbour freeze during winter?", unicodedata.normalize("NFD", "harbour’s freezing")],
)
def test_words_that_stand_nowhere_in_a_row_find_passages_of_a_page(words: str) -> None:
    """`open_page` with `find` asks the same ranking, when no place holds the words themselves."""
    matches, count, _ = find(LONG, words, 4000)
    assert count >= 1
    assert "The harbour freezes in winter." in matches[0].text
    assert all(LONG[match.start : match.end] == match.text for match in matches)


def holding(home: Path, word: str) -> Library:
    """A library of one file that holds `word`."""
    return shelf(home, {"a.txt": f"About a {word}."}, dict)


def test_a_search_sees_what_others_write(tmp_path: Path) -> None:
    """Whether another object of this process wrote, or a connection of its own."""
    library = holding(tmp_path, "kettle")
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
    library = holding(tmp_path / "one", "kettle")
    assert library.search("kettle", 3)
    holding(tmp_path / "two", "samovar")
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
    library = holding(tmp_path, "kettle")
    index = Index(tmp_path / "library.sqlite3")
    with index.open(write=True) as writer:
        writer.execute("UPDATE documents SET text = ?", ("x" * 10_000_000,))
        assert library.search("kettle", 3)
    assert sorted(path.name for path in tmp_path.glob("library.sqlite3*")) == ["library.sqlite3"]


def test_words_lie_in_one_part_after_a_reading(tmp_path: Path) -> None:
    """Each transaction adds a part to the index, and each search looks into all of them."""
    library = holding(tmp_path, "kettle")
    for word in ("samovar", "teapot", "urn"):
        holding(tmp_path, word)
    with sqlite3.connect(tmp_path / "library.sqlite3") as connection:
        query = "SELECT count(DISTINCT segid) FROM terms_idx"
        assert connection.execute(query).fetchone() == (1,)
    connection.close()
    assert library.search("urn", 3)
    assert not library.search("teapot", 3)
