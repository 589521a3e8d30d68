"""Which documents are text: by the bytes, whatever of the many types for text the server names."""

from __future__ import annotations

import gzip

from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.readers import read
from searchloop.search_backend.text.clean import clean
from searchloop.search_backend.types import Page
from tests.search_backend.documents import archive
from tests.tables import each_row

PYTHON = "def f(x: list[int]) -> bool:\n    return x < 3 and x > 1\n\n\nclass A:\n\tpass"
PATCH = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n first\n \n-old\n+new"
DOCUMENTS = {
    PYTHON: "text/x-python text/x-script.python application/x-python text/x-python-code",
    PATCH: "text/x-diff text/x-patch application/x-patch text/diff",
    "a: 1\nb:\n  - x": "text/yaml text/x-yaml application/yaml application/x-yaml text/vnd.yaml",
    "WEBVTT\n\n00:00.000 --> 00:02.000\nHello": "text/vtt",
    "1\n00:00:01,000 --> 00:00:02,000\nHello": "application/x-subrip text/srt",
    '{"cells": [], "nbformat": 4}': "application/x-ipynb+json application/json text/json",
    '{"a": 1}\n{"a": 2}': "application/x-ndjson application/jsonl application/json-seq",
    "a,b\n1,,3\n": "text/csv application/csv text/x-csv",
    "a\tb\n1\t\t3": "text/tab-separated-values",
    "\\section{A} $x < y$": "application/x-tex text/x-tex application/x-latex text/x-latex",
    "const x: number = 1;": "application/typescript text/typescript video/mp2t text/jsx",
    "x = 1;": "text/javascript application/javascript application/x-javascript",
    "<note><to>Ann</to></note>": "application/xml text/xml application/vnd.x+xml",
    "From: a@b.example\n\nHello": "message/rfc822",
    "plain words": "text/plain application/octet-stream binary/octet-stream x/y",
}
CASES = [(kind, text) for text, kinds in DOCUMENTS.items() for kind in (*kinds.split(), "")]


def page(body: bytes, kind: str, charset: str | None = None) -> Page:
    """The document as it is read."""
    return read(body, url="https://e.example/file", content_type=kind, charset=charset)


@each_row(("kind", "text"), CASES)
def test_every_kind_of_text_is_read(kind: str, text: str) -> None:
    """Line by line, with its blanks and brackets."""
    made = page(text.encode(), kind)
    assert (made.status, made.text) == ("ok", text.rstrip())


def test_the_colours_of_a_log_are_no_text() -> None:
    """What a terminal would take for a command."""
    assert page(b"a \x1b[31;1mred\x1b[0m line\x1b[K\n[0m stays", "text/plain").text == (
        "a red line\n[0m stays"
    )


BINARY = {
    "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)),
    "zip": archive({"word/document.xml": "<x>" * 500}),
    "gzip": gzip.compress(bytes(range(256)) * 9, mtime=0),
    "elf": b"\x7fELF\x02\x01\x01\0" + bytes(64),
    "mp3": b"ID3\x04\0\0\0\0" + bytes(range(255)),
    "sqlite": b"SQLite format 3\0" + bytes(99),
    "words in front": b"a few words and then " + bytes(range(20)) * 5,
}


@each_row("name", BINARY)
@each_row(
    "kind",
    [
        *("text/plain", "text/html", "text/x-python", "application/json", "application/xml", ""),
        *("application/octet-stream", "application/zip", "text/csv; charset=utf-8", "video/mp2t"),
        "application/xhtml+xml",
    ],
)
def test_other_data_is_refused_in_words(name: str, kind: str) -> None:
    """Garbage is never a page, whatever it is called."""
    made = page(BINARY[name], kind)
    assert (made.status, made.text) == ("error", "")
    assert made.error is not None
    assert made.error.code == "unsupported_type"
    assert made.error.message.startswith("This is not a page with text but ")


@each_row(
    ("body", "charset", "text"),
    [
        ("größer".encode("utf-16"), None, "größer"),
        ("größer".encode("utf-16-le"), "utf-16", "größer"),
        ("größer".encode("utf-16-be"), "utf-16be", "größer"),
        ("日本".encode("iso2022_jp"), "iso-2022-jp", "日本"),
        ("日本".encode("cp932"), "shift_jis", "日本"),
        (b"\xef\xbb\xbfwords", None, "words"),
        (b"one\ftwo", None, "one\ntwo"),  # a form feed, as in RFCs
        (b"\x1b[1mbold\x1b[0m", None, "bold"),
    ],
)
def test_unusual_bytes_of_text(body: bytes, charset: str | None, text: str) -> None:
    """Wide encodings, escapes and form feeds belong to text."""
    assert page(body, "text/plain", charset).text == text


@each_row("kind", ["", "application/octet-stream", "*/*", "unknown/unknown", "application/unknown"])
@each_row(
    "start", ["<!doctype html>", "\n <html lang=de>", "<!-- x --><p>", "<div class=a>", "<TABLE>"]
)
def test_markup_of_an_unknown_kind_is_a_page(kind: str, start: str) -> None:
    """As browsers sniff it; a server that says text/plain means the source."""
    body = f"{start}<p>Words of the page".encode()
    assert page(body, kind).text == "Words of the page"
    assert page(body, "text/plain").text == body.decode().lstrip("\n")


def test_html_with_a_stray_control_character_is_read() -> None:
    """Browsers ignore it."""
    assert page(b"<p>One\0 two\x08 three</p>" + b"<!-- -->" * 20, "text/html").status == "ok"


LINES = st.lists(st.text(alphabet="ab \t<>{}#|-+", max_size=12), max_size=12)


@given(LINES.map("\n".join))
def test_plain_text_arrives_line_by_line(text: str) -> None:
    """Only empty lines before it and blanks after it are left out."""
    made = page(f"x\n{text}\nx".encode(), "text/plain")
    assert made.text == clean(f"x\n{text}\nx")
    assert page(f"\n \n  x\n{text}".encode(), "text/plain").text == f"  x\n{text}".rstrip()
