"""Removes vendors' citation marks and invisible signs from text, also while it streams.

Models that search write marks for their vendor's own pages: private-use characters around `cite`,
names such as turn0search0, 【4†source】, [cite: 1]. `Residue` recognises a mark wherever the stream
cuts it: it buffers an end that may become a mark, for no longer than a mark can be.

Spec: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool (`page_age`)
      https://docs.perplexity.ai/api-reference/chat-completions-post
"""

from __future__ import annotations

import re
from bisect import bisect_right


def _beginning_of(word: str) -> str:
    """Returns a pattern for every non-empty prefix of `word`."""
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
_NAMING = (
    "\ue200[^\ue200\ue201\n]{0,600}\ue201",
    "[\ue200-\ue2ff]",
    rf"[\[(【]{_NAMES}[\])】]",
    _NAMES,
    r"\[cite_(?:start|end)\]",
)
_NUMBERED = ("【[^【】\n]{0,120}†[^【】\n]{0,120}】", r"\[cite: ?[\d., \-]{1,60}\]")
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
# Tags and bidirectional controls hide words or change their order; joiners and selectors, which
# letters and emoji need, are none of them, and three flags are made of tags.
_UNSEEN = "[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
_FLAG_START = "\U0001f3f4[\U000e0061-\U000e007a]{0,5}"
_FLAG = "\U0001f3f4[\U000e0061-\U000e007a]{4,5}\U000e007f"
_OTHERS, _BUT_NUMBERED = (
    f"(?P<kept>{_FLAG})|(?P<mark> ?{_any_of(*marks)}|{_UNSEEN})"
    for marks in ((*_NUMBERED, *_NAMING), _NAMING)
)
# Few texts need these, and they take 4 ms to compile: so they stay text until one does.
_BEGINNING = rf"(?P<maybe>(?:{_MAYBE}|{_FLAG_START})\Z)|"
_SIGNS = f"(?P<kept>{_FLAG})|{_UNSEEN}"
_BEGUN = re.compile(rf"{_FLAG_START}\Z")
_OPENERS = re.compile(f"[\ue200-\ue2ff【\U0001f3f4]|{_UNSEEN}")
_ENDS = tuple(word[:n] for word in ("filecite", "cite", "turn") for n in range(1, len(word) + 1))
_ENDS += (" ", "(")
_LAST = frozenset(end[-1] for end in _ENDS)
_SHORT = 32  # characters; of a longer piece only a possible mark is buffered


class Residue:
    """Strips marks from one text that comes in pieces, and maps its offsets.

    Without `numbered`, marks with a number stay: it may be that of one of our own sources.
    """

    numbered = True

    def __init__(self) -> None:
        self._held = ""
        self._seen = 0  # how far into the raw text: where `_held` begins
        self._starts: list[int] = []  # of the marks taken out, in the raw text
        self._ends: list[int] = []
        self._gone = [0]  # how much was taken out before mark number i

    def feed(self, piece: str) -> str:
        """Takes a piece; returns the text that can hold no unfinished mark."""
        text = self._held + piece if self._held else piece
        if "[" in text or "turn" in text or not (text.isascii() or _OPENERS.search(text) is None):
            return self._strip(text)
        if text[-1:] in _LAST and text.endswith(_ENDS):
            if text[-1] == " " and not text.endswith(_ENDS, 0, -1):
                self._seen += len(text) - 1
                self._held = " "  # only the blank may belong to a mark
                return text[:-1]
            if len(text) > _SHORT:
                return self._strip(text)
            self._held = text  # all of it: a few letters, and no search for their beginning
            return ""
        self._held = ""
        self._seen += len(text)
        return text

    def close(self) -> str:
        """Returns the buffered end of the text."""
        return self._strip(self._held, "") if self._held else ""

    def position(self, raw: int) -> int:
        """Maps offset `raw` of the original text to the text without marks."""
        found = bisect_right(self._ends, raw)
        if found < len(self._starts):
            raw = min(raw, self._starts[found])  # an offset inside a mark becomes the mark's place
        return raw - self._gone[found]

    def _strip(self, text: str, beginning: str = _BEGINNING) -> str:
        marks = _OTHERS if self.numbered else _BUT_NUMBERED
        find, kept, at = re.compile(beginning + marks), [], 0
        while match := find.search(text, at):
            kept.append(text[at : match.start()] + (match["kept"] or ""))
            at = match.end() if match["kept"] else match.start()
            if match.lastgroup == "maybe":
                break
            if match["mark"]:
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


class Seen:
    """Strips invisible signs alone from one text that comes in pieces."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Takes a piece; returns the text that can hold no unfinished flag."""
        if not self._held and piece.isascii():
            return piece
        text = self._held + piece
        begun = _BEGUN.search(text)
        self._held = begun[0] if begun else ""
        return re.sub(_SIGNS, _kept, text[: begun.start()] if begun else text)

    def close(self) -> str:
        """Returns the buffered end of the text."""
        return re.sub(_SIGNS, _kept, self._held)


def strip(text: str) -> str:
    """Returns `text` without marks."""
    return re.sub(_OTHERS, _kept, text)


def _kept(found: re.Match[str]) -> str:
    return found["kept"] or ""
