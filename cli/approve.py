"""Asking at the terminal whether a call may run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agent.approvals import Approve, Decision
from agent.errors import Conflict
from agent.events import Event
from agent.library import Agent
from cli.text import as_json, one_line, safe

_LINES = 60  # of a diff; the rest is counted
_KEYS = "[y] once, [a] always for this very call in this session, [n] no, [e] change it: "
_DECISIONS: Mapping[str, Decision] = {
    "y": "once",
    "yes": "once",
    "a": "always",
    "always": "always",
    "n": "deny",
    "": "deny",
}


def settled(asked: Approve | None, output: str) -> Approve:
    """What becomes of calls that need the user: asking takes a person at a terminal."""
    if asked in ("auto", "never"):
        return asked
    return "ask" if output == "text" and sys.stdin.isatty() and sys.stderr.isatty() else "never"


def asking(agent: Agent, events: Iterator[Event]) -> Iterator[Event]:
    """The events; at each request for approval the user is asked, and their answer passed on."""
    session = ""
    for event in events:
        yield event
        if event.type == "run_started":
            session = event.data["session_id"]
        elif event.type == "approval_requested":
            decision, arguments = ask(event.data)
            try:
                agent.decide(session, event.data["call_id"], decision, arguments)
            except Conflict as error:
                print(f"  {error.message} {error.remedy}", file=sys.stderr)


def ask(
    request: Mapping[str, Any], typed: Callable[[], str] = input
) -> tuple[Decision, Mapping[str, Any] | None]:
    """The decision, and the arguments if they were changed. An end of input is a no."""
    print(shown(request), file=sys.stderr)
    arguments: Mapping[str, Any] | None = None
    while True:
        print(f"  {_KEYS}", end="", file=sys.stderr, flush=True)
        try:
            key = typed().strip().lower()
        except EOFError:
            return "deny", None
        if key in ("e", "edit"):
            arguments = _changed(arguments or request["arguments"], typed)
        elif key in _DECISIONS:
            return _DECISIONS[key], arguments


def shown(request: Mapping[str, Any]) -> str:
    """What a person has to see: tool, server, effect, why, each argument, and the diff."""
    where = f" of the MCP server {one_line(request['server'])}" if request.get("server") else ""
    lines = [
        "",
        f"  {one_line(request['name'])}{where} asks to run (effect: {request['effect']}).",
        f"  {one_line(request['why'], 400)}",
    ]
    preview = request.get("preview")
    for name, value in request["arguments"].items():
        text = safe(value) if isinstance(value, str) else as_json(value)
        if preview and len(text) > 400:
            text = f"({len(text):,} characters, see below)"
        lines += [f"    {one_line(name)}: " + text.replace("\n", "\n      ")]
    if preview:
        diff = safe(preview).splitlines()
        lines += [f"    {line}" for line in diff[:_LINES]]
        lines += [f"    ... {len(diff) - _LINES} lines more"] if len(diff) > _LINES else []
    return "\n".join(lines)


def _changed(arguments: Mapping[str, Any], typed: Callable[[], str]) -> Mapping[str, Any] | None:
    print(f"  Now: {as_json(dict(arguments))}", file=sys.stderr)
    print("  New arguments as JSON (empty = leave them): ", end="", file=sys.stderr, flush=True)
    try:
        line = typed().strip()
        value = json.loads(line) if line else dict(arguments)
    except (EOFError, ValueError) as error:
        print(f"  That is not JSON: {error}", file=sys.stderr)
        return arguments
    if isinstance(value, dict):
        return value
    print('  Write an object: {"name": "value"}', file=sys.stderr)
    return arguments
