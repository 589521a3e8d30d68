"""Runs `searchloop models`: lists what can be asked, gets local models, keeps the usual one."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import asdict

from searchloop.agent.bare_agent import BareAgent
from searchloop.agent.errors import ConfigError
from searchloop.agent.providers import has, hosting, load, split_model, unset
from searchloop.agent.providers import names as providers
from searchloop.agent.settings import LOWEST, Settings
from searchloop.agent.settings.config_file import change_config
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import ModelInfo
from searchloop.agent.types.attachments import size_words
from searchloop.analysis.told import did_you_mean
from searchloop.cli.arguments import actions, one_line, output, tell, warn

_LOCAL_PROVIDER = "ollama"


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_list)
    output(parser)
    about = {"pull": "get a model for a local server, with progress"}
    about |= {"default": "show or choose the model of questions that name none"}
    made = actions(parser, _pull, **about)
    made["pull"].add_argument("model", metavar="NAME", help="for example qwen3:8b")
    made["default"].set_defaults(run=_default)
    what = "provider:model; none takes it away"
    made["default"].add_argument("model", metavar="MODEL", nargs="?", help=what)


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
            what = f"without {lacks}" if unset(model) else f"now: {lacks}"
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
    facts += ["loaded"] * bool(model.loaded)
    facts += ["thinks"] * can.thinking + ["sees"] * can.vision
    if can.context:
        facts.append(f"{can.context} tokens")
    if model.title:
        facts.append(one_line(model.title))
    return ", ".join(facts)


def _default(args: argparse.Namespace) -> int:
    """Prints the model that answers where none is named; saves another one before, if asked."""
    with BareAgent(search_backend=None) as agent:
        if args.model:
            model = None if args.model == "none" else whole_name(agent, args.model)
            change_config(agent.settings.home / LOWEST, {"SEARCHLOOP_MODEL": model})
    with BareAgent(search_backend=None) as agent:
        usual = agent.usual_model()
    if args.model not in (None, "none") and usual.model != model:
        warn(f"{model} is saved, but does not hold now: the default is {usual.why}.")
    return tell(args, asdict(usual), f"{one_line(usual.model)} ({usual.why})")


def _pull(args: argparse.Namespace) -> int:
    """Pulls a model and prints its name; a name without a provider is local."""
    given, _, rest = args.model.partition(":")
    local = not has(given) or not rest
    model = f"{_LOCAL_PROVIDER}:{args.model}" if local else args.model
    asyncio.run(_pulled(model))
    return tell(args, {"pulled": model}, model)


async def _pulled(model: str) -> None:
    """Shows the progress: on a terminal in one line, elsewhere one line for each new status."""
    provider, name = split_model(model)
    settings = Settings.load()
    async with aclosing(Transport(offline=settings.offline)) as transport:
        host = hosting(load(provider, settings.env, transport), provider)
        live, last = sys.stderr.isatty(), ""
        before, after = ("\r\033[K", "") if live else ("", "\n")
        try:
            async with aclosing(host.pull(name)) as steps:
                async for step in steps:
                    status = one_line(step.status, 50)
                    if live and step.total:
                        status += f" {step.done * 100 // step.total}% of {size_words(step.total)}"
                    if status != last:
                        print(f"{before}{status}", end=after, file=sys.stderr, flush=True)
                    last = status
        finally:
            print(end="\n" if live and last else "", file=sys.stderr)


def whole_name(agent: BareAgent, model: str) -> str:
    """Returns the whole name of a model: that of the one provider that has it.

    Raises ConfigError if there is none, or more than one.
    """
    if has(re.split("[:/]", model)[0]):
        if has(model):
            what, remedy = f"{model} is a provider, not a model.", "`searchloop models` lists all."
            raise ConfigError("bad_model", what, f"Write {model}:MODEL. {remedy}")
        return model
    listed = agent.models()
    names = (model, f"{model}:latest")
    named = [m for m in listed if m.id.partition(":")[2] in names]
    found = [m.id for m in named if m.available] or [m.id for m in named]
    if len(found) > 1:
        what = f"{len(found)} providers have a model {one_line(model, 60)}."
        raise ConfigError("ambiguous_model", what, f"Choose one of {', '.join(found)}.")
    if not found:
        raise _unknown(model, listed)
    return found[0]


def _unknown(model: str, listed: Iterable[ModelInfo]) -> ConfigError:
    """Says which providers were asked for a model, which could not be, and what is written like it.

    The remedy begins with the near name, as a name with a slip in it is the usual case.
    """
    asked, down, keyless = dict[str, None](), dict[str, None](), dict[str, None]()
    for each in listed:
        provider = each.id.partition(":")[0]
        if each.available:
            asked[provider] = None
        elif unset(each):
            keyless[provider] = None
        else:
            down[f"{(each.missing or provider).rstrip('.')}. {each.remedy or ''}".strip()] = None
    ids = [each.id for each in sorted(listed, key=lambda m: not m.available)]
    near = did_you_mean(model, [*(name.partition(":")[2] for name in ids), *ids])
    given, mark, rest = model.partition(":")
    if mark and (slip := did_you_mean(given, providers(), 0.8)):  # `gemma` is no slip of `gemini`
        near = slip.replace("? ", f":{rest}? ")
    what = f"There is no model {one_line(model, 60)!r}. Asked: {', '.join(asked)}."
    without = f"Without a key or an address: {', '.join(keyless)}. " if keyless else ""
    local = f"`searchloop models pull {one_line(model, 60)}` may get it. "
    pull = local if _LOCAL_PROVIDER in asked and not near else ""
    told = f"{near}{' '.join([*down, ''])}{without}{pull}"
    return ConfigError(
        "unknown_model", what, f"{told}`searchloop models` lists all; write provider:model."
    )


ARGUMENTS = {"models": _arguments}
