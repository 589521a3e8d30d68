"""`python -m bench.page_cost`: no page costs more than its size allows, whatever it holds.

Each row grows one thing that a page may have much of, and reads it at a size and at twice that
size. The ratio of the two CPU times tells how the cost grows: 2 is linear, 4 is quadratic; 1 is a
bound that both have reached. A row is wrong above LARGEST_RATIO when it takes a second, or when it
takes more than LONGEST seconds of CPU.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

from searchloop.search_backend.readers import read

SIZE = 30
LARGEST_RATIO = 3.0
LONGEST = 3.0
# Below this a ratio is noise.
_LEAST_SECONDS = 0.05


def _page(sheet: str, body: str) -> str:
    return f"<!doctype html><style>{sheet}</style><body><h1>Tea</h1>{body}"


def _paragraphs(number: int, inside: str = "class=k") -> str:
    return f"<p {inside}>x " * number


# What grows, and the page for a size; sizes are in kilobytes of markup, about.
PAGES: Mapping[str, Callable[[int], str]] = {
    "rules and elements": lambda n: _page("p{color:#fff}" * 31 * n, _paragraphs(120 * n, "")),
    "rules that undo": lambda n: _page(
        "".join(f"p.k{{display:{'none' if i % 2 else 'block'};x:{i}}}" for i in range(20 * n)),
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
    "comments": lambda n: _page("/*x*/" * 100 * n, "<!--x-->x" * 60 * n),
    "quotes": lambda n: _page('"' * 500 * n, "<p title='\">x" * 40 * n),
}


def seconds(markup: str) -> float:
    """CPU of reading a page."""
    body = markup.encode()
    before = time.process_time()
    read(body, url="https://e.example/", content_type="text/html", charset="utf-8")
    return time.process_time() - before


def main() -> int:
    """0 when no row is wrong."""
    wrong = 0
    print("| what grows | kB | CPU ms | twice | ratio |\n|---|---|---|---|---|")
    for name, page in PAGES.items():
        small, large = page(SIZE), page(2 * SIZE)
        one, two = (min(seconds(markup) for _ in range(2)) for markup in (small, large))
        ratio = two / max(one, _LEAST_SECONDS)
        bad = two > LONGEST or (two > 1 and ratio > LARGEST_RATIO)
        wrong += bad
        print(
            f"| {name} | {len(small) // 1000} | {one * 1000:.0f} | {two * 1000:.0f} | {ratio:.1f} |"
            + " wrong" * bad,
            flush=True,
        )
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
