"""Shows a run on the terminal: as text for people, as JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from searchloop.agent.log.events import Event, public_data
from searchloop.agent.tools.backend import error_words
from searchloop.cli.arguments import as_json, number, one_line, safe, warn
from searchloop.cli.main import FAILED, LIMIT, OK, STOPPED

_FIGURES = {
    "tokens_per_second": "{tokens_per_second:.1f} tokens/s",
    "prefix_reused": "{prefix_reused:.0%} of the prompt reused",
    "window": "about {prompt_estimate:,} of {window:,} tokens",
    "shortened": "{shortened} older texts shortened",
    "calls": "calls: {calls}",
}
_CODES = {"stop": OK, "limit": LIMIT, "cancelled": STOPPED}


def as_json_lines(events: Iterator[Event], *, every: bool) -> int:
    """Prints the end of the run as JSON, or every event on a line, and returns the exit code."""
    code = FAILED
    for event in events:
        ends = event.type == "run_finished"
        if every or ends:
            print(as_json(public_data(event)), flush=True)
        code = code_of(event) if ends else code
    return code


def as_text(events: Iterator[Event], *, numbers: bool) -> int:
    """Prints the answer on stdout, as it comes on a terminal and whole in a pipe.

    Prints the rest on stderr, with `numbers` the speed too. Returns the exit code.
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
            print(f"{_plan_text(event.data)}\n")
        elif event.type == "run_finished":
            if not live and event.data["answer"]:
                print(safe(event.data["answer"]))
            _after(event)
            speed = ", ".join(_performance(event.data.get("performance", {})))
            if numbers and speed:
                print(speed, file=sys.stderr)
            return code_of(event)
        else:
            line = _activity(event)
            if line:
                print(line, file=sys.stderr)
    return FAILED


def _activity(event: Event) -> str | None:
    """Returns one line about the event, or None."""
    data = event.data
    if event.type == "search_started":
        years = " and ".join(data.get("years", ()))
        note = f" ({years}: not in your question)" if years else ""
        words = f": “{one_line(data['query'])}”{note}" if data["query"] else " the web"
        return f"  searching{words}"
    if event.type == "search_finished":
        return f"  {_trail(data)}{_noted(data)}"
    if event.type == "page_opened":
        failed = f" - {one_line(data.get('error') or data['status'])}"
        ended = failed if data["status"] != "ok" else ""
        return f"  read {one_line(data['url'])}{ended}{_noted(data)}"
    if event.type == "servers_awaited":
        return f"  connecting to {one_line(', '.join(data['servers']), 200)}"
    if event.type == "notice":
        return f"  {one_line(data['message'], 300)}"
    if event.type == "tool_call" and data["name"] not in ("web_search", "open_page"):
        return f"  calling {one_line(data['name'])}"
    if event.type == "tool_result" and data["details"].get("kind") == "file_change":
        return f"  {one_line(data['content'])}"
    return None


def _noted(data: Mapping[str, Any]) -> str:
    """Returns what changes the meaning of a search or a page, below its line."""
    return "".join(f"\n    {one_line(note['message'], 400)}" for note in data.get("notes", ()))


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
    """Prints the sources, the numbers and whatever went wrong."""
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
    counts += [f"{n} search{'es' * (n != 1)}"] if (n := usage["searches"]) else []
    counts += [number(usage["pages"], "page")] if usage["pages"] else []
    if usage["input_tokens"] is not None:
        counts.append(f"{usage['input_tokens']} + {usage['output_tokens']} tokens")
    warn(f"\n{data['model']}, {', '.join(counts)}")
    if data.get("limit"):
        warn(f"searchloop: stopped at {data['limit']}; --max-steps allows more.")
    if data.get("error"):
        error = data["error"]
        warn(f"searchloop: {error['message']} {error['remedy']}")


def _verdict(marks: Sequence[Mapping[str, Any]]) -> str:
    """Says if the pages bear out the marked passages, where that was checked."""
    checked = [mark["verified"] for mark in marks if mark["verified"] is not None]
    good = sum(checked)
    if not checked:
        return ""
    if good == len(checked):
        return " - quote verified"
    some = f" at {len(checked) - good} of {len(checked)} places" if good else ""
    return f" - quote NOT found in the page{some}"


def code_of(event: Event) -> int:
    """Returns the exit code of a `run_finished`."""
    return _CODES.get(event.data["reason"], FAILED)


def _plan_text(plan: Mapping[str, Any]) -> str:
    """Formats a plan for people: its steps, and what each touches and rests on."""
    lines = [f"Plan: {one_line(plan['title'])}"]
    for n, step in enumerate(plan["steps"], 1):
        lines.append(f"  {n}. {one_line(step['text'], 2000)}")
        if step["files"]:
            lines.append(f"     touches {one_line(', '.join(step['files']), 500)}")
        if step["sources"]:
            lines.append(f"     from {', '.join(f'[{m}]' for m in step['sources'])}")
    return "\n".join(lines)


def _performance(numbers: Mapping[str, Any]) -> Iterator[str]:
    for name, words in (("load_ms", "load"), ("prompt_ms", "prompt"), ("eval_ms", "answer")):
        if name in numbers:
            yield f"{words} {numbers[name] / 1000:.1f} s"
    for name, words in _FIGURES.items():
        if name in numbers and (numbers[name] or name != "shortened"):
            yield words.format(**numbers)
