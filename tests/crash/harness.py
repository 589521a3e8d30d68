"""Kills a run at one point, lets it go on, asks once more, and looks whether all promises held."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from searchloop.agent.log import EventLog
from searchloop.agent.log.backup import check
from searchloop.agent.log.events import DELTAS, Event
from tests.agent.scripted import MODEL
from tests.crash.mortal import AGAIN, QUESTION
from tests.crash.working import STEPS

ROOT = Path(__file__).parent.parent.parent
ONCE = {  # what tells an event of a run from any other of its type
    "run_started": "run_id",
    "run_finished": "run_id",
    "message": "step",
    "tool_call": "call_id",
    "tool_started": "call_id",
    "tool_result": "call_id",
    "approval_requested": "call_id",
    "approval_decided": "call_id",
}


class Zygote:
    """The interpreter that all lives are forked from. Use with `with`."""

    def __init__(self, module: str = "tests.crash.mortal") -> None:
        self._module = module

    def __enter__(self) -> Zygote:
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def live(self, **order: Any) -> dict[str, Any]:
        """One life; how it ended."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        ended: dict[str, Any] = json.loads(self._process.stdout.readline())
        return ended

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def lives(zygote: Zygote, where: Callable[[Path], str], mode: str, **death: Any) -> bool:
    """Two lives of one session, the first cut short; False when death came too late."""
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        home = Path(folder)
        store = where(home)
        log = EventLog(store)
        session = log.create_session(model=MODEL, search="local").id
        order = {"home": str(home), "store": store, "session": session, "mode": mode}
        first = zygote.live(**order, **death, ask=[QUESTION])
        before = log.read(session)
        early = _lines(home / "asked")
        acknowledged = (home / "acknowledged").exists()
        second = zygote.live(**order, ask=[AGAIN])
        after = log.read(session)
        log.close()
        told = [f"{mode} {death}: {first} {second}", str([e.type for e in after])]
        problems = [
            *([] if second["code"] == 0 else ["the second life failed"]),
            *([] if first["killed"] or first["code"] == 0 else ["the first life failed"]),
            *_lost(before, after, acknowledged),
            *_doubled(after),
            *_asked_again(before, early, _lines(home / "asked")),
            *_effects(home, after, mode),
            *check(store),
        ]
        last = after[-1] if after else None
        if last is None or last.type != "run_finished" or last.data["reason"] != "stop":
            problems.append("the session cannot go on")
        assert not problems, "\n".join([*problems, *told])
        return bool(first["killed"])


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def _lost(before: list[Event], after: list[Event], acknowledged: bool) -> Iterable[str]:
    kept = {(e.seq, e.type, json.dumps(e.data)) for e in after}
    for event in before:
        if event.type not in DELTAS and (event.seq, event.type, json.dumps(event.data)) not in kept:
            yield f"lost: {event}"
    if acknowledged and not any(e.data.get("text") == QUESTION for e in after):
        yield "the question was acknowledged and is lost"


def _doubled(after: list[Event]) -> Iterable[str]:
    run = ""
    seen: Counter[tuple[str, ...]] = Counter()
    for event in after:
        data = event.data
        if event.type == "run_started":
            run = data["run_id"]
        key = ONCE.get(event.type)
        if key:
            seen[run, event.type, str(data[key])] += 1
    yield from (f"{times} times: {what}" for what, times in seen.items() if times > 1)


def _asked_again(before: list[Event], early: list[str], asked: list[str]) -> Iterable[str]:
    """What the log held when the first life ended is not asked for again."""
    held = list(STEPS)[: sum(e.type == "message" for e in before)]
    for step in asked[len(early) :]:
        if step in held:
            yield f"asked again: {step}"


def _effects(home: Path, after: list[Event], mode: str) -> Iterable[str]:
    times = len(_lines(home / "effects"))
    results = [e.data for e in after if e.type == "tool_result" and e.data["name"] == "save"]
    unknown = [r for r in results if r["details"].get("error", {}).get("code") == "outcome_unknown"]
    if times > 1:
        yield f"saved {times} times"
    if mode != "agent" and times:
        yield f"saved in {mode} mode"
    if mode == "agent" and results and not unknown and times != 1:
        yield "said to be saved, and was not"
