"""Any four of five engines may be down, slow or lying: the fifth answers, soon at its own pace."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from search_backend.engines import Access, Engine
from search_backend.library import Library
from search_backend.search import Chain
from search_backend.settings import Settings
from search_backend.types import Query, SearchAnswer, SearchResult
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.search_backend.test_engine_chain import HANG, found, house, wired
from tests.waiting import in_time

NAMES = "abcde"
LATE = 1.2  # seconds of an engine that answers, but later than anybody has patience for


def slow(_: Received) -> Reply:
    """A good answer that nobody should have waited for."""
    threading.Event().wait(LATE)
    return found("https://slow.example/")


FAULTS: dict[str, Reply | Callable[[Received], Reply]] = {
    "hangs": HANG,
    "resets": Reply(before="reset"),
    "fails": Reply(b"", 500),
    "lies": Reply(b"<html>Just a moment...</html>", 200),
    "garbles": json_reply({"results": "none"}),
    "limits": json_reply({}, 429, {"retry-after": "60"}),
    "is slow": slow,
}


def survives(home: Path, good: str, faults: tuple[str, ...], width: int) -> None:
    """All engines are well, then all but one get a fault: every search still has results, and
    after a few searches only the good engine is asked."""
    ill = dict(zip([name for name in NAMES if name != good], faults, strict=True))
    sick = threading.Event()

    def moody(name: str) -> Callable[[Received], Reply]:
        def answer(received: Received) -> Reply:
            if name not in ill or not sick.is_set():
                return found(f"https://{name}.example/")
            fault = FAULTS[ill[name]]
            return fault if isinstance(fault, Reply) else fault(received)

        return answer

    answers = {name: moody(name) for name in NAMES}
    with house(home, answers, fanout=width, seconds=8.0) as h:  # type: ignore[arg-type]
        for n in range(20):  # how fast a healthy engine answers is known after that
            h.ask(f"well {n}")
        sick.set()
        told = [h.ask(f"ill {n}") for n in range(5)]
        assert all(answer.engine == good for answer in told), told
        before = h.asked(good)
        # As a chain, those behind the good one are not needed.
        needed = ill if width == 5 else [name for name in ill if name < good]
        for n in range(5):
            last = h.ask(f"known {n}")
            assert (last.status, last.engine) == ("ok", good)
            # One request to one healthy engine: the search takes what that engine takes.
            assert _reasons(last) == dict.fromkeys(needed, "resting")
        assert h.asked(good) - before == 5


def _reasons(answer: SearchAnswer) -> dict[str, str]:
    """Why engines gave nothing, but for a reserve that was not needed in the end."""
    told = {a.engine: a.error.code for a in answer.attempts if a.error}
    return {name: code for name, code in told.items() if code != "overtaken"}


@pytest.mark.parametrize("good", NAMES)
def test_each_engine_alone_carries_the_chain(tmp_path: Path, good: str) -> None:
    """Four different faults at once, wherever the healthy engine stands."""
    survives(tmp_path, good, ("hangs", "lies", "limits", "is slow"), 5)


@pytest.mark.torture
@pytest.mark.parametrize("good", NAMES)
@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.parametrize("faults", [*itertools.combinations(FAULTS, 4)])
def test_every_combination_of_faults(
    tmp_path: Path, good: str, faults: tuple[str, ...], width: int
) -> None:
    """Any fault in any place, as a chain and together."""
    survives(tmp_path, good, faults, width)


def test_a_reserve_that_fails_is_replaced(tmp_path: Path) -> None:
    """The first hangs, the one asked in its place fails at once: the third answers at once."""
    survives(tmp_path, "c", ("hangs", "resets", "fails", "lies"), 1)


def test_the_library_is_asked_when_the_web_does_not_answer_in_time(tmp_path: Path) -> None:
    """The only engine of the web hangs until the deadline: what this machine knows is found."""

    def here(_query: Query, _access: Access) -> list[SearchResult]:
        return [SearchResult("Notes", "library://notes/a", "x", "here")]

    with FakeServer(lambda _: HANG) as server:
        engines = {
            "web": wired("web", server),
            "here": Engine("here", "Here", here, remote=False),
        }
        settings = Settings(tmp_path, ("web", "here"), seconds=0.4)

        def search() -> SearchAnswer:
            with closing(Chain(settings, Library(tmp_path, dict), engines)) as chain:
                return chain.search(Query("tea"))

        answer = in_time(search, 0.4 + 1)
    assert (answer.status, answer.engine) == ("ok", "here")
    assert _reasons(answer) == {"web": "timeout"}
