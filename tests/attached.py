"""Small real files of every kind that is attached to questions, whole ones and others."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from tests.search_backend.pages.test_pdf_bombs import pdf


def png(width: int = 2, height: int = 2, shade: int = 200) -> bytes:
    """A grey picture."""
    return png_of([bytes([shade]) * width] * height)


def png_of(rows: Sequence[bytes]) -> bytes:
    """A picture of these rows, with a byte of grey for each pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    packed = zlib.compress(b"".join(b"\0" + row for row in rows))
    data = chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + data


def jpeg(width: int = 7, height: int = 5) -> bytes:
    """A frame header and a scan behind an APP0 segment, as cameras write them."""
    frame = struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0\1\1\0\0\1\0\1\0\0"
    scan = b"\xff\xda" + struct.pack(">H", 8) + b"\1\1\0\0\x3f\0" + b"\x12\x34"
    return b"\xff\xd8" + app + b"\xff\xc0" + frame + scan + b"\xff\xd9"


def gif(width: int = 3, height: int = 4) -> bytes:
    """One frame."""
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    return head + b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2\2\x44\1\0;"


def webp(width: int = 9, height: int = 6) -> bytes:
    """A lossless one."""
    bits = (width - 1) | (height - 1) << 14
    data = b"\x2f" + struct.pack("<I", bits) + b"\0\0\0"
    body = b"WEBPVP8L" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def pdf_of(pages: Sequence[str]) -> bytes:
    """A PDF with one line of text on each page; an empty one holds none."""
    count = len(pages)
    kids = b" ".join(b"%d 0 R" % (4 + 2 * i) for i in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        words = b"BT /F1 12 Tf 72 700 Td (%s) Tj ET" % text.encode("latin-1") if text else b""
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * number)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(words), words))
    return pdf(*objects)


LOCKED_PDF = pdf(
    b"<< /Type /Catalog /Pages 2 0 R >>",
    b"<< /Type /Pages /Kids [] /Count 0 >>",
    b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>" % (b"41" * 32, b"42" * 32),
    trailer=b"/Encrypt 3 0 R /ID [<00><00>] ",
)
