"""`searchloop ask`: one question, answered here; the session is the web UI's as well."""

from __future__ import annotations

import argparse
import os
import select
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from agent.backend import error_words
from agent.errors import ConfigError
from agent.events import Event, public_data
from agent.library import Agent
from agent.limits import Limits
from agent.mcp import McpServers
from agent.search_options import domains, search_options
from agent.settings import Settings
from agent.types import NativeSearch
from cli.approve import asking, settled
from cli.main import FAILED, LIMIT, OK, STOPPED
from cli.numbers import performance_line
from cli.text import as_json, one_line, safe
from web.compose import search_app, tool_sources

_CODES = {"stop": OK, "limit": LIMIT, "cancelled": STOPPED}
_STDIN_SECONDS = 3.0


def run(args: argparse.Namespace) -> int:
    """Asks, shows what happens while it happens, and returns the exit code."""
    question = _question(" ".join(args.question))
    settings = Settings.load()
    app, mcp = search_app(settings), McpServers(settings)
    with Agent(settings, search_backend=app, bring=tool_sources(settings, mcp)) as agent:
        mcp.window = agent.runner.window
        approve = settled(args.approve, args.output)
        events = agent.stream(
            question,
            session=_session(agent, args),
            model=args.model,
            mode=args.mode,
            search=args.search,
            limits=_limits(settings.limits, args),
            options=_options(settings, args),
            approve=approve,
        )
        events = asking(agent, events) if approve == "ask" else events
        if args.output == "text":
            return _text(events, numbers=args.verbose or sys.stderr.isatty())
        return _SHOW[args.output](events)


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


def _session(agent: Agent, args: argparse.Namespace) -> str | None:
    if args.session:
        return agent.log.session(args.session).id
    if not args.again:
        return None
    last = [s for s in agent.log.sessions() if s.messages]
    if not last:
        raise ConfigError("no_session", "There is no session to go on with.", "Ask without -c.")
    return last[0].id


def _json(events: Iterator[Event]) -> int:
    for event in events:
        if event.type == "run_finished":
            print(as_json(public_data(event)))
            return _code(event)
    return FAILED


def _stream_json(events: Iterator[Event]) -> int:
    code = FAILED
    for event in events:
        print(as_json(public_data(event)), flush=True)
        if event.type == "run_finished":
            code = _code(event)
    return code


def _text(events: Iterator[Event], *, numbers: bool) -> int:
    """The answer on stdout, as it comes on a terminal and whole in a pipe; the rest on stderr.

    `numbers`: whether it is told how fast a local model was.
    """
    live = sys.stdout.isatty()
    shown = False
    for event in events:
        if event.type == "text_delta" and live:
            print(safe(event.data["text"]), end="", flush=True)
            shown = True
        elif event.type == "message" and live and event.data["text"]:
            # What came too fast to be followed is in its message all the same.
            print("" if shown else safe(event.data["text"]))
            shown = False
        elif event.type == "run_finished":
            if not live and event.data["answer"]:
                print(safe(event.data["answer"]))
            _after(event)
            speed = performance_line(event.data.get("performance", {}))
            if numbers and speed:
                print(speed, file=sys.stderr)
            return _code(event)
        else:
            line = activity(event)
            if line:
                print(line, file=sys.stderr)
    return FAILED


def activity(event: Event) -> str | None:
    """One line for what is going on, or None."""
    data = event.data
    if event.type == "search_started":
        years = " and ".join(data.get("years", ()))
        note = f" ({years}: not in your question)" if years else ""
        words = f": “{one_line(data['query'])}”{note}" if data["query"] else " the web"
        return f"  searching{words}"
    if event.type == "search_finished":
        return f"  {_trail(data)}"
    if event.type == "page_opened":
        failed = f" - {one_line(data.get('error') or data['status'])}"
        return f"  read {one_line(data['url'])}{failed if data['status'] != 'ok' else ''}"
    if event.type == "notice":
        return f"  {one_line(data['message'], 300)}"
    if event.type == "tool_call" and data["name"] not in ("web_search", "open_page"):
        return f"  calling {one_line(data['name'])}"
    return None


def _trail(data: Mapping[str, Any]) -> str:
    failed = [
        f"{a['engine']}: {one_line(error_words(a.get('error')) or a['status'], 160)}"
        for a in data["attempts"]
        if a["status"] != "ok"
    ]
    if data["status"] == "ok":
        count = "" if data["results"] is None else f"{data['results']} results "
        told = f"found {count}({data['by']})"
    else:
        told = f"search {data['status']}" + (f": {data['error']}" if data.get("error") else "")
    return safe("; ".join([told, *failed]))


def _after(event: Event) -> None:
    """Sources, numbers and whatever went wrong."""
    data = event.data
    cited = [s for s in data["sources"] if s["state"] == "cited"]
    if cited:
        print("\nSources")
        checked = {c["n"]: c["verified"] for c in data["citations"]}
        for source in cited:
            title = one_line(source["title"] or source["url"])
            print(f"  [{source['n']}] {title}{_verdict(checked.get(source['n']))}")
            print(f"      {one_line(source['url'], 300)}")
    usage = data["usage"]
    counts = [f"search {data['search_path']}", f"{usage['seconds']:.1f} s"]
    counts += [_count(usage[k], k) for k in ("searches", "pages") if usage[k]]
    if usage["input_tokens"] is not None:
        counts.append(f"{usage['input_tokens']} + {usage['output_tokens']} tokens")
    print(f"\n{data['model']}, {', '.join(counts)}", file=sys.stderr)
    if data.get("limit"):
        print(f"searchloop: stopped at {data['limit']}; --max-steps allows more.", file=sys.stderr)
    if data.get("error"):
        error = data["error"]
        print(safe(f"searchloop: {error['message']} {error['remedy']}"), file=sys.stderr)


def _verdict(verified: bool | None) -> str:
    if verified is None:
        return ""
    return " - quote verified" if verified else " - quote NOT found in the page"


def _count(number: int, things: str) -> str:
    ending = "es" if things == "searches" else "s"
    return f"{number} {things if number != 1 else things.removesuffix(ending)}"


def _code(event: Event) -> int:
    return _CODES.get(event.data["reason"], FAILED)


_SHOW = {"json": _json, "stream-json": _stream_json}
