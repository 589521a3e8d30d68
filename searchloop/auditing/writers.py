"""Writes an audit: as text, JSON, SARIF for code hosts, and one HTML page with the marks."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping
from html import escape
from typing import Any
from urllib.parse import quote

from searchloop.agent import __version__
from searchloop.agent.search.verdict_words import NEAREST, plain
from searchloop.analysis.characters import visible
from searchloop.auditing.results import Audit, AuditedCitation, AuditedPage, AuditedSentence
from searchloop.render.shared_page import answer_html, framed, legend
from searchloop.render.words import Words

# In the order in which people look at them; each with its level in SARIF.
_LOOK = {"contradicted": "error", "misquoted": "error", "unclear": "note", "unread": "warning"}
_HOLD = ("supported", "quoted")
_LONGEST = 300  # characters of one line
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def look_first(audit: Audit) -> list[AuditedSentence]:
    """Returns the sentences that do not hold, the worst first."""
    order = list(_LOOK)
    found = [each for each in audit.sentences if each.verdict in order]
    return sorted(found, key=lambda each: order.index(each.verdict or ""))


def counts(audit: Audit, words: Words) -> str:
    """Returns how many sentences of each verdict there are, in words."""
    summary = audit.summary
    told = [
        words.say("audit.count", n=n, words=words[f"audit.{name}"])
        for name in (*_HOLD, *_LOOK)
        if (n := summary["by_verdict"].get(name))
    ]
    if n := summary["uncited_claims"]:
        told.append(words.say("audit.count", n=n, words=words["audit.uncited.short"]))
    said = words.say("audit.of", n=summary["cited"], pages=summary["pages"])
    return f"{said}; {', '.join(told)}" if told else said


def reason(cited: AuditedCitation, words: Words) -> str:
    """Returns why one source of a sentence has its verdict."""
    if cited.problem:
        return f"{words[f'audit.{cited.problem}']}. {_why(cited.reason, words)}".strip()
    return words.worded(words.worded(cited.reason, "audit.why."), "reason.")


def _why(reason: str, words: Words) -> str:
    """Returns why a page was not read: in our words, or in those of the error."""
    return words.worded(words.worded(reason, "audit.why."), "error.")


def as_text(audit: Audit, words: Words, name: str = "") -> str:
    """Writes what needs a look, with lines of the report and what the pages say."""
    line = _lines(audit)
    out = [f"{name or audit.title}{words['audit.colon']}{counts(audit, words)}"]
    for each in look_first(audit):
        head = f"{words[f'audit.{each.verdict}']}, {words.say('audit.line', n=line(each)[0])}"
        out += ["", f"{head}: {_short(each.text)}"]
        for cited in each.citations:
            out.append(f"  {cited.url or f'[{cited.mark}]'}: {reason(cited, words)}")
            out += [f"    {passage}"] if (passage := _passage(cited, words)) else []
    uncited = [each for each in audit.sentences if not each.citations]
    for part, lines in {
        "pages": [f"{words[f'audit.{p.problem}']}: {p.url}" for p in audit.pages if p.problem],
        "moved": [f"{p.url} -> {p.final_url}" for p in audit.pages if p.state == "redirected"],
        "uncited": [f"{words.say('audit.line', n=line(s)[0])}: {_short(s.text)}" for s in uncited],
    }.items():
        out += ["", f"{words[f'audit.{part}']}:", *(f"  {each}" for each in lines)] if lines else []
    out += ["", *notes] if (notes := _notes(audit, words)) else []
    return "\n".join(out)


def _passage(cited: AuditedCitation, words: Words) -> str:
    """Returns what the page says, and of which day it is."""
    if not cited.passage:
        return ""
    near = f"{words['cite.nearest']} " if cited.verdict in NEAREST else ""
    day = f" ({cited.published[:10]})" if cited.published else ""
    return f"{near}“{_short(plain(cited.passage))}”{day}"


def as_json(audit: Audit, words: Words, name: str = "") -> str:
    """Writes one JSON object."""
    return json.dumps(audit.as_dict(), ensure_ascii=False)


def as_sarif(audit: Audit, words: Words, name: str = "") -> str:
    """Writes SARIF 2.1.0, which code hosts show beside the lines of the report."""
    line, results, rules = _lines(audit), [], dict[str, dict[str, Any]]()
    uri = quote(name.replace("\\", "/"), safe="/:%") or "stdin"

    def add(rule: str, level: str, words_: str, each: AuditedSentence) -> None:
        rules[rule] = {"id": rule, "shortDescription": {"text": words[f"audit.{rule}"]}}
        (first, column), (last, end) = line(each), line(each, each.span[1])
        region = {"startLine": first, "startColumn": column, "endLine": last, "endColumn": end}
        place = {"artifactLocation": {"uri": uri}, "region": region}
        told = {"ruleId": rule, "level": level, "message": {"text": words_}}
        results.append({**told, "locations": [{"physicalLocation": place}]})

    for each in audit.sentences:
        if not each.citations:
            add("uncited", "note", f"{words['audit.uncited.short']}: {each.text}", each)
        for cited in each.citations:
            said = f"{cited.url or cited.mark}: {reason(cited, words)}"
            said += f" “{plain(cited.passage)}”" if cited.passage else ""
            if cited.problem:
                add(cited.problem, "warning", said, each)
            elif cited.verdict in _LOOK and each.verdict not in _HOLD:
                add(cited.verdict, _LOOK[cited.verdict], said, each)
            if cited.state == "redirected":
                add("moved", "note", said, each)
    driver = {"name": "searchloop", "version": __version__, "rules": list(rules.values())}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False)


def as_html(audit: Audit, words: Words, name: str = "") -> str:
    """Writes one page without other files: what needs a look, then the report with its marks."""
    body = [f'<p class="note">{escape(counts(audit, words))}</p>']
    body += [f"<p>{_text(note)}</p>" for note in _notes(audit, words)]
    unread = [page for page in audit.pages if page.problem]
    uncited = [each for each in audit.sentences if not each.citations]
    for part, items in {
        "look": [_entry(each, words) for each in look_first(audit)],
        "pages": [_unread(page, words) for page in unread],
        "uncited": [f'<li dir="auto">{_text(each.text)}</li>' for each in uncited],
    }.items():
        body += [f"<h2>{words[f'audit.{part}']}</h2><ul>", *items, "</ul>"] if items else []
    marked = answer_html(audit.text, citations(audit), "r", words["language.tag"].partition("-")[0])
    body += [f"<article>{marked}</article>", legend(words)]
    return framed(audit.title or name or words["audit.title"], body, words)


def _notes(audit: Audit, words: Words) -> list[str]:
    return [*audit.notes, *([words["audit.stopped"]] if audit.stopped else ())]


def _unread(page: AuditedPage, words: Words) -> str:
    said = f"{words[f'audit.{page.problem}']}: {page.url}"
    return f"<li>{_text(said)} <small>{_text(_why(page.reason, words))}</small></li>"


def _entry(each: AuditedSentence, words: Words) -> str:
    said = []
    for cited in each.citations:
        parts = f"{cited.url or f'[{cited.mark}]'}: {reason(cited, words)}"
        said.append(f"<li>{_text(f'{parts} {_passage(cited, words)}'.strip())}</li>")
    verdict = f'<span class="mark {each.verdict}">{_text(words[f"audit.{each.verdict}"])}</span>'
    return f'<li dir="auto">{verdict} {_text(each.text)}<ul>{"".join(said)}</ul></li>'


def _text(text: str) -> str:
    return escape(visible(text))


def citations(audit: Audit) -> list[dict[str, Any]]:
    """Returns the pages as the citations of an answer, with a mark for each place."""
    marks = defaultdict[str, list[dict[str, Any]]](list)
    for sentence in audit.sentences:
        for cited in (c for c in sentence.citations if c.url):
            told = {"span": list(cited.place), "verdict": cited.verdict, "quote": None}
            marks[cited.url].append({**told, "passage": cited.passage or None})
    return [
        {
            "n": n,
            "url": page.url,
            "title": page.title or page.url,
            "marks": marks[page.url],
            "spans": [each["span"] for each in marks[page.url]],
        }
        for n, page in enumerate(audit.pages, 1)
    ]


def _lines(audit: Audit) -> Callable[..., tuple[int, int]]:
    """Returns a function that gives the line and column of a sentence, or of a place in it."""
    starts = [0, *(at + 1 for at, sign in enumerate(audit.text) if sign == "\n")]

    def line(each: AuditedSentence, place: int | None = None) -> tuple[int, int]:
        at = each.span[0] if place is None else place
        number = bisect_right(starts, at)
        return number, at - starts[number - 1] + 1

    return line


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…"


WRITERS: Mapping[str, Callable[..., str]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "html": as_html,
}
