"""Folders of the library: odd ones, nested ones, ones that go away, large ones."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from searchloop.search_backend.library import Library
from searchloop.search_backend.library.folders import Walk, _rules
from searchloop.search_backend.library.index import Index
from searchloop.search_backend.library.roots import named_root
from searchloop.search_backend.library.update import GRACE, Added, Update
from searchloop.search_backend.readers import read
from searchloop.search_backend.types import Page, SearchBackendError
from tests.growth import grows_too_fast
from tests.search_backend.documents import TEXT, docx, made, words
from tests.tables import cut, each_row

NOT_TEXT = "This is not a page with text but"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """An empty library."""
    return Library(tmp_path / "home", dict)


def urls(library: Library, words: str = "samovar") -> list[str]:
    """The addresses of hits without their anchors, sorted."""
    return sorted(hit.url.partition("#")[0] for hit in library.search(words, 20))


KINDS = ("a.md", "b.py", "c.csv", "d.json", "e.tex", "f.log", "README", "g.ts", "h.unknown", "i.rs")


def test_every_text_is_read_whatever_its_name(library: Library, tmp_path: Path) -> None:
    """What is no binary data is text; a document is known by its bytes."""
    folder = made(tmp_path / "f", *KINDS, ("k.txt", docx(words("A samovar in Word"))))
    russian = "Самовар кипит на столе".encode("cp1251")
    made(folder, ("u.txt", TEXT.encode("utf-16")), ("w.txt", russian))
    assert library.add(folder).skipped == ()
    assert len(urls(library)) == len(KINDS) + 2
    assert urls(library, "самовар") == ["library://f/w.txt"]


SECRETS = [
    *cut("id_rsa server.pem prod-secrets.yaml passwords.txt api-keys.csv.bak prod.tfstate"),
    *("tokens.yaml", "secrets.md", "Kennwörter (2).md"),
]
LEFT_OUT = {
    **dict.fromkeys(("image.png", "a.zip"), (b"PK\x03\x04", "not a kind of file that is read")),
    "binary.txt": (b"text\0text\1", "a binary file"),
    "lie.pdf": (b"\x7fELF\1\1\0\0", "This is not a page with text"),
    "bomb.docx": (b"", "larger than 48 MB"),
    "large.txt": (b"", "larger than 10 MB"),
    **dict.fromkeys(SECRETS, (b"x", "holds keys or passwords")),
    "deploy": (b"-----BEGIN OPENSSH PRIVATE KEY-----\n", "holds keys or passwords"),
    ".hidden": (b"x", "a hidden file"),
    "empty.md": (b" \n", "no text in it"),
    "locked.docx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "one with a password"),
    "build/": (None, "left out by .gitignore"),
    "node_modules/": (None, "packages and caches of programs"),
    **dict.fromkeys(("debug.log", "sub/deep.tmp"), (b"x", "left out by .gitignore")),
    "drafts/": (None, "left out by your patterns"),
}


def test_what_is_left_out_is_told_by_name(library: Library, tmp_path: Path) -> None:
    """Each with its reason, and all the rest is indexed."""
    files = {name: body for name, (body, _) in LEFT_OUT.items() if body is not None}
    files["bomb.docx"] = docx(words("a" * 60 * 2**20))  # too slow for whoever only collects
    files["large.txt"] = b"a" * (10 * 2**20 + 1)
    folder = made(tmp_path / "f", "a.md", "sub/keep.tmp.md", "sub/kept.tmp", *files.items())
    made(folder, "build/x.md", "node_modules/x.md", "drafts/x.md", "tokens.py")
    made(folder, (".gitignore", "*.log\nbuild/\n"), ("sub/.gitignore", "*.tmp\n!kept.tmp\n"))
    added = library.add(folder, exclude=["drafts/"])
    told = dict(added.skipped)
    assert [n for n, (_, why) in LEFT_OUT.items() if why not in told.get(n, "")] == []
    assert set(told) == {*LEFT_OUT, ".gitignore", "sub/.gitignore"}
    kept = ("a.md", "sub/keep.tmp.md", "sub/kept.tmp", "tokens.py")
    assert urls(library) == [f"library://f/{name}" for name in kept]
    assert library.list()[-1].skipped == len(told)


def test_rules_above_a_folder_count_inside_a_repository(library: Library, tmp_path: Path) -> None:
    """As git itself would leave them out, and no further up than the repository."""
    made(tmp_path, (".gitignore", "*"), ("repo/.git/HEAD", ""), ("repo/.gitignore", "/docs/x.md"))
    made(tmp_path / "repo" / "docs", "x.md", "y.md")
    skipped = library.add(tmp_path / "repo" / "docs").skipped
    assert skipped == (("x.md", "left out by .gitignore"),)


_PARTS = ("*", "**", "?", "a", "b", "/", "/**/", "**/", "/**", "*.", "[ab]", "[!a]", "a*", "!")


@settings(max_examples=400, deadline=None)
@example(["*", "[!a]", "*."], ["b", "."])
@given(
    st.lists(st.sampled_from(_PARTS), min_size=1, max_size=7),
    st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_a_rule_means_what_git_means(parts: list[str], path: list[str]) -> None:
    """Made fit for a stranger's hands, each pattern leaves out what it left out before; but that
    `[!a]` is no slash, which pathspec takes for one."""
    pattern = "".join(parts)
    try:
        meant = GitIgnoreSpec.from_lines([pattern])
    except ValueError:
        return
    for one in meant.patterns:
        one.regex = one.regex and re.compile(one.regex.pattern.replace("[^a]", "[^/a]"))
    if rules := _rules([pattern]):
        for name in ("/".join(path), "/".join(path) + "/"):
            assert rules.check_file(name).include == meant.check_file(name).include


@each_row("unit", cut("**** *a *? *[!b] **/a/ a/**/ */**/ **/*a*a/"))
def test_a_rule_of_a_stranger_comes_to_an_end(unit: str) -> None:
    """A line of the `.gitignore` of any repository; twenty stars would take longer than a life."""
    rules, path = _rules([unit * 20 + "b"]), "aaa/" if "/" in unit else "a"
    assert rules
    assert not grows_too_fast(rules.check_file, path * 60, path * 120)


def test_patterns_stay_and_can_be_changed(library: Library, tmp_path: Path) -> None:
    """What is left out later is forgotten at once; a pattern that is none is an error."""
    folder = made(tmp_path / "f", "a.md", "b.md")
    library.add(folder, exclude=["a.md"])
    assert urls(library) == ["library://f/b.md"]
    assert library.add(folder).added == 0
    again = library.add(folder, exclude=["/b.*"])
    assert (again.added, again.removed) == (1, 1)
    assert library.list()[-1].exclude == ("/b.*",)
    with pytest.raises(SearchBackendError, match="pattern"):
        library.add(folder, exclude=["!"])


@pytest.mark.parametrize("inner_first", [False, True])
@pytest.mark.parametrize("inner", ["sub", "sub/x.md"])
def test_nested_folders_are_counted_once(
    library: Library, tmp_path: Path, inner: str, inner_first: bool
) -> None:
    """A file belongs to the innermost folder, and forgetting the inner folder does not bring its
    files back by the outer one."""
    folder = made(tmp_path / "f", "a.md", "sub/x.md")
    ways = [folder / inner, folder]
    for path in ways if inner_first else reversed(ways):
        library.add(path)
    assert len(urls(library)) == 2
    assert sum(one.documents for one in library.list()) == 2
    library.remove(folder / inner)
    library.add(folder)
    assert urls(library) == ["library://f/a.md"]


def test_links_and_pipes_are_left_out(tmp_path: Path) -> None:
    """A link could lead in circles or outside, and opening a pipe would wait for ever: each is told
    by name. A folder around SEARCHLOOP_HOME does not bring in chats and keys."""
    folder = made(tmp_path / "f", "a.md", "home/keys.md")
    library = Library(folder / "home", dict)
    made(tmp_path / "out", "secret.md")
    (folder / "loop").symlink_to(folder)
    (folder / "out").symlink_to(tmp_path / "out")
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    why = dict.fromkeys(("gone", "loop", "out"), "a symbolic link")
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.md")
        why["pipe.md"] = "not a file but a device or pipe"
    assert why.items() <= dict(library.add(folder).skipped).items()
    assert urls(library) == ["library://f/a.md"]


def test_deep_and_endless_folders_end(library: Library, tmp_path: Path) -> None:
    """So many folders inside each other, and so many files, are told and the rest is read."""
    deep = tmp_path / "f" / "/".join("d" * 120)
    made(deep, "x.md")
    made(tmp_path / "f", "a.md")
    told = dict(library.add(tmp_path / "f").skipped)
    assert list(told.values()) == ["more than 100 folders deep"]
    many = made(tmp_path / "many", *(f"{n}.md" for n in range(12)))
    found = list(Walk(many, most=10))
    assert [one.skipped for one in found[10:]] == ["more than 10 files; the rest is left out"]


def test_of_ten_thousands_of_pictures_not_each_is_told(library: Library, tmp_path: Path) -> None:
    """The first ones by name, the rest by number; what is worth reading is read."""
    folder = made(tmp_path / "f", "z.md", *((f"{n:05}.png", b"") for n in range(10_005)))
    added = library.add(folder)
    assert added.added == 1
    assert len(added.skipped) == 10_001
    assert added.skipped[-1] == ("...", "5 further files are not read")


def reading(
    home: Path,
    folder: Path,
    *,
    fails: str = "",
    unreadable: Mapping[str, str] | None = None,
    patient: bool = False,
    now: float = 0.0,
) -> Added:
    """One reading of a folder that was added, in which `fails` cannot be listed."""
    index = Index(home / "library.sqlite3")
    with index.open(write=True) as connection:
        root = named_root(connection, folder)
        connection.execute("UPDATE folders SET state = 'reading'")

    def scan(path: str) -> object:
        if fails and path.rstrip("/").endswith(fails):
            raise PermissionError(13, "Permission denied")
        return os.scandir(path)

    walk = Walk(folder, scan=scan)  # type: ignore[arg-type]
    update = Update(index, root, read, patient=patient, clock=lambda: now)
    return update.run(lambda *_: None, lambda *_: None, walk)


def test_an_unreadable_folder_keeps_its_old_texts(library: Library, tmp_path: Path) -> None:
    """It is told by name, hits and opened text say so; then all is well again."""
    folder = made(tmp_path / "f", "a.md", "sub/x.md")
    library.add(folder)
    added = reading(tmp_path / "home", folder, fails="sub")
    assert dict(added.skipped) == {"sub/": "cannot be read: Permission denied"}
    assert dict(added.kept) == {"sub/x.md": "its folder cannot be read: Permission denied"}
    assert added.removed == 0
    other = Library(tmp_path / "home", dict)
    assert other.trouble("library://f/sub/x.md").endswith("cannot be read: Permission denied)")
    assert other.list()[-1].kept == 1
    assert reading(tmp_path / "home", folder).kept == ()
    assert other.trouble("library://f/sub/x.md") == ""


def test_a_file_that_becomes_unreadable_keeps_its_old_text(tmp_path: Path) -> None:
    """A broken or locked new version does not take away what was read; the hit says so."""
    library = Library(tmp_path / "home", dict)
    folder = made(tmp_path / "f", ("a.docx", docx(words("A samovar boils"))))
    library.add(folder)
    made(folder, ("a.docx", docx(words("x"))[:50]))
    for _ in range(2):
        added = library.add(folder)
        assert dict(added.kept) == {"a.docx": f"{NOT_TEXT} an archive or a damaged document"}
    other = Library(tmp_path / "home", dict)
    [hit] = other.search("samovar", 5)
    assert "The file cannot be read as it is now (This is not a page" in hit.snippet
    made(folder, ("a.docx", docx(words("A kettle boils now"))))
    assert library.add(folder).updated == 1
    assert library.trouble("library://f/a.docx") == ""


def test_a_file_that_vanishes_for_a_while_keeps_its_text(library: Library, tmp_path: Path) -> None:
    """A re-reading waits a week; who adds the folder again wants it as it is now."""
    folder = made(tmp_path / "f", "a.md", "b.md")
    library.add(folder)
    (folder / "b.md").unlink()
    home = tmp_path / "home"
    assert dict(reading(home, folder, patient=True, now=5.0).kept) == {"b.md": "is not there"}
    assert dict(reading(home, folder, patient=True, now=GRACE).kept) == {"b.md": "is not there"}
    assert "(is not there)" in library.trouble("library://f/b.md")
    assert reading(home, folder, patient=True, now=GRACE + 6).removed == 1
    made(folder, "b.md")
    library.add(folder)
    (folder / "b.md").unlink()
    assert library.add(folder).removed == 1


def test_a_disk_that_is_away_takes_nothing_along(library: Library, tmp_path: Path) -> None:
    """The folder is told, its texts stay, and it is read on when it is back."""
    folder = made(tmp_path / "disk" / "f", "a.md")
    library.add(folder)
    (tmp_path / "disk").rename(tmp_path / "away")
    added = library.add(folder)
    assert added.skipped == ((str(folder), "cannot be read: No such file or directory"),)
    assert (added.removed, bool(added.kept)) == (0, True)
    assert "cannot be read" in library.list()[-1].note
    assert urls(library) == ["library://f/a.md"]
    (tmp_path / "away").rename(tmp_path / "disk")
    assert library.add(folder).unchanged == 1
    assert library.list()[-1].note == ""


def test_a_replaced_file_of_the_same_time_and_size_is_read(
    library: Library, tmp_path: Path
) -> None:
    """Its inode tells."""
    folder = made(tmp_path / "f", ("a.md", "one samovar"))
    library.add(folder)
    stat = (folder / "a.md").stat()
    made(folder, ("b.tmp", "two samovar"))
    os.utime(folder / "b.tmp", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    (folder / "b.tmp").replace(folder / "a.md")
    assert library.add(folder).updated == 1


def test_a_search_finds_what_was_written_a_moment_ago(tmp_path: Path) -> None:
    """Folders are looked through again before a search, at most twice a minute."""
    folder = made(tmp_path / "f", "a.md")
    Library(tmp_path / "home", dict).add(folder)
    made(folder, ("b.md", "A kettle."))
    library = Library(tmp_path / "home", dict)
    library.reread(60)
    assert urls(library, "kettle") == ["library://f/b.md"]


def test_reading_is_paused_and_goes_on(library: Library, tmp_path: Path) -> None:
    """After its batch; what was read stays, and the rest is read when the folder is added again."""
    folder = made(tmp_path / "f", *(f"{n:04}.md" for n in range(1_200)))
    seen: list[tuple[int, int]] = []

    def counted(done: int, total: int) -> None:
        seen.append((done, total))
        library.pause(folder)

    added = library.add(folder, counted=counted)
    assert added.state == "paused"
    assert len(seen) <= 2
    assert seen[-1][1] == 1_200
    row = library.list()[-1]
    assert (row.state, row.total) == ("paused", 1_200)
    assert 0 < row.documents == added.added < 1_200
    library.reread(60)  # which leaves alone what somebody has paused
    assert library.list()[-1].documents == added.added
    again = library.add(folder)
    assert (again.unchanged, again.added, again.state) == (added.added, 1_200 - added.added, "")
    library.remove(folder)
    library.add(folder, counted=lambda *_: library.remove(folder) and None)
    assert urls(library) == []  # nothing of a folder that was removed comes with the next batch


def test_a_reader_that_breaks_costs_one_file(tmp_path: Path) -> None:
    """Whatever it raises."""

    def breaks(body: bytes, **rest: str) -> Page:
        if body == b"<p>bad</p>":
            raise RuntimeError("x")
        return read(body, url=rest["url"], content_type=rest["content_type"])

    library = Library(tmp_path / "home", dict, read=breaks)
    added = library.add(made(tmp_path / "f", "a.md", ("b.html", "<p>bad</p>")))
    assert (added.added, dict(added.skipped)) == (1, {"b.html": "cannot be read: RuntimeError"})


def test_a_home_of_an_earlier_version_opens(tmp_path: Path) -> None:
    """Documents without a stored state of their file are not read again; the vectors of an
    embedding model, which version 3 kept, go."""
    library = Library(tmp_path / "home", dict)
    folder = made(tmp_path / "f", "a.md")
    library.add(folder)
    with Index(tmp_path / "home" / "library.sqlite3").open(write=True) as connection:
        connection.execute("DROP TABLE files")
        connection.execute("DROP TABLE folders")
        connection.execute("CREATE TABLE vectors (row INTEGER PRIMARY KEY)")
        connection.execute("PRAGMA user_version = 3")
    later = Library(tmp_path / "home", dict)
    assert later.list()[-1].documents == 1
    assert later.add(folder).unchanged == 1
    with Index(tmp_path / "home" / "library.sqlite3").open() as connection:
        query = "SELECT name FROM sqlite_schema WHERE name = 'vectors'"
        assert connection.execute(query).fetchall() == []
