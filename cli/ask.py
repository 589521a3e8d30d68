"""Runs `searchloop ask`: answers one question, and asks at the terminal before risky calls."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from searchloop.agent.bare_agent import BareAgent, Turn
from searchloop.agent.calls.caller import Decision
from searchloop.agent.calls.instructions import OPTIONS, option_from
from searchloop.agent.errors import AgentError, ConfigError, Conflict
from searchloop.agent.guard.approvals import Approve
from searchloop.agent.log.events import Event
from searchloop.agent.mcp import McpServers
from searchloop.agent.observe.logs import configure_if_asked, secrets_in
from searchloop.agent.run.question import change_session, open_session
from searchloop.agent.run.question.files import MOST_DOCUMENT, NewFile
from searchloop.agent.search.switch import domains, search_options
from searchloop.agent.settings import Settings
from searchloop.agent.settings.usual_model import Choice
from searchloop.agent.tools.present_plan import find_plan, run_text
from searchloop.agent.types import Limits, NativeSearch
from searchloop.analysis.characters import named
from searchloop.cli.arguments import (
    MODES,
    SEARCHES,
    amount,
    as_json,
    number,
    one_line,
    output,
    read_file,
    text_of,
    warn,
    whole,
)
from searchloop.cli.models import whole_name
from searchloop.cli.show import as_json_lines, as_text
from searchloop.cli.terminal.pipes import piped_text
from searchloop.compose import search_app, tool_sources

_LINES = 60  # of a diff; the rest is counted
_KEYS = (
    "{}: [y] once, [a] always for this very call in this session, {}[n] no, [e] change, [d] diff: "
)
_FOLDER = "[f] every change in {} in this session, "
_DECISIONS: Mapping[str, Decision] = {
    **dict.fromkeys(("y", "yes"), "once"),
    **dict.fromkeys(("a", "always"), "always"),
    **dict.fromkeys(("f", "folder"), "folder"),
    **dict.fromkeys(("n", ""), "deny"),
}


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=run)
    parser.usage = "searchloop ask [OPTIONS] [QUESTION ...]"
    add = parser.add_argument
    add("question", nargs="*", metavar="QUESTION")
    session_arguments(parser)
    what = "send an image, a PDF or a document along (repeatable; - for standard input)"
    add("-f", "--file", action="append", default=[], metavar="FILE", dest="files", help=what)
    add("--domain", action="append", metavar="D", help="search only this site (repeatable)")
    add("--block-domain", action="append", metavar="D", help="never use this site (repeatable)")
    what = "answer with JSON that fits this JSON Schema; it is checked"
    add("--schema", metavar="FILE", help=what)
    what = "read the cited pages that nobody has read, and judge their marks"
    add("--check", action="store_true", default=None, help=what)
    what = "let a model read what words alone leave unclear: provider:model, or chat"
    add("--check-with", metavar="MODEL", help=what)
    add("--run-plan", action="store_true", help="carry out the session's plan, in agent mode")
    output(parser, "stream-json")
    limit = parser.add_argument_group("limits of this turn").add_argument
    for name in ("steps", "searches", "pages", "tokens"):
        limit(f"--max-{name}", type=whole(1), metavar="N")
    limit("--max-seconds", type=amount, metavar="S")
    limit("--max-cost", type=amount, metavar="USD", dest="max_cost_usd", help="if it is known")


def session_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what a question and a chat have in common."""
    add = parser.add_argument
    add("-m", "--model", help="provider:model, see `searchloop models`")
    add("--mode", choices=MODES, help="what may be done (default: ask)")
    web = parser.add_mutually_exclusive_group()
    web.add_argument("--search", choices=SEARCHES, help="how to search the web")
    for option, way in (("--web", "auto"), ("--no-web", "off")):
        same = f"same as --search {way}"
        web.add_argument(option, dest="search", action="store_const", const=way, help=same)
    add("--project", metavar="NAME", help="put the chat in it, see `searchloop projects`")
    add("-a", "--agent", metavar="NAME", help="a preset, see `searchloop agents`")
    add("-s", "--system", metavar="TEXT", help="what else the model is told; @FILE reads a file")
    what = f"{', '.join(OPTIONS)} (repeatable)"
    add("--option", action="append", default=[], metavar="KEY=VALUE", dest="options", help=what)
    add("--workspace", metavar="DIR", help="folder that file tools may use")
    what = "ask you before a call that needs approval, run it, or refuse it (default: ask)"
    add("--approve", choices=("ask", "auto", "never"), help=f"{what}; never without a terminal")
    session = parser.add_mutually_exclusive_group().add_argument
    session("-c", "--continue", dest="again", action="store_true", help="continue the last session")
    session("--session", metavar="ID", help="continue this session")


def run(args: argparse.Namespace) -> int:
    """Asks, shows what happens while it happens, and returns the exit code."""
    files = [_file(name) for name in args.files]
    words = " ".join(args.question)
    question = "" if args.run_plan else words if "-" in args.files else _question(words)
    settings = Settings.load()
    with agent_with_tools(settings) as (agent, _):
        approve = settled(args.approve, args.output)
        session = session_named(agent, args)
        plan = _plan(agent, session, args) if args.run_plan else None
        if plan:
            question, args.mode = run_text(plan), "agent"
        limits, options = _limits(settings.limits, args), _options(settings, args)
        model = args.model and whole_name(agent, args.model)
        if model != args.model and args.output == "text":
            warn(f"Model: {one_line(model)}")
        if not (model or session or args.agent or args.project):
            model = _told(agent.usual_model(), args.output)
        turn: Turn = {"model": model, "mode": args.mode, "search": args.search}
        turn |= {"limits": limits, "search_options": options, "approve": approve, "plan": plan}
        turn |= {"files": files, **instructions(args)}
        turn |= {"check": args.check, "check_with": _reader(agent, args.check_with)}
        fresh, known = session is None, session
        if args.agent or args.workspace or args.project:
            choices = {"agent": args.agent, "workspace": args.workspace}
            choices["project"] = args.project and agent.log.projects.named(args.project).id
            known = session_for(agent, session, choices)
        try:
            events = agent.stream(question, session=known, **turn)
        except AgentError:
            if fresh and known:  # nothing was asked in it
                agent.log.delete_session(known)
            raise
        events = asking(agent, events) if approve == "ask" else events
        events = events if args.approve else _naming_approve(events)
        if args.output == "text":
            before = agent.log.read(session) if session and sys.stdout.isatty() else ()
            return as_text(events, before=before, structured=bool(args.schema))
        return as_json_lines(events, every=args.output != "json")


def _reader(agent: BareAgent, model: str | None) -> str | None:
    """Returns the whole name of the model that checks."""
    return model if model in (None, "words", "chat") else whole_name(agent, model)


def instructions(args: argparse.Namespace) -> Turn:
    """Reads what the model is asked for beside the question. Raises ConfigError."""
    system = args.system and text_of(args.system)
    turn: Turn = {"system": system, "options": dict(map(option_from, args.options))}
    if name := getattr(args, "schema", None):
        try:
            turn["schema"] = json.loads(read_file(name))
        except ValueError as error:
            what = f"{name} is not JSON: {error}."
            raise ConfigError("bad_schema", what, "Name a file with a JSON Schema.") from error
    return turn


@contextmanager
def agent_with_tools(settings: Settings) -> Iterator[tuple[BareAgent, McpServers]]:
    """Opens the agent with the search backend, the file tools and the MCP servers."""
    configure_if_asked(settings.env, lambda: secrets_in(settings))
    app, mcp = search_app(settings), McpServers(settings)
    bring = tool_sources(settings, mcp)
    with BareAgent(settings, search_backend=app, bring=bring, store=settings.store) as agent:
        mcp.window = agent.runner.window
        yield agent, mcp


def _told(choice: Choice, output: str) -> str:
    """Returns the usual model; says how it was found if nobody has chosen it yet."""
    if choice.by == "best" and output == "text":
        warn(f"Model: {one_line(choice.model)} ({choice.why}; -m names another)")
    return choice.model


def session_for(agent: BareAgent, session: str | None, wanted: Mapping[str, Any]) -> str:
    """Gives a session, or a new one, these choices; returns its id."""
    chosen = {name: value for name, value in wanted.items() if value}
    if chosen.get("workspace"):
        chosen["workspace"] = os.path.abspath(chosen["workspace"])
    if session is None:
        usual = replace(agent.settings, model=agent.usual_model().model)
        return open_session(agent.log, usual, chosen).id
    if chosen:
        change_session(agent.log, agent.settings, session, chosen)
    return session


def _plan(agent: BareAgent, session: str | None, args: argparse.Namespace) -> Mapping[str, Any]:
    """Returns the session's plan, which is to be carried out."""
    if args.question:
        what = "--run-plan takes no question."
        raise ConfigError("bad_request", what, "Ask the question without it, or leave it out.")
    if session is None:
        raise ConfigError("no_session", "No session was named.", "Add -c or --session ID.")
    return find_plan(agent.log.read(session))


def _limits(settings: Limits, args: argparse.Namespace) -> Limits:
    """Returns the limits of the settings, replaced by those of the command line."""
    asked = {name: getattr(args, f"max_{name}") for name in Limits._fields}
    return settings._replace(**{name: value for name, value in asked.items() if value})


def _options(settings: Settings, args: argparse.Namespace) -> NativeSearch:
    """Returns the search options of the settings, with the sites of the command line."""
    most = args.max_searches or settings.limits.searches
    options = search_options(settings.env, max_searches=most)
    if args.domain:
        options = options._replace(allowed_domains=domains(",".join(args.domain), "--domain"))
    if args.block_domain:
        blocked = domains(",".join(args.block_domain), "--block-domain")
        options = options._replace(blocked_domains=blocked)
    return options


def _question(words: str) -> str:
    """Joins the words of the command line and the text that was piped in."""
    piped = _piped(wait=bool(words.strip()))
    if words.strip() in ("", "-"):
        return piped
    return f"{words}\n\n{piped}" if piped.strip() else words


def _file(name: str) -> NewFile:
    """Reads a file that is to be sent along. Raises ConfigError."""
    if name != "-":
        return NewFile.of(name)
    return NewFile("stdin", sys.stdin.buffer.read(MOST_DOCUMENT + 1))


def _piped(*, wait: bool) -> str:
    """Reads standard input if something is piped in; does not wait for a silent pipe."""
    try:
        return piped_text(wait=wait)
    except TimeoutError:
        warn("searchloop: nothing came on standard input; going on.")
        return ""


def session_named(agent: BareAgent, args: argparse.Namespace) -> str | None:
    """Returns the session to go on with, None for a new one. Raises AgentError if none is there."""
    if args.session:
        return agent.log.session(args.session).id
    if not args.again:
        return None
    last = [s for s in agent.log.sessions() if s.messages]
    if not last:
        raise ConfigError("no_session", "There is no session to go on with.", "Ask without -c.")
    return last[0].id


def settled(asked: Approve | None, output: str) -> Approve:
    """Decides about calls that need the user: asking takes a person at a terminal."""
    if asked in ("auto", "never"):
        return asked
    return "ask" if output == "text" and sys.stdin.isatty() and sys.stderr.isatty() else "never"


def asking(agent: BareAgent, events: Iterator[Event]) -> Iterator[Event]:
    """Passes the events on; asks the user at each request for approval, and hands on the answer."""
    session = ""
    for event in events:
        yield event
        if event.type == "run_started":
            session = event.data["session_id"]
        elif event.type == "approval_requested":
            try:
                agent.decide(session, event.data["call_id"], *ask_approval(event.data))
            except Conflict as error:
                warn(f"  {error}")


def _naming_approve(events: Iterator[Event]) -> Iterator[Event]:
    """Passes the events on; tells of calls that were refused because nobody was there."""
    refused = 0
    for event in events:
        refused += event.type == "approval_decided" and event.data.get("by") == "never"
        if refused and event.type == "run_finished":
            calls = number(refused, "call")
            warn(f"searchloop: {calls} needed your approval and did not run: see --approve auto.")
        yield event


def ask_approval(
    request: Mapping[str, Any], typed: Callable[[], str] = input
) -> tuple[Decision, Mapping[str, Any] | None]:
    """Asks until there is a decision, and returns it with changed arguments. No input means no."""
    print(shown(request), file=sys.stderr)
    if request.get("question"):
        return _answered(request["arguments"], typed)
    arguments: Mapping[str, Any] | None = None
    folder = one_line(named(request.get("folder", "")), 200)
    keys = _KEYS.format(one_line(request["name"]), _FOLDER.format(folder) if folder else "")
    while True:
        print(f"  {keys}", end="", file=sys.stderr, flush=True)
        try:
            key = typed().strip().lower()
        except EOFError:
            return "deny", None
        if key in ("d", "diff"):
            print(shown(request, sys.maxsize), file=sys.stderr)
        elif key in ("e", "edit"):
            arguments = _changed(arguments or request["arguments"], typed)
        elif key in _DECISIONS and (folder or _DECISIONS[key] != "folder"):
            return _DECISIONS[key], arguments


def _answered(
    fields: Mapping[str, Any], typed: Callable[[], str]
) -> tuple[Decision, Mapping[str, Any] | None]:
    """Asks for each field of a question; "-" declines. Without fields it is yes or no."""
    given: dict[str, Any] = dict(fields)
    try:
        for name, value in fields.items():
            told = f" [{as_json(value)}]" if value != "" else ""
            print(f"  {one_line(name)}{told} (- = decline): ", end="", file=sys.stderr, flush=True)
            line = typed().strip()
            if line == "-":
                return "deny", None
            given[name] = line or value
        if not fields:
            print("  [y] yes, [n] no: ", end="", file=sys.stderr, flush=True)
            return ("once" if typed().strip().lower() in ("y", "yes") else "deny"), None
    except EOFError:
        return "deny", None
    return "once", given


def shown(request: Mapping[str, Any], most: int = _LINES) -> str:
    """Formats a request for a person: tool, server, effect, why, each argument, and the diff.

    Invisible characters are shown by their numbers. Of the diff, `most` lines are shown.
    """
    where = f" of the MCP server {one_line(request['server'])}" if request.get("server") else ""
    lines = [
        "",
        f"  {one_line(request['name'])}{where} asks to run (effect: {request['effect']}).",
        f"  {one_line(request['why'], 400)}",
    ]
    if request.get("question"):
        return f"\n  {one_line(request['why'], 1500)}"
    preview = request.get("preview")
    for name, value in request["arguments"].items():
        text = named(value if isinstance(value, str) else as_json(value))
        if preview and len(text) > 400:
            text = f"({len(text):,} characters, see below)"
        lines += [f"    {one_line(named(name))}: " + text.replace("\n", "\n      ")]
    if preview:
        diff = named(preview).splitlines()
        lines += [f"    {line}" for line in diff[:most]]
        lines += [f"    ... {len(diff) - most} lines more: d"] if len(diff) > most else []
    return "\n".join(lines)


def _changed(arguments: Mapping[str, Any], typed: Callable[[], str]) -> Mapping[str, Any] | None:
    warn(f"  Now: {as_json(dict(arguments))}")
    print("  New arguments as JSON (empty = leave them): ", end="", file=sys.stderr, flush=True)
    try:
        line = typed().strip()
        value = json.loads(line) if line else dict(arguments)
    except (EOFError, ValueError) as error:
        warn(f"  That is not JSON: {error}")
        return arguments
    if isinstance(value, dict):
        return value
    print('  Write an object: {"name": "value"}', file=sys.stderr)
    return arguments


ARGUMENTS = {"ask": _arguments}
