"""`searchloop models`: what can be asked, and what is missing for the rest."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import asdict

from agent.library import Agent
from agent.models import Loaded, ModelInfo
from cli.main import OK
from cli.text import as_json, one_line, size


def run(args: argparse.Namespace) -> int:
    """Prints every model with its search, tools and availability."""
    with Agent() as agent:
        models = agent.models()
    if args.output == "json":
        print(as_json({"models": [asdict(m) for m in models]}))
        return OK
    ready = [m for m in models if m.available]
    width = max((len(m.id) for m in ready), default=0)
    for model in ready:
        print(f"{one_line(model.id):<{width}}  {_facts(model)}")
    for (missing, remedy), group in _grouped(m for m in models if not m.available).items():
        names = ", ".join(one_line(m.id) for m in group if not m.id.endswith(":"))
        lacks = missing.rstrip(".")
        what = f"without {lacks}" if lacks.isupper() else f"now: {lacks}"
        print(f"\nNot available {one_line(f'{what}. {remedy}', 300)}\n  {names}".rstrip())
    return OK


def _grouped(models: Iterable[ModelInfo]) -> dict[tuple[str, str], list[ModelInfo]]:
    """Models that lack the same thing, together."""
    groups: dict[tuple[str, str], list[ModelInfo]] = {}
    for model in models:
        groups.setdefault((model.missing or "", model.remedy or ""), []).append(model)
    return groups


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
    """In memory, where, and for how long still."""
    where = f", {model.gpu * 100 // model.size}% on the GPU" if model.size and model.gpu else ""
    left = "" if model.until is None else f", {_minutes(model.until - time.time())} more"
    return f"loaded ({size(model.size)}{where}{left})"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{max(0, seconds):.0f} s"
