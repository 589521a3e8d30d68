"""A table of cases can fail, row by row."""

from __future__ import annotations

import inspect

import pytest

from tests.tables import each_row

ROWS = [(1, 1), (2, 3), pytest.param(4, 5, id="four"), (6, 6)]


def test_every_row_is_gone_through_and_each_that_fails_is_named() -> None:
    """A failure hides none of the rows behind it; what is left of the arguments is a fixture."""
    seen = []

    @each_row("a, b", ROWS)
    @each_row("c", "xy")
    def table(a: int, b: int, c: str, fixture: str) -> None:
        seen.append((a, b, c, fixture))
        if a != b:  # what `pytest.raises` raises is none of the usual exceptions
            with pytest.raises(ValueError, match="x"):
                pass

    assert list(inspect.signature(table).parameters) == ["fixture"]
    with pytest.raises(BaseExceptionGroup, match="2 of 4 rows") as caught:
        table(fixture="f")
    assert len(seen) == 8
    notes = [error.__notes__[-1] for error in caught.value.exceptions]
    assert notes == ["in the row (2, 3)", "in the row four"]


def test_a_table_must_hold_something_and_no_marks() -> None:
    """Else a check is left out in silence."""
    with pytest.raises(AssertionError, match="without rows"):
        each_row("a", [])
    marked = each_row("a", [pytest.param(1, marks=pytest.mark.torture)])(lambda a: None)
    with pytest.raises(AssertionError, match="mark"):
        marked()
