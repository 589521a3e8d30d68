"""Formulas in a text: TeX between its usual signs is shown as it was written, untouched.

`$$...$$`, `\\[...\\]`, `\\(...\\)` and `$...$`; a single dollar sign opens a formula only where
no blank follows and closes it only where none precedes and no digit follows: prices stay prices.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline

_LONGEST = 2000  # characters of one formula
_FORMULA = re.compile(
    rf"\$\$(?P<a>[^$]{{1,{_LONGEST}}})\$\$|\\\[(?P<b>(?:(?!\\\]).){{1,{_LONGEST}}})\\\]"
    rf"|\\\((?P<c>(?:(?!\\\)).){{1,{_LONGEST}}})\\\)"
    rf"|\$(?P<d>(?![\s$])(?:\\.|[^$\\\n]){{0,{_LONGEST}}}(?<![\s\\]))\$(?!\d)",
    re.DOTALL,
)


def math(state: StateInline, silent: bool) -> bool:
    """A rule of the line parser: one formula as a token of its own."""
    if state.src[state.pos] not in "$\\":
        return False
    found = _FORMULA.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        token = state.push("math", "", 0)
        token.content = next(text for text in found.groups() if text is not None).strip()
    state.pos = found.end()
    return True
