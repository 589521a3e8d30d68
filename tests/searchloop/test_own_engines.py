"""An engine of the user: its pages are read, and claims compared with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from searchloop import Agent, Engine, SearchResult
from searchloop.testing import ScriptedModel, call, offline
from tests.tables import each_row

TEXT = "There are 30 days of leave a year."
Opens = Callable[[str, Any], str]


def asked(home: Path, base: str, **more: Any) -> Any:
    """An answer that searches, opens what is found and cites it; and what was told meanwhile."""

    def search(query: Any, access: Any) -> list[SearchResult]:
        return [SearchResult("Leave", f"{base}leave", "About leave", "wiki")]

    wiki = Engine("wiki", "Our wiki", search, remote=False, **more)
    steps = (
        call("web_search", query="leave"),
        call("open_page", url=f"{base}leave"),
        f"{TEXT} [1]",
    )
    with Agent(offline(home), model=ScriptedModel(*steps), engines=[wiki], search="local") as agent:
        stream = agent.stream("How many days of leave do I have?")
        told = {event.type: event.data for event in stream}
        return stream.answer, told


def failing(url: str, _access: Any) -> str:
    """One that does not know its own address."""
    raise KeyError(url)


@each_row(
    ("base", "more"),
    [
        ("wiki://", {"scheme": "wiki", "open": lambda url, _: TEXT}),
        ("wiki://", {"scheme": "wiki", "open": lambda url, _: f"<h1>Leave</h1><p>{TEXT}</p>"}),
        ("https://wiki.corp/", {"sites": ("wiki.corp",), "open": lambda url, _: TEXT}),
    ],
)
def test_its_pages_are_read_and_judged(base: str, more: Any, tmp_path: Path) -> None:
    """By a scheme of its own, or by hosts of the web that only it can read."""
    answer, _ = asked(tmp_path, base, **more)
    (mark,) = answer.citations[0].marks
    assert mark.verdict == "supported"
    assert mark.passage in TEXT


def test_what_nothing_opens_is_told(tmp_path: Path) -> None:
    """The search says what the engine lacks, in place of marks that stay unread."""
    _, told = asked(tmp_path, "wiki://")
    said = str(told["search_finished"])
    assert "gave wiki://leave, an address that nothing opens" in said
    assert "a scheme, and an open" in said


def test_an_error_in_it_is_told(tmp_path: Path) -> None:
    """With the name of the engine and its own words."""
    _, told = asked(tmp_path, "wiki://", scheme="wiki", open=failing)
    assert "Our wiki could not open wiki://leave: KeyError" in str(told["page_opened"])


@pytest.mark.parametrize("half", [{"scheme": "wiki"}, {"open": failing}], ids=["scheme", "open"])
def test_half_an_opener_is_refused(half: Any) -> None:
    """When it is made, with what is missing."""
    with pytest.raises(ValueError, match="The engine wiki has"):
        Engine("wiki", "Our wiki", **half)
