"""The answer as it grows: its text, its thinking, and the parts to send back.

The text shown is the joined text of all parts that are not thoughts, without vendor marks; where
the server worked in between, a new paragraph begins. Parts are kept as they came. Only pieces of
plain text are joined, because a signature belongs to exactly the part it came with.

Offsets of citations count bytes, in a part or in the answer so far; which of the two differs from
model to model, so the words that come with them decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent.residue import Residue
from agent.spans import widen
from agent.types import Span

JOINER = "\n\n"

Part = dict[str, Any]


class Answer:
    """The parts of one candidate."""

    def __init__(self) -> None:
        self.blocks: list[Part] = []
        self._pieces: list[str] = []  # of the plain text that the last block will be
        self._raw: list[str] = []
        self._length = 0
        self._runs: list[int] = []  # where stretches of text begin in the raw text
        self._residue = Residue()
        self._shown: list[str] = []
        self._thinking: list[str] = []
        self._broken = True
        self._thought_broken = False

    @property
    def text(self) -> str:
        """What was shown so far."""
        return "".join(self._shown)

    @property
    def thinking(self) -> str:
        """The visible thinking so far."""
        return "".join(self._thinking)

    def say(self, piece: str) -> str:
        """More text. Returns what can be shown of it now."""
        if self._broken:
            self._broken = False
            joined = bool(self._raw) and not self._raw[-1][-1:].isspace()
            self._runs.append(self._length + joined * len(JOINER))
            piece = JOINER + piece if joined else piece
        self._thought_broken = True
        self._raw.append(piece)
        self._length += len(piece)
        return self._show(self._residue.feed(piece))

    def think(self, piece: str) -> str:
        """More thinking, a paragraph for each stretch."""
        if self._thought_broken and self._thinking:
            piece = JOINER + piece
        self._thought_broken = False
        self._thinking.append(piece)
        return piece

    def interrupt(self) -> None:
        """Something else than text came: what follows is a stretch of its own."""
        self._broken = self._thought_broken = True

    def end(self) -> str:
        """No more text will come. Returns what was not shown yet."""
        self._settle()
        return self._show(self._residue.close())

    def keep(self, part: Part) -> None:
        """A part to be sent back as it came."""
        if part.keys() <= {"text", "thought"}:
            if not part.get("text"):
                return
            last = self.blocks[-1] if self._pieces else None
            if last is not None and bool(last.get("thought")) == bool(part.get("thought")):
                self._pieces.append(part["text"])
                return
            self._settle()
            self._pieces = [part["text"]]
            self.blocks.append(dict(part))
            return
        self._settle()
        self.blocks.append(part)

    def locate(self, segment: Mapping[str, Any]) -> Span | None:
        """Where a cited segment lies in the text shown, in code points."""
        raw = "".join(self._raw)
        where = self._find(raw, segment)
        if where is None:
            return None
        first, last = (self._residue.position(at) for at in where)
        last = min(last, sum(map(len, self._shown)))
        return (first, last) if first < last else widen(self.text, first)

    def _find(self, raw: str, segment: Mapping[str, Any]) -> Span | None:
        said = segment.get("text")
        said = said if isinstance(said, str) else ""
        start, end = _number(segment.get("startIndex")), _number(segment.get("endIndex"))
        guess: Span | None = None
        for base, text in self._readings(raw, _number(segment.get("partIndex"))):
            first, last = _code_points(text, start, end)
            if first < last and (not said or text[first:last] == said):
                return base + first, base + last
            if guess is None and first < last:
                guess = base + first, base + last
        if said:
            at = _nearest(raw, said, guess[0] if guess else 0)
            if at >= 0:
                return at, at + len(said)
        return guess

    def _readings(self, raw: str, index: int) -> Iterator[tuple[int, str]]:
        """What the offsets may count in: the stretch of that number, the whole, any stretch."""
        ends = [*self._runs[1:], len(raw)]
        stretches = [
            (start, raw[start:end].removesuffix(JOINER))
            for start, end in zip(self._runs, ends, strict=False)
        ]
        if index < len(stretches):
            yield stretches[index]
        yield 0, raw
        yield from stretches

    def _settle(self) -> None:
        if self._pieces:
            self.blocks[-1]["text"] = "".join(self._pieces)
            self._pieces = []

    def _show(self, text: str) -> str:
        if text:
            self._shown.append(text)
        return text


def _code_points(text: str, start: int, end: int) -> Span:
    """Byte offsets as code points; an offset inside a character is moved out of it."""
    data = text.encode("utf-8", "surrogatepass")
    start, end = max(0, start), min(end, len(data))
    first = len(data[:start].decode("utf-8", "ignore"))
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return first, len(data[:end].decode("utf-8", "ignore"))


def _nearest(text: str, words: str, at: int) -> int:
    before, after = text.rfind(words, 0, at + len(words)), text.find(words, at)
    if before < 0 or (after >= 0 and after - at < at - before):
        return after
    return before


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
