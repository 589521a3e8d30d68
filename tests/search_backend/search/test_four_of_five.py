"""Any four of five engines may be down, slow or lying: the fifth answers, soon at its own pace."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from searchloop.search_backend.engines import Access, Engine
from searchloop.search_backend.library import Library
from searchloop.search_backend.search.chain import Chain
from searchloop.search_backend.settings import Settings
from searchloop.search_backend.types import Query, SearchAnswer, SearchResult
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.search_backend.search.test_engine_chain import HANG, House, found, house, wired
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
    after a few searches only the good engine is asked, at its own pace.
    """
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
        # How fast a healthy engine answers is known after that.
        healthy = sorted(_seconds(h, f"well {n}")[1] for n in range(20))
        sick.set()
        told = [h.ask(f"ill {n}") for n in range(5)]
        assert all(answer.engine == good for answer in told), told
        # As a chain, those behind the good one are not needed.
        needed = list(ill) if width == 5 else [name for name in ill if name < good]
        before = {name: h.asked(name) for name in NAMES}
        last = [_seconds(h, f"known {n}") for n in range(5)]
        for answer, _ in last:
            assert (answer.status, answer.engine) == ("ok", good)
            reasons = _reasons(answer)
            assert {name: reasons.get(name) for name in needed} == dict.fromkeys(needed, "resting")
        asked = {name: h.asked(name) - before[name] for name in NAMES}
        assert {name: asked[name] for name in (good, *needed)} == {good: 5} | dict.fromkeys(
            needed, 0
        )
        in_reserve = [answer for answer, _ in last if set(_used(answer)) - {good}]
        assert not in_reserve, last
        # Whoever waits for one that is ill does so in each search, a quarter of a second or longer;
        # of less than a tenth a busy machine is the cause.
        most = max(2 * healthy[18], 0.1)
        assert min(seconds for _, seconds in last) <= most, (healthy, last)


def _seconds(asked: House, text: str) -> tuple[SearchAnswer, float]:
    began = time.monotonic()
    return asked.ask(text), time.monotonic() - began


def _used(answer: SearchAnswer) -> list[str]:
    """The engines that were asked, whatever came of it."""
    rested = {a.engine for a in answer.attempts if a.error and a.error.code == "resting"}
    return [a.engine for a in answer.attempts if a.engine not in rested]


def _reasons(answer: SearchAnswer) -> dict[str, str]:
    """Why engines gave nothing."""
    return {a.engine: a.error.code for a in answer.attempts if a.error}


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
            "none": Engine("none", "None", lambda _query, _access: [], remote=False),
            "here": Engine("here", "Here", here, remote=False),
        }
        settings = Settings(tmp_path, ("web", "none", "here"), seconds=0.4)

        def search() -> SearchAnswer:
            with closing(Chain(settings, Library(tmp_path, dict), engines)) as chain:
                return chain.search(Query("tea"))

        answer = in_time(search, 0.4 + 1)
    assert (answer.status, answer.engine) == ("ok", "here")
    assert _reasons(answer) == {"web": "timeout"}
