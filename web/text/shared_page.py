"""A chat as one HTML page with its sources and verdicts, for people who have no searchloop.

The page runs nothing and asks nobody: its policy forbids scripts, requests and every style but its
own. It holds the chat and no more: no address of this computer, no place of a file, and of a
failure its kind but not its words, which may name either.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from searchloop.agent.log.session import Session
from searchloop.agent.verdicts.words import WORDS, evidence
from searchloop.analysis.characters import visible
from searchloop.analysis.language import language
from searchloop.web.text.markdown import render_known
from searchloop.web.text.tree import KnownLinks, Node

_VOID = frozenset({"hr", "br"})
_DIRECTED = frozenset({"ul", "ol", "table", "blockquote"})  # their content decides their direction
_REL = "noopener noreferrer nofollow"
_SIGNS = dict(zip(WORDS, "≠✗?○✓”", strict=True))  # each verdict is told without colours, too
_STATES = {"opened": "Read, and cited nowhere", "found": "Found, and not read"}
_RTL = frozenset({"ar", "fa", "he"})


@dataclass(slots=True)
class Turn:
    """A question and its answer. `note` names model and search.

    `ended` says how a run ended early, `why` in words of its own.
    """

    question: str
    answer: str = ""
    citations: Sequence[Mapping[str, Any]] = ()
    sources: Sequence[Mapping[str, Any]] = ()
    note: str = "unfinished"
    plan: str = ""
    files: str = ""  # names and sizes of what was attached
    ended: str = ""
    why: str = ""

    def told(self) -> str:
        """Returns model and search, and how and why the run ended early."""
        how = f"{self.ended}: {self.why}" if self.why else self.ended
        return f"{self.note} · {how}" if how else self.note


def page(session: Session, turns: Iterable[Turn]) -> str:
    """Renders a chat as a page without other files."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    when = datetime.fromtimestamp(session.created, UTC).strftime("%Y-%m-%d")
    title = escape(" ".join(visible(session.title).split()) or "Chat")
    out = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="referrer" content="no-referrer">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{style}</style></head><body><main>",
        f'<h1 dir="auto">{title}</h1><p class="note"><time datetime="{when}">{when}</time></p>',
    ]
    links, checked = KnownLinks(), False
    for number, turn in enumerate(turns, 1):
        turn = replace(turn, citations=[_public(each) for each in turn.citations])
        links.add(turn.sources)
        links.add(turn.citations)
        checked = checked or any(
            mark.get("verdict") in WORDS
            for each in turn.citations
            for mark in each.get("marks", ())
        )
        out += _turn(turn, f"t{number}", links)
    out += [_LEGEND] if checked else []
    return "\n".join([*out, "</main></body></html>\n"])


@functools.cache
def _style() -> str:
    return (Path(__file__).parent / "shared_page.css").read_text("utf-8").strip()


_LEGEND = (
    "<footer><h2>What the marks mean</h2><p>Each place was compared with the text of its source, by"
    " rules and not by people.</p><ul>"
    + "".join(
        f'<li><span class="mark {name}">{sign}</span> {WORDS[name]}</li>'
        for name, sign in _SIGNS.items()
    )
    + "</ul></footer>"
)


def _turn(turn: Turn, name: str, links: KnownLinks) -> Iterator[str]:
    said = language(turn.answer or turn.question)
    tongue = (f' lang="{said}"' if said else "") + (' dir="rtl"' if said in _RTL else "")
    yield f'<article{tongue}><h2 dir="auto">{escape(visible(turn.question))}</h2>'
    if turn.files:
        yield f'<p class="note">Attached: {escape(visible(turn.files))}</p>'
    nodes = render_known(turn.answer, turn.citations, links)
    yield _Markup(name, turn.citations, nodes).of(nodes)
    cited = [_source(citation, name) for citation in turn.citations]
    known = {citation["url"] for citation in turn.citations}
    read = [_other(each) for each in turn.sources if each.get("url") not in known]
    if cited or read:
        heading = f"<h3>Sources <small>({len(cited) + len(read)})</small></h3>"
        yield f'<section class="sources" lang="en" dir="ltr">{heading}<ol>'
        yield from (*cited, *read)
        yield "</ol></section>"
    note = f"{turn.note} · {turn.ended}" if turn.ended else turn.note
    yield f'<p class="note" lang="en" dir="ltr">{escape(visible(note))}</p></article>'


def _public(citation: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a citation; one of a file of this computer without its place."""
    return citation if _is_web(citation) else {**citation, "title": _title(citation)}


def _is_web(source: Mapping[str, Any]) -> bool:
    return urlsplit(str(source.get("url"))).scheme.lower() in ("http", "https")


def _title(source: Mapping[str, Any]) -> str:
    """Returns a source's title; of a file its name at most, without the folders before it."""
    url, title = str(source.get("url")), str(source.get("title") or "")
    if _is_web(source):
        return title or url
    return (title or url).replace("\\", "/").rstrip("/").rpartition("/")[2] or "A file"


def _linked(source: Mapping[str, Any]) -> str:
    url = str(source["url"])
    words = escape(visible(_title(source)))
    if not _is_web(source):
        return f"<bdi>{words}</bdi> <span class=host>a file</span>"
    shown = f"<bdi>{words}</bdi> <span class=host>{escape(visible(url))}</span>"
    known = KnownLinks([source]).find(url)
    return f'<a rel="{_REL}" href="{escape(known)}">{shown}</a>' if known else shown


def _source(citation: Mapping[str, Any], turn: str) -> str:
    """Returns a cited source with the verdict at each of its places and what the source says."""
    n, places = int(citation["n"]), []
    said = dict.fromkeys(evidence(mark) for mark in citation.get("marks", ()))
    verdicts = {evidence(mark): mark.get("verdict") for mark in citation.get("marks", ())}
    for words in said:
        verdict = verdicts[words]
        sign = f'<span class="mark {verdict}">{_SIGNS[verdict]}</span> ' if verdict in WORDS else ""
        places += [f"<li>{sign}{escape(visible(words))}</li>"] if words else []
    inner = f"<ul>{''.join(places)}</ul>" if places else ""
    return f'<li id="{turn}-{n}" value="{n}">{_linked(citation)}{inner}</li>'


def _other(source: Mapping[str, Any]) -> str:
    n, state = source.get("n"), _STATES.get(str(source.get("state")), "")
    numbered = f' value="{int(n)}"' if isinstance(n, int) else ' class="aside"'
    return f"<li{numbered}>{_linked(source)} <small>{state}</small></li>"


def answer_html(text: str, citations: Sequence[Mapping[str, Any]], name: str) -> str:
    """Renders an answer and its sources as markup; `name` tells its anchors from other answers'."""
    links = KnownLinks()
    links.add(citations)
    nodes = render_known(text, citations, links)
    cited = "".join(_source(each, name) for each in citations)
    return _Markup(name, citations, nodes).of(nodes) + (f"<ol>{cited}</ol>" if cited else "")


def evidence_of(citation: Mapping[str, Any]) -> list[str]:
    """Returns the verdict and the passage at each of a source's places, the same ones once."""
    found = (visible(evidence(mark)) for mark in citation.get("marks", ()))
    return [words for words in dict.fromkeys(found) if words]


class _Markup:
    """Renders the tree of one answer as markup. The tree's depth is bounded, so it recurses."""

    def __init__(
        self, turn: str, citations: Sequence[Mapping[str, Any]], nodes: Sequence[Node]
    ) -> None:
        self._turn = turn
        self._marks = {int(c["n"]): c.get("marks", ()) for c in citations}
        levels = sorted(set(_levels(nodes)))
        # An answer's headings stand below its question, and no level is left out.
        self._levels = {f"h{level}": f"h{min(3 + i, 6)}" for i, level in enumerate(levels)}

    def of(self, nodes: Sequence[Node]) -> str:
        """Returns the markup of these nodes."""
        return "".join(escape(n) if isinstance(n, str) else self._node(n) for n in nodes)

    def _node(self, node: Mapping[str, Any]) -> str:
        tag, attributes = node["t"], node.get("a", {})
        if tag == "cite":
            return self._cite(int(attributes["n"]), str(attributes.get("m") or ""))
        inner = self.of(node.get("c", ()))
        if tag == "pre":
            return f'<pre tabindex="0" dir="ltr"><code>{inner}</code></pre>'
        tag = self._levels.get(tag, tag)
        rel = f' rel="{_REL}"' if tag == "a" else ' dir="auto"' if tag in _DIRECTED else ""
        given = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
        made = f"<{tag}{rel}{given}>" + ("" if tag in _VOID else f"{inner}</{tag}>")
        if tag != "table":
            return made
        return f'<div class="scroll" tabindex="0" role="region" aria-label="Table">{made}</div>'

    def _cite(self, n: int, which: str) -> str:
        marks = self._marks.get(n, ())
        own = [int(i) for i in which.split(",") if i.isdigit()] or range(len(marks))
        found = {marks[i].get("verdict") for i in own if i < len(marks)}
        verdict = next((name for name in WORDS if name in found), "")
        sign = f" {_SIGNS[verdict]}" if verdict else ""
        said = f' title="{WORDS[verdict]}"' if verdict else ""
        place = f"#{self._turn}-{n}"
        return f'<sup><a class="mark {verdict}" href="{place}"{said}>[{n}]{sign}</a></sup>'


def _levels(nodes: Iterable[Node]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, dict):
            if len(tag := node["t"]) == 2 and tag[0] == "h" and tag[1].isdigit():
                yield int(tag[1])
            yield from _levels(node.get("c", ()))
