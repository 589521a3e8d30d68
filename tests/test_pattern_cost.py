"""No pattern of the source looks at a text again and again, whatever the text holds.

Every compiled pattern gets texts made of its own beginnings, repeated. A pattern that rescans
costs sixteen times as much at four times the size; one that does not, four times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import BuiltinMethodType
from typing import Any

from bench.page_cost import seconds
from tests.growth import grows_too_fast
from tests.source_tree import modules
from tests.tables import each_row

SMALL, LARGE = 16_000, 64_000
# What costs less at SMALL is not quadratic at LARGE.
NOISE = 0.004
MOST_UNITS = 20
_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
_CATEGORIES = {ops.CATEGORY_DIGIT: "0", ops.CATEGORY_SPACE: " ", ops.CATEGORY_WORD: "a"}
_LIKELY = "~a0 \n\t-_.,:;<>=\"'()[]{}|/\\*#&é一"


def parts(op: object, value: Any) -> Sequence[Any]:
    """Returns what a piece of a parsed pattern is made of."""
    if op in _REPEATS:
        return [value[2]] if value[1] else []
    if op is ops.BRANCH:
        return list(value[1][:6])
    return [value[3]] if op is ops.SUBPATTERN else [value] if op is ops.ATOMIC_GROUP else []


def sample(op: object, value: Any) -> str:
    """Returns a short text that a piece of a parsed pattern matches."""
    if op is ops.LITERAL:
        return chr(value)
    if op in (ops.IN, ops.NOT_LITERAL, ops.ANY):
        members = {ops.IN: value, ops.NOT_LITERAL: [(op, value)], ops.ANY: []}[op]
        return next((sign for sign in _LIKELY if is_in(sign, members)), first(members))
    inside = parts(op, value)
    text = "".join(sample(*piece) for piece in inside[0]) if inside else ""
    return text * max(1, value[0]) if op in _REPEATS else text


def first(members: Sequence[Any]) -> str:
    """Returns the first character that a set names."""
    named = [v if o is ops.LITERAL else v[0] for o, v in members if o in (ops.LITERAL, ops.RANGE)]
    return chr(named[0]) if named else "a"


def is_in(sign: str, members: Sequence[Any]) -> bool:
    """Tells whether a set holds a character."""
    held = not members or any(
        (op is ops.LITERAL and value == ord(sign))
        or (op is ops.NOT_LITERAL and value != ord(sign))
        or (op is ops.RANGE and value[0] <= ord(sign) <= value[1])
        or (op is ops.CATEGORY and _CATEGORIES.get(value) == sign)
        for op, value in members
    )
    return held != any(op is ops.NEGATE for op, _ in members)


def beginnings(tree: Sequence[Any], before: str = "") -> Iterator[str]:
    """Yields texts that a pattern matches up to each of its pieces."""
    for op, value in tree:
        for part in parts(op, value):
            yield from beginnings(part, before)
        before += sample(op, value)
        yield before


def units(pattern: re.Pattern[Any]) -> list[str]:
    """Returns what texts for a pattern repeat."""
    source, flags = pattern.pattern, pattern.flags
    if isinstance(source, bytes):
        source, flags = source.decode("latin-1"), flags & ~re.UNICODE
    found = dict.fromkeys(filter(None, beginnings(parser.parse(source, flags))))
    ends = (unit[len(unit) // 2 :] for unit in [*found] if len(unit) > 4)
    return [*dict.fromkeys((*found, *ends))][:MOST_UNITS]


# The patterns of all modules by name, and the method that looks at a text with each.
PATTERNS: dict[str, tuple[re.Pattern[Any], str]] = {}
PACKAGES = ("search_backend", "agent", "web", "searchloop")
_SOURCE = "\n".join(module.text for module in modules(*PACKAGES))
for _module in modules(*PACKAGES):
    if _module.path.endswith("__main__.py"):
        continue
    _name = _module.name.removeprefix("searchloop.")
    for _key, _value in vars(
        import_module(f"searchloop.{_name}".removesuffix(".searchloop"))
    ).items():
        _owner = _value.__self__ if isinstance(_value, BuiltinMethodType) else _value
        if isinstance(_owner, re.Pattern):
            _calls = set(
                re.findall(rf"\b{_key}\.(\w+)\b", _module.text if _key[0] == "_" else _SOURCE)
            )
            _calls = {_value.__name__} if _owner is not _value else _calls
            _at_start = _calls and _calls <= {"match", "fullmatch"}
            PATTERNS[f"{_name}.{_key}"] = _owner, min(_calls) if _at_start else "search"


def looking(pattern: re.Pattern[Any], method: str) -> Callable[[str], object]:
    """Returns the work of a pattern with a text."""
    is_bytes = isinstance(pattern.pattern, bytes)

    def look(text: str) -> object:
        given: Any = text.encode("latin-1", "replace") if is_bytes else text
        if method != "search":
            return getattr(pattern, method)(given)
        return sum(1 for _ in pattern.finditer(given))

    return look


@each_row("name", sorted(PATTERNS))
def test_no_pattern_rescans(name: str) -> None:
    """64 KB of any of its own beginnings cost about four times as much as a quarter of that."""
    work = looking(*PATTERNS[name])
    for unit in units(PATTERNS[name][0]):
        small, large = (unit * (size // len(unit)) + "\0" for size in (SMALL, LARGE))
        if seconds(work, small) > NOISE:
            assert not grows_too_fast(work, small, large), unit
