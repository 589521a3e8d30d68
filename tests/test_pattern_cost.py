"""No pattern of the source looks at a text again and again, whatever the text holds.

Every compiled pattern gets texts made of its own beginnings, repeated. A pattern that rescans
costs sixteen times as much at four times the size; one that does not, four times. So do those that
functions of the search backend make; what such a pattern is made of at run time is escaped, is our
own data, or is made linear, and stands in MADE.
"""

from __future__ import annotations

import ast
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


# Patterns made of what is known at run time only: where, and why they do not rescan.
MADE = {
    "search_backend/library/folders.py _rules": "made linear; attacked in test_folders.py",
    "search_backend/pages/open_page.py _read_shelved": "escaped",
    "search_backend/readers/_html/parts/scripts.py __init__": "one sign that cuts",
    "search_backend/readers/_html/parts/scripts.py _explained": "one sign that cuts",
    "search_backend/search/router.py _pattern": "kinds.toml, for 300 characters",
    "search_backend/text/slices.py occurrences": "escaped; attacked in pages/test_paging.py",
}
_FLAGS = {"sub": 4, "split": 3, "compile": 1}


def _inner() -> Iterator[tuple[str, re.Pattern[Any] | None, str]]:
    """Yields the patterns of functions: where, the pattern if its text is known, how it looks."""
    for module in modules("search_backend"):
        space = vars(import_module(f"searchloop.{module.name.removeprefix('searchloop.')}"))
        for function in (n for n in module.nodes if isinstance(n, ast.FunctionDef)):
            every = [*ast.walk(function)]
            methods = {id(n.value): n.attr for n in every if isinstance(n, ast.Attribute)}
            for call in (n for n in every if isinstance(n, ast.Call)):
                said = ast.unparse(call.func).split(".")
                if said[0] != "re" or len(said) != 2 or said[1] in ("escape", "purge"):
                    continue
                at, flags = _FLAGS.get(said[1], 2), [k.value for k in call.keywords]
                flags = [ast.unparse(one) for one in (*flags, *call.args[at : at + 1])]
                where = f"{module.path} {function.name}"
                how = methods.get(id(call), "search") if said[1] == "compile" else said[1]
                made = f"re.compile({', '.join([ast.unparse(call.args[0]), *flags])})"
                try:
                    known = eval(made, space)  # noqa: S307 - our own source
                except NameError:
                    known = None
                yield where, known, how if how in ("match", "fullmatch") else "search"


INNER = [*_inner()]
PATTERNS |= {f"{at} {n}": (known, how) for n, (at, known, how) in enumerate(INNER) if known}


def test_what_a_pattern_is_made_of_at_run_time_is_known() -> None:
    """Each place that makes one has its reason above, and each reason its place."""
    assert {at for at, known, _ in INNER if known is None} == set(MADE)


@each_row("name", sorted(PATTERNS))
def test_no_pattern_rescans(name: str) -> None:
    """64 KB of any of its own beginnings cost about four times as much as a quarter of that."""
    work = looking(*PATTERNS[name])
    for unit in units(PATTERNS[name][0]):
        small, large = (unit * (size // len(unit)) + "\0" for size in (SMALL, LARGE))
        if seconds(work, small) > NOISE:
            assert not grows_too_fast(work, small, large), unit
