"""`searchloop models unload NAME` and `models remove NAME`: memory and disk of a local server."""

from __future__ import annotations

import argparse
import asyncio

from cli.host import held
from cli.main import OK
from cli.text import as_json

_DONE = {"unload": "unloaded", "remove": "removed"}


def run(args: argparse.Namespace) -> int:
    """Does it and prints the model's name."""
    model = asyncio.run(_do(args.action, args.model))
    print(as_json({_DONE[args.action]: model}) if args.output == "json" else model)
    return OK


async def _do(action: str, model: str) -> str:
    async with held(model) as found:
        if action == "unload":
            await found.host.unload(found.name)
        else:
            await found.host.remove(found.name)
        return found.id
