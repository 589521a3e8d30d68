"""`searchloop ask`: one question, answered here; the session is the web UI's as well."""

from __future__ import annotations

import argparse
import os
import select
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

from agent.afterwards import plan_to_run
from agent.errors import AgentError, ConfigError
from agent.library import Agent
from agent.limits import Limits
from agent.logs import configure_if_asked
from agent.mcp import McpServers
from agent.opening import change_session, open_session
from agent.plans import run_text
from agent.search_options import domains, search_options
from agent.settings import Settings
from agent.types import NativeSearch
from agent.watch import secrets_in
from cli.approve import asking, settled
from cli.show import as_lines, as_one_object, as_text
from web.compose import search_app, tool_sources

_STDIN_SECONDS = 3.0


def run(args: argparse.Namespace) -> int:
    """Asks, shows what happens while it happens, and returns the exit code."""
    question = "" if args.run_plan else _question(" ".join(args.question))
    settings = Settings.load()
    configure_if_asked(settings.env, lambda: secrets_in(settings))
    app, mcp = search_app(settings), McpServers(settings)
    with Agent(settings, search_backend=app, bring=tool_sources(settings, mcp)) as agent:
        mcp.window = agent.runner.window
        approve = settled(args.approve, args.output)
        session = session_named(agent, args)
        plan = _plan(agent, session, args) if args.run_plan else None
        if plan:
            question, args.mode = run_text(plan), "agent"
        with _opened(agent, session, args) as known:
            events = agent.stream(
                question,
                session=known,
                model=args.model,
                mode=args.mode,
                search=args.search,
                limits=_limits(settings.limits, args),
                options=_options(settings, args),
                approve=approve,
                plan=plan,
            )
        events = asking(agent, events) if approve == "ask" else events
        if args.output == "text":
            return as_text(events, numbers=args.verbose or sys.stderr.isatty())
        return _JSON[args.output](events)


@contextmanager
def _opened(agent: Agent, session: str | None, args: argparse.Namespace) -> Iterator[str | None]:
    """The session with the agent and the folder that were named; None for an ordinary new one.

    One that was made for a question which cannot be sent is taken away again.
    """
    wanted = {"agent": args.agent, "workspace": args.workspace and os.path.abspath(args.workspace)}
    wanted = {name: value for name, value in wanted.items() if value}
    fresh = None
    if wanted and session:
        change_session(agent.log, agent.settings, session, wanted)
    elif wanted:
        session = fresh = open_session(agent.log, agent.settings, wanted).id
    try:
        yield session
    except AgentError:
        if fresh:
            agent.log.delete_session(fresh)
        raise


def _plan(agent: Agent, session: str | None, args: argparse.Namespace) -> Mapping[str, Any]:
    """The session's plan, which is to be carried out."""
    if args.question:
        what = "--run-plan takes no question."
        raise ConfigError("bad_request", what, "Ask the question without it, or leave it out.")
    if session is None:
        raise ConfigError("no_session", "No session was named.", "Add -c or --session ID.")
    return plan_to_run(agent.log, session)


def _limits(settings: Limits, args: argparse.Namespace) -> Limits:
    """The settings' limits, with those of the command line before them."""
    names = [each.name for each in fields(Limits)]
    asked = {name: getattr(args, f"max_{name}") for name in names}
    return replace(settings, **{name: value for name, value in asked.items() if value})


def _options(settings: Settings, args: argparse.Namespace) -> NativeSearch:
    """The settings' search options, with the sites of the command line instead of theirs."""
    most = args.max_searches or settings.limits.searches
    options = search_options(settings.env, max_searches=most)
    if args.domain:
        options = replace(options, allowed_domains=domains(",".join(args.domain), "--domain"))
    if args.block_domain:
        blocked = domains(",".join(args.block_domain), "--block-domain")
        options = replace(options, blocked_domains=blocked)
    return options


def _question(words: str) -> str:
    """The words of the command line, then what was piped in."""
    piped = _piped(wait=bool(words.strip()))
    if words.strip() in ("", "-"):
        return piped
    return f"{words}\n\n{piped}" if piped.strip() else words


def _piped(*, wait: bool) -> str:
    """Standard input when something is piped in; a pipe that stays silent is not waited for."""
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return ""
    if sys.stdin.isatty() or stat.S_ISCHR(kind):
        return ""
    if wait and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        ready, _, _ = select.select([sys.stdin], [], [], _STDIN_SECONDS)
        if not ready:
            print("searchloop: nothing came on standard input; going on.", file=sys.stderr)
            return ""
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ConfigError(
            "bad_stdin", "Standard input is not UTF-8 text.", "Convert it to UTF-8 first."
        ) from error


def session_named(agent: Agent, args: argparse.Namespace) -> str | None:
    """The session to go on with; None for a new one. Raises AgentError when there is none."""
    if args.session:
        return agent.log.session(args.session).id
    if not args.again:
        return None
    last = [s for s in agent.log.sessions() if s.messages]
    if not last:
        raise ConfigError("no_session", "There is no session to go on with.", "Ask without -c.")
    return last[0].id


_JSON = {"json": as_one_object, "stream-json": as_lines}
