"""What happens in a run, on the terminal: as text for people, as JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.backend import error_words
from agent.events import Event, public_data
from cli.main import FAILED, LIMIT, OK, STOPPED
from cli.numbers import performance_line
from cli.text import as_json, one_line, safe

_CODES = {"stop": OK, "limit": LIMIT, "cancelled": STOPPED}


def as_one_object(events: Iterator[Event]) -> int:
    """The end of the run as JSON; the exit code."""
    for event in events:
        if event.type == "run_finished":
            print(as_json(public_data(event)))
            return code_of(event)
    return FAILED


def as_lines(events: Iterator[Event]) -> int:
    """One event a line, as it happens; the exit code."""
    code = FAILED
    for event in events:
        print(as_json(public_data(event)), flush=True)
        if event.type == "run_finished":
            code = code_of(event)
    return code


def as_text(events: Iterator[Event], *, numbers: bool) -> int:
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
        elif event.type == "plan":
            print(f"{plan_text(event.data)}\n")
        elif event.type == "run_finished":
            if not live and event.data["answer"]:
                print(safe(event.data["answer"]))
            _after(event)
            speed = performance_line(event.data.get("performance", {}))
            if numbers and speed:
                print(speed, file=sys.stderr)
            return code_of(event)
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
    if event.type == "servers_awaited":
        return f"  connecting to {one_line(', '.join(data['servers']), 200)}"
    if event.type == "notice":
        return f"  {one_line(data['message'], 300)}"
    if event.type == "tool_call" and data["name"] not in ("web_search", "open_page"):
        return f"  calling {one_line(data['name'])}"
    if event.type == "tool_result" and data["details"].get("kind") == "file_change":
        return f"  {one_line(data['content'])}"
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
        marks = {c["n"]: c["marks"] for c in data["citations"]}
        for source in cited:
            title = one_line(source["title"] or source["url"])
            print(f"  [{source['n']}] {title}{_verdict(marks.get(source['n'], ()))}")
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


def _verdict(marks: Sequence[Mapping[str, Any]]) -> str:
    """Whether the pages bear out what is marked, where that was looked at."""
    checked = [mark["verified"] for mark in marks if mark["verified"] is not None]
    good = sum(checked)
    if not checked:
        return ""
    if good == len(checked):
        return " - quote verified"
    some = f" at {len(checked) - good} of {len(checked)} places" if good else ""
    return f" - quote NOT found in the page{some}"


def _count(number: int, things: str) -> str:
    ending = "es" if things == "searches" else "s"
    return f"{number} {things if number != 1 else things.removesuffix(ending)}"


def code_of(event: Event) -> int:
    """The exit code of a `run_finished`."""
    return _CODES.get(event.data["reason"], FAILED)


def plan_text(plan: Mapping[str, Any]) -> str:
    """A plan for people: its steps, and what each touches and rests on."""
    lines = [f"Plan: {one_line(plan['title'])}"]
    for number, step in enumerate(plan["steps"], 1):
        lines.append(f"  {number}. {one_line(step['text'], 2000)}")
        if step["files"]:
            lines.append(f"     touches {one_line(', '.join(step['files']), 500)}")
        if step["sources"]:
            lines.append(f"     from {', '.join(f'[{n}]' for n in step['sources'])}")
    return "\n".join(lines)
