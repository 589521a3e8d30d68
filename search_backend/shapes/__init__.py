"""Other people's search APIs, spoken by this backend: one file each, found by name.

A client written for one of them works when its base URL points here. A shape module ends in
`SHAPE = Shape(...)`. It turns what that API is asked into the words of our own contract and our
answers into that API's; it neither searches nor checks, so a rule holds for all shapes alike.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from search_backend.errors import SearchBackendError
from search_backend.types import PageView, Problem, SearchAnswer

Values = Mapping[str, Any]
Schema = dict[str, Any]


class Service(Protocol):
    """What our contract offers. All raise SearchBackendError for what cannot be asked."""

    def search(self, asked: Values) -> SearchAnswer:
        """The answer to a body of POST /api/web-search."""

    def check(self, asked: Values) -> None:
        """Raises what `search` would raise at once, and searches nothing."""

    def open_page(self, asked: Values) -> PageView:
        """The answer to a body of POST /api/open-page."""


@dataclass(frozen=True, slots=True)
class Route:
    """One address of such an API.

    With `form`, values are texts from the URL or from a form; otherwise the body is a JSON object.
    `asked` are JSON schemas of the values by name, `needed` one that must be there, `answered` is
    the schema of a good answer. `answer` raises SearchBackendError.
    """

    path: str
    methods: tuple[str, ...]
    summary: str
    asked: Mapping[str, Schema]
    needed: str
    answered: Schema
    answer: Callable[[Values, Service], dict[str, Any] | list[Any]]
    form: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """One API. `error` makes the body of a refusal out of its status and what went wrong."""

    name: str
    routes: tuple[Route, ...]
    error: Callable[[int, Problem], dict[str, Any]]


def answered(answer: SearchAnswer) -> SearchAnswer:
    """The answer, unless no engine could give one: then SearchBackendError says why, for APIs that
    have no other place for it."""
    if answer.status in ("ok", "empty"):
        return answer
    reasons = [attempt.error.message for attempt in answer.attempts if attempt.error]
    words = " ".join(reasons) or "No engine could be asked."
    raise SearchBackendError("search_failed", words, "Try again later.")


def opened(view: PageView) -> PageView:
    """The page, unless it could not be read: then SearchBackendError says why."""
    error = view.page.error
    if error is None:
        return view
    code = error.code if error.code.startswith("refused_") else "page_failed"
    raise SearchBackendError(code, error.message, error.remedy)


@cache
def find_shapes() -> tuple[Shape, ...]:
    """Every shape of this package, in the order of the file names."""
    found = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        shape = getattr(importlib.import_module(f"{__name__}.{module.name}"), "SHAPE", None)
        if isinstance(shape, Shape):
            found.append(shape)
    return tuple(found)


def error_at(path: str, status: int, problem: Problem) -> dict[str, Any] | None:
    """The body of a refusal at a path, in the words of the API that has it; None for our own."""
    for shape in find_shapes():
        if any(route.path == path for route in shape.routes):
            return shape.error(status, problem)
    return None


def form_paths() -> frozenset[str]:
    """Paths at which a body may be a form instead of JSON."""
    return frozenset(route.path for shape in find_shapes() for route in shape.routes if route.form)
