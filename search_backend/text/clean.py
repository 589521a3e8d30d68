"""Decodes bytes and removes what a person does not see: characters, markup, entities.

Bytes are decoded as in browsers: byte order mark, HTTP header, the page's own declaration, UTF-8.
Encoding labels go through an allow list, because Python knows codecs that are no text encodings or
that decode slowly or deceptively (utf-7). https://encoding.spec.whatwg.org/
"""

from __future__ import annotations

import codecs
import html
import re

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls other than tab and line ends
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, Arabic mark
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f"  # zero width, bidi, invisible operators
    "\u3164\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff"  # fillers, byte order mark, specials
    "\ud800-\udfff"  # half characters, which cannot be encoded again
    "\U000e0000-\U000e0fff"  # tags and variation selectors 17 to 256
    "]+"
)
# Of ASCII all that `_INVISIBLE` leaves and that is no strange line end.
_SEEN = bytes((9, 10, *range(32, 127)))
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*){2,}")
_TRAILING = re.compile(r"[ \t]+\n")


def clean(text: str) -> str:
    """Returns `text` without invisible characters and with plain line ends."""
    return cleaned(text)[0]


def invisible(text: str) -> int:
    """Counts the invisible characters that `clean` removes."""
    return cleaned(text)[1]


def cleaned(text: str) -> tuple[str, int]:
    """Returns (clean, invisible) of `text`."""
    if text.isascii() and not text.encode().translate(None, _SEEN):
        return text, 0
    text = _LINE_ENDS.sub("\n", text)
    seen = _INVISIBLE.sub("", text)
    return seen, len(text) - len(seen)


def tidy(text: str) -> str:
    """Cleans `text`, trims line ends and leaves at most one empty line in a row."""
    return _BLANK_LINES.sub("\n\n", _TRAILING.sub("\n", clean(text))).strip()


def plain(value: object) -> str:
    """Returns text without markup and entities; "" for a value that is no text."""
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
_ALLOWED = re.compile(
    r"utf-?8|utf-?16(-?[lb]e)?|us-ascii|ascii|latin-?1|iso-?8859-\d{1,2}|(windows|cp)-?(125\d|874|93[26]|949|950)"
    r"|koi8-[ru]|mac(intosh|-roman)|gbk|gb2312|gb18030|big5(-hkscs)?|euc-(jp|kr)|shift[-_]jis|sjis"
    r"|iso-2022-jp|tis-620"
)
# What browsers read these as.
_WIDENED = {
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "tis-620": "cp874",
    "iso-8859-9": "cp1254",
    "macintosh": "mac-roman",
}
_SNIFF = 4096


def decode(body: bytes, declared: str | None = None) -> str:
    """Returns the text of `body`; bytes that cannot be decoded become U+FFFD."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    if header := _codec(declared or ""):
        return body.decode(header, "replace")
    if match := _DECLARED.search(body[:_SNIFF]):
        own = (match[1] or match[2]).decode("ascii", "replace")
        # A page that could be read this far is not in UTF-16, whatever it says.
        if (named := _codec(own)) and not named.startswith("utf-16"):
            return body.decode(named, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        # A body cut by a cap may end inside a character.
        if error.reason == "unexpected end of data" and not body[: error.start].isascii():
            return body[: error.start].decode("utf-8")
        return body.decode("cp1252", "replace")


def _codec(label: str) -> str | None:
    name = label.strip().strip("\"'").lower()
    if not _ALLOWED.fullmatch(name):
        return None
    name = _WIDENED.get(name, name)
    try:
        return codecs.lookup(name.replace("windows-", "cp")).name
    except LookupError:
        return None
