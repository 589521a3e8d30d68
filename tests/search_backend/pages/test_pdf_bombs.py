"""PDFs made to cost more than they are worth: each ends with a typed result, within its bounds."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchloop.search_backend.pages.workers import Workers
from searchloop.search_backend.readers import read
from searchloop.search_backend.types import Page
from tests.conftest import linux_only
from tests.search_backend.pages.test_workers import memory, pids

URL = "https://example.org/a.pdf"
WORDS = b"BT /F1 12 Tf 72 700 Td (The harbour was built in three stages.) Tj ET\n"
TEXT = "The harbour was built in three stages."
FONTS = b"/Font << /F1 5 0 R >> "
MEBIBYTE = 2**20


def pdf(*objects: bytes, trailer: bytes = b"") -> bytes:
    """A file of these objects, numbered from 1; the first one is its root."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start, size = len(out), len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    out += b"trailer\n<< /Size %d /Root 1 0 R %s>>\n" % (size, trailer)
    return bytes(out) + b"startxref\n%d\n%%%%EOF" % start


def stream(data: bytes, more: bytes = b"", filters: bytes = b"") -> bytes:
    """A stream; `data` is compressed here unless its filters are told."""
    if not filters:
        data, filters = zlib.compress(data, 9), b"/FlateDecode"
    head = b"<< /Length %d /Filter [%s] %s >>" % (len(data), filters, more)
    return head + b"\nstream\n" + data + b"\nendstream"


def bomb(size: int, unit: bytes) -> bytes:
    """So many bytes of repeated units, compressed; the same MiB again and again."""
    press = zlib.compressobj(9)
    piece = unit * (MEBIBYTE // len(unit))
    first, next_one = (press.compress(piece) + press.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + next_one * (size // MEBIBYTE - 1)


def page_of(
    content: bytes, *more: bytes, resources: bytes = FONTS, kids: bytes = b"3 0 R", count: int = 1
) -> bytes:
    """A file of one page with this content; `more` are the objects from 6 on."""
    leaf = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << "
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count),
        leaf + resources + b">> >>",
        content,
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        *more,
    )


def fan_out(levels: int) -> bytes:
    """Ten times as many words with each level, each of which is drawn by the one above."""
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 600 700] "
    form += b"/Resources << %s/XObject << /X %d 0 R >> >>"
    forms = [
        stream(b"/X Do " * 10 if level < levels - 1 else WORDS, form % (FONTS, 7 + level))
        for level in range(levels)
    ]
    return page_of(stream(b"/X Do"), *forms, resources=b"/XObject << /X 6 0 R >> ")


IMAGE = b"/Type /XObject /Subtype /Image /Width 60000 /Height 60000 /ColorSpace /DeviceRGB "
DRAWN = WORDS + b"q 100 0 0 100 0 0 cm /I Do Q"
FONT_FILE = (
    b"<< /Type /Font /Subtype /TrueType /BaseFont /X /FontDescriptor "
    b"<< /Type /FontDescriptor /FontName /X /Flags 4 /FontFile2 7 0 R >> >>"
)
ONE = page_of(stream(WORDS))
TABLE = ONE.rindex(b"xref\n0")
# What is asked of each: its text, or the code of its problem.
CASES = {
    "deep arrays": (page_of(stream(WORDS), b"[" * 200_000 + b"]" * 200_000), TEXT),
    "a lie about the pages": (page_of(stream(WORDS), count=2_000_000_000), TEXT),
    "pages inside themselves": (page_of(stream(WORDS), kids=b"2 0 R 3 0 R", count=99), TEXT),
    "many pages": (page_of(stream(WORDS), kids=b"3 0 R " * 200_000, count=200_000), TEXT),
    "an image": (
        page_of(
            stream(DRAWN),
            stream(bomb(256 * MEBIBYTE, b"\0"), IMAGE + b"/BitsPerComponent 8", b"/FlateDecode"),
            resources=FONTS + b"/XObject << /I 6 0 R >> ",
        ),
        TEXT,
    ),
    "a table of itself": (ONE.replace(b"/Root 1 0 R ", b"/Root 1 0 R /Prev %d " % TABLE), TEXT),
    "compressed": (
        page_of(stream(bomb(256 * MEBIBYTE, WORDS), b"", b"/FlateDecode")),
        "too_complex",
    ),
    "compressed twice": (
        page_of(
            stream(zlib.compress(bomb(512 * MEBIBYTE, b"\0")), b"", b"/FlateDecode /FlateDecode")
        ),
        "too_complex",
    ),
    "forms in forms": (fan_out(12), "too_complex"),
    "a font": (
        page_of(
            stream(WORDS),
            FONT_FILE,
            stream(bomb(256 * MEBIBYTE, b"\0\1\0\0"), b"/Length1 268435456", b"/FlateDecode"),
            resources=b"/Font << /F1 6 0 R >> ",
        ),
        "too_complex",
    ),
}


class Rig:
    """One process, with time enough on a busy machine."""

    def __init__(self) -> None:
        self.before = pids()
        self.pool = Workers(most=1, seconds=20)
        self.idle: dict[int, int] = {}

    def read(self, body: bytes) -> tuple[Page, int]:
        """The page, and the bytes it took at most over a process that has read nothing yet; 0 for a
        process that ended over it."""
        assert told(self.pool.read(b"%PDF-1.7 and no more", url=URL, content_type="")) == "bad_pdf"
        (worker,) = pids() - self.before
        idle = self.idle.setdefault(worker, memory(worker, "VmRSS"))
        Path(f"/proc/{worker}/clear_refs").write_text("5", "ascii")  # the peak begins anew
        page = self.pool.read(body, url=URL, content_type="application/pdf")
        return page, memory(worker, "VmHWM") - idle if worker in pids() else 0


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """Ends with its process."""
    found = Rig()
    yield found
    found.pool.close()


def told(page: Page) -> str:
    """The first line of a page, or the code of its problem."""
    return page.error.code if page.error else page.text.splitlines()[0]


@linux_only
@pytest.mark.parametrize("name", CASES)
def test_a_pdf_costs_what_it_may_and_no_more(rig: Rig, name: str) -> None:
    """At most 64 MiB over a process without work; one that would take more is given up."""
    body, expected = CASES[name]
    page, taken = rig.read(body)
    assert told(page) == expected
    assert taken < 64 * MEBIBYTE
    if page.error and page.error.code == "too_complex":
        assert "memory" in page.error.message


def test_one_bad_page_is_not_the_end_of_a_document() -> None:
    """The pages that can be read are, and it says that there are more."""
    page = read(CASES["pages inside themselves"][0], url=URL, content_type="application/pdf")
    assert (page.text, page.cut) == (TEXT, True)
