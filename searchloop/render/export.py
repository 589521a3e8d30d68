"""Exports a session: as Markdown with footnotes, one HTML page, JSON, or a trace of every event.

Other viewers of Markdown load images of any address and let HTML through, so `neutralize` escapes
`![` and the `<` of a tag. Code stays as it is, but viewers disagree on what is code: where one of
them would still find an image or markup, code in lines is escaped as well, then all code.
https://spec.commonmark.org/0.31.2/#images, #raw-html
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from searchloop.agent.log.events import DELTAS, Event, public_data
from searchloop.agent.log.session import BRANCHING, Session, checked, no_turn, shown
from searchloop.agent.search.answer_markdown import math
from searchloop.agent.search.verdict_words import findings, placed, unnamed
from searchloop.agent.types.attachments import size_words
from searchloop.analysis.characters import INVISIBLE, visible
from searchloop.render.shared_page import Turn, page
from searchloop.render.tree import find_marks, substitute
from searchloop.render.words import Words, words_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


_WHOLE = frozenset({"user_message", "run_resumed", "message"})  # no delta before counts any more
_ASIDE = DELTAS | {"exchange"}
_FOLLOWED = ("http://", "https://", "library://", "zim://")
_RATINGS = {1: "rate.good", -1: "rate.poor"}
_SPAN = re.compile(r"\\.|(?P<run>`++)(?P<inner>[^`](?:.*?[^`])?(?P=run)(?!`))?", re.DOTALL)
_LONGEST = 4096  # characters of a paragraph in which code is found: more make a parser slow
_LIVE = re.compile(r"!\[|<(?=[A-Za-z/!?])")
_AUTOLINK = re.compile(r"<https?://[^\s<>`]*>", re.IGNORECASE)
_FOOTNOTE = re.compile(r"!\[\^\d+\]")
_LINE_END = re.compile(r"\r\n?|\n")


def turns(events: Iterable[Event], language: str = "en", *, shared: bool = False) -> list[Turn]:
    """Returns the questions shown, a live answer as it is so far; `shared` without a failure's
    words, which may name anything."""
    words = words_of(language)
    found: list[Turn] = []
    said, origin, rating = "", "", None
    events = tuple(events)
    rated = {e.data["turn"]: e.data["rating"] for e in events if e.type == "turn_rated"}
    for event in shown(checked(events)):
        data = event.data
        said = "" if event.type in _WHOLE else said
        if event.type == "user_message":
            names = (f"{f['name']} ({size_words(f['size'])})" for f in data.get("attachments", ()))
            files = words.say("export.attached", files=files) if (files := "; ".join(names)) else ""
            origin = words["done.imported"] if data.get("imported") else ""
            rating = _RATINGS.get(rated.get(event.seq, 0))
            found.append(Turn(data["text"], words["end.unfinished"], files))
        elif event.type == "run_resumed":  # another process repeats the answer
            found[-1] = replace(found[-1], answer="")
        elif event.type == "text_delta":
            said += data["text"]
            found[-1].answer = said
        elif event.type == "plan" and found:
            found[-1].plan = plan_text(data, words)  # the last one of a turn counts
        elif event.type == "run_finished":
            path = origin or words.path(data["search_path"])
            parts: list[str | None] = [data.get("model"), path]
            parts.append(words.ending(data["reason"], None if shared else data.get("error")))
            parts.append(words.say("done.unnamed", n=n) if (n := unnamed(data)) else None)
            parts.append(words[rating] if rating else None)
            found[-1] = replace(
                found[-1],
                answer=data["answer"],
                citations=placed(data["answer"], data["citations"]),
                sources=data["sources"],
                note=" · ".join(filter(None, parts)),
            )
    for turn in found:  # a plan goes after the answer: citations count from its start
        turn.answer = f"{turn.answer}\n\n{turn.plan}".strip() if turn.plan else turn.answer
    return found


def plan_text(plan: Mapping[str, Any], words: Words) -> str:
    """Renders a plan as Markdown."""
    lines = [f"**{words.say('plan.title', title=_line(plan['title']))}**", ""]
    for number, step in enumerate(plan["steps"], 1):
        touched = "".join(f" `{name.replace('`', '')}`" for name in step["files"])
        touched = f" - {words['plan.touches']}{touched}" if touched else ""
        sources = "".join(f" [{n}]" for n in step["sources"])
        lines.append(f"{number}. {step['text']}{touched}{sources}")
    return "\n".join(lines)


def markdown(session: Session, events: Sequence[Event], language: str = "en") -> str:
    """Renders a session as Markdown: questions as headings, citations as footnotes."""
    out = [f"# {_line(visible(session.title))}", ""]
    cited: list[Mapping[str, Any]] = []
    for turn in turns(events, language):
        files = [f"*{_line(visible(turn.files))}*", ""] if turn.files else []
        out += ["## " + _line(visible(turn.question)), "", *files]
        out += [_noted(turn), "", f"*{_line(visible(turn.note))}*", ""]
        cited += turn.citations
    return "\n".join([*out, *_footnotes(cited, language)]).rstrip() + "\n"


def answer(events: Sequence[Event], turn: int, language: str = "en") -> str:
    """Renders the answer to question number `turn`, with its citations as footnotes."""
    numbers = [event.seq for event in events if event.type == "user_message"]
    if turn not in numbers:
        raise no_turn(turn)
    after = next((n for n in numbers if n > turn), float("inf"))
    of_it = [e for e in events if turn <= e.seq < after and e.type not in BRANCHING]
    [found] = turns(of_it, language)
    return answer_markdown(found.answer, found.citations, language)


def answer_markdown(text: str, cited: Sequence[Mapping[str, Any]], language: str = "en") -> str:
    """Renders an answer as Markdown that loads nothing, with its citations as footnotes."""
    turn = Turn("", answer=text, citations=placed(text, cited))
    return "\n".join([_noted(turn), "", *_footnotes(turn.citations, language)]).rstrip() + "\n"


def _noted(turn: Turn) -> str:
    marks = find_marks(turn.answer, turn.citations)
    noted = substitute(turn.answer, marks, lambda mark: "".join(f"[^{n}]" for n in mark.numbers))
    return neutralize(close_fence(noted))


def _footnotes(cited: Iterable[Mapping[str, Any]], language: str) -> Iterator[str]:
    """Yields one footnote a source; what the check found at several places is a list in it."""
    notes: dict[int, Mapping[str, Any]] = {}
    marks: dict[int, list[Mapping[str, Any]]] = {}
    for citation in cited:
        notes[citation["n"]] = citation
        marks.setdefault(citation["n"], []).extend(citation.get("marks", ()))
    for n, citation in sorted(notes.items()):
        title = _line(visible(citation.get("title") or citation["url"]))
        found = [_line(visible(said)) for said in findings(marks[n], words_of(language))]
        before = "\n    - " if len(found) > 1 else " "
        yield "".join(
            [f"[^{n}]: {title} {_address(citation['url'])}", *(before + f for f in found)]
        )


def _line(text: str) -> str:
    """Escapes a stranger's text to one line of plain Markdown."""
    words = " ".join(text.split()) or "-"
    return "".join(f"\\{ch}" if ch in "\\`*_[]<>#|!~&" else ch for ch in words)


def _address(url: str) -> str:
    """Returns a link to a page. Addresses of other schemes become code: no viewer opens it."""
    if not url.lower().startswith(_FOLLOWED):
        return f"`{' '.join(visible(url).replace('`', '').split())}`"
    url = url.translate({ord(" "): "%20", ord("<"): "%3C", ord(">"): "%3E", 10: None, 13: None})
    return f"<{INVISIBLE.sub(lambda found: quote(found[0], errors='replace'), url)}>"


def html(session: Session, events: Sequence[Event], language: str = "en") -> str:
    """Renders a session as one HTML page without other files."""
    return page(session, turns(events, language, shared=True), words_of(language))


def as_json(session: Session, events: Sequence[Event], language: str = "en") -> str:
    """Renders the session and the events shown, without deltas and exchanges, as JSON."""
    kept = [public_data(event) for event in shown(checked(events)) if event.type not in _ASIDE]
    data = {"session": session.as_dict(), "events": kept}
    return json.dumps(data, ensure_ascii=False, indent=1)


def trace(session: Session, events: Sequence[Event], language: str = "en") -> str:
    """Renders every stored event, one a line, with recorded answers of providers."""
    lines = []
    for event in events:
        whole: Mapping[str, Any] = event.data if event.type == "exchange" else {}
        lines.append(json.dumps({**public_data(event), **whole}, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


def neutralize(text: str) -> str:
    """Escapes images and HTML in Markdown. Footnotes and addresses in `<>` stay."""
    if not _LIVE.search(text):
        return text
    for code in (_code(text, spans=True), _code(text, spans=False), bytearray(len(text))):
        quiet = _escaped(text, code)
        if not any(_is_live(quiet, _viewer(*kind)) for kind in _VIEWERS):
            break
    return quiet


def close_fence(text: str) -> str:
    """Closes the text's last fence, so that what follows is no code."""
    last = _viewer(False, False, markup=False).parse(f"{text}\n\nend")[-1]
    return f"{text}\n{last.markup}" if last.type == "fence" else text


def _escaped(text: str, code: Sequence[int]) -> str:
    """Escapes images and tags outside code; `code` holds a 1 for each character of code."""

    def escape(live: re.Match[str]) -> str:
        at = live.start()
        slashes = itertools.takewhile(lambda i: text[i] == "\\", range(at - 1, -1, -1))
        if code[at] or sum(1 for _ in slashes) % 2:
            return live[0]
        if live[0] == "<":
            return "<" if _AUTOLINK.match(text, at) else "&lt;"
        return "! [" if _FOOTNOTE.match(text, at) else "!\\["

    return _LIVE.sub(escape, text)


def _code(text: str, *, spans: bool) -> bytearray:
    """Marks the code of a text by a 1 for each of its characters: blocks, and `spans` in lines."""
    code = bytearray(len(text))
    starts = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    for token in _viewer(True, False, markup=False).parse(text):
        if token.map is None:
            continue
        start, end = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
        if token.type in ("fence", "code_block"):
            code[start:end] = b"\1" * (end - start)
        elif token.type == "inline" and spans and end - start <= _LONGEST:
            for span in _SPAN.finditer(text, start, end):
                if span["inner"]:
                    code[span.start() : span.end()] = b"\1" * len(span[0])
    return code


def _is_live(text: str, viewer: MarkdownIt) -> bool:
    """Says whether a viewer finds an image or markup, which only code can still hold."""
    env: dict[str, Any] = {}
    for token in viewer.parse(text, env):
        content = token.content
        if token.type == "html_block":
            return True
        if token.type == "inline" and _escaped(content, bytes(len(content))) != content:
            found: list[Token] = []
            if len(content) <= _LONGEST:
                viewer.inline.parse(content, viewer, env, found)
            if not found or not {"image", "html_inline"}.isdisjoint(each.type for each in found):
                return True
    return False


_VIEWERS = tuple(itertools.product((False, True), repeat=2))  # with tables, with formulas


@functools.cache
def _viewer(tables: bool, formulas: bool, *, markup: bool = True) -> MarkdownIt:
    """Returns a parser of blocks, as far as viewers differ; they look into lines one by one."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": markup})
    if tables:
        parser.enable("table")
    if formulas:
        parser.inline.ruler.before("escape", "math", math)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@dataclass(frozen=True, slots=True)
class Export:
    """A format of exports. `write` takes a session, its events and the reader's language."""

    ending: str
    kind: str
    write: Callable[..., str]


EXPORTS: Mapping[str, Export] = {
    "md": Export("md", "text/markdown", markdown),
    "html": Export("html", "text/html", html),
    "json": Export("json", "application/json", as_json),
    "trace": Export("jsonl", "application/x-ndjson", trace),
}
