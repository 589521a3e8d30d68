"""Takes a source's text apart once, so that many claims can be compared with it."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from functools import cached_property, lru_cache
from itertools import chain
from operator import add
from typing import NamedTuple

from searchloop.agent.verdicts import dates, numbers
from searchloop.agent.verdicts.text import PIECE, Token, blanked, folded, key_of, tokens
from searchloop.analysis.language import language
from searchloop.analysis.sentences import sentences
from searchloop.analysis.words import STOPS

LONGEST = 400_000  # characters; what stands behind them is not compared
_STEPS = 20_000  # places looked at to find the sentences near one claim
_NEAREST = 8
_ITEM, _SHORT_ITEM = re.compile(r"[^\n|]{,200}\||[-*+•] |\d+[.)] "), 60  # characters
# A row of heads, the line below it, and the rows.
TABLE = re.compile(
    r"^(?=[^\n|]*\|)(?P<heads>[^\n]*+)\n[ \t]*+\|?[ \t]*+:?-{2,}[-:| \t]*+\n"
    r"(?P<rows>(?:(?=[^\n|]*\|)[^\n]++(?:\n|\Z))+)",
    re.MULTILINE,
)
CELL = re.compile(r"[^|\n]+")
_EMPHASIS = ("*", "**", "***", "`")
_GOES_ON = re.compile(r"(?<=\w)[*`]{0,3}\]\([^()\s]{1,2000}\)[*`]{0,3}(?=\w)")
_GARBAGE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]")


class Words(NamedTuple):
    """The words of a text one behind the other, without punctuation, and where each begins."""

    joined: str  # " the treaty was signed ": every word between two spaces
    starts: list[int]
    ends: list[int]

    def find(self, words: str, at: int = 0) -> tuple[int, int] | None:
        """Finds `" some words "` from offset `at` on; returns their range in the text."""
        found = self.joined.find(words, at)
        if found < 0 or not self.starts:
            return None
        first = self.joined.count(" ", 0, found + 1) - 1
        return self.starts[first], self.ends[first + words.count(" ") - 2]


class Cell(NamedTuple):
    """The tokens of a cell in the row of a table, and of the head of its column."""

    head: list[Token]
    said: list[Token]


def words_of(text: str, lang: str, joined: frozenset[int] = frozenset()) -> Words:
    """Returns the folded words of a text; thousands lose their separators, minus signs stay.

    What begins at a place in `joined` goes on with the word before it; so does what only emphasis
    cuts off.
    """
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for piece in PIECE.finditer(text):
        start, end = piece.span()
        inside = ends and text[ends[-1] : start] in _EMPHASIS and piece.lastgroup == "word"
        power = piece.lastgroup == "number" and text[start - 1 : start] == "^"  # `km^2` is km²
        goes_on = inside or (power and ends and ends[-1] == start - 1)
        if words and (start in joined or (goes_on and words[-1][-1].isalpha())):
            words[-1] += folded(piece[0])
            ends[-1] = end
            continue
        if piece.lastgroup == "run":
            words += piece[0]
            starts += range(start, end)
            ends += range(start + 1, end + 1)
            continue
        if piece.lastgroup == "number":
            sign = "-" if start and numbers.sign(text, start) < 0 else ""
            words.append(f"{sign}{numbers.digits(piece[0], lang):.12g}")
        else:
            words.append(folded(piece[0]))
        starts.append(start)
        ends.append(end)
    return Words(f" {' '.join(words)} ", starts, ends)


@lru_cache(maxsize=1 << 15)
def _keys(said: str, lang: str) -> frozenset[str]:
    """Returns the keys of text without white space; scale words and number words are not read."""
    found: set[str] = set()
    for piece in PIECE.finditer(said):
        word, kind = piece[0], piece.lastgroup
        if kind == "run":
            found.update(map(add, word, word[1:]) if word[1:] else word)
        elif kind == "number":
            date = dates.read(said, piece.start(), lang)
            unit = numbers.MONTH if said[piece.end() :][:1] == "月" else ""
            plain = numbers.Number(numbers.digits(word, lang), unit)
            found.update(number.key for number in (plain, *(date[0] if date else ())))
        elif kind == "word":
            low = folded(word)
            if month := dates.month(low, lang):
                found.add(month.key)
            if low not in STOPS.get(lang, STOPS["en"]):
                unit = numbers.UNITS.get(low, "") if len(low) > 2 else ""
                found.add(f"~{unit}" if unit else key_of(word, lang))
    return frozenset(found)


class Page:
    """A source's text, taken apart.

    Attributes: `text`, the text as far as it is compared; `cut`, whether there is more; `clean`,
    the same with spaces for marks and links; `lang`, its language or ""; `readable`, whether it is
    text at all.
    """

    def __init__(self, text: str) -> None:
        self.text = text[:LONGEST]
        self.cut = len(text) > LONGEST
        self.clean = blanked(self.text)
        self.lang = language(self.text)
        self.readable = len(_GARBAGE.findall(self.text)) * 20 <= len(self.text)
        self._tokens: dict[int, list[Token]] = {}
        self._cells: dict[int, list[Cell]] = {}
        self._places: dict[str, list[int]] = {}

    @cached_property
    def words(self) -> Words:
        """Every word in order, for literal comparison."""
        return words_of(self.clean, self.lang, self._joined)

    @cached_property
    def _joined(self) -> frozenset[int]:
        """Returns where a word goes on behind a link, as in `[cat](address)s`."""
        return frozenset(match.end() for match in _GOES_ON.finditer(self.text))

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Where the sentences are."""
        return sentences(self.clean)

    @cached_property
    def _index(self) -> dict[str, list[list[int]]]:
        """{key: for each way to write it, the sentences that have it}."""
        held: dict[str, list[int]] = defaultdict(list)
        for number, (start, end) in enumerate(self.spans):
            for word in set(self.clean[start:end].split()):
                held[word].append(number)
        found: dict[str, list[list[int]]] = defaultdict(list)
        for word, places in held.items():
            for key in _keys(word, self.lang):
                found[key].append(places)
        return dict(found)

    @cached_property
    def keys(self) -> list[frozenset[str]]:
        """The keys of each sentence."""
        found: list[set[str]] = [set() for _ in self.spans]
        for key in self._index:
            for number in self.holding(key):
                found[number].add(key)
        return list(map(frozenset, found))

    def holding(self, key: str) -> list[int]:
        """Returns the numbers of the sentences that hold a key, in order."""
        if key not in self._places:
            self._places[key] = sorted({*chain(*self._index.get(key, ()))})
        return self._places[key]

    def has(self, key: str) -> bool:
        """Tells whether a word stands anywhere in the page."""
        return key in self._index

    def gives(self, token: Token) -> bool:
        """Tells whether the number of a claim stands anywhere in the page, in its own form."""
        held = (t.number for k in self.holding(token.key.strip("?")) for t in self.tokens(k))
        return any(n and token.number and token.number.held_by(n) for n in held)

    def sentence_of(self, place: int) -> int:
        """Returns the number of the sentence that holds the character at `place`."""
        return max(0, bisect_right(self.spans, (place, len(self.text))) - 1)

    def has_items(self, first: int, last: int) -> bool:
        """Tells whether these sentences hold rows of a table or short items of a list.

        What stands in two of them does not belong together.
        """
        return any(
            _ITEM.match(self.clean, start, end)
            and (end - start < _SHORT_ITEM or "|" in self.clean[start:end])
            for start, end in self.spans[first : last + 1]
        )

    @cached_property
    def rows(self) -> dict[int, list[tuple[re.Match[str], re.Match[str]]]]:
        """{sentence: (cell, its head) of each column} of the rows of tables."""
        found: dict[int, list[tuple[re.Match[str], re.Match[str]]]] = {}
        for table in TABLE.finditer(self.clean):
            heads = list(CELL.finditer(self.clean, *table.span("heads")))
            at = table.start("rows")
            for row in table["rows"].splitlines(keepends=True):
                cells = list(CELL.finditer(self.clean, at, at + len(row)))
                if len(cells) == len(heads):
                    found[self.sentence_of(at + 1)] = list(zip(cells, heads, strict=True))
                at += len(row)
        return found

    def cells(self, sentence: int) -> list[Cell]:
        """Returns the cells of a row of a table; none for any other sentence."""
        if sentence not in self._cells:
            columns = self.rows.get(sentence, ())
            told = " ".join(f"{head[0]} {cell[0]}" for cell, head in columns[:1])
            self._cells[sentence] = [
                Cell(
                    tokens(self.clean, self.lang, *head.span()),
                    self._cell(cell.span(), f"{head[0]} {told}"),
                )
                for cell, head in columns
            ]
        return self._cells[sentence]

    def _cell(self, span: tuple[int, int], heads: str) -> list[Token]:
        """Returns the tokens of a cell; behind a bare number, the same in the heads' measure."""
        found: list[Token] = []
        factor, unit = numbers.measure(heads)
        for token in tokens(self.clean, self.lang, *span):
            found.append(token)
            number = token.number
            if number and not number.unit:
                value, step = number.value * factor, number.step * factor
                whole = number._replace(value=value, unit=unit, step=step)
                found.append(token._replace(key=f"#{value:.9g}", number=whole))
        return found

    def row(self, sentence: int, keys: set[str] | None = None) -> list[Token]:
        """Returns the cells of a row, those that hold one of these keys behind their heads."""
        cells = self.cells(sentence)
        held = [keys is None or any(t.key in keys for t in cell.said) for cell in cells]
        parts = zip(cells, held, strict=True)
        return [t for cell, holds in parts for t in (cell.head * holds + cell.said)]

    def tokens(self, sentence: int) -> list[Token]:
        """Returns the tokens of one sentence."""
        if sentence not in self._tokens:
            self._tokens[sentence] = tokens(self.clean, self.lang, *self.spans[sentence])
        return self._tokens[sentence]

    def _rarity(self, key: str) -> float:
        return math.log(1 + len(self.spans) / (0.5 + len(self.holding(key))))

    def weight(self, key: str) -> float:
        """Returns what a key counts in a comparison: a rare one a little more than a common one."""
        return math.sqrt(math.sqrt(self._rarity(key)))

    def nearest(self, keys: set[str]) -> list[int]:
        """Returns the sentences that share the most with these keys, the best first."""
        return list(self._scored(keys))[:_NEAREST]

    def best(self, claim: str, most: int) -> list[tuple[float, str]]:
        """Returns (score, text) of the sentences that share the most with a claim."""
        scored = self._scored({token.key for token in tokens(claim, self.lang)})
        places = [(score, self.spans[number]) for number, score in scored.items()]
        return [(score, self.text[start:end]) for score, (start, end) in places[:most]]

    def _scored(self, keys: set[str]) -> dict[int, float]:
        """Returns {sentence: what it shares with these keys}, the best first.

        Rare keys are looked up first, and the work is bounded, whatever the page holds.
        """
        score: dict[int, float] = defaultdict(float)
        left = _STEPS
        for key in sorted(keys, key=lambda key: (len(self.holding(key)), key)):
            places = self.holding(key)
            left -= len(places)
            if left < 0:
                break
            weight = self._rarity(key)
            for number in places:
                score[number] += weight
        return dict(sorted(score.items(), key=lambda each: (-each[1], each[0])))
