"""Runs `searchloop models`: lists what can be asked; gets, unloads and removes local models."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict, dataclass

from searchloop.agent.library import BareAgent
from searchloop.agent.providers import (
    Hosts,
    ModelServer,
    PullProgress,
    hosting,
    load,
    names,
    split_model,
)
from searchloop.agent.settings import Settings
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Loaded, ModelInfo
from searchloop.cli.arguments import one_line, output, size, tell

_LOCAL_PROVIDER = "ollama"
_DONE = {"pull": "pulled", "unload": "unloaded", "remove": "removed"}


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_list)
    output(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    shown = "as `searchloop models` shows it"
    for name, help, about in (
        ("pull", "get a model for a local server, with progress", "for example qwen3:8b"),
        ("unload", "take a model out of a local server's memory", shown),
        ("remove", "delete a model from a local server's disk", shown),
    ):
        action = actions.add_parser(name, help=help)
        action.set_defaults(run=_change)
        action.add_argument("model", metavar="NAME", help=about)
        output(action)


def _list(args: argparse.Namespace) -> int:
    """Prints every model with its search, tools and availability."""
    with BareAgent(search_backend=None) as agent:
        models = agent.models()
    ready = [m for m in models if m.available]
    width = max((len(m.id) for m in ready), default=0)
    lines = [f"{one_line(model.id):<{width}}  {_facts(model)}" for model in ready]
    groups: dict[tuple[str, str], list[ModelInfo]] = {}
    for model in models:
        if not model.available:
            groups.setdefault((model.missing or "", model.remedy or ""), []).append(model)
    for (missing, remedy), group in groups.items():
        lacking = ", ".join(one_line(m.id) for m in group if not m.id.endswith(":"))
        lacks = missing.rstrip(".")
        what = f"without {lacks}" if lacks.isupper() else f"now: {lacks}"
        told = one_line(f"{what}. {remedy}", 300)
        lines.append(f"\nNot available {told}\n  {lacking}".rstrip())
    return tell(args, {"models": [asdict(m) for m in models]}, *lines)


def _facts(model: ModelInfo) -> str:
    can = model.capabilities
    facts = ["searches itself" if can.native_search else "local search"]
    facts += [f"calls: {model.calls}"] if model.calls else ["no tools"] * (not can.tools)
    facts += [_loaded(model.loaded)] if model.loaded else []
    facts += ["thinks"] * can.thinking + ["sees"] * can.vision
    if can.context:
        facts.append(f"{can.context} tokens")
    if model.title:
        facts.append(one_line(model.title))
    return ", ".join(facts)


def _loaded(model: Loaded) -> str:
    """Says how much memory a loaded model takes, where, and for how much longer."""
    where = f", {model.gpu * 100 // model.size}% on the GPU" if model.size and model.gpu else ""
    left = "" if model.until is None else f", {_minutes(model.until - time.time())} more"
    return f"loaded ({size(model.size)}{where}{left})"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{max(0, seconds):.0f} s"


def _change(args: argparse.Namespace) -> int:
    """Gets, unloads or removes a model and prints its name; progress goes to stderr."""
    model = asyncio.run(_changed(args.action, args.model))
    return tell(args, {_DONE[args.action]: model}, model)


async def _changed(action: str, model: str) -> str:
    async with _held(model) as found:
        if action == "pull":
            await _pull(found)
        elif action == "unload":
            await found.host.unload(found.name)
        else:
            await found.host.remove(found.name)
        return found.id


async def _pull(found: _Held) -> None:
    line = _Line()
    try:
        async with aclosing(found.host.pull(found.name)) as steps:
            async for progress in steps:
                line.update(progress)
    finally:
        line.end()


@dataclass(frozen=True, slots=True)
class _Held:
    """A model, by its whole name and by the name that its server knows."""

    host: Hosts
    id: str
    name: str


@asynccontextmanager
async def _held(model: str) -> AsyncIterator[_Held]:
    """Opens the server that holds a model; a name without a provider is Ollama's.

    Raises ConfigError for a provider that runs its models elsewhere.
    """
    given, _, rest = model.partition(":")
    whole = model if given in names() and rest else f"{_LOCAL_PROVIDER}:{model}"
    provider_name, name = split_model(whole)
    settings = Settings.load()
    async with aclosing(Transport(offline=settings.offline)) as transport:
        provider = load(provider_name, settings.env, transport)
        yield _Held(hosting(provider, provider_name), whole, name)


async def own_servers(settings: Settings) -> list[ModelServer]:
    """Lists the user's own servers that the settings name, even those that do not answer."""
    async with aclosing(Transport(offline=settings.offline)) as transport:
        every = (load(name, settings.env, transport) for name in names())
        return [await host.server() for host in every if isinstance(host, Hosts)]


class _Line:
    """A line on a terminal that is written again and again; elsewhere one line for each status."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last = ""

    def update(self, progress: PullProgress) -> None:
        """Shows the progress, if it says anything new."""
        status = one_line(progress.status, 50)
        if self._live and progress.total:
            status += f" {progress.done * 100 // progress.total}% of {size(progress.total)}"
        if status == self._last:
            return
        self._last = status
        before, after = ("\r\033[K", "") if self._live else ("", "\n")
        print(f"{before}{status}", end=after, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Ends the line."""
        if self._live and self._last:
            print(file=sys.stderr)


ARGUMENTS = {"models": _arguments}
