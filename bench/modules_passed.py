"""Counts the project's modules that one question with one model step passes through.

`python -m bench.modules_passed` asks a model server that answers at once, through `Agent` with its
own `Runner` and a log on disk, and prints the number of modules whose functions ran, then their
names. The first question, which loads and warms everything up, is not counted.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from bench.measure import fake
from bench.scenarios import MODEL, SCENARIOS, smaller
from searchloop import Agent
from searchloop.agent.settings import Environment, Settings

_ROOT = str(Path(__file__).resolve().parent.parent / "searchloop") + os.sep
_PACKAGES = tuple(f"{_ROOT}{name}{os.sep}" for name in ("agent", "search_backend", "web", "cli"))


class Passed:
    """Collects the files of ours whose functions are called, on all threads."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """A profile function, see `sys.setprofile`."""
        code = frame.f_code
        ours = code.co_filename.startswith(_PACKAGES)
        if ours and event == "call" and code.co_name != "<module>":
            self.files.add(code.co_filename)

    @property
    def modules(self) -> list[str]:
        """Dotted names, sorted."""
        names = (file.removeprefix(_ROOT).removesuffix(".py") for file in self.files)
        return sorted(name.replace(os.sep, ".").removesuffix(".__init__") for name in names)


@contextlib.contextmanager
def profiled(passed: Passed) -> Iterator[None]:
    """Has `passed` see each call of this thread and of those that start meanwhile."""
    threading.setprofile(passed)
    sys.setprofile(passed)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def main() -> None:
    """Asks twice, counts the second time."""
    stream = next(s for s in smaller(SCENARIOS) if s.name == "stream")
    passed = Passed()
    with fake([stream], None) as server, tempfile.TemporaryDirectory() as home:
        own = {"SEARCHLOOP_HOME": home, "OPENAI_API_KEY": "bench"}
        settings = Settings.load(
            Environment({"flag": {**own, "OPENAI_BASE_URL": server.url(stream)}})
        )
        with profiled(passed), Agent(settings) as agent:
            for _ in range(2):
                passed.files.clear()
                answer = agent.ask("Do the work.", model=f"openai:{MODEL}")
            modules = passed.modules
    if answer.reason != "stop":
        raise SystemExit(f"the question failed: {answer.error}")
    print(f"{len(modules)} modules")
    print("\n".join(f"  {name}" for name in modules))


if __name__ == "__main__":
    main()
