"""Parts of a text that need rules of their own: formulas, code, tables, lists, raised characters.

Others may import: code, complete, formulas, inline, places, scripts, tables, told, visible.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files

_WRITTEN = tomllib.loads((files(__package__) / "names.toml").read_text("utf-8"))
NAMES = {key: frozenset(words.split()) for key, words in _WRITTEN["names"].items()}
SELECTORS = {key: ",".join(found) for key, found in _WRITTEN["selectors"].items()}
# Of what is no text in a page, and more that is asked about its elements.
MORE = {key: ",".join(found) for key, found in _WRITTEN["more"].items()}
ABOUT = _WRITTEN["about"]
# Alternatives of regular expressions.
WORDS = {key: "|".join(found) for key, found in _WRITTEN["words"].items()}
