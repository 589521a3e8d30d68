"""Bytes to text as browsers do it: byte order mark, HTTP header, the page's own word, UTF-8.

Labels go through an allow list: Python knows codecs that are no text encodings, or that decode
slowly or deceptively (utf-7), and a page must not be able to choose those.
https://encoding.spec.whatwg.org/
"""

from __future__ import annotations

import codecs
import re

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
    """The text of `body`; never fails, what cannot be decoded becomes U+FFFD."""
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
