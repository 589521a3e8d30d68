"""`searchloop models`: what can be asked, and what is missing for the rest."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from agent.library import Agent
from agent.types import ModelInfo
from cli.main import OK
from cli.text import one_line


def run(args: argparse.Namespace) -> int:
    """Prints every model with its search, tools and availability."""
    with Agent() as agent:
        models = agent.models()
    if args.output == "json":
        print(json.dumps({"models": [asdict(m) for m in models]}, ensure_ascii=False))
        return OK
    width = max((len(m.id) for m in models), default=0)
    for model in models:
        print(f"{one_line(model.id):<{width}}  {_facts(model)}")
    return OK


def _facts(model: ModelInfo) -> str:
    if not model.available:
        return one_line(f"not available: {model.missing} {model.remedy or ''}", 200)
    can = model.capabilities
    facts = ["searches itself" if can.native_search else "local search"]
    facts += ["no tools"] * (not can.tools) + ["thinks"] * can.thinking + ["sees"] * can.vision
    if can.context:
        facts.append(f"{can.context} tokens")
    if model.title:
        facts.append(one_line(model.title))
    return ", ".join(facts)
