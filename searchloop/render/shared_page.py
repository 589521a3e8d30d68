"""A chat as one HTML page with its sources and verdicts, for people who have no searchloop.

The page runs nothing and asks nobody: its policy forbids scripts, requests and every style but its
own. It holds the chat and no more: no address of this computer, no place of a file, and of a
failure its kind but not its words, which may name either.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from searchloop.agent.log.session import Session
from searchloop.agent.search.verdict_words import VERDICTS, findings, placed, told
from searchloop.agent.types.attachments import SCHEME
from searchloop.analysis.characters import visible
from searchloop.analysis.language import language
from searchloop.render.markdown import render_known
from searchloop.render.tree import KnownLinks, Node
from searchloop.render.words import Words, words_of

_STYLE = (Path(__file__).parent / "shared_page.css").read_text("utf-8").strip()
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_VOID = frozenset({"hr", "br"})
_DIRECTED = frozenset({"ul", "ol", "table", "blockquote"})  # their content decides their direction
_REL = "noopener noreferrer nofollow"
_SIGNS = dict(zip(VERDICTS, "≠✗?○✓”", strict=True))  # each verdict is told without colours, too
_RTL = frozenset({"ar", "fa", "he"})


@dataclass(slots=True)
class Turn:
    """A question and its answer; `note` says which model answered, who searched, how it ended."""

    question: str
    note: str = ""
    files: str = ""  # says what was attached
    answer: str = ""
    citations: Sequence[Mapping[str, Any]] = ()
    sources: Sequence[Mapping[str, Any]] = ()
    plan: str = ""


def page(session: Session, turns: Iterable[Turn], words: Words) -> str:
    """Renders a chat as a page without other files."""
    when = datetime.fromtimestamp(session.created, UTC).strftime("%Y-%m-%d")
    title = " ".join(visible(session.title).split()) or words["untitled"]
    out = [f'<p class="note"><time datetime="{when}">{when}</time></p>']
    links, checked = KnownLinks(), False
    for number, turn in enumerate(turns, 1):
        links.add(turn.sources)
        links.add(turn.citations)
        checked = checked or any(told(each.get("marks", ()), words) for each in turn.citations)
        out += _turn(turn, f"t{number}", links, words)
    out += [legend(words)] if checked else []
    return framed(title, out, words)


def framed(title: str, body: Iterable[str], words: Words) -> str:
    """Returns a page that runs nothing, with its title and the lines of its body."""
    policy = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
    title = escape(title)
    head = [
        f'<!doctype html>\n<html{_spoken(words)}><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="referrer" content="no-referrer">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body><main>",
        f'<h1 dir="auto">{title}</h1>',
    ]
    return "\n".join([*head, *body, "</main></body></html>\n"])


def _spoken(words: Words) -> str:
    return f' lang="{words["language.tag"]}" dir="{words["language.direction"]}"'


def legend(words: Words) -> str:
    """Returns what each mark means."""
    signs = (f"<li>{_sign(name)}{words[f'verdict.{name}']}</li>" for name in VERDICTS)
    said = f"<h2>{words['marks.title']}</h2><p>{words['marks.lead']}</p>"
    return f"<footer>{said}<ul>{''.join(signs)}</ul></footer>"


def _sign(verdict: str) -> str:
    return f'<span class="mark {verdict}">{_SIGNS[verdict]}</span> ' if verdict in _SIGNS else ""


def _turn(turn: Turn, name: str, links: KnownLinks, words: Words) -> Iterator[str]:
    said = language(turn.answer or turn.question)
    tongue = (f' lang="{said}"' if said else "") + (' dir="rtl"' if said in _RTL else "")
    yield f'<article{tongue}><h2 dir="auto">{escape(visible(turn.question))}</h2>'
    ours = _spoken(words)
    if turn.files:
        yield f'<p class="note"{ours}>{escape(visible(turn.files))}</p>'
    nodes = render_known(turn.answer, turn.citations, links)
    yield _Markup(name, turn.citations, words).of(nodes)
    cited = [_source(citation, name, words) for citation in turn.citations]
    known = {citation["url"] for citation in turn.citations}
    read = [_other(each, words) for each in turn.sources if each.get("url") not in known]
    if cited or read:
        count = f"<small>({len(cited) + len(read)})</small>"
        yield f'<section class="sources"{ours}><h3>{words["sources.title"]} {count}</h3><ol>'
        yield from (*cited, *read)
        yield "</ol></section>"
    yield f'<p class="note"{ours}>{escape(visible(turn.note))}</p></article>'


def _is_web(source: Mapping[str, Any]) -> bool:
    return urlsplit(str(source.get("url"))).scheme.lower() in ("http", "https")


def _title(source: Mapping[str, Any]) -> str:
    """Returns a source's title; of a file its name at most, without the folders before it."""
    url, title = str(source.get("url")), str(source.get("title") or "")
    if _is_web(source):
        return title or url
    return (title or url).replace("\\", "/").rstrip("/").rpartition("/")[2]


def _linked(source: Mapping[str, Any], words: Words) -> str:
    url = str(source["url"])
    title = escape(visible(_title(source)))
    if not _is_web(source):
        kind = words["source.attached" if url.startswith(SCHEME) else "source.library"]
        return f"<bdi>{title or kind}</bdi> <span class=host>{kind}</span>"
    shown = f"<bdi>{title}</bdi> <span class=host>{escape(visible(url))}</span>"
    known = KnownLinks([source]).find(url)
    return f'<a rel="{_REL}" href="{escape(known)}">{shown}</a>' if known else shown


def _source(citation: Mapping[str, Any], turn: str, words: Words) -> str:
    """Returns a cited source with the verdict at each of its places and what the source says."""
    n, places = int(citation["n"]), []
    for said, verdict in findings(citation.get("marks", ()), words).items():
        places += [f"<li>{_sign(verdict)}{escape(visible(said))}</li>"]
    inner = f"<ul>{''.join(places)}</ul>" if places else ""
    return f'<li id="{turn}-{n}" value="{n}">{_linked(citation, words)}{inner}</li>'


def _other(source: Mapping[str, Any], words: Words) -> str:
    n, state = source.get("n"), words.get(f"source.{source.get('state')}", "")
    numbered = f' value="{int(n)}"' if isinstance(n, int) else ' class="aside"'
    return f"<li{numbered}>{_linked(source, words)} <small>{state}</small></li>"


def answer_html(
    text: str, citations: Sequence[Mapping[str, Any]], name: str, language: str = "en"
) -> str:
    """Renders an answer and its sources as markup; `name` tells its anchors from other answers'."""
    links, words, citations = KnownLinks(), words_of(language), placed(text, citations)
    links.add(citations)
    nodes = render_known(text, citations, links)
    cited = "".join(_source(each, name, words) for each in citations)
    markup = _Markup(name, citations, words).of(nodes)
    return markup + (f"<ol>{cited}</ol>" if cited else "")


class _Markup:
    """Renders the tree of one answer as markup. The tree's depth is bounded, so it recurses."""

    def __init__(self, turn: str, citations: Iterable[Mapping[str, Any]], words: Words) -> None:
        self._turn, self._words = turn, words
        self._marks = {int(c["n"]): c.get("marks", ()) for c in citations}
        self._above: list[int] = []  # the headings that the next one stands below

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
        if re.fullmatch("h[1-6]", tag):
            tag = self._level(int(tag[1]))
        rel = f' rel="{_REL}"' if tag == "a" else ' dir="auto"' if tag in _DIRECTED else ""
        given = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
        made = f"<{tag}{rel}{given}>" + ("" if tag in _VOID else f"{inner}</{tag}>")
        if tag != "table":
            return made
        label = self._words["table.label"]
        return f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">{made}</div>'

    def _level(self, level: int) -> str:
        """Returns the tag of a heading: below the question, and no level is left out."""
        while self._above and self._above[-1] >= level:
            self._above.pop()
        self._above.append(level)
        return f"h{min(2 + len(self._above), 6)}"

    def _cite(self, n: int, which: str) -> str:
        marks = self._marks.get(n, ())
        own = [int(i) for i in which.split(",") if i.isdigit()] or range(len(marks))
        found = {marks[i].get("verdict") for i in own if i < len(marks)}
        verdict = next((name for name in VERDICTS if name in found), "")
        sign = f" {_SIGNS[verdict]}" if verdict else ""
        said = f' title="{self._words[f"verdict.{verdict}"]}"' if verdict else ""
        place = f"#{self._turn}-{n}"
        return f'<sup><a class="mark {verdict}" href="{place}"{said}>[{n}]{sign}</a></sup>'
