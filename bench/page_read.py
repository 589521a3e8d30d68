"""`python -m bench.page_read`: the CPU that reading a page of 1 MB takes, by what it consists of.

Each page is read here, not in a process of its own, five times; the least counts, and so does the
least of parsing it and doing nothing else, which is the floor under any reader.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

from selectolax.lexbor import LexborHTMLParser

from searchloop.search_backend.readers import read

SIZE = 1_000_000
ROUNDS = 5
WORDS = "the harbour was built in three stages of stone and each of them is described here "


def pages() -> dict[str, str]:
    """One page of each kind, without its frame."""
    cell = "<td class=c>{0}</td><td><a href=/x/{0}>stage {0}</a></td><td>built of stone</td>"
    kinds: dict[str, Callable[[int], str]] = {
        "a long article": lambda n: f"<p>{WORDS * 5}<a href=/s/{n}>stage {n}</a>, <em>so</em>.</p>",
        "an article full of links": lambda n: f"<p>{f'{WORDS} <a href=/s/{n}>of it</a> ' * 8}</p>",
        "a table": lambda n: f"{'' if n else '<table>'}<tr>{cell.format(n)}</tr>",
        "a list of links": lambda n: f"<li class=i><a href=/page/{n}.html>The stage {n}</a></li>",
        "markup, little text": lambda n: (
            f"<div class='col-{n % 12} css-{n % 50}x' data-id={n} style='margin:0 auto'>"
            f"<div class=inner><span class=icon></span><span>stage {n % 99}</span></div></div>"
        ),
        "a script": lambda n: f"<script>x[{n}]={{'a': '{WORDS * 9}'}}</script>",
    }
    return {name: _page(piece) for name, piece in kinds.items()}


def _page(piece: Callable[[int], str]) -> str:
    parts, size, number = ["<title>Harbour</title><main>" + f"<p>{WORDS * 3}</p>" * 9], 0, 0
    while size < SIZE:
        parts.append(piece(number))
        size += len(parts[-1])
        number += 1
    return "".join(parts)


def least(work: Callable[[], object]) -> float:
    """Milliseconds of CPU."""
    found = []
    for _ in range(ROUNDS):
        before = time.process_time()
        work()
        found.append(time.process_time() - before)
    return min(found) * 1000


def main() -> int:
    """0."""
    print("| 1 MB of | read | bare parse | text |\n|---|---|---|---|")
    for name, markup in pages().items():
        body = markup.encode()
        ours = partial(read, body, url="https://localhost/", content_type="text/html")
        text, whole = len(ours().text), least(ours)
        bare = least(partial(LexborHTMLParser, markup))
        print(f"| {name} | {whole:.0f} ms | {bare:.0f} ms | {text:,} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
