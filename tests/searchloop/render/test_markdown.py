"""Markdown to a tree: what comes out is ours alone, at every cut, in linear time."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.render.markdown import KINDS, Incremental, highlight, render
from searchloop.render.tree import TAGS, KnownLinks, Mark, Node, find_marks, suggestions, words
from tests.growth import check_growth, grows_too_fast
from tests.tables import cut, each_row
from tests.web.house import changed

SOURCES = [
    {"n": 1, "url": "https://example.org/a", "title": "A", "state": "cited"},
    {"n": 2, "url": "http://example.com/b?q=1", "title": "B", "state": "found"},
    {"n": 3, "url": "library://docs/x.md", "title": "C", "state": "found"},
]
KNOWN = {source["url"] for source in SOURCES[:2]}


def cite(n: int, *marks: int) -> Node:
    """A citation's node."""
    more = {"m": ",".join(map(str, marks))} if marks else {}
    return {"t": "cite", "a": {"n": str(n), **more}}


def cited(source: int, *spans: Sequence[int]) -> dict[str, Any]:
    """A citation of SOURCES[source] with a mark at each span."""
    return {**SOURCES[source], "marks": [{"span": span} for span in spans]}


def unlinked(words: str) -> Node:
    """A link that is none."""
    return {"t": "span", "a": {"class": "unlinked"}, "c": [words]}


def linked(href: str, host: str, words: str) -> Node:
    """A link to a source."""
    shown = {"t": "span", "a": {"class": "host"}, "c": [f" ({host})"]}
    return {"t": "a", "a": {"href": href}, "c": [words, shown]}


def line(text: str, **more: Any) -> list[Any]:
    """The nodes of a text that is one paragraph."""
    (paragraph,) = render(text, sources=SOURCES, **more)
    assert isinstance(paragraph, dict)
    assert paragraph["t"] == "p"
    return list(paragraph["c"])


def test_blocks_become_nodes() -> None:
    """The common blocks, with the attributes that the page needs."""
    text = (
        "# One\n\n- a\n- b\n\n3. c\n\n> q\n\n```text title\nx < 1\n```\n\n---\n\n"
        "| l | r |\n|---|--:|\n| 1 | 2 |\n"
    )
    assert render(text) == [
        {"t": "h1", "c": ["One"]},
        {"t": "ul", "c": [{"t": "li", "c": ["a"]}, {"t": "li", "c": ["b"]}]},
        {"t": "ol", "a": {"start": "3"}, "c": [{"t": "li", "c": ["c"]}]},
        {"t": "blockquote", "c": [{"t": "p", "c": ["q"]}]},
        {"t": "pre", "a": {"lang": "text"}, "c": ["x < 1\n"]},
        {"t": "hr"},
        {
            "t": "table",
            "c": [
                {"t": "thead", "c": [row("th", "l", "r")]},
                {"t": "tbody", "c": [row("td", "1", "2")]},
            ],
        },
    ]


def row(tag: str, left: str, right: str) -> Node:
    """A row whose second cell is on the right."""
    second = {"t": tag, "a": {"class": "right"}, "c": [right]}
    return {"t": "tr", "c": [{"t": tag, "c": [left]}, second]}


def span(kind: str, words: str) -> Node:
    """A piece of a colour."""
    return {"t": "span", "a": {"class": kind}, "c": [words]}


@each_row(
    ("language", "code", "pieces"),
    [
        ("python", "if x: # no\n", [span("key", "if"), " x: ", span("com", "# no"), "\n"]),
        ("JS", "let a = `\n`;", [span("key", "let"), " a = ", span("str", "`\n`"), ";"]),
        ("sql", "SELECT 1.5", [span("key", "SELECT"), " ", span("num", "1.5")]),
        ("json", '{"a": true}', ["{", span("str", '"a"'), ": ", span("key", "true"), "}"]),
        ("html", "<b>'", ["<b>'"]),
        ("c", 'x.if iffy "open', ['x.if iffy "open']),
        ("klingon", "if 1", ["if 1"]),
        ("python", "if " * 10_000, ["if " * 10_000]),
    ],
)
def test_code_is_coloured(language: str, code: str, pieces: list[Node]) -> None:
    """Words, strings, numbers, comments; what is not known, or too long, stays plain."""
    assert highlight(code, language) == pieces


@given(st.sampled_from(["python", "js", "sql", "bash", "json", "css"]), st.text(max_size=80))
def test_colours_change_no_letter(language: str, code: str) -> None:
    """The words of the spans are the code, and their classes are few."""
    nodes = highlight(code, language)
    assert words(nodes) == code
    assert {n["a"]["class"] for n in nodes if isinstance(n, dict)} <= set(KINDS)


def test_formulas_are_left_alone() -> None:
    """Nothing in TeX is Markdown, and a price is no formula."""
    for text in ("$a_1*b_2*c$", "$$\na_1*b_2*c\n$$", r"\(a_1*b_2*c\)", r"\[ a_1*b_2*c \]"):
        display = "block" if text[:2] in ("$$", r"\[") else "inline"
        before, formula, after = line(f"So {text}!")
        assert (before, formula["t"], after) == ("So ", "math", "!")
        assert formula["a"] == {"display": display, "alttext": "a_1*b_2*c"}
    for price in ("$5 and $6", "US$ 5$ 6", "5$ or 6$", r"\$5$", "$", r"\(open", "a $ b $ c"):
        assert all(isinstance(node, str) for node in line(price)), price


def test_suggestions_are_words_and_addresses() -> None:
    """Of a provider's markup only links with words are taken, and none that is no web address."""
    html = (
        "<style>a{}</style><div onclick='x()'><a href='https://search.example/?q=a'>one <b>two</b>"
        "</a><a href='javascript:x'>bad</a><a href='https://search.example/2'> </a>text</div>"
    )
    links = [{"url": "https://search.example/?q=a", "text": "one two"}]
    assert suggestions({"search_suggestions": {"html": html}}) == links
    for nothing in ({}, {"search_suggestions": None}, {"search_suggestions": {"html": 5}}):
        assert suggestions(nothing) == []


def test_lines_become_nodes() -> None:
    """Emphasis, code, breaks, and entities as the characters they stand for."""
    assert line("*a* **b** ~~c~~ `d`  \ne &amp; \\* f") == [
        {"t": "em", "c": ["a"]},
        " ",
        {"t": "strong", "c": ["b"]},
        " ",
        {"t": "del", "c": ["c"]},
        " ",
        {"t": "code", "c": ["d"]},
        {"t": "br"},
        "e & * f",
    ]


def test_html_is_text() -> None:
    """No markup of the text's author means anything."""
    evil = "<script>x</script> <img src=x onerror=y> <!-- z -->"
    assert line(evil) == [evil]
    assert render("<div>\n<b>x</b>\n</div>") == [{"t": "p", "c": ["<div>\n<b>x</b>\n</div>"]}]


@each_row(
    ("text", "node"),
    [
        ("[a](https://example.org/a)", linked("https://example.org/a", "example.org", "a")),
        ("[a](HTTPS://EXAMPLE.org:443/a#x)", linked("https://example.org/a", "example.org", "a")),
        (
            "[g](http://example.com/b?q=1&utm_source=z)",
            linked("http://example.com/b?q=1", "example.com", "g"),
        ),
        (
            "<https://example.org/a>",
            {"t": "a", "a": {"href": "https://example.org/a"}, "c": ["https://example.org/a"]},
        ),
        ("[a](https://evil.example/?q=secret)", unlinked("a (evil.example)")),
        ("[example.org](https://evil.example/)", unlinked("example.org (evil.example)")),
        ("![alt](https://evil.example/x.png)", unlinked("alt (evil.example)")),
        ("![alt](https://example.org/a)", unlinked("alt (example.org)")),
        ("[a](javascript:alert(1))", unlinked("a")),
        ("[a](data:text/html,x)", unlinked("a")),
        ("[a](//evil.example/x)", unlinked("a (evil.example)")),
        ("[a](/api/sessions)", unlinked("a")),
        ("[a](library://docs/x.md)", unlinked("a (docs)")),
        ("[a](https://example.org\\@evil.example/)", unlinked("a (evil.example)")),
        ("[a](https://evil.example\\\\@example.org/a)", unlinked("a (evil.example)")),
        ("[a](https://еxample.org/a)", unlinked("a (xn--xample-2of.org)")),
        ("<mailto:a@b.example>", unlinked("mailto:a@b.example")),
        ("[a](https://user:pw@a.example:8080/x)", unlinked("a (a.example)")),
        ("[a](https://[::1]:80/)", unlinked("a (::1)")),
        ("[a](https://[bad/)", unlinked("a")),
    ],
)
def test_only_sources_are_links(text: str, node: Node) -> None:
    """A link leads to an address that was met, in the source's spelling; others are words."""
    assert line(text) == [node]


def test_reference_links_are_text() -> None:
    """A definition at the end cannot turn words at the beginning into a link or an image."""
    nodes = render("![a][b]\n\n[b]: https://evil.example/x.png", sources=SOURCES)
    assert words(nodes) == "![a][b][b]: https://evil.example/x.png"
    assert {node["t"] for node in nodes if isinstance(node, dict)} == {"p"}


def test_numbers_of_sources_become_citations() -> None:
    """Known numbers are marks; unknown ones, links, code and what is around stay as they are."""
    assert line("**So.**[1]") == [{"t": "strong", "c": ["So."]}, cite(1)]
    assert line("a [1][2] b [2, 1] [9] [1, 9] [x]") == [
        *("a ", cite(1), cite(2), " b ", cite(2), cite(1), " [9] ", cite(1), " [x]")
    ]
    assert line("`[1]` \\[1] [1]: x") == [{"t": "code", "c": ["[1]"]}, " [1] [1]: x"]
    assert render("```\na[1]\n```", sources=SOURCES) == [{"t": "pre", "c": ["a[1]\n"]}]


def test_a_span_that_is_a_mark_is_replaced() -> None:
    """Providers write the link that is the citation into the text."""
    text = "It is so ([example.org](https://example.org/a?utm_source=m))."
    start, end = text.index("("), text.index(").") + 1
    assert line(text, citations=[cited(0, [start, end])]) == ["It is so ", cite(1, 0), "."]


def test_a_span_of_words_gets_its_mark_behind() -> None:
    """The words that a source bears out stay, whatever follows them. A span that does not fit costs
    a mark, not the answer.
    """
    assert line("Hello", citations=[cited(0, [5, 2], [-1, 2], [0, 99])]) == ["Hello"]
    text = "Ä is **so**. (Really.)"
    assert line(text, citations=[cited(0, [0, 12]), cited(1, [0, 12])]) == [
        *("Ä is ", {"t": "strong", "c": ["so"]}, "."),
        *(cite(1, 0), cite(2, 0), " (Really.)"),
    ]
    assert line("ab(c)", citations=[cited(0, [0, 2])]) == ["ab", cite(1, 0), "(c)"]


def test_a_chip_knows_which_marks_it_stands_for() -> None:
    """A source cited twice says something else each time; what ends at one place is one chip."""
    text = "Ebb at six. Flood at noon."
    assert line(text, citations=[cited(0, [0, 11], [12, 26], [18, 26])]) == [
        *("Ebb at six.", cite(1, 0), " Flood at noon.", cite(1, 1, 2))
    ]


def test_marks_cannot_be_forged() -> None:
    """The character that our marks are made of is taken out of the text."""
    assert line("[\ufdd00] \ufdd0[\ufdd07]\ufdd0 [1]") == [
        "[\ufffd0] \ufffd[\ufffd7]\ufffd ",
        cite(1),
    ]


@given(st.text("ab[]1, \n*", max_size=60), st.lists(st.tuples(*[st.integers(-2, 62)] * 2)))
def test_marks_never_overlap(text: str, spans: list[tuple[int, int]]) -> None:
    """Whatever the spans say, marks are in order and inside the text."""
    marks = find_marks(text, [cited(0, *spans)])
    edges = [edge for mark in marks for edge in (mark.start, mark.end)]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(text) for edge in edges)
    assert all(isinstance(mark, Mark) and mark.numbers for mark in marks)


def problems(nodes: list[Node], depth: int = 0) -> list[str]:
    """What is in a tree that must not be."""
    found = ["too deep"] if depth > 80 else []
    for node in nodes:
        if isinstance(node, str):
            continue
        attributes = node.get("a", {})
        if node["t"] not in TAGS or set(attributes) - TAGS[node["t"]]:
            found.append(f"{node['t']} {sorted(attributes)}")
        if set(node) - {"t", "a", "c"} or not all(isinstance(v, str) for v in attributes.values()):
            found.append(f"odd node {node!r:.80}")
        if node["t"] == "a" and attributes["href"] not in KNOWN:
            found.append(f"href {attributes['href']}")
        found += problems(node.get("c", []), depth + 1)
    return found


PIECES = st.sampled_from(
    [
        *cut(r"a é - 1. > ``` ~~~ ` * ** _ ~~ [ ] ( ) ![ ]( < > | |-|-| --- === \ [1] [2] [7]"),
        *cut(
            "😀 \ufdd0 \ufdd01 https://example.org/a https://evil.example/ &lt; &#0; <script> </p>"
        ),
        *cut("[t](https://example.org/a) [t](//evil.example) ![i](http://evil.example/i) data:x"),
        *(" ", "  ", "\n", "\n\n", "# ", "- ", "1. ", "> ", "    ", "\t", "[1]: ", "\0", "\r"),
        *("<img src=x onerror=alert(1)>", "<a href='x'>", "| a | b |\n|--|:-:|\n"),
        "javascript:alert(1)",
    ]
)
DOCUMENTS = st.lists(PIECES, max_size=40).map("".join)


@given(DOCUMENTS)
def test_a_tree_holds_only_what_is_allowed(text: str) -> None:
    """No tag, attribute or address beyond the lists, whatever the text says."""
    tree = render(text, sources=SOURCES)
    assert problems(tree) == []
    json.dumps(tree)


@given(DOCUMENTS, st.data())
def test_a_growing_text_reads_the_same_at_every_cut(text: str, data: st.DataObject) -> None:
    """What a page shows after each piece is what the whole text so far renders to."""
    growing = Incremental(KnownLinks(SOURCES))
    shown: list[Node] = []
    at = 0
    while at < len(text):
        size = data.draw(st.integers(1, 12))
        shown = changed(shown, growing.feed(text[at : at + size]))
        at += size
        assert shown == render(text[:at], sources=SOURCES)


ROW_OF = {
    "|": st.sampled_from(
        ["| a | b |", "|c|", "| `d | e", "| **f** [1] | g", "- h", "i", "", "|-|-|", "|c|", "    x"]
    ),
    "-": st.sampled_from(
        ["- a", "  - b", "* c", "- - -", "---", "", "  d", "    e", "- ```", "> f"]
    ),
    "7.": st.sampled_from(["8. a", "9) b", "1. c", "   - d", "", "10. [1]", "===", "   | e |"]),
}


@pytest.mark.parametrize("kind", ROW_OF)
@given(st.data())
def test_a_long_block_reads_the_same_at_every_cut(kind: str, data: st.DataObject) -> None:
    """However long a table or list is: one that ends, turns loose, or is none any more."""
    first = {"|": "| a | b |\n|--|:-:|\n", "-": "- a\n", "7.": "7. a\n"}[kind]
    usual = {"|": "| one *word* | 37 |\n", "-": "- one *word*\n", "7.": "8. one *word*\n"}[kind]
    rows = data.draw(st.lists(ROW_OF[kind], max_size=8))
    text = first + usual * data.draw(st.integers(20, 60)) + "\n".join(rows) + "\n" + usual * 30
    growing, shown, at, last = Incremental(KnownLinks(SOURCES)), list[Node](), 0, 0
    while at < len(text):
        at += data.draw(st.integers(60, 600))
        shown = changed(shown, growing.feed(text[last:at]))
        last = at
        assert growing.held or shown == render(text[:at], sources=SOURCES)


def rendered_whole(text: str) -> None:
    """A tree without a problem, which can be sent."""
    tree = render(text, sources=SOURCES)
    assert problems(tree) == []
    json.dumps(tree)


@each_row("piece", ["[", "![", "*a **b ", ">", "- ", "`a``b", "[a](<b", "<a@", "a\n", "[1]"])
def test_hostile_input_takes_no_longer_than_its_length(piece: str) -> None:
    """What makes parsers quadratic or recursive costs as much as it is long."""
    check_growth(rendered_whole, piece * (24_000 // len(piece)))


@each_row(
    "grown",
    [
        lambda n: f"|{'a|' * n}\n|{'-|' * n}\n" + "|a|\n" * n,
        lambda n: "[" * 4 * n + "a" + "](b)" * 4 * n,
        lambda n: "*" * 8 * n + "a" + "*" * 8 * n,
        lambda n: "".join(f"{' ' * 2 * i}- a\n" for i in range(n // 16)),
        lambda n: "\\" * 8 * n + "&" * 8 * n,
    ],
)
def test_hostile_structures_take_no_longer_than_their_length(grown: Callable[[int], str]) -> None:
    """What is opened and closed again costs as much as it is long, too."""
    assert not grows_too_fast(rendered_whole, grown(500), grown(2_000))


def test_deep_nesting_becomes_flat() -> None:
    """A tree that is too deep for a browser is not sent to one; its words are."""
    text = "*a _b " * 200 + "c" + "_ *" * 200
    assert problems(render(text)) == []
    assert words(render(text)).count("b") == 200


ROWS = "| city | count | what is said |\n|---|---|---|\n" + "| town | 37 | some **words** |\n" * 100
GROWING = {
    "table": ROWS,
    "nested list": "".join("  " * (i % 5) + f"- item {i} of *some* [1]\n" for i in range(125)),
    "code": "```python\n" + "x = f(1)  # a comment\n" * 150,
    "paragraph": "some **words** and more " * 150,
}


@pytest.mark.parametrize("kind", GROWING)
def test_a_long_block_costs_a_share_of_its_pieces(kind: str) -> None:
    """However small the pieces are, all that is rendered is so many times the text's length."""
    growing, text, rendered = Incremental(KnownLinks(SOURCES)), GROWING[kind] * 4, 0
    for at in range(0, len(text), 4):
        growing.feed(text[at : at + 4])
        rendered += 0 if growing.held else growing.unfinished
        assert growing.held < len(text) / 60
    assert rendered < 100 * len(text)


@pytest.mark.parametrize("kind", GROWING)
def test_a_growing_block_sends_what_grows(kind: str) -> None:
    """A long table, list, paragraph or code block is sent once, not once for each piece."""
    text = GROWING[kind]
    growing = Incremental(KnownLinks(SOURCES))
    sent = sum(
        len(json.dumps(growing.feed(text[at : at + 30]), separators=(",", ":")))
        for at in range(0, len(text), 30)
    )
    once = len(json.dumps(render(text, sources=SOURCES), separators=(",", ":")))
    assert sent < 3 * once
