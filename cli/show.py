"""Shows a run on the terminal: as text for people, as JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from searchloop.agent.log.events import Event, public_data
from searchloop.agent.tools.web_search import trail
from searchloop.cli.arguments import as_json, one_line, safe, warn
from searchloop.cli.main import FAILED, LIMIT, OK, STOPPED

_CODES = {"stop": OK, "limit": LIMIT, "cancelled": STOPPED}


def as_one_object(events: Iterator[Event]) -> int:
    """Prints the end of the run as JSON and returns the exit code."""
    for event in events:
        if event.type == "run_finished":
            print(as_json(public_data(event)))
            return code_of(event)
    return FAILED


def as_lines(events: Iterator[Event]) -> int:
    """Prints each event on a line, as it happens, and returns the exit code."""
    code = FAILED
    for event in events:
        print(as_json(public_data(event)), flush=True)
        if event.type == "run_finished":
            code = code_of(event)
    return code


def as_text(events: Iterator[Event], *, numbers: bool) -> int:
    """Prints the answer on stdout, as it comes on a terminal and whole in a pipe.

    The rest goes to stderr, with `numbers` also how fast a local model was. Returns the exit code.
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
            speed = _performance_line(event.data.get("performance", {}))
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
    failed = [one_line(line, 200) for line in trail(data)]
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
    counts += [_count(usage[k], k) for k in ("searches", "pages") if usage[k]]
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


def _count(number: int, things: str) -> str:
    ending = "es" if things == "searches" else "s"
    return f"{number} {things if number != 1 else things.removesuffix(ending)}"


def code_of(event: Event) -> int:
    """Returns the exit code of a `run_finished`."""
    return _CODES.get(event.data["reason"], FAILED)


def _plan_text(plan: Mapping[str, Any]) -> str:
    """Formats a plan for people: its steps, and what each touches and rests on."""
    lines = [f"Plan: {one_line(plan['title'])}"]
    for number, step in enumerate(plan["steps"], 1):
        lines.append(f"  {number}. {one_line(step['text'], 2000)}")
        if step["files"]:
            lines.append(f"     touches {one_line(', '.join(step['files']), 500)}")
        if step["sources"]:
            lines.append(f"     from {', '.join(f'[{n}]' for n in step['sources'])}")
    return "\n".join(lines)


def _performance_line(numbers: Mapping[str, Any]) -> str:
    """Formats the `performance` of a turn for people; empty when there is none."""
    return ", ".join(_performance(numbers))


def _performance(numbers: Mapping[str, Any]) -> Iterator[str]:
    for name, words in (("load_ms", "load"), ("prompt_ms", "prompt"), ("eval_ms", "answer")):
        if name in numbers:
            yield f"{words} {numbers[name] / 1000:.1f} s"
    if "tokens_per_second" in numbers:
        yield f"{numbers['tokens_per_second']:.1f} tokens/s"
    if "prefix_reused" in numbers:
        yield f"{numbers['prefix_reused'] * 100:.0f}% of the prompt reused"
    if "window" in numbers:
        yield f"about {numbers['prompt_estimate']:,} of {numbers['window']:,} tokens"
    if numbers.get("shortened"):
        yield f"{numbers['shortened']} older texts shortened"
    if "calls" in numbers:
        yield f"calls: {numbers['calls']}"
