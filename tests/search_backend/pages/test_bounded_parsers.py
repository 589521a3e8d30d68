"""What strangers wrote is parsed in a process that may be killed, or its size is bounded first."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from searchloop.search_backend.engines import Access, find_engines, zim
from searchloop.search_backend.fetch.http import Fetched, refresh_of
from searchloop.search_backend.library import Library
from searchloop.search_backend.pages.reading import read_fetched
from searchloop.search_backend.pages.workers import WORKERS, Workers
from searchloop.search_backend.plugin import HttpResponse
from searchloop.search_backend.plugin.markup import Markup
from searchloop.search_backend.readers import reader_plugins
from searchloop.search_backend.types import EngineError, Query
from tests.search_backend.search.zim_archives import write
from tests.source_tree import modules, report, within
from tests.tables import each_row

URL = "https://a.example/"
PARSERS = (
    *("selectolax", "xml", "html.parser", "lxml", "tinycss2", "pypdfium2", "chardet"),
    *("email.parser", "zipfile", "tarfile", "gzip", "bz2", "lzma", "zlib", "brotli"),
)
# Where a parser is loaded outside of the readers, and what bounds its work.
ELSEWHERE = {
    "search_backend/text/clean.py": "chardet: 64 KiB of a document, in the worker",
    "search_backend/fetch/refresh.py": "called in the worker",
    "search_backend/plugin/markup.py": "called in the worker",
    "search_backend/fetch/http.py": "unpacks up to a number of bytes, on a thread",
    "agent/log/events.py": "a checksum",
    "agent/guard/egress.py": "unpacks up to a number of bytes",
    "web/api/server.py": "escapes text",
    "web/flask_app.py": "packs our own files",
    "searchloop/render/tree.py": "formulas that we made",
    "searchloop/render/formulas.py": "formulas that we made",
    "searchloop/imports/reading.py": "unpacks a piece at a time, and leaves the parsing to worker",
}
# Who may call what looks at the bytes of a page, and why the others need not.
READERS = (
    "searchloop.search_backend.readers.read",
    "searchloop.search_backend.plugin.challenge_pages.is_challenge",
    "searchloop.search_backend.fetch.refresh.refresh_in",
    "searchloop.search_backend.plugin.markup.rows_in",
    "searchloop.search_backend.pages.worker.answer_to",
    "searchloop.imports.worker.answer_to",
)
CALLERS = {
    "search_backend/pages/worker.py": "the process that may be killed",
    "searchloop/imports/__init__.py": "asks it; by itself only where Python cannot start itself",
    "search_backend/plugin/answers.py": "20 kB of an engine's refusal",
    "search_backend/fetch/http.py": "the default of an argument that the server sets",
    "search_backend/fetch/fetch.py": "the default of an argument that the server sets",
    "search_backend/library/__init__.py": "the default of an argument that the server sets",
    "search_backend/search/schedule.py": "the default of an argument that the server sets",
}
PACKAGES = ("agent", "search_backend", "web", "cli", "searchloop")


@cache
def imports() -> list[tuple[str, str]]:
    """Each module but the readers, and what it imports, in full."""
    outside = (m for m in modules(*PACKAGES) if not m.path.startswith("search_backend/readers/"))
    return [(m.path, target) for m in outside for node in m.nodes for target in imported(node)]


def imported(node: ast.AST) -> list[str]:
    """What an import names, in full."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{each.name}" for each in node.names]
    return []


@each_row(("names", "known"), [(PARSERS, ELSEWHERE), (READERS, CALLERS)])
def test_each_parser_is_bounded(names: tuple[str, ...], known: dict[str, str]) -> None:
    """A parser in another place needs a line above, with its bound; none stands there in vain."""
    found = {path for path, target in imports() if within(target, *names)}
    report(
        [*(found - known.keys()), *(known.keys() - found)], "Use a reader, or say what bounds it"
    )


FOUND = b"<div class=result><a class=result__a href='https://a.example/'>A title</a></div>"
ENTRY = b"<entry><id>http://arxiv.org/abs/1706.03762</id><title>A title</title></entry>"
# What made a parser slow: depth, attributes, rows without end, declarations.
ABSURD = (
    *(b"<div>" * 20_000, b"<p " + b"a=1 " * 500_000, FOUND[:18] * 100_000, b"<a/>" * 800_000),
    b"<!DOCTYPE feed [" + b"<!ATTLIST a b CDATA 'long'>" * 10_000 + b"]>" + b"<a>" * 50_000,
    b"<!DOCTYPE feed [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><feed>" + b"&b;" * 100_000,
)


@each_row(("name", "good", "absurd"), [("ddg", FOUND, ABSURD[:4]), ("arxiv", ENTRY, ABSURD[4:])])
def test_an_absurd_answer_costs_this_process_nothing(
    name: str, good: bytes, absurd: tuple[bytes, ...]
) -> None:
    """Every engine whose answers are markup has its selectors run elsewhere: the calls here do not
    grow with the answer, and a process that takes too long is killed."""
    wire = find_engines()[name].wire
    assert wire is not None
    assert wire.markup is not None
    reader_plugins()  # each process looks for them once
    with closing(Workers(1, seconds=0.4)) as own:
        counted(own, good, wire.markup)  # a process has to be started
        for more in (b"", *absurd):
            rows, spent = counted(own, good + more, wire.markup)
            assert spent < 1_500, more[:20]  # a process that was killed is replaced
            assert more or rows
            if rows is not None:
                found = wire.parse(HttpResponse(200, {}, b"", rows), {})
                assert found[0].title == "A title"


def test_an_absurd_article_of_an_archive_costs_this_process_nothing(tmp_path: Path) -> None:
    """The articles that a search finds are read elsewhere, too, and one that takes too long is
    found without an extract."""
    with closing(Workers(1, seconds=0.4)) as own:
        for number, more in enumerate((b"", ABSURD[0])):
            body = f"<p>Sencha is green.</p>{more.decode()[:900_000]}"
            file = write(tmp_path / f"{number}.zim", {"Tea": ("Tea", body)})
            access = Access({"ZIM_FILES": str(file)}, Library(tmp_path, dict, read=own.read))
            zim.search(Query("sencha"), access)  # opens the archive
            with counting() as found:
                (hit,) = zim.search(Query("sencha"), access)
            assert len(found) < 10_000, more[:20]  # of at most MOST_TEXT characters
            assert hit.url == f"zim://{number}/Tea"
            assert more or hit.snippet.endswith("Sencha is green.")


def counted(own: Workers, body: bytes, markup: Markup) -> tuple[list[dict[str, str]] | None, int]:
    """The rows, None where reading was given up, and the calls in this process."""
    with counting() as found, suppress(EngineError):
        return own.rows(body, markup), len(found)
    return None, len(found)


def test_no_engine_reads_markup_by_itself() -> None:
    """Those that say `markup` are those whose answers are HTML or XML; the others read JSON."""
    wires = {name: engine.wire for name, engine in find_engines().items() if engine.wire}
    assert {name for name, wire in wires.items() if wire.markup} == {"ddg", "arxiv"}


@contextmanager
def counting() -> Iterator[list[str]]:
    """Calls of this thread, of C functions too."""
    found: list[str] = []
    sys.setprofile(lambda _, event, __: found.append(event) if "call" in event else None)
    try:
        yield found
    finally:
        sys.setprofile(None)


PAGE = (
    "<meta charset=latin1><meta http-equiv=refresh content='0;url=/b'><title>Wait</title>"
    "<link rel=icon href=/f.ico><script src='/cdn-cgi/challenge-platform/x.js'></script>"
)
# What repeats in a page: of each a small and a large number costs this process the same.
REPEATED = ("<div id=id=id=", "<script ", "<title>", "<meta http-equiv=refresh content=", "&amp;")


@pytest.mark.parametrize("part", REPEATED)
def test_a_page_is_looked_at_in_another_process_only(part: str) -> None:
    """Calls are counted, of C functions too: their number does not grow with the page."""

    def calls(body: bytes) -> int:
        with counting() as found:
            page = read_fetched(Fetched(URL, URL, 200, "text/html", None, body))
            told = refresh_of(Fetched(URL, URL, 200, "text/html", None, body), WORKERS.refresh_in)
        assert (page.url, told) == (URL, "/b")
        return len(found)

    calls(PAGE.encode())  # a process may have to be started
    small = calls(PAGE.encode())
    assert abs(calls((PAGE + part * (60_000 // len(part))).encode()) - small) < 200
