"""Any four of five engines may be down, late or lying: the fifth answers, and soon is asked alone.

The time stands still except where an engine hangs, so no busy machine makes an engine late or ends
a rest.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from searchloop.search_backend.types import Query
from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.search_backend.chains import Script, chain_of, codes
from tests.search_backend.search.test_engine_chain import HANG, Hanging, found, house, wired

NAMES = "abcde"
FAULTS: dict[str, Reply | None] = {
    "hangs": None,
    "resets": Reply(before="reset"),
    "fails": Reply(b"", 500),
    "lies": Reply(b"<html>Just a moment...</html>", 200),
    "garbles": json_reply({"results": "none"}),
    "limits": json_reply({}, 429, {"retry-after": "60"}),
}


EVERY = [(good, faults) for good in NAMES for faults in itertools.combinations(FAULTS, 4)]


@pytest.mark.parametrize(
    ("good", "faults"),
    [
        *((good, ("hangs", "lies", "resets", "garbles")) for good in NAMES),
        *(("e", (fault,) * 4) for fault in FAULTS),
        *(pytest.param(*one, marks=pytest.mark.torture) for one in EVERY),
    ],
)
def test_four_of_five_engines_may_fail(tmp_path: Path, good: str, faults: tuple[str, ...]) -> None:
    """All engines are well, then all but one get a fault, each its own or all the same: every
    search still has results, and soon only the good engine is asked."""
    ill = dict(zip([name for name in NAMES if name != good], faults, strict=True))
    sick, clock = threading.Event(), Hanging()

    def moody(name: str) -> Callable[[Received], Reply]:
        def answer(received: Received) -> Reply:
            if name not in ill or not sick.is_set():
                return found(f"https://{name}.example/")
            return FAULTS[ill[name]] or clock.hang(received)

        return answer

    with house(tmp_path, {name: moody(name) for name in NAMES}, clock) as h:
        assert h.ask("well").engine == "a"
        sick.set()
        told = [h.ask(f"ill {n}") for n in range(2)]
        assert all(answer.engine == good for answer in told), told
        before = {name: h.asked(name) for name in NAMES}
        for n in range(3):
            answer = h.ask(f"known {n}")
            assert (answer.status, answer.engine) == ("ok", good)
            # Those behind the good one are not needed.
            assert codes(answer) == {name: "resting" for name in ill if name < good}
        asked = {name: h.asked(name) - before[name] for name in NAMES}
        assert asked == dict.fromkeys(NAMES, 0) | {good: 3}


def test_the_library_is_asked_when_the_web_does_not_answer_in_time(tmp_path: Path) -> None:
    """The only engine of the web hangs until the deadline: what this machine knows is found."""
    with FakeServer(lambda _: HANG) as server:
        engines = {
            "web": wired("web", server),
            "local": Script([]),
            "library": Script(["library://notes/a"]),
        }
        with closing(chain_of(tmp_path, engines, time.monotonic, seconds=0.4)) as chain:
            answer = chain.search(Query("tea"))
    assert (answer.status, answer.engine) == ("ok", "library")
    assert codes(answer) == {"web": "timeout"}
