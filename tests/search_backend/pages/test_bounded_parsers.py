"""What strangers wrote is parsed in a process that may be killed, or its size is bounded first."""

from __future__ import annotations

import ast
import sys

import pytest

from searchloop.search_backend.engines.ddg import parse as parse_page
from searchloop.search_backend.engines.keyless.arxiv import parse as parse_feed
from searchloop.search_backend.fetch.http import Fetched, refresh_of
from searchloop.search_backend.pages.reading import read_fetched
from searchloop.search_backend.pages.workers import WORKERS
from searchloop.search_backend.plugin import HttpResponse
from searchloop.search_backend.types import EngineError
from tests.source_tree import modules, report, within
from tests.tables import each_row

URL = "https://a.example/"
PARSERS = (
    *(
        "selectolax",
        "xml",
        "html.parser",
        "lxml",
        "tinycss2",
        "pypdfium2",
        "chardet",
        "email.parser",
    ),
    *("zipfile", "tarfile", "gzip", "bz2", "lzma", "zlib", "brotli"),
)
# Where a parser is loaded outside of the readers, and what bounds its work.
ELSEWHERE = {
    "search_backend/text/clean.py": "chardet: 64 KiB of a document, in the worker",
    "search_backend/cache/disk.py": "unpacks what it packed",
    "search_backend/engines/keyless/arxiv.py": "a feed with a bound on its tags",
    "search_backend/engines/ddg.py": "a page with a bound on its bytes and tags",
    "search_backend/engines/zim.py": "an archive that the user has installed",
    "search_backend/fetch/refresh.py": "called in the worker",
    "search_backend/fetch/http.py": "unpacks up to a number of bytes, on a thread",
    "agent/log/events.py": "a checksum",
    "agent/run/question/files.py": "a checksum",
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
    "searchloop.imports.worker.answer_to",
)
CALLERS = {
    "search_backend/pages/worker.py": "the process that may be killed",
    "search_backend/pages/workers.py": "asks it; by itself only where Python cannot start itself",
    "searchloop/imports/parsing.py": "asks it; by itself only where Python cannot start itself",
    "search_backend/plugin/answers.py": "20 kB of an engine's refusal",
    "search_backend/fetch/http.py": "the default of an argument that the server sets",
    "search_backend/fetch/fetch.py": "the default of an argument that the server sets",
    "search_backend/library/__init__.py": "the default of an argument that the server sets",
}
PACKAGES = ("agent", "search_backend", "web", "cli", "searchloop")


def users(names: tuple[str, ...]) -> set[str]:
    """The modules that import any of these, but for the readers themselves."""
    return {
        module.path
        for module in modules(*PACKAGES)
        for node in module.nodes
        for target in imported(node)
        if within(target, *names) and not module.path.startswith("search_backend/readers/")
    }


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
    found = users(names)
    report(
        [*(found - known.keys()), *(known.keys() - found)], "Use a reader, or say what bounds it"
    )


ROW = b"<div class=result><a class=result__a href='https://a.example/'>A title</a></div>"


@pytest.mark.parametrize(
    "more", [b"<div>" * 20_000, b"<p " + b"a=1 " * 25_000, ROW[:18] * 20_000, b" " * 100_000]
)
def test_a_result_page_of_absurd_size_is_not_parsed(more: bytes) -> None:
    """Its parser would keep every other request waiting."""
    assert len(parse_page(HttpResponse(200, {}, ROW), {})) == 1
    with pytest.raises(EngineError) as refused:
        parse_page(HttpResponse(200, {}, ROW + more), {})
    assert refused.value.kind == "parse"


def test_a_feed_of_absurd_size_is_not_parsed() -> None:
    """A real one has hundreds of tags for each paper, of large teams thousands."""
    start = b'<feed xmlns="http://www.w3.org/2005/Atom">'
    assert parse_feed(HttpResponse(200, {}, start + b"<a/>" * 90_000 + b"</feed>"), {}) == []
    with pytest.raises(EngineError):
        parse_feed(HttpResponse(200, {}, start + b"<a/>" * 200_000 + b"</feed>"), {})


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("rule", ["ENTITY a 'long'", "ATTLIST a b CDATA 'long'", "ELEMENT a ANY"])
def test_a_feed_declares_nothing(rule: str, encoding: str) -> None:
    """A declaration is repeated at each element or reference, so a small feed may be endless."""
    feed = '<feed xmlns="http://www.w3.org/2005/Atom"/>'
    text = f'<?xml version="1.0" encoding="{encoding}"?>'
    assert parse_feed(HttpResponse(200, {}, (text + feed).encode(encoding)), {}) == []
    declared = f"{text}<!DOCTYPE feed [<!{rule}>]>{feed}".encode(encoding)
    with pytest.raises(EngineError):
        parse_feed(HttpResponse(200, {}, declared), {})


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
        found = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal found
            found += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            page = read_fetched(Fetched(URL, URL, 200, "text/html", None, body))
            told = refresh_of(Fetched(URL, URL, 200, "text/html", None, body), WORKERS.refresh_in)
        finally:
            sys.setprofile(None)
        assert (page.url, told) == (URL, "/b")
        return found

    calls(PAGE.encode())  # a process may have to be started
    small = calls(PAGE.encode())
    assert abs(calls((PAGE + part * (60_000 // len(part))).encode()) - small) < 200
