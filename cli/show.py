"""Shows a run on the terminal: as text for people, as JSON for programs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, nullcontext, redirect_stdout
from typing import Any

from searchloop.agent.log.events import Event, public_data
from searchloop.agent.search.citations import settle
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.search.verdict_words import findings, placed, told, unnamed
from searchloop.agent.types import Message, Source
from searchloop.cli import FAILED, LIMIT, OK, STOPPED
from searchloop.cli.arguments import as_json, one_line, safe, safe_json, warn
from searchloop.cli.terminal.markdown import MarkdownScreen, renders
from searchloop.render.words import Words, of_environment, words_of

# A bracket with what joins it to a mark before, or so much of both as has come.
_BRACKET = re.compile(
    r"(?:(?<=\])[ \t]*[,;、，&/–-]?[ \t]*(?:and|und|et|y|和|と|(?:an?|un?|e)\Z)?|(?<![ \t]))"
    r"[ \t]*(?:\[(?:\d[\d ,;、，]*)?(?:(\])(?=[^(\]])|\]?\Z)|\Z)"
    # What may become a mark of another shape, see `agent.search.mark_shapes`.
    r"|[*_]{1,3}(?:\[[^\]\n]{0,40}\]?[*_]{0,2})?\Z|<(?:s(?:up?)?)?\Z|<sup>|[¹²³⁴⁵⁶⁷⁸⁹]"
    r"|[\[［【〔(（][^\[\]()［］【】〔〕（）\n]{0,60}(?:\]\[[^\[\]()\n]{0,60})?\Z"
    r"|\[{1,2}\d{1,3}\]{1,2}(?:\([^()\s]*)?\Z"
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


class PlainText:
    """Shows a text that comes bit by bit as it is."""

    def add(self, text: str) -> None:
        print(text, end="", flush=True)

    def hide(self) -> None:
        """Text that is printed stays."""

    def end(self) -> None:
        print()

    def close(self) -> None:
        """Text that was stopped stays as it is."""


class _Screen:
    """Prints an answer as it comes, but no bracket that the finished answer may write otherwise.

    Such a bracket waits for the end of its paragraph. A mark of one known number never changes.
    """

    def __init__(self, before: Iterable[Event], shown: PlainText | MarkdownScreen) -> None:
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
            self._gap = gap if "]" in self._said[start:-1] else None  # an open one may close soon
            if gap < start or not self._settled(gap, marked=True).startswith(self._settled(gap)):
                return
            self._show(gap, self._settled(gap)[len(self._shown) :])
        self._gap = None
        self._show(start, self._said[self._done :])

    def _doubtful(self) -> int:
        """Returns where the first bracket begins that may change, or the text ends."""
        from searchloop.agent.search.mark_shapes import SHAPE

        found = [m for p in (_BRACKET, SHAPE) for m in p.finditer(self._said, self._done)]
        for bracket in sorted(found, key=lambda each: each.start()):
            whole = bracket[1] or (bracket.lastgroup or "sup") not in ("sup", "raised", "note")
            known = whole and self._settled(bracket.end(), marked=True).partition("\n\n\0")[0]
            if not known or not known.endswith(bracket[0]):
                return bracket.start()
        return len(self._said)

    def _settled(self, end: int, *, marked: bool = False) -> str:
        """Returns the text up to `end` as a finished answer has it; `marked`: if marks and notes
        follow."""
        more = f"\n\n\0It is so [{min(self._table.numbers, default=1)}]."
        more += "".join(f"\n\n{note}: x" for note in re.findall(r"\[\^\d+\]", self._said))
        said = self._said[:end] + (more if marked else "")
        return settle(Message("assistant", said), self._table).content

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
    events: Iterator[Event], *, before: Iterable[Event] = (), structured: bool = False
) -> int:
    """Prints the answer on stdout, as it comes on a terminal and whole in a pipe.

    Prints the rest on stderr. `before` are the session's earlier events. A `structured` answer is
    JSON, and alone on stdout. Returns the exit code.
    """
    live, words = sys.stdout.isatty() and not structured, spoken_here()
    shown = MarkdownScreen() if renders() else PlainText()
    screen = _Screen(before, shown)
    with closing(shown):
        for event in events:
            screen.learn(event)
            if event.type == "text_delta" and live:
                screen.add(event.data["text"])
            elif event.type == "message" and live and event.data["text"]:
                screen.finish(event.data["text"])  # what came too fast to be followed is in it
            elif event.type == "plan":
                from searchloop.render.export import plan_text

                shown.hide()
                shown.add(f"{safe(plan_text(event.data, words))}\n")
                shown.end()
            elif event.type == "run_finished":
                if not live and (answer := event.data["answer"]):
                    print(safe_json(answer) if structured else safe(answer))
                with redirect_stdout(sys.stderr) if structured else nullcontext():
                    _after(event, words)
                return code_of(event)
            elif line := _activity(event, words):
                shown.hide()
                print(line, file=sys.stderr)
    return FAILED


def spoken_here() -> Words:
    """Returns the words of the terminal's language."""
    return words_of(of_environment(os.environ))


def _activity(event: Event, words: Words) -> str | None:
    """Returns one line about the event as the page has it, or None."""
    data, line = event.data, ""
    if event.type == "check" and data.get("model"):
        n, spent, why = data.get("tokens"), data.get("usage") or {}, data.get("error")
        line = words.say("check.reads", model=one_line(data["model"]), n=n) if n else ""
        if spent:
            cost = f"{spent['cost_usd'] or 0:.4f}".replace(".", words["language.point"])
            known = spent["cost_usd"] is not None
            line = words.say("foot.cost", cost=cost) if known else words["foot.cost.unknown"]
        line = " · ".join(filter(None, (line, one_line(why or "", 300))))
    elif event.type == "search_started":
        query = one_line(data["query"])
        line = words.say("step.searching" if query else "step.searching.unknown", query=query)
    elif event.type == "search_finished":
        line = " · ".join(one_line(part, 200) for part in trail_of(data, words))
    elif event.type == "page_opened" or (event.type == "check" and data.get("url")):
        read, why = data["status"] == "ok", _why(data, words)
        line = words.say("step.read" if read else "step.notread", host=one_line(data["url"]))
        line += "" if read else f" · {one_line(why)}"
    elif event.type == "servers_awaited":
        line = words.say("step.connecting", names=one_line(", ".join(data["servers"]), 200))
    elif event.type == "notice":
        line = one_line(words.error(data)[0], 300)
    elif event.type == "tool_call" and data["name"] not in ("web_search", "open_page"):
        line = words.say("step.tool", name=one_line(data["name"]))
    elif event.type == "tool_result" and data["details"].get("kind") == "file_change":
        done = "step.filemade" if data["details"].get("new") else "step.filechanged"
        line = words.say(done, path=one_line(data["details"]["path"]))
    notes = [one_line(words.error(note)[0], 400) for note in data.get("notes", ())]
    return "\n    ".join([f"  {line}", *notes]) if line else None


def _why(failed: Mapping[str, Any], words: Words) -> str:
    """Says why a search, an engine or a page failed."""
    error, status = failed.get("error") or "", f"attempt.{failed['status']}"
    if isinstance(error, str):
        return words.worded(error, "error.") or words.get(status, failed["status"])
    return str(words.get(f"attempt.{error.get('code')}") or words.error(error)[0])


def trail_of(data: Mapping[str, Any], words: Words) -> Iterator[str]:
    """Says what a search found, and which engines were asked in vain."""
    if data["status"] in ("error", "blocked"):
        why = f": {_why(data, words)}" if data.get("error") else ""
        yield words["step.searchfailed"] + why
    elif n := data["results"]:
        yield words.say("step.results", n=n)
    else:
        yield words["step.noncounted" if n is None else "step.noresults"]
    for each in data["attempts"]:
        engine = words.name(each["engine"])
        if each["status"] == "ok":
            yield words.say("step.used", engine=engine)
        elif (each.get("error") or {}).get("code") != "overtaken":
            yield words.say("attempt", engine=engine, why=_why(each, words).rstrip(".。"))


def _after(event: Event, words: Words) -> None:
    """Prints the sources, the numbers and whatever went wrong."""
    data = event.data
    if cited := [s for s in data["sources"] if s["state"] == "cited"]:
        print(f"\n{words['sources.title']}")
        print_sources([{**data, "sources": cited}], words)
    if n := unnamed(data):
        warn(f"\n{words.say('done.unnamed', n=n)} (--check)")
    usage = data["usage"]
    seconds = f"{usage['seconds']:.1f}".replace(".", words["language.point"])
    counts = [data["model"], words.path(data["search_path"]), words.say("seconds", s=seconds)]
    for name in ("searches", "pages"):
        counts += [words.say(f"foot.{name}", n=usage[name])] if usage[name] else []
    if usage["input_tokens"] is not None:
        tokens = {"in": usage["input_tokens"], "out": usage["output_tokens"]}
        counts.append(words.say("foot.tokens", **tokens))
    figures = data.get("performance", {})
    for name in ("tokens_per_second", "shortened"):  # of a local model
        if figure := figures.get(name):
            shown = f"{figure:.4g}".replace(".", words["language.point"])
            counts.append(words.say(f"figure.{name}", n=shown))
    warn(f"\n{words['list.clauses'].join(counts)}")
    if limit := data.get("limit"):
        by = "--max-steps" if limit.endswith(" steps") else "SEARCHLOOP_LIMITS"
        warn(f"searchloop: {words['end.limit']}\n  {words.worded(limit, 'limit.')} ({by})")
    if data.get("error"):
        warn(f"searchloop: {' '.join(words.error(data['error'])).strip()}")


def print_sources(ended: Iterable[Mapping[str, Any]], words: Words) -> None:
    """Prints the sources of runs by number: title, address, what the check found at their marks,
    and the words that speak against some."""
    found, marks = dict[str, Any](), dict[str, Any]()
    for data in ended:
        found |= {source["url"]: source for source in data["sources"]}
        marks |= {c["url"]: c["marks"] for c in placed(data["answer"], data["citations"])}
    for url, source in sorted(found.items(), key=lambda each: each[1].get("n") or 1e9):
        number, own = f"[{source['n']}]" if source.get("n") else "-", marks.get(url, ())
        print(f"{number:>5} {one_line(source['title'] or url)}\n      {one_line(url, 300)}")
        for line in told(own, words) or [words.get(f"source.{source['state']}", "-")]:
            print(f"      {line}")
        for said, verdict in findings(own, words).items():
            if verdict in ("contradicted", "misquoted"):
                print(f"        {one_line(said, 400)}")


def code_of(event: Event) -> int:
    """Returns the exit code of a `run_finished`."""
    return _CODES.get(event.data["reason"], FAILED)
