"""An index that something else wrote into: one sentence, then the folders are read anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from searchloop.search_backend.library import Library
from searchloop.search_backend.library.index import Index
from searchloop.search_backend.types import Page, SearchBackendError
from tests.agent.scripted import no_room
from tests.waiting import until

PAGE = 4_096
OWN = {"a.md": "# A\n\nA kettle, a samovar."}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with documents, a folder and opened pages; its index is `good`."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("texts")
    for n in range(40):
        (folder / f"{n}.md").write_text(f"# Note {n}\n\nA samovar in house {n}, 富士山.\n" * 8)
    library = Library(home, lambda: OWN)
    library.add(folder)
    for n in range(10):
        url = f"https://x.example/{n}"
        library.remember(Page(url, url, f"P{n}", f"samovar of page {n} " * 40), f"chat {n}")
    (home / "library.sqlite3").rename(home / "good")
    return home


def overwritten(good: bytes, seed: int) -> bytes:
    """The file with some bytes, its end, a page or two pages wrong."""
    chance, data = random.Random(seed), bytearray(good)
    one, other = (chance.randrange(1, len(data) // PAGE) * PAGE for _ in range(2))
    if seed % 4 == 0:
        for _ in range(chance.choice((1, 5, 50))):
            data[chance.randrange(100, len(data))] = chance.randrange(256)
    elif seed % 4 == 1:
        del data[chance.randrange(len(data)) :]
    elif seed % 4 == 2:
        data[one : one + PAGE] = chance.randbytes(PAGE)
    else:
        data[one : one + PAGE], data[other : other + PAGE] = (
            data[other : other + PAGE],
            data[one : one + PAGE],
        )
    return bytes(data)


def uses(library: Library) -> Iterator[Callable[[], object]]:
    """What a program does with its library."""
    yield lambda: library.search("samovar house", 5)
    yield lambda: library.search("富士山", 5, ["texts"])
    yield library.list
    yield lambda: library.open("library://docs/a.md")
    yield lambda: library.named("note", 5)
    yield lambda: library.remember(Page("z", "https://z.example/", "Z", "zebra " * 60), "c")
    yield lambda: library.forget("chat 1")
    yield lambda: library.trouble("library://texts/3.md")
    yield lambda: library.age("https://x.example/1")


@pytest.mark.parametrize(
    "seeds", [(*range(23), 119), pytest.param(range(23, 400), marks=pytest.mark.torture)]
)
def test_any_damage_ends_in_one_sentence_and_a_new_index(
    home: Path, tmp_path: Path, seeds: Iterable[int]
) -> None:
    """Each use has its answer or an error of ours, on this thread and others; soon all is well."""
    good = (home / "good").read_bytes()
    for seed in seeds:
        # A home for each: the threads of the last library may still close its files.
        (own := tmp_path / str(seed)).mkdir()
        (own / "library.sqlite3").write_bytes(overwritten(good, seed))
        library = Library(own, lambda: OWN)
        every = [*uses(library)]
        random.Random(seed).shuffle(every)
        for use in every:
            with suppress(SearchBackendError):
                use()

        def well(library: Library = library) -> bool:
            with suppress(SearchBackendError):
                return bool(library.search("samovar kettle", 5))
            return False

        until(well)


def test_a_full_disk_still_finds(home: Path, tmp_path: Path) -> None:
    """A search and a document need no room; what does is told, and nothing is lost."""
    (tmp_path / "library.sqlite3").write_bytes((home / "good").read_bytes())
    (tmp_path / "small").write_text("x")
    library = Library(tmp_path, lambda: OWN)
    library.search("samovar", 1)
    large = Page("z", "https://z.example/", "Z", "".join(f"zebra {n} " for n in range(9_000)))
    with no_room(tmp_path / "small"):
        assert library.search("samovar house", 5)
        assert library.open("library://docs/a.md")
        with pytest.raises(SearchBackendError, match="cannot be used") as full:
            library.remember(large, "c")
        assert "Make room" in full.value.remedy
    library.remember(large, "c")
    assert library.search("zebra", 5)


def test_a_reading_of_tomorrow_is_broken_off(home: Path, tmp_path: Path) -> None:
    """A process that ended while the clock was ahead leaves no folder that nobody reads again."""
    (tmp_path / "texts").mkdir()
    library = Library(tmp_path / "home", dict)
    library.add(tmp_path / "texts")
    with Index(tmp_path / "home" / "library.sqlite3").open(write=True) as connection:
        query = "UPDATE folders SET state = 'reading', beat = ?"
        connection.execute(query, (4_000_000_000.0,))
    assert [one.state for one in library.list() if one.kind == "folder"] == [""]
