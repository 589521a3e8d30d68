"""The rules of a page's sheets: which of them may hide, and which speak of elements with a name.

Nothing here knows the page: rules are found by the words in them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from typing import NamedTuple

from search_backend.readers._css import rules, some_rules
from search_backend.readers._declared import LONGEST_BLOCK, Declarations, declarations
from search_backend.readers._selectors import is_element_at_rest, is_simple, key_of, split_selectors
from search_backend.readers._sheets import variables
from search_backend.readers._signs import clear_signs, signs
from search_backend.readers._style import PROPERTIES

# Of all sheets in a page; most pages have less.
LARGEST_THOROUGH = 32 * 1024
_COLOURED = re.compile(r"[;{]\s*+(?:-webkit-text-fill-)?color\s*:")
_GROUNDED = re.compile(r"[;{]\s*+background(?:-color)?\s*:(?!\s*(?:none|transparent|0))")

_TOKEN = re.compile(r"[.#]?(?:[\w-]|[^\x00-\x7f])+|[*\[(\\]")


class Said(NamedTuple):
    """A selector of a rule, and the rule's place."""

    selector: str
    order: int


class Rules:
    """The rules of all sheets, by their place. `thorough`: all that they say is known."""

    def __init__(self, texts: Sequence[str]) -> None:
        # What large sheets could hide beyond the simple ways, a sheet elsewhere could as well.
        self.thorough = sum(map(len, texts)) <= LARGEST_THOROUGH
        read = rules if self.thorough else partial(some_rules, signs=clear_signs)
        found = [rule for text in texts for rule in read(text)]
        self._selectors = [selectors for selectors, _ in found]
        # All blocks in one, so that they are searched at once; none has a brace of its own.
        self._text = "".join(
            ["{" + block[:LONGEST_BLOCK].replace("{", " ") for _, block in found]
        ).lower()
        self.blocks = self._text.split("{")[1:]
        self._starts = list(accumulate((len(block) + 1 for block in self.blocks), initial=0))
        self._variables: dict[str, str] | None = None
        self._styles: dict[str, Declarations] = {}
        self._meanings: dict[int, list[tuple[str, str]]] = {}
        self._said: dict[tuple[str, str], list[Said]] = {}
        self._tokens: dict[str, dict[int, None]] | None = None

    def keep(self, places: Sequence[int]) -> None:
        """Forget all rules but these, before anything is asked of what they say."""
        self._selectors = [self._selectors[at] for at in places]
        self.blocks = [self.blocks[at] for at in places]
        self._meanings.clear()

    def suspects(self, whole: bool) -> list[int]:
        """The rules that may hide; in a page that is known `whole`, also by any colour."""
        text = self._text
        if not text:
            return []
        suspects = self._speaking(signs(text))
        coloured = self._speaking(match.start() for match in _COLOURED.finditer(text))
        if not whole:
            coloured &= self._speaking(match.start() for match in _GROUNDED.finditer(text))
        return sorted(suspects | coloured)

    def _speaking(self, places: Iterable[int]) -> set[int]:
        """The rules in whose blocks these places are."""
        return {bisect_right(self._starts, place) - 1 for place in places}

    def of(self, block: str) -> Declarations:
        """The declarations of a block, variables of the page put in."""
        known = self._styles.get(block)
        if known is None:
            if self._variables is None and "var(" in block:
                self._variables = dict(variables(self._selectors, self.blocks))
            own = declarations(block[:LONGEST_BLOCK], self._variables or {})
            known = self._styles[block] = own
        return known

    def said_of(self, axis: str, name: str) -> list[Said]:
        """What the sheets say of an axis, of elements that have a name."""
        known = self._said.get((axis, name))
        if known is None:
            speaks = _speaking_of(axis).search
            known = self._said[axis, name] = [
                Said(selector, order)
                for order in self._naming(name)
                if speaks(self.blocks[order])
                for selector, key in self.means(order)
                if key == name
            ]
        return known

    def _naming(self, name: str) -> Iterable[int]:
        """The rules in whose selectors a name is, in their order; for none, those that may do
        without."""
        if self._tokens is None:
            tokens: dict[str, dict[int, None]] = {}
            for order, selectors in enumerate(self._selectors):
                for token in _TOKEN.findall(selectors):
                    tokens.setdefault(token, {})[order] = None
            self._tokens = tokens
        if not name:
            return sorted({at for sign in "*[(\\" for at in self._tokens.get(sign, ())})
        found = _TOKEN.findall(name)
        return self._tokens.get(found[0] if found == [name] else "\\", ())

    def means(self, at: int) -> list[tuple[str, str]]:
        """The selectors of a rule, but those of states and parts of an element, with their keys."""
        known = self._meanings.get(at)
        if known is None:
            known = self._meanings[at] = []
            selectors = self._selectors[at]
            # A browser passes over a whole rule of which it does not understand a part.
            if ":::" not in selectors and "}" not in selectors:
                may_mean = is_element_at_rest if self.thorough else is_simple
                parts = filter(may_mean, split_selectors(selectors))
                known += [(part, key_of(part)) for part in dict.fromkeys(parts)]
        return known


@lru_cache(maxsize=64)
def _speaking_of(axis: str) -> re.Pattern[str]:
    """Finds declarations of an axis; with an exclamation mark, important ones only."""
    names = "|".join(map(re.escape, sorted(PROPERTIES[axis.removesuffix("!")])))
    return re.compile(rf"(?:^|;)\s*+(?:{names})\s*:{'[^;]*!' if axis[-1] == '!' else ''}")
