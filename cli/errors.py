"""Reports known errors on the command line: one sentence, the remedy, the right exit code."""

from __future__ import annotations

import argparse
import os
import sys

from searchloop.agent.errors import ConfigError, Conflict
from searchloop.agent.types import Usage
from searchloop.analysis.told import Told
from searchloop.cli import BAD_INPUT, FAILED
from searchloop.cli.arguments import as_json, warn
from searchloop.search_backend.types import FetchRefused, SettingError

KNOWN = (Told, OSError)
_BAD_INPUT = (ConfigError, SettingError, Conflict, FetchRefused)
_BAD_CODES = (
    *("bad_request", "bad_domain", "unknown_engine", "unknown_reader", "missing_key"),
    *("config", "not_found", "built_in"),
)


def report(error: Told | OSError, args: argparse.Namespace | None) -> int:
    """Prints the error, as JSON too where that was asked for, and returns the exit code."""
    if isinstance(error, Told):
        told = error.as_dict()
    else:
        words = ": ".join(str(part) for part in (error.filename, error.strerror) if part)
        told = {"code": "system", "message": f"{words or error}.", "remedy": ""}
    warn(f"searchloop: {told['message']} {told['remedy']}".strip())
    try:
        if args and getattr(args, "output", "text") != "text":
            print(as_json(_failed_run(told) if args.command == "ask" else {"error": told}))
        print(end="", flush=True)
    except OSError:  # the disk is full on which it would be written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    bad = isinstance(error, _BAD_INPUT) or told["code"] in _BAD_CODES
    return BAD_INPUT if bad else FAILED


def _failed_run(error: dict[str, str]) -> dict[str, object]:
    """Returns the `run_finished` of a run that never began."""
    ended = {"type": "run_finished", "reason": "error", "search_path": "off", "error": error}
    empty = {"answer": "", "citations": [], "sources": [], "usage": Usage().as_dict()}
    return {**ended, **empty}
