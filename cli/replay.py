"""`searchloop replay`: what providers answered in a trace, decoded again without a network."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.errors import ConfigError
from agent.replay import as_dict, read_trace, replay
from agent.settings import load_environment
from cli.main import FAILED, OK
from cli.text import as_json, one_line


def run(args: argparse.Namespace) -> int:
    """Compares step by step; 1 when something else comes out than the trace says."""
    try:
        text = sys.stdin.read() if args.file == "-" else Path(args.file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ConfigError("bad_file", f"{args.file} cannot be read: {reason}.", "") from None
    with TemporaryDirectory() as home:
        env = {**load_environment(), "SEARCHLOOP_HOME": home}  # nothing is learnt from it
        steps = asyncio.run(replay(read_trace(text), env))
    if args.output == "json":
        print(as_json({"steps": [as_dict(step) for step in steps]}))
    else:
        for step in steps:
            differs = f"different: {', '.join(step.differs)}" if step.differs else "same"
            words = one_line(step.problem, 300) or differs
            print(f"{step.run_id} step {step.step} {one_line(step.model, 60)}: {words}")
    return OK if all(step.same for step in steps) else FAILED
