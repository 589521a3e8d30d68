"""Bytes become text as the Encoding Standard says, by every label that browsers know."""

from __future__ import annotations

import pytest

from searchloop.search_backend.text.clean import decode
from tests.growth import check_growth
from tests.tables import each_row

LABELS = {
    "日本①㈱髙～": (
        "cp932",
        "x-sjis windows-31j shift_jis Shift-JIS sjis ms_kanji ms932 csshiftjis",
    ),
    "日本語": ("euc_jp", "x-euc-jp EUC-JP cseucpkdfmtjapanese"),
    "한국어 똠방각하": ("cp949", "ks_c_5601-1987 euc-kr korean windows-949 ksc5601 iso-ir-149"),
    "שלום": ("iso8859-8", "iso-8859-8-i logical iso-8859-8 hebrew visual iso-8859-8-e"),
    "中文€㐀": ("gb18030", "x-gbk gbk gb2312 GB18030 chinese gb_2312-80 iso-ir-58"),
    "繁體嘅": ("big5hkscs", "big5 big5-hkscs cn-big5 x-x-big5"),
    "Привет": ("cp1251", "x-cp1251 windows-1251 cp1251"),
    "Привет!": ("cp866", "ibm866 cp866 866 csibm866"),
    "Привет?": ("koi8-r", "koi8-r koi koi8 koi8_r"),
    "Łódź": ("iso8859-2", "latin2 l2 iso-8859-2 iso8859-2 csisolatin2"),
    "İstanbul €": ("cp1254", "latin5 l5 iso-8859-9 windows-1254 x-cp1254"),
    "“naïve” €": (
        "cp1252",
        "latin1 iso-8859-1 ascii us-ascii x-cp1252 windows-1252 l1 ansi_x3.4-1968",
    ),
    "สวัสดี": ("cp874", "tis-620 windows-874 iso-8859-11 dos-874"),
    "Ελλάδα": ("iso8859-7", "greek greek8 iso-8859-7 sun_eu_greek"),
    "café": ("mac-roman", "macintosh mac x-mac-roman"),
    "é日": ("utf-8", "utf8 UTF-8 unicode-1-1-utf-8 x-unicode20utf8"),
    "é日本": ("utf-16-le", "utf-16 utf-16le ucs-2 unicode iso-10646-ucs-2"),
    "é日本語": ("utf-16-be", "utf-16be unicodefffe"),
}
CASES = [(text, codec, label) for text, (codec, all_) in LABELS.items() for label in all_.split()]


@each_row(("text", "codec", "label"), CASES)
def test_every_label_names_the_table_of_browsers(text: str, codec: str, label: str) -> None:
    """In the header as in the page itself, whatever the case and the blanks."""
    body = text.encode(codec)
    for spelled in (label, label.upper(), f" {label}\t", f'"{label}"'):
        assert decode(body, spelled) == text
    if not codec.startswith("utf-16"):
        for head in (f"<meta charset={label}>", f"<?xml version='1.0' encoding='{label}'?>"):
            assert decode(head.encode() + body) == head + text
        head = f"<META http-equiv='Content-Type' content='text/html; charset={label}'>"
        assert decode(head.encode() + body, "no-such-label") == head + text


@each_row(
    ("body", "label", "text"),
    [
        (b"\xad\xa1\xad\xea\xa1\xc1\xfc\xe2a", "euc-jp", "①㈱～髙a"),
        (b"\x8f\xb0\xa2\x8e\xb1", "euc-jp", "丄ｱ"),
        (b"\x1b$B-!F|\x1b(Bz", "iso-2022-jp", "①日z"),
        (b"\x1b(I1\x1b(B", "csiso2022jp", "ｱ"),
        (b"\x80", "gbk", "€"),
        (b"\xe9\xff", "x-user-defined", "\uf7e9\uf7ff"),
    ],
)
def test_characters_that_python_lacks(body: bytes, label: str, text: str) -> None:
    """Python's tables of these names are smaller, or have other dashes."""
    assert decode(body, label) == text


@pytest.mark.parametrize("label", ["iso-2022-kr", "hz-gb-2312", "iso-2022-cn", "replacement"])
def test_encodings_that_hide_markup_are_not_decoded(label: str) -> None:
    """The standard replaces the whole page."""
    assert set(decode(b"~{<script>~}", label)) == {"\ufffd"}


@each_row(
    ("body", "declared", "text"),
    [
        (b"\xef\xbb\xbfcaf\xc3\xa9", "utf-16", "café"),
        (b"\xff\xfea\0", "shift_jis", "a"),
        (b"\xfe\xff\0a", "utf-8", "a"),
        ("<?xml ?>é".encode("utf-16-le"), None, "<?xml ?>é"),
        ("<?xml ?>é".encode("utf-16-be"), None, "<?xml ?>é"),
        (b"<meta charset=utf-16>caf\xc3\xa9", None, "<meta charset=utf-16>café"),
        (b"<meta charset=big5>caf\xc3\xa9", "utf-8", "<meta charset=big5>café"),
        (b"<!-- <meta charset=big5> -->caf\xc3\xa9", None, "<!-- <meta charset=big5> -->café"),
        (b"<meta charset=nonsense><meta charset=koi8-r>\xf0", None, "П"),
        (b"\xff\xfd plain", None, "ÿý plain"),
        ("é".encode(), "utf-7", "é"),  # no codec that a page may choose
        ("é".encode("latin-1"), None, "é"),
        ("éaé".encode()[:-1], None, "éa"),
        (b"\xe9", "", "é"),
        ("7 €, “é”".encode(), "iso-8859-1", "7 €, “é”"),
    ],
)
def test_which_declaration_counts(body: bytes, declared: str | None, text: str) -> None:
    """Byte order mark, header, the page's own word; a comment and an unknown label are none."""
    assert decode(body, declared).endswith(text)


@each_row("label", ["euc-jp", "iso-2022-jp", "gbk", "shift_jis", "big5", "utf-8"])
def test_garbage_costs_little(label: str) -> None:
    """A page of wrong bytes is decoded at the cost of its length."""
    for piece in ("\xad\xff", "\x80", "\x1b$B\xff", "\xff"):
        check_growth(
            lambda text: decode(text.encode("latin-1"), label), piece * (60_000 // len(piece))
        )
