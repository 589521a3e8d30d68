"""Takes vendors' citation markers out of text, also while it streams.

Models that search are taught marks which their own surfaces turn into links: private-use characters
around `cite`, names such as turn0search0, 【4†source】, [cite: 1]. What leaks through an API means
nothing to a reader. A mark is recognised wherever the text is cut: an end that may still become one
is held back until the next piece, and no longer than a mark can be. Pieces that cannot hold a mark
pass through after a few comparisons.
"""

from __future__ import annotations

import re
from bisect import bisect_right


def _beginning_of(word: str) -> str:
    """A pattern for every non-empty beginning of `word`."""
    pattern = ""
    for letter in reversed(word):
        pattern = f"{re.escape(letter)}(?:{pattern})?" if pattern else re.escape(letter)
    return pattern


def _any_of(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_KINDS = (
    "academia|business|calculator|click|entity|fetch|file|finance|forecast|image|map|maps|news"
    "|open|product|products|reddit|ref|search|sports|time|video|view|weather|youtube"
)
_CITE = "(?:(?:file)?cite[: ]{0,2})?"
_NAME = rf"turn\d{{1,4}}(?:{_KINDS})\d{{1,4}}"
_NAMES = rf"{_CITE}{_NAME}(?:[,;]? ?{_NAME})*"
_MARK = " ?" + _any_of(
    "\ue200[^\ue200\ue201\n]{0,600}\ue201",
    "[\ue200-\ue2ff]",
    "【[^【】\n]{0,120}†[^【】\n]{0,120}】",
    rf"[\[(【]{_NAMES}[\])】]",
    _NAMES,
    r"\[cite_(?:start|end)\]",
    r"\[cite: ?[\d., \-]{1,60}\]",
)
_NAME_START = _any_of(_beginning_of("turn"), r"turn\d{1,4}[a-z]{0,10}\d{0,4}")
_MAYBE = _any_of(
    " ",
    r" ?(?!\Z)"
    + _any_of(
        "\ue200[^\ue200\ue201\n]{0,600}",
        "【[^【】\n]{0,240}",
        rf"[\[(【]?{_CITE}(?:{_NAME}[,;]? ?)*{_NAME_START}?",
        rf"[\[(【]?{_any_of(_beginning_of('filecite'), _beginning_of('cite'))}",
        _beginning_of("[cite_start]"),
        _beginning_of("[cite_end]"),
        r"\[cite: ?[\d., \-]{0,60}",
    ),
)
_FIND = re.compile(rf"(?P<maybe>{_MAYBE}\Z)|(?P<mark>{_MARK})")
_WHOLE = re.compile(_MARK)
_OPENERS = re.compile("[\ue200-\ue2ff【]")
_ENDS = tuple(word[:n] for word in ("filecite", "cite", "turn") for n in range(1, len(word) + 1))
_ENDS += (" ", "(")
_LAST = frozenset(end[-1] for end in _ENDS)
_SHORT = 32  # characters; a longer piece is shown but for what may become a mark


class Residue:
    """Strips marks from one text that comes in pieces, and maps offsets in it."""

    def __init__(self) -> None:
        self._held = ""
        self._seen = 0  # how far into the raw text: where `_held` begins
        self._starts: list[int] = []  # of the marks taken out, in the raw text
        self._ends: list[int] = []
        self._gone = [0]  # how much was taken out before mark number i

    def feed(self, piece: str) -> str:
        """The part of the text that is now certain."""
        text = self._held + piece if self._held else piece
        if "[" in text or "turn" in text or not (text.isascii() or _OPENERS.search(text) is None):
            return self._strip(text, _FIND)
        if text[-1:] in _LAST and text.endswith(_ENDS):
            if text[-1] == " " and not text.endswith(_ENDS, 0, -1):
                self._seen += len(text) - 1
                self._held = " "  # only the blank may belong to a mark
                return text[:-1]
            if len(text) > _SHORT:
                return self._strip(text, _FIND)
            self._held = text  # all of it: a few letters, and no search for their beginning
            return ""
        self._held = ""
        self._seen += len(text)
        return text

    def close(self) -> str:
        """What was held back, at the end of the text."""
        return self._strip(self._held, _WHOLE) if self._held else ""

    def position(self, raw: int) -> int:
        """Where offset `raw` of the text as it came lies in the text without marks."""
        found = bisect_right(self._ends, raw)
        if found < len(self._starts):
            raw = min(raw, self._starts[found])  # inside a mark means at its place
        return raw - self._gone[found]

    def _strip(self, text: str, find: re.Pattern[str]) -> str:
        kept, at = [], 0
        while match := find.search(text, at):
            kept.append(text[at : match.start()])
            at = match.start()
            if match.lastgroup == "maybe":
                break
            at = match.end()
            self._starts.append(self._seen + match.start())
            self._ends.append(self._seen + at)
            self._gone.append(self._gone[-1] + at - match.start())
        else:
            kept.append(text[at:])
            at = len(text)
        self._seen += at
        self._held = text[at:]
        return "".join(kept)


def strip(text: str) -> str:
    """`text` without marks."""
    return _WHOLE.sub("", text)
