"""`searchloop models pull NAME`: gets a model for a local server."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import aclosing

from agent.hosting import Progress
from cli.host import held
from cli.main import OK
from cli.text import as_json, one_line, size


def run(args: argparse.Namespace) -> int:
    """Shows the progress on stderr; the name of the model goes to stdout when it is there."""
    model = asyncio.run(_pull(args.model))
    print(as_json({"pulled": model}) if args.output == "json" else model)
    return OK


async def _pull(model: str) -> str:
    show = Line()
    try:
        async with held(model) as found, aclosing(found.host.pull(found.name)) as steps:
            async for progress in steps:
                show.update(progress)
            return found.id
    finally:
        show.end()


class Line:
    """One line on a terminal that is written again and again; elsewhere a line a status."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last = ""

    def update(self, progress: Progress) -> None:
        """Shows it, if it says anything new."""
        status = one_line(progress.status, 50)
        if self._live and progress.total:
            share = f" {progress.done * 100 // progress.total}% of {size(progress.total)}"
            status += share
        if status == self._last:
            return
        self._last = status
        print(f"\r\033[K{status}" if self._live else status, end=self._end, file=sys.stderr)
        sys.stderr.flush()

    @property
    def _end(self) -> str:
        return "" if self._live else "\n"

    def end(self) -> None:
        """Leaves the line."""
        if self._live and self._last:
            print(file=sys.stderr)
