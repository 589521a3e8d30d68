"""`python -m bench.page_cost`: no page or text costs more than its size allows, whatever it holds.

Each row grows one thing that a page may have much of, and reads it at a size and at twice that
size; or it does one kind of work with a text that repeats itself. The ratio of the two CPU times
tells how the cost grows: 2 is linear, 4 is quadratic; 1 is a bound that both have reached. A row is
wrong above LARGEST_RATIO when it takes a second, or when it takes more than LONGEST seconds of CPU.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping

from searchloop.agent import text as agent_text
from searchloop.agent.search import marks
from searchloop.agent.search.source_numbers import urls_in
from searchloop.agent.verdicts.check import check
from searchloop.agent.verdicts.page import Page
from searchloop.render.markdown import render
from searchloop.search_backend.plugin.challenge_pages import is_challenge
from searchloop.search_backend.readers import read
from searchloop.search_backend.text import clean, slices

SIZE = 30
# Kilobytes of the repeated texts.
TEXT_SIZE = 60
LARGEST_RATIO = 3.0
LONGEST = 3.0
# Below this a ratio is noise.
_LEAST_SECONDS = 0.05


def _page(sheet: str, body: str) -> str:
    return f"<!doctype html><style>{sheet}</style><body><h1>Tea</h1>{body}"


def _paragraphs(number: int, inside: str = "class=k") -> str:
    return f"<p {inside}>x " * number


# What grows, and the page for a size; sizes are in kilobytes of markup, about.
_STORED = "<div id=root></div><script>window.__X__={"
PAGES: Mapping[str, Callable[[int], str]] = {
    "rules and elements": lambda n: _page("p{color:#fff}" * 31 * n, _paragraphs(120 * n, "")),
    "pictures in a cell": lambda n: f"<table><tr><td>{'<b><img alt=x>' * 60 * n}",
    "pictures in pictures": lambda n: f"<table><tr><td>{'<svg><title>x</title>' * 60 * n}",
    "stored texts": lambda n: _STORED + '\\"' * 800 * n,
    "stored quotes": lambda n: _STORED + '\'":"[' * 400 * n,
    "rules that undo": lambda n: _page(
        "".join(f"p.k{{display:{'none' if i % 2 else 'block'};x:{i}}}" for i in range(40 * n)),
        _paragraphs(50 * n),
    ),
    "selectors": lambda n: _page(f"{'p.k,' * 200 * n}p{{display:none}}", _paragraphs(20 * n)),
    "descendants": lambda n: _page(
        "h1 " + "div " * min(n, 12) + "p{display:none}",
        "<div>" * min(4 * n, 250) + _paragraphs(60 * n),
    ),
    "neighbours": lambda n: _page(
        "".join(f"h2~p~p:nth-child({i}n+1){{opacity:0}}" for i in range(4 * n)), _paragraphs(60 * n)
    ),
    "functions": lambda n: _page(
        "".join(f"p:not(:has(b{i} i)):is(.k,p{',q' * 30}){{opacity:0}}" for i in range(8 * n)),
        _paragraphs(50 * n),
    ),
    "brackets": lambda n: _page("p" + ":not((" * 150 * n + "{display:none}", _paragraphs(20 * n)),
    "nesting": lambda n: _page("p{&,q " * 160 * n + "{display:none}", _paragraphs(20 * n)),
    "conditions": lambda n: _page(
        "@media all{" * 50 * n + ".k{display:none}" + "@media (min-width:1px){.k{opacity:0}}" * n,
        _paragraphs(20 * n),
    ),
    "layers": lambda n: _page("@layer a{.k{opacity:0}}" * 40 * n, _paragraphs(50 * n)),
    "imports": lambda n: _page("@import url(data:text/css,x);" * 30 * n, _paragraphs(20 * n)),
    "variables": lambda n: _page(
        ":root{"
        + "".join(f"--a{i}:var(--a{i + 1}) var(--a{i + 1});" for i in range(20 * n))
        + "}.k{display:var(--a0)}",
        _paragraphs(50 * n),
    ),
    "values": lambda n: _page(".k{margin:" + "calc(1px + 2px) " * 60 * n + "}", _paragraphs(9 * n)),
    "styles": lambda n: _page(
        "", "".join(f"<p style='font-size:{i}e-9px;left:-{i}px'>x " for i in range(20 * n))
    ),
    "grounds": lambda n: _page(
        "".join(f".b{i}{{background:#{i:06x};color:#{i:06x}}}" for i in range(20 * n)),
        "".join(f"<p class=b{i}>x " for i in range(20 * n)),
    ),
    "depth": lambda n: _page(".k{visibility:hidden}", "<div class=k>x " * 60 * n),
    "hidden in hidden": lambda n: _page(
        "", "<div style='font-size:0'>" * 240 + "<p style='font-size:16px'>x" * 40 * n
    ),
    "attributes": lambda n: _page("", "<p " + "a=b " * 240 * n + ">x"),
    "attributes each": lambda n: _page("[a=b]{opacity:0}", "<p a=b c=d e=f g=h>x " * 45 * n),
    "tables": lambda n: _page("", "<table><tr>" + "<td>x" * 180 * n + "</table>"),
    "tables in tables": lambda n: _page("", "<table><tr><td>x" * 60 * n),
    "spans of cells": lambda n: _page(
        "", "<table>" + "<tr><td colspan=999 rowspan=9999>x<td>y" * 35 * n + "</table>"
    ),
    "rows below a wide one": lambda n: _page(
        "", "<table><tr>" + "<td>x" * 100 * n + "<tr><td>y" * 55 * n + "</table>"
    ),
    "cells that span below a wide row": lambda n: _page(
        "", "<table><tr>" + "<td rowspan=65534>x" * 25 * n + "<tr><td>y" * 50 * n + "</table>"
    ),
    "tables side by side": lambda n: _page("", "<table><tr><th>a<td>b</table>" * 40 * n),
    "cells of another table's form": lambda n: _page("", "<table>x<b>" * 90 * n),
    "lists in lists": lambda n: _page("", "<ol><li>x" * min(110 * n, 3_900) + "<li>y" * 40 * n),
    "raised": lambda n: _page("", "x<sup>1</sup><a href='#a'><sub>2</sub>" * 25 * n),
    "raised in raised": lambda n: _page("", "<sup>x" * 170 * n),
    "formulas": lambda n: _page("", "<math><msup><mi>x</mi><mn>2</mn></msup>" * 25 * n),
    "formulas in formulas": lambda n: _page("", "<math><mrow><msqrt>x" * 50 * n),
    "lines of code": lambda n: _page("", "<pre><div class=line><span>x</span>" * 30 * n),
    "struck": lambda n: _page("", "<s><p>x <span class=line-through>y" * 30 * n),
    "entities": lambda n: _page("", "&nbsp;&amp;&#x41;" * 60 * n),
    "formatting": lambda n: _page("", "<b><i><p>x" * 90 * n),
    "links": lambda n: _page("", "<a href=/x>x</a> " * 60 * n),
    "links in links": lambda n: _page("", "<a href=/x><p>x" * 60 * n),
    "classes": lambda n: _page("", "".join(f"<p class='c{i} d{i}'>x" for i in range(45 * n))),
    "one long class": lambda n: _page("", "<p class='" + "k x" * 330 * n + "'>x"),
    "what buttons open": lambda n: _page(
        "",
        "".join(
            f"<button aria-controls=i{i}>x</button><div id=i{i} hidden>{'y ' * 30}</div>"
            for i in range(8 * n)
        ),
    ),
    "hidden side by side": lambda n: _page("", "<div hidden><p>x" * 60 * n),
    "scripts": lambda n: _page("", "<script>var a='<p>x';</script><p>x" * 30 * n),
    "scripts that never end": lambda n: _page("", "<script><!--<script>" * 50 * n),
    "facts of a page": lambda n: _page(
        "", "<script type='application/ld+json'>" + '{"a":' * 200 * n + "</script><p>x"
    ),
    "templates": lambda n: _page("", "<template><p>x</template><noscript><p>y</noscript>" * 20 * n),
    "headings": lambda n: _page("", "<h2>a [edit]</h2><p>x" * 45 * n),
    "open brackets": lambda n: _page("", "<h2>" + "[ [" * 330 * n + "</h2>"),
    "titles": lambda n: "<title>" + "a | b - " * 120 * n + "</title><p>x",
    "dates and authors": lambda n: _page(
        "", "<time datetime=2020-01-01>x</time><span class=author>By X Y</span>" * 14 * n
    ),
    "signs that begin no tag": lambda n: "<" * 1000 * n,
    "blanks": lambda n: _page("", "<p>" + "\u00a0 \n" * 250 * n + "x"),
    "invisible signs": lambda n: _page("", "<p>" + "x\u0301\u200b\u202e" * 120 * n),
    "comments": lambda n: _page("/*x*/" * 100 * n, "<!--x-->x" * 60 * n),
    "quotes": lambda n: _page('"' * 500 * n, "<p title='\">x" * 40 * n),
}


# What texts repeat: a few characters each.
TEXTS = (
    *("word ", "a\n", "x", " ", " \n", "[", "[1](", "fact [1]. ", "*a ", "**_", "`", "> ", "- a\n"),
    *(" - a\n", "|a|b|\n|-|-|\n", "|a", "```\n", "$", "$a", "[a](http://b.example/) ", "https://"),
    *(
        "http://b.example/c?d ",
        "&amp;",
        "&",
        "<",
        '<a href="',
        "<!--",
        "<![CDATA[",
        "![",
        "\\",
        "~~a",
    ),
    *(
        "[^1]: x\n",
        '"',
        '"a b c" ',
        "首都是北京。",
        "首",
        "1",
        "1,234.5 million ",
        ".",
        "Dr. ",
        "ß",
        "e\u0301",
    ),
    *(
        "\u200b",
        "\u202e",
        "<|im_start|>",
        "<|",
        "a@b.",
        "/a",
        "=\n",
        "a\n-\n",
        "# a\n",
        "</a>",
        "【1†",
    ),
    *("(a ", "a:", '{"a":', "<tool_call>", "user:\n", "aGVsbG8", "%41", "\u00a0", "\r"),
)
_URL = "https://e.example/"
_SIGNED = "The treaty was signed in 1648 by 5.3 million people."
# What is done with a text, of a page, a model or an engine, in the process of the server too.
WORK: Mapping[str, Callable[[str], object]] = {
    "a page": lambda text: _read(f"<p>{text}", "text/html"),
    "plain text": lambda text: _read(text, "text/plain"),
    "a feed": lambda text: _read(f"<rss>{text}", "text/xml"),
    "items": lambda text: _read(
        f"<rss>{f'<item><title>{text[:80]}' * (len(text) // 90)}", "text/xml"
    ),
    "signs of a guard": lambda text: is_challenge(text.encode(), "Forbidden", "short"),
    "passages around words": lambda text: slices.find(text, "word x", 8_000),
    "passages around its words": lambda text: slices.find(text, text[:300], 8_000),
    "a snippet": clean.snippet_text,
    "a title": clean.one_line,
    "an answer": lambda text: render(text, None, [{"n": 1, "url": _URL, "title": "t"}]),
    "marks": lambda text: marks.find(text, [1, 2]),
    "addresses": urls_in,
    "neutral text": agent_text.neutral,
    "arguments": agent_text.object_in,
    "a verdict": lambda text: check(_SIGNED, Page(_SIGNED[:20] + text)),
    "the verdict of a claim": lambda text: check(text, Page(_SIGNED)),
    "the verdict of what is there": lambda text: check(text[:1_900], Page(text)),
    "the verdict of a quotation": lambda text: check(f'"{text[:300]}" it says', Page(text)),
}


def _read(text: str, kind: str) -> object:
    return read(text.encode(), url=_URL, content_type=kind, charset="utf-8")


def seconds(
    work: Callable[[str], object], text: str, clock: Callable[[], float] = time.thread_time
) -> float:
    """CPU of some work with a text, without that of collecting what others have left."""
    gc.disable()
    try:
        before = clock()
        work(text)
        return clock() - before
    finally:
        gc.enable()


def main() -> int:
    """0 when no row is wrong."""
    rows = [(name, WORK["a page"], page(SIZE), page(2 * SIZE)) for name, page in PAGES.items()]
    for name, work in WORK.items():
        for unit in TEXTS:
            small = unit * (TEXT_SIZE * 1_000 // len(unit))
            rows.append((f"{name}: `{unit!r}`", work, small, 2 * small))
    wrong = 0
    print("| what grows | kB | CPU ms | twice | ratio |\n|---|---|---|---|---|")
    for name, work, small, large in rows:
        one, two = (min(seconds(work, text) for _ in range(2)) for text in (small, large))
        ratio = two / max(one, _LEAST_SECONDS)
        bad = two > LONGEST or (two > 1 and ratio > LARGEST_RATIO)
        wrong += bad
        if bad or two > _LEAST_SECONDS:
            size = len(small) // 1000
            print(
                f"| {name} | {size} | {one * 1000:.0f} | {two * 1000:.0f} | {ratio:.1f} |"
                + " wrong" * bad,
                flush=True,
            )
    print(f"{len(rows)} rows, {wrong} wrong")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
