"""A session as a file: Markdown with footnotes, one HTML page, JSON, or a trace of every event.

Images and markup in the Markdown are words (`web.inert`). The HTML is made of the same tree as the
page on the screen, so it holds nothing but the tags of `web.tree`; it has no script and loads
nothing, and says so in a policy of its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import quote

from agent.branches import BRANCHING, no_turn, shown
from agent.events import DELTAS, Event, public_data
from agent.neutral import INVISIBLE
from agent.session import Session
from web.inert import closed, inert
from web.links import KnownLinks
from web.markdown import render_known
from web.marks import find_marks, substitute
from web.tree import Node

_ASIDE = DELTAS | {"exchange"}
_FOLLOWED = ("http://", "https://", "library://", "zim://")
_VOID = frozenset({"hr", "br"})
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "h2{border-top:1px solid #ccc;padding-top:1rem;white-space:pre-wrap;font-size:1.1rem}"
    "pre{overflow:auto;background:#f4f4f4;padding:.7rem}table{border-collapse:collapse}"
    "th,td{border:1px solid #ccc;padding:.2rem .5rem}.right{text-align:right}"
    ".center{text-align:center}.note,.host,.unlinked{color:#666}"
    "h1,h2,h3,h4,h5,h6,p,li,th,td{unicode-bidi:plaintext}"
    "code,pre,.math{direction:ltr;unicode-bidi:isolate}"
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and what became of it."""

    question: str
    answer: str
    citations: Sequence[Mapping[str, Any]]
    sources: Sequence[Mapping[str, Any]]
    note: str


def turns(events: Iterable[Event]) -> list[Turn]:
    """The questions shown, in order. An answer under way counts as what there is of it."""
    found: list[Turn] = []
    plans: dict[int, str] = {}
    said = ""
    for event in shown(events):
        data = event.data
        if event.type == "user_message":
            found.append(Turn(data["text"], "", (), (), "unfinished"))
            said = ""
        elif event.type == "run_resumed":  # another process says it anew
            found[-1] = Turn(found[-1].question, "", (), (), "unfinished")
            said = ""
        elif event.type == "text_delta":
            said += data["text"]
            found[-1] = Turn(found[-1].question, said, (), (), "unfinished")
        elif event.type == "message":
            said = ""
        elif event.type == "plan" and found:
            plans[len(found) - 1] = _plan(data)  # the last one of a turn counts
        elif event.type == "run_finished":
            found[-1] = _ended(found[-1].question, data)
    for place, plan in plans.items():  # behind the answer, whose citations count from its start
        found[place] = replace(found[place], answer=f"{found[place].answer}\n\n{plan}".strip())
    return found


def _plan(plan: Mapping[str, Any]) -> str:
    """A plan as Markdown."""
    lines = [f"**Plan: {_line(plan['title'])}**", ""]
    for number, step in enumerate(plan["steps"], 1):
        touched = "".join(f" `{name.replace('`', '')}`" for name in step["files"])
        sources = "".join(f" [{n}]" for n in step["sources"])
        lines.append(
            f"{number}. {step['text']}{f' - touches{touched}' if touched else ''}{sources}"
        )
    return "\n".join(lines)


def _ended(question: str, data: Mapping[str, Any]) -> Turn:
    note = f"{data.get('model', '')} · search: {data['search_path']}".strip(" ·")
    if data["reason"] != "stop":
        why = (data.get("error") or {}).get("message", "")
        note += f" · {data['reason']}" + (f": {why}" if why else "")
    return Turn(question, data["answer"], data["citations"], data["sources"], note)


def markdown(session: Session, events: Sequence[Event]) -> str:
    """Questions as headings, citations as footnotes."""
    out = [f"# {_line(session.title)}", ""]
    cited: list[Mapping[str, Any]] = []
    for turn in turns(events):
        question = "## " + _line(turn.question)
        out += [question, "", _noted(turn), "", f"*{_line(turn.note)}*", ""]
        cited += turn.citations
    return "\n".join([*out, *_footnotes(cited)]).rstrip() + "\n"


def answer(events: Sequence[Event], turn: int) -> str:
    """The answer to question number `turn`, with its citations as footnotes."""
    numbers = [event.seq for event in events if event.type == "user_message"]
    if turn not in numbers:
        raise no_turn(turn)
    after = next((n for n in numbers if n > turn), float("inf"))
    [found] = turns([e for e in events if turn <= e.seq < after and e.type not in BRANCHING])
    return "\n".join([_noted(found), "", *_footnotes(found.citations)]).rstrip() + "\n"


def _noted(turn: Turn) -> str:
    marks = find_marks(turn.answer, turn.citations)
    noted = substitute(turn.answer, marks, lambda mark: "".join(f"[^{n}]" for n in mark.numbers))
    return inert(closed(noted))


def _footnotes(cited: Iterable[Mapping[str, Any]]) -> list[str]:
    """One a source, with what it says wherever it is cited."""
    notes: dict[int, Mapping[str, Any]] = {}
    quotes: dict[int, dict[str, None]] = {}
    for citation in cited:
        notes[citation["n"]] = citation
        quotes.setdefault(citation["n"], {}).update(dict.fromkeys(_quotes(citation)))
    out = []
    for n, citation in sorted(notes.items()):
        said = "".join(f" “{_line(words)}”" for words in quotes[n])
        title = _line(_seen(citation.get("title") or citation["url"]))
        out.append(f"[^{n}]: {title} {_address(citation['url'])}{said}")
    return out


def _quotes(citation: Mapping[str, Any]) -> list[str]:
    """What the source says at its marks, each once."""
    said = (mark["quote"] for mark in citation.get("marks", ()))
    return list(dict.fromkeys(_seen(quote) for quote in said if quote))


def _seen(text: str) -> str:
    """Without what nobody sees: it could turn round what stands beside it, or paint a terminal."""
    return INVISIBLE.sub("", text)


def _line(text: str) -> str:
    """Someone else's words on one line of Markdown, as words."""
    words = " ".join(text.split()) or "-"
    return "".join(f"\\{ch}" if ch in "\\`*_[]<>#|!~&" else ch for ch in words)


def _address(url: str) -> str:
    """A link to a page, or words: in brackets any scheme would be followed."""
    if not url.lower().startswith(_FOLLOWED):
        return f"`{' '.join(_seen(url).replace('`', '').split())}`"
    url = url.translate({ord(" "): "%20", ord("<"): "%3C", ord(">"): "%3E", 10: None, 13: None})
    return f"<{INVISIBLE.sub(lambda found: quote(found[0], errors='replace'), url)}>"


def html(session: Session, events: Sequence[Event]) -> str:
    """One page that stands alone."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    when = datetime.fromtimestamp(session.created, UTC).strftime("%Y-%m-%d")
    links = KnownLinks()
    out = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{escape(session.title)}</title><style>{_STYLE}</style></head><body>",
        f'<h1>{escape(session.title)}</h1><p class="note">{when}</p>',
    ]
    for number, turn in enumerate(turns(events), 1):
        links.add(turn.sources)
        links.add(turn.citations)
        out.append(f"<h2>{escape(turn.question)}</h2>")
        nodes = render_known(turn.answer, turn.citations, links)
        out.append(to_html(nodes, f"t{number}"))
        out.append(f'<p class="note">{escape(turn.note)}</p>')
        out += [_source(citation, f"t{number}") for citation in turn.citations]
    return "\n".join([*out, "</body></html>\n"])


def _source(citation: Mapping[str, Any], turn: str) -> str:
    url = str(citation["url"])
    words = escape(_seen(str(citation.get("title") or url)))
    shown = f"{words} <span class=host>{escape(_seen(url))}</span>"
    known = KnownLinks([citation]).find(url)
    linked = f'<a rel="{_REL}" href="{escape(known)}">{shown}</a>' if known else shown
    said = "".join(f"<br>“{escape(words)}”" for words in _quotes(citation))
    n = int(citation["n"])
    return f'<p id="{turn}-{n}">[{n}] {linked}{said}</p>'


_TURNS = frozenset({"ul", "ol", "table", "blockquote"})  # their sides go by what is in them
_REL = "noopener noreferrer nofollow"


def to_html(nodes: Sequence[Node], turn: str) -> str:
    """The tree as markup. Its depth is bounded, so this may call itself."""
    out: list[str] = []
    for node in nodes:
        if isinstance(node, str):
            out.append(escape(node))
            continue
        tag, attributes = node["t"], node.get("a", {})
        inner = to_html(node.get("c", ()), turn)
        if tag == "cite":
            n = int(attributes["n"])
            out.append(f'<sup><a href="#{turn}-{n}">[{n}]</a></sup>')
        elif tag == "pre":
            out.append(f"<pre><code>{inner}</code></pre>")
        else:
            rel = f' rel="{_REL}"' if tag == "a" else ' dir="auto"' if tag in _TURNS else ""
            given = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
            out.append(f"<{tag}{rel}{given}>" + ("" if tag in _VOID else f"{inner}</{tag}>"))
    return "".join(out)


def as_json(session: Session, events: Sequence[Event]) -> str:
    """The session and the events shown, without the scaffolding of an answer under way."""
    kept = [public_data(event) for event in shown(events) if event.type not in _ASIDE]
    data = {"session": session.as_dict(), "events": kept}
    return json.dumps(data, ensure_ascii=False, indent=1)


def trace(session: Session, events: Sequence[Event]) -> str:
    """Every event as it was stored, one a line, with what providers answered if it is recorded."""
    lines = []
    for event in events:
        whole = event.data if event.type == "exchange" else {}
        lines.append(json.dumps({**public_data(event), **whole}, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Export:
    """A form in which a session can be had."""

    ending: str
    kind: str
    write: Callable[[Session, Sequence[Event]], str]


EXPORTS: Mapping[str, Export] = {
    "md": Export("md", "text/markdown", markdown),
    "html": Export("html", "text/html", html),
    "json": Export("json", "application/json", as_json),
    "trace": Export("jsonl", "application/x-ndjson", trace),
}
