"""Decodes bytes and removes what a person does not see: characters, markup, entities.

Bytes are decoded as in browsers: byte order mark, HTTP header, the page's own declaration, UTF-8,
and the encoding that the bytes look like. Python's own labels do not count: it knows codecs that
are no text encodings or that decode slowly or deceptively (utf-7).
https://encoding.spec.whatwg.org/
"""

from __future__ import annotations

import codecs
import html
import re
from contextlib import suppress

import webencodings  # type: ignore[import-untyped]

from searchloop.analysis.characters import visible

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
# The tags that search engines put into a snippet, mostly around the words that they found.
_SNIPPET_TAG = re.compile(
    r"<(/?)(a|b|code|em|font|i|mark|p|small|span|strong|sub|sup|u)"
    r"(?:\s+[\w:-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'))*\s*>|<w?br\s*/?>",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<(?:br|/?p)\b[^<>]*>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:[a-z]\w{1,30}|#\d{1,7}|#x[\da-f]{1,6});", re.IGNORECASE)
# Of ASCII all that `INVISIBLE` leaves and that is no strange line end.
_SEEN = bytes((9, 10, *range(32, 127)))
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # and other signs to a terminal, in logs
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


def clean(text: str) -> str:
    """Returns `text` without invisible characters and with plain line ends."""
    return cleaned(text)[0]


def cleaned(text: str) -> tuple[str, int]:
    """Returns (clean, invisible) of `text`."""
    if text.isascii() and not text.encode().translate(None, _SEEN):
        return text, 0
    text = _LINE_ENDS.sub("\n", text)
    seen = visible(text)
    return seen, len(text) - len(seen)


def snippet_text(value: object) -> str:
    """Returns the text of a value that an engine sent as plain text or as HTML.

    HTML escapes each "<" and "&" that it means, so a value with any other one is plain text.
    """
    if not isinstance(value, str) or not ("<" in value or "&" in value):
        return value.strip() if isinstance(value, str) else ""
    tags = [(end, name.lower()) for end, name in _SNIPPET_TAG.findall(value)]
    opened, closed = (sorted(n for e, n in tags if n and e == end) for end in ("", "/"))
    rest = _SNIPPET_TAG.sub("", value)
    is_html = "<" not in rest and opened == closed and (tags or "&" not in _ENTITY.sub("", rest))
    return plain(_BREAK.sub(" ", value)) if is_html else value.strip()


def plain(value: object) -> str:
    """Returns the text of HTML; "" for a value that is no text."""
    if not isinstance(value, str):
        return ""
    text = value
    if "<" in text:
        text = _TAG.sub("", text)
    if "&" in text:
        try:
            text = html.unescape(text)
        except ValueError:  # a number of thousands of digits
            return text.strip()
    return text.strip()


def one_line(text: str, most: int = 300) -> str:
    """Returns cleaned text on one line, for titles and names."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()[:most]
    return " ".join(clean(text).split())[:most]


_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{2,40})|<\?xml[^>]{0,200}?encoding=["']([\w.:-]{2,40})""",
    re.IGNORECASE,
)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_SNIFF = 4096
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
# An XML declaration in UTF-16 without a byte order mark.
_WIDE = {b"<\0?\0x\0": "utf-16le", b"\0<\0?\0x": "utf-16be"}
# Where Python's table of that name is smaller than that of browsers.
_TABLES = {"gbk": "gb18030", "iso-2022-jp": "iso2022_jp_ext"}
_MOST_GUESSED = 64 * 1024
_LEAST_GUESSED = 3  # bytes beyond ASCII
# What browsers call the tables of these names.
_RENAMED = {
    "cp874": "windows-874",
    **dict.fromkeys(("cp932", "shift_jis_2004"), "shift_jis"),
    "cp949": "euc-kr",
    "big5hkscs": "big5",
    "euc_jis_2004": "euc-jp",
}
_ASCII = bytes(range(128))
_JAPANESE_MAIL = re.compile(rb"\x1b\$[@B]")  # ISO-2022-JP has only bytes of ASCII
_LENIENT = frozenset(("gb18030", "gbk", "euc-jp", "iso-2022-jp"))
# Where tables of Japanese differ: those of browsers are Microsoft's.
_JAPANESE = str.maketrans("\u301c\u2016\u2212\xa2\xa3\xac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2")


def binary_share(body: bytes, declared: str | None = None) -> float:
    """Returns the share of the first bytes that no text contains (MIME Sniffing 7.2)."""
    named = webencodings.lookup((declared or "").strip("\"' "))
    wide = body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, *_WIDE))
    if wide or (named and named.name.startswith("utf-16")) or _unmarked_wide(body):
        return 0.0
    return len(_BINARY.findall(body[:1445])) / (len(body[:1445]) or 1)


def decode(body: bytes, declared: str | None = None) -> str:
    """Returns the text of `body`; bytes that cannot be decoded become U+FFFD."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    if header := webencodings.lookup((declared or "").strip("\"' ")):
        return _decoded(body, header)
    if wide := _WIDE.get(body[:6]) or _unmarked_wide(body):
        return body.decode(wide, "replace")
    for found in _DECLARED.finditer(_COMMENT.sub(b"", body[:_SNIFF])):
        named = webencodings.lookup((found[1] or found[2]).decode("latin-1"))
        # A page that could be read this far is not in UTF-16, whatever it says.
        if named and not named.name.startswith(("utf-16", "x-user")):
            return _decoded(body, named)
    if _JAPANESE_MAIL.search(body, 0, _SNIFF) and body.isascii():
        return _decoded(body, webencodings.lookup("iso-2022-jp"))
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        # A body cut by a cap may end inside a character.
        if error.reason == "unexpected end of data" and not body[: error.start].isascii():
            return body[: error.start].decode("utf-8")
        return _guessed(body, error.start)


def _unmarked_wide(body: bytes) -> str:
    """Returns the UTF-16 of a text without a byte order mark; "" for anything else."""
    head = body[:2048][: len(body[:2048]) // 2 * 2]
    rest = len(head.translate(None, _SEEN + b"\0"))
    if b"\0" not in head or rest + head.count(0) < len(head) / 4 + 1:  # ASCII with a few zeros
        return ""
    for encoding in ("utf-16-le", "utf-16-be"):
        text = head.decode(encoding, "replace")
        whole = all(c.isprintable() or c in "\t\n\f\r" for c in text[:-1])
        if whole and len(text) > 1 and any("\n" <= c <= "~" for c in text):
            return encoding
    return ""


def _guessed(body: bytes, first: int) -> str:
    """Decodes a text that names no encoding; `first` is where it stops being UTF-8."""
    start = max(0, first - _MOST_GUESSED // 4)
    sample = body[start : start + _MOST_GUESSED]
    named = None
    if len(sample.translate(None, _ASCII)) >= _LEAST_GUESSED:
        import chardet

        told = chardet.detect(sample)["encoding"] or ""
        named = webencodings.lookup(_RENAMED.get(told.lower(), told))
    return _decoded(body, named) if named else body.decode("cp1252", "replace")


def _decoded(body: bytes, encoding: webencodings.Encoding) -> str:
    name = encoding.name
    with suppress(UnicodeDecodeError):
        if name == "windows-1252":  # what many servers say of each page
            return body.decode("utf-8")
    codec = codecs.lookup(_TABLES[name]) if name in _TABLES else encoding.codec_info
    text = str(codec.decode(body, "as_browsers" if name in _LENIENT else "replace")[0])
    return text.translate(_JAPANESE) if name in ("euc-jp", "iso-2022-jp") else text


def _as_browsers(error: UnicodeError) -> tuple[str, int]:
    """Decodes the characters that browsers have in these encodings and Python has not."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    start, end = error.start, error.end
    if error.encoding == "gb18030":
        return ("€" if error.object[start] == 0x80 else "\ufffd"), end
    row, cell = (*(byte & 0x7F for byte in error.object[start : start + 2]), 0, 0)[:2]
    if error.object[start] != 0x8F and 0x21 <= row <= 0x7E and 0x21 <= cell <= 0x7E:
        lead = (row - 0x21 >> 1) + (0x81 if row < 0x5F else 0xC1)
        trail = cell + (0x7E if row % 2 == 0 else 0x20 if cell >= 0x60 else 0x1F)
        text = bytes((lead, trail)).decode("cp932", "replace")
        if "\ufffd" not in text:
            return text, start + 2
    return "\ufffd", end


codecs.register_error("as_browsers", _as_browsers)
