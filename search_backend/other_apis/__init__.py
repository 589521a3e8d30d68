"""Search APIs of other vendors, served by this backend: one file each, found by name.

A client of such an API works when its base URL points here. A module ends in `SHAPE = Shape(...)`;
it translates requests into our own contract and answers back. It neither searches nor checks, so a
rule of our contract holds for all shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from searchloop.search_backend.plugin.entry_points import own_parts
from searchloop.search_backend.types import PageView, Problem, SearchAnswer, SearchBackendError

Values = Mapping[str, Any]
MOST_CHARACTERS = 100_000  # of one page


@dataclass(frozen=True, slots=True)
class Contract:
    """The operations of our own API; each takes a request body and raises SearchBackendError."""

    search: Callable[[Values], SearchAnswer]
    open_page: Callable[[Values], PageView]


@dataclass(frozen=True, slots=True)
class Route:
    """One address of an API; its vendor documents what is sent there and comes back.

    With `form`, values are texts from the URL or a form; otherwise the body is a JSON object.
    `answer` raises SearchBackendError.
    """

    path: str
    methods: tuple[str, ...]
    summary: str
    answer: Callable[[Values, Contract], dict[str, Any] | list[Any]]
    form: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """One API. `error` makes the body of a refusal from its status and a problem."""

    routes: tuple[Route, ...]
    error: Callable[[int, Problem], dict[str, Any]]


def sentence_error(_status: int, problem: Problem) -> dict[str, Any]:
    """Returns {"error": "message and remedy"}, the body of a refusal in several APIs."""
    return {"error": f"{problem.message} {problem.remedy}".strip()}


def answered(answer: SearchAnswer) -> SearchAnswer:
    """Returns `answer`. Raises SearchBackendError if every engine failed: some APIs report a
    failure nowhere else."""
    if answer.status in ("ok", "empty"):
        return answer
    reasons = [attempt.error.message for attempt in answer.attempts if attempt.error]
    words = " ".join(reasons) or "No engine could be asked."
    raise SearchBackendError("search_failed", words, "Try again later.")


def opened(view: PageView) -> PageView:
    """Returns `view`. Raises SearchBackendError if the page could not be read."""
    error = view.page.error
    if error is None:
        return view
    code = error.code if error.code.startswith("refused_") else "page_failed"
    raise SearchBackendError(code, error.message, error.remedy)


@cache
def find_shapes() -> tuple[Shape, ...]:
    """Returns every shape of this package, sorted by file name."""
    return tuple(own_parts(__name__, "SHAPE", Shape))


def error_at(path: str, status: int, problem: Problem) -> dict[str, Any] | None:
    """Returns the body of a refusal in the form of the API at `path`; None for our own routes."""
    for shape in find_shapes():
        if any(route.path == path for route in shape.routes):
            return shape.error(status, problem)
    return None


def form_paths() -> frozenset[str]:
    """Returns the paths at which a body may be a form instead of JSON."""
    return frozenset(route.path for shape in find_shapes() for route in shape.routes if route.form)
