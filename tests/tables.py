"""Tables of cases that one test goes through.

An item of pytest costs five milliseconds of collecting, starting and reporting, which thousands
of rows that take microseconds do not need. Rows that take long, or need fixtures of their own, are
parameters of pytest.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

SHOWN = 200  # characters of a row that failed
# What `pytest.raises` and `pytest.fail` raise is none of the exceptions that a test may catch.
FAILURES = (Exception, pytest.fail.Exception, BaseExceptionGroup)

Test = Callable[..., None]


def each_row(names: str | Sequence[str], rows: Iterable[Any], ids: object = None) -> Any:
    """Calls a test with every row, as `pytest.mark.parametrize` would in as many tests.

    Every row that fails is in the report with its values, or the name that `pytest.param` gives it.
    What the table of pytest takes as `ids` is taken, and not needed.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = list(rows)
    assert table, "a table without rows checks nothing"

    def through(test: Test) -> Test:
        @functools.wraps(test)
        def whole(**given: Any) -> None:
            failures: list[BaseException] = []
            for row in table:
                values = _values(row, len(keys))
                try:
                    test(**given, **dict(zip(keys, values, strict=True)))
                except FAILURES as error:
                    name = getattr(row, "id", None) or repr(values)
                    error.add_note(f"in the row {name}"[:SHOWN])
                    failures.append(error)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} rows", failures)

        own = inspect.signature(test)
        left = [known for name, known in own.parameters.items() if name not in keys]
        whole.__signature__ = own.replace(parameters=left)  # type: ignore[attr-defined]
        return whole

    return through


def _values(row: Any, width: int) -> Sequence[Any]:
    if type(row).__name__ == "ParameterSet":
        assert not row.marks, "a row with a mark is a parameter of pytest"
        return tuple(row.values)
    return row if width > 1 else (row,)


def cut(rows: str) -> list[str]:
    """Cuts a table of short rows without blanks, which then need no line each."""
    return rows.split()
