"""Runs `searchloop models`: lists what can be asked; gets, unloads and removes local models."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from contextlib import aclosing
from dataclasses import asdict

from searchloop.agent.errors import ConfigError
from searchloop.agent.library import BareAgent
from searchloop.agent.providers import Hosts, ModelServer, hosting, load, names, split_model
from searchloop.agent.settings import Settings
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Loaded, ModelInfo
from searchloop.cli.arguments import actions, one_line, output, size, tell

_LOCAL_PROVIDER = "ollama"
_DONE = {"pull": "pulled", "unload": "unloaded", "remove": "removed"}


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_list)
    output(parser)
    about = {"pull": "get a model for a local server, with progress"}
    about |= {"unload": "take a model out of a local server's memory"}
    about |= {"remove": "delete a model from a local server's disk"}
    for action in actions(parser, _change, **about).values():
        action.add_argument("model", metavar="NAME", help="for example qwen3:8b")


def _list(args: argparse.Namespace) -> int:
    """Prints every model with its search, tools and availability."""
    with BareAgent(search_backend=None) as agent:
        models, usual = agent.models(), agent.usual_model()
    ready = [m for m in models if m.available]
    width = max((len(m.id) for m in ready), default=0)
    lines = [f"{one_line(model.id):<{width}}  {_facts(model)}" for model in ready]
    lacking: dict[str, list[str]] = {}
    for model in models:
        if not model.available:
            lacks = (model.missing or "").rstrip(".")
            what = f"without {lacks}" if lacks.isupper() else f"now: {lacks}"
            named = [] if model.id.endswith(":") else [one_line(model.id)]
            lacking.setdefault(one_line(f"{what}. {model.remedy or ''}", 300), []).extend(named)
    lines += [f"\nNot available {why}\n  {', '.join(ids)}".rstrip() for why, ids in lacking.items()]
    lines.append(f"\nWithout -m: {one_line(usual.model)} ({usual.why})")
    listed = {"models": [asdict(m) for m in models], "default": asdict(usual)}
    return tell(args, listed, *lines)


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
    seconds = max(0.0, (model.until or 0.0) - time.time())
    left = f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
    more = "" if model.until is None else f", {left} more"
    return f"loaded ({size(model.size)}{where}{more})"


def _change(args: argparse.Namespace) -> int:
    """Pulls, unloads or removes a model and prints its name; a name without a provider is local."""
    given, _, rest = args.model.partition(":")
    local = given not in names() or not rest
    model = f"{_LOCAL_PROVIDER}:{args.model}" if local else args.model
    asyncio.run(_changed(args.action, model))
    return tell(args, {_DONE[args.action]: model}, model)


async def _changed(action: str, model: str) -> None:
    provider, name = split_model(model)
    settings = Settings.load()
    async with aclosing(Transport(offline=settings.offline)) as transport:
        host = hosting(load(provider, settings.env, transport), provider)
        if action == "unload":
            await host.unload(name)
        elif action == "remove":
            await host.remove(name)
        else:
            await _pull(host, name)


async def _pull(host: Hosts, name: str) -> None:
    """Shows the progress: on a terminal in one line, elsewhere one line for each new status."""
    live, last = sys.stderr.isatty(), ""
    before, after = ("\r\033[K", "") if live else ("", "\n")
    try:
        async with aclosing(host.pull(name)) as steps:
            async for step in steps:
                status = one_line(step.status, 50)
                if live and step.total:
                    status += f" {step.done * 100 // step.total}% of {size(step.total)}"
                if status != last:
                    print(f"{before}{status}", end=after, file=sys.stderr, flush=True)
                last = status
    finally:
        print(end="\n" if live and last else "", file=sys.stderr)


def whole_name(agent: BareAgent, model: str) -> str:
    """Adds the provider to a model's name. Raises ConfigError unless exactly one has the model."""
    if re.split("[:/]", model)[0] in names():
        return model
    named = [m for m in agent.models() if m.id.partition(":")[2] in (model, f"{model}:latest")]
    found = [m.id for m in named if m.available] or [m.id for m in named]
    if len(found) > 1:
        what = f"{len(found)} providers have a model {one_line(model, 60)}."
        raise ConfigError("ambiguous_model", what, f"Choose one of {', '.join(found)}.")
    if not found:
        agent.runner.provider(model)  # says why this is no name
    return found[0]


async def own_servers(settings: Settings) -> list[ModelServer]:
    """Lists the user's own servers that the settings name, even those that do not answer."""
    async with aclosing(Transport(offline=settings.offline)) as transport:
        every = (load(name, settings.env, transport) for name in names())
        return [await host.server() for host in every if isinstance(host, Hosts)]


ARGUMENTS = {"models": _arguments}
