"""Take out what a person does not see but a model would read: characters, markup, entities."""

from __future__ import annotations

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
    """`text` without invisible characters, with plain line ends."""
    return cleaned(text)[0]


def invisible(text: str) -> int:
    """How many characters `clean` takes out because nobody sees them."""
    return cleaned(text)[1]


def cleaned(text: str) -> tuple[str, int]:
    """(clean, invisible) of `text`."""
    if text.isascii() and not text.encode().translate(None, _SEEN):
        return text, 0
    text = _LINE_ENDS.sub("\n", text)
    seen = _INVISIBLE.sub("", text)
    return seen, len(text) - len(seen)


def tidy(text: str) -> str:
    """Cleaned, without blanks at line ends and with at most one empty line in a row."""
    return _BLANK_LINES.sub("\n\n", _TRAILING.sub("\n", clean(text))).strip()


def plain(value: object) -> str:
    """Text without markup and entities, of what may be anything."""
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
    """Cleaned text on one line, for titles and names."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()[:most]
    return " ".join(clean(text).split())[:most]
