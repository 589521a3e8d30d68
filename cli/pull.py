"""`searchloop models pull NAME`: gets a model for a local server."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import aclosing

from agent.errors import ConfigError
from agent.providers import Pulls, load, names, split_model
from agent.settings import Settings
from agent.transport import Transport
from agent.types import Progress
from cli.main import OK
from cli.text import as_json, one_line

_LOCAL = "ollama"


def run(args: argparse.Namespace) -> int:
    """Shows the progress on stderr; the name of the model goes to stdout when it is there."""
    provider, _, rest = args.model.partition(":")
    known = provider in names() and rest
    model = args.model if known else f"{_LOCAL}:{args.model}"
    asyncio.run(_pull(model))
    print(as_json({"pulled": model}) if args.output == "json" else model)
    return OK


async def _pull(model: str) -> None:
    name, rest = split_model(model)
    settings = Settings.load()
    transport = Transport(offline=settings.offline)
    show = Line()
    try:
        provider = load(name, settings.env, transport)
        if not isinstance(provider, Pulls):
            raise ConfigError(
                "no_pull",
                f"{name} runs its models elsewhere; there is nothing to get.",
                f"Write the name of a local model, for example {_LOCAL}:qwen3:8b.",
            )
        async with aclosing(provider.pull(rest)) as steps:
            async for progress in steps:
                show.update(progress)
    finally:
        show.end()
        await transport.aclose()


class Line:
    """One line on a terminal that is written again and again; elsewhere a line a status."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last = ""

    def update(self, progress: Progress) -> None:
        """Shows it, if it says anything new."""
        status = one_line(progress.status, 50)
        if self._live and progress.total:
            share = f" {progress.done * 100 // progress.total}% of {_size(progress.total)}"
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


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, count // 1_000_000)} MB"
