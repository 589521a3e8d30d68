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
from functools import cache
from importlib import import_module
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import BuiltinMethodType
from typing import Any

from bench.page_cost import seconds
from tests.growth import LEAST_SECONDS, MOST_GROWTH, grows_too_fast
from tests.source_tree import modules

FIRST, SMALL, LARGE = 4_000, 16_000, 64_000
MOST_UNITS = 20
_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
_LIKELY = "~a0 \n\t-_.,:;<>=\"'()[]{}|/\\*#&é一"
_SIGNS = [*_LIKELY, *map(chr, range(0x10000))]


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
        one = compiler.compile(parser.SubPattern(parser.State(), [(op, value)]))
        return next(filter(one.match, _SIGNS), "a")
    inside = parts(op, value)
    text = "".join(sample(*piece) for piece in inside[0]) if inside else ""
    return text * max(1, value[0]) if op in _REPEATS else text


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


def of_modules() -> Iterator[tuple[str, re.Pattern[Any], str]]:
    """Yields the patterns of all modules: the name, and the method that looks at a text."""
    every = modules("search_backend", "agent", "web", "searchloop")
    source = "\n".join(module.text for module in every)
    for module in (one for one in every if not one.path.endswith("__main__.py")):
        for key, value in vars(import_module(loaded_name(module.name))).items():
            owner = value.__self__ if isinstance(value, BuiltinMethodType) else value
            if isinstance(owner, re.Pattern):
                text = module.text if key[0] == "_" else source
                calls = {*re.findall(rf"\b{key}\.(\w+)\b", text)}
                calls = {value.__name__} if owner is not value else calls
                at_start = calls and calls <= {"match", "fullmatch"}
                yield f"{module.name}.{key}", owner, min(calls) if at_start else "search"


def loaded_name(name: str) -> str:
    """Returns the name by which a module is imported."""
    return f"searchloop.{name.removeprefix('searchloop.')}".removesuffix(".searchloop")


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


@cache
def of_functions() -> Sequence[tuple[str, re.Pattern[Any] | None, str]]:
    """Returns the patterns of functions: where, the pattern if its text is known, how it looks."""
    return [
        (f"{module.path} {function.name}", *made)
        for module in modules("search_backend")
        if re.search(r"^import re$", module.text, re.MULTILINE)
        for function in (n for n in module.nodes if isinstance(n, ast.FunctionDef))
        for made in _made(function, vars(import_module(loaded_name(module.name))))
    ]


def _made(
    function: ast.FunctionDef, space: dict[str, Any]
) -> Iterator[tuple[re.Pattern[Any] | None, str]]:
    every = [*ast.walk(function)]
    methods = {id(n.value): n.attr for n in every if isinstance(n, ast.Attribute)}
    for call in (n for n in every if isinstance(n, ast.Call)):
        said = ast.unparse(call.func).split(".")
        if said[0] != "re" or len(said) != 2 or said[1] in ("escape", "purge"):
            continue
        at, flags = _FLAGS.get(said[1], 2), [k.value for k in call.keywords]
        flags = [ast.unparse(one) for one in (*flags, *call.args[at : at + 1])]
        how = methods.get(id(call), "search") if said[1] == "compile" else said[1]
        made = f"re.compile({', '.join([ast.unparse(call.args[0]), *flags])})"
        try:
            known = eval(made, space)  # noqa: S307 - our own source
        except NameError:
            known = None
        yield known, how if how in ("match", "fullmatch") else "search"


def rescans(work: Callable[[str], object], unit: str) -> bool:
    """Tells whether repetitions of a text cost more and more; the long ones if it may be."""
    first, small, large = (unit * (n // len(unit)) + "\0" for n in (FIRST, SMALL, LARGE))
    for text in (first, small):
        # Even if it grows with the square of the size, the large text costs too little to tell.
        if seconds(work, text) * (LARGE / len(text)) ** 2 < MOST_GROWTH * LEAST_SECONDS:
            return False
    return grows_too_fast(work, small, large)


def test_what_a_pattern_is_made_of_at_run_time_is_known() -> None:
    """Each place that makes one has its reason above, and each reason its place."""
    assert {at for at, known, _ in of_functions() if known is None} == set(MADE)


def test_no_pattern_rescans() -> None:
    """64 KB of any of its own beginnings cost about four times as much as a quarter of that."""
    every = [*of_modules(), *((at, known, how) for at, known, how in of_functions() if known)]
    assert len(every) > 400
    for name, pattern, method in every:
        work = looking(pattern, method)
        assert not any(rescans(work, unit) for unit in units(pattern)), name
