"""Invisible characters: which there are, and where one is part of a letter, an emoji or a flag."""

from __future__ import annotations

import re

INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls other than tab and line ends
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, Arabic mark
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f"  # zero width, bidi, invisible operators
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff"  # selectors, byte order mark
    "\ud800-\udfff"  # half characters, which cannot be encoded again
    "\U000e0000-\U000e0fff"  # tags and variation selectors 17 to 256
    "]"
)
# Joiners, selectors and tags are text in these places. Few texts need the pattern: it takes 2 ms to
# compile, at its first use.
_SHAPED = (
    "([\u0600-\u061b\u061d-\u0dff\u1000-\u109f\u1700-\u17b3\u17b6-\u17d3\u1820-\u18aa\u1b00-\u1bff"
    "\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010ec0-\U00011fff\U0001e900-\U0001e95f]"
    "[\u200c\u200d](?![\u200c\u200d])|[\u1820-\u18aa][\u180b-\u180f]"  # letters that join
    "|[\xa9\xae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"  # emoji
    "(?:\ufe0f?\u200d(?=[\u2100-\u2bff\U0001f000-\U0001faff])|[\ufe00\ufe0e\ufe0f])"
    "|[0-9#*]\ufe0f(?=\u20e3)"  # keycaps
    "|[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # variants of Chinese characters
    "[\ufe00-\ufe02\U000e0100-\U000e01ef]"
    "|\U0001f3f4(?:\U000e0067\U000e0062[\U000e0061-\U000e007a]"  # flags of gb, us and ca
    "|\U000e0075\U000e0073|\U000e0063\U000e0061)[\U000e0061-\U000e007a]{2}\U000e007f)"
    f"|{INVISIBLE.pattern}"
)


def named(text: str) -> str:
    """Returns the text with the number of each invisible character in its place: <U+202E>."""
    return re.sub(rf"{INVISIBLE.pattern}|\r(?!\n)", lambda m: f"<U+{ord(m[0]):04X}>", text)


def visible(text: str) -> str:
    """Returns the text without the invisible characters that no letter, emoji or flag needs."""
    return re.sub(_SHAPED, r"\1", text) if INVISIBLE.search(text) else text
