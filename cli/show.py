"""Shows a run on the terminal: as text for people, as JSON for programs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from typing import Any, Protocol

from searchloop.agent.log.events import Event, public_data
from searchloop.agent.search.citations import settle
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools.web_search import trail
from searchloop.agent.types import Message, Source
from searchloop.agent.verdicts.words import evidence, told
from searchloop.cli.arguments import as_json, number, one_line, safe, safe_json, warn
from searchloop.cli.main import FAILED, LIMIT, OK, STOPPED
from searchloop.cli.terminal.markdown import MarkdownScreen, renders

_FIGURES = {
    "tokens_per_second": "{tokens_per_second:.1f} tokens/s",
    "prefix_reused": "{prefix_reused:.0%} of the prompt reused",
    "window": "about {prompt_estimate:,} of {window:,} tokens",
    "shortened": "{shortened} older texts shortened",
    "calls": "calls: {calls}",
}
_STATES = {"cited": "cited, not checked", "opened": "read", "found": "found, not read"}
# A bracket with what joins it to a mark before, or so much of both as has come.
_BRACKET = re.compile(
    r"(?:(?<=\])[ \t]*[,;、，&/–-]?[ \t]*(?:and|und|et|y|和|と|(?:an?|un?|e)\Z)?|(?<![ \t]))"
    r"[ \t]*(?:\[(?:\d[\d ,;、，]*)?(?:(\])|\Z)|\Z)"
)
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


class Shown(Protocol):
    """Shows a text that comes bit by bit."""

    def add(self, text: str) -> None:
        """Takes more text."""

    def hide(self) -> None:
        """Makes room for a line that is no part of the text."""

    def end(self) -> None:
        """Ends the text."""


class PlainText:
    """Shows a text as it is."""

    def add(self, text: str) -> None:
        print(text, end="", flush=True)

    def hide(self) -> None:
        """Text that is printed stays."""

    def end(self) -> None:
        print()


class _Screen:
    """Prints an answer as it comes, but no bracket that the finished answer may write otherwise.

    Such a bracket waits for the end of its paragraph. A mark of one known number never changes.
    """

    def __init__(self, before: Iterable[Event], shown: Shown) -> None:
        self._out = shown
        self._table = SourceTable()
        self._said = self._shown = ""
        self._done = 0  # characters of what was said that are shown or removed
        self._gap: int | None = None  # while text waits: the last end of a paragraph so far
        for event in before:
            self.learn(event)

    def learn(self, event: Event) -> None:
        """Takes the numbers of an event's sources."""
        for source in event.data.get("sources", ()):
            self._table.restore(Source(source["url"], n=source.get("n")))

    def add(self, text: str) -> None:
        """Prints what no further text can change."""
        self._said += text
        if (gap := self._said.rfind("\n\n")) == self._gap:
            return
        while (start := self._doubtful()) < len(self._said):
            self._show(start, self._said[self._done : start])
            self._gap = gap if "]" in self._said[start:] else None  # an open one may close soon
            if gap < start or not self._settled(gap, marked=True).startswith(self._settled(gap)):
                return
            self._show(gap, self._settled(gap)[len(self._shown) :])
        self._gap = None
        self._show(start, self._said[self._done :])

    def _doubtful(self) -> int:
        """Returns where the first bracket begins that may change, or the text ends."""
        for bracket in _BRACKET.finditer(self._said, self._done):
            known = bracket[1] and self._settled(bracket.end(), marked=True).partition("\n\n\0")[0]
            if not known or not known.endswith(bracket[0]):
                return bracket.start()
        return len(self._said)

    def _settled(self, end: int, *, marked: bool = False) -> str:
        """Returns the text up to `end` as a finished answer has it; `marked`: if a mark follows."""
        more = f"\n\n\0It is so [{min(self._table.numbers, default=1)}]." if marked else ""
        return settle(Message("assistant", self._said[:end] + more), self._table).content

    def _show(self, end: int, text: str) -> None:
        self._done = end
        self._shown += text
        self._out.add(safe(text))

    def finish(self, text: str) -> None:
        """Prints what is missing of the finished text; one that broke off keeps all its marks."""
        rest = self._said[self._done :] if text == self._said else f"\n{text}"
        self._out.add(
            safe(text.removeprefix(self._shown) if text.startswith(self._shown) else rest)
        )
        self._out.end()
        self._said, self._shown, self._done, self._gap = "", "", 0, None


def as_text(
    events: Iterator[Event],
    *,
    numbers: bool,
    before: Iterable[Event] = (),
    structured: bool = False,
) -> int:
    """Prints the answer on stdout, as it comes on a terminal and whole in a pipe.

    Prints the rest on stderr, with `numbers` the speed too. `before` are the session's earlier
    events. A `structured` answer is JSON, and alone on stdout. Returns the exit code.
    """
    live = sys.stdout.isatty() and not structured
    shown: Shown = MarkdownScreen() if renders() else PlainText()
    screen = _Screen(before, shown)
    for event in events:
        screen.learn(event)
        if event.type == "text_delta" and live:
            screen.add(event.data["text"])
        elif event.type == "message" and live and event.data["text"]:
            screen.finish(event.data["text"])  # what came too fast to be followed is in it
        elif event.type == "plan":
            shown.hide()
            print(f"{_plan_text(event.data)}\n")
        elif event.type == "run_finished":
            if not live and (answer := event.data["answer"]):
                print(safe_json(answer) if structured else safe(answer))
            with redirect_stdout(sys.stderr) if structured else nullcontext():
                _after(event)
            speed = ", ".join(_performance(event.data.get("performance", {})))
            if numbers and speed:
                print(speed, file=sys.stderr)
            return code_of(event)
        else:
            line = _activity(event)
            if line:
                shown.hide()
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
            print_source(source, marks.get(source["n"], ()))
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


def print_source(source: Mapping[str, Any], marks: Sequence[Mapping[str, Any]]) -> None:
    """Prints a source: number, title, address, what the check found at its marks, and the words
    that speak against some."""
    number = f"[{source['n']}]" if source.get("n") else "-"
    print(f"{number:>5} {one_line(source['title'] or source['url'])}")
    for line in (one_line(source["url"], 300), *(told(marks) or [_STATES[source["state"]]])):
        print(f"      {line}")
    for mark in marks:
        if mark.get("verdict") in ("contradicted", "misquoted"):
            print(f"        {one_line(evidence(mark), 300)}")


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
