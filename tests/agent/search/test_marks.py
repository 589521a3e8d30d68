"""Which brackets of an answer are citation marks, and that all others are left alone."""

from __future__ import annotations

import random
import re
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.search.citations import settle
from searchloop.agent.search.marks import find
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.types import Message
from tests.tables import each_row

KNOWN = {1, 2, 3}


def table() -> SourceTable:
    """Three sources that were found."""
    made = SourceTable()
    for n in KNOWN:
        made.meet(f"https://s{n}.example/", f"S{n}")
    return made


def marked(text: str) -> list[str]:
    """The brackets that count as marks of known sources."""
    return [text[place.start : place.end] for place in find(text, KNOWN, 3)]


# What is no mark, in any chat that ever had a source.
UNTOUCHED = [
    *("`items[0]` and items[0], items[9] and a[0], x[1]", "data_1[1] = args[2] + obj.list[3].name"),
    *("Take row[1] and row[2] of the matrix m[i][1].", "The interval [0, 1] and the range [7, 8]."),
    *("f(x)[1] is called, and g([1]) and h([1, 2])", '{"ids": [7, 8]} and {"ids": [1, 2], "n": 3}'),
    *("as of [2024], in [1998] and on page [404]", "The output is: [1, 2, 3] and the array: [1,2]"),
    *('ids: [1, 2], name: "x"', "char buf[3]; new int[2] and argv[1] hold it, userIds[3] too."),
    *("x = [1] + [2]", "Call f(x)[5], then Object.keys(x)[4].toString() and [5].concat([6])."),
    *("x=[1]; y = [ 1 ]", "An area of 20 km², of 5 m³ and x² + y³; it is 10¹ or 10³, and 9 m²."),
    *("The sorted list is [5].", "Along [1, 1, 1], of (1, 2) and [2, 3]. In[1]: x\nOut[2]: 3"),
    *("Press [5] to continue, or choose option [7].", "[01] [1.5] [-1] [+1] [1a] [a1] [] [[1]] [1"),
    *("- [ ] task\n- [x] done", "[1, 2].map(f) and\n[1] + [2]\n[1, 2] ∪ [2, 3]\n[2, 3]ᵀ"),
    *("A note[^1].\n\n[^1]: The note.", "[one](https://x.example/) and [2](https://y.example/)"),
    *(
        '[1]: https://x.example/ "title"',
        "between [1, 3] and [2, 3], RGB [1, 2, 3], 结果是 [1, 2]。",
    ),
    *("[see [1]](https://x.example/)", 'Take ["ab", "bc"][1], keys["ab"][1] and f([ab])[1].'),
    *("![a [1]](https://x.example/p.png)", "```\nd [1]\n```\n\n~~~py\ne [2]\n~~~\n\n    f [3]"),
    *("<https://x.example/?a[1]>", "matrix[1][2] is the cell, items[1] the first one."),
    *("$x[1]$, $$a_{[2]}$$, \\(y[1]\\) and \\[z[3]\\]", "<code>b [1]</code> and <pre>c [2]</pre>"),
    *("\\begin{array}{c} a [1] \\end{array}", "Output:\n[1, 2, 3]\n\n**Ergebnis:**\n\n[1, 2]"),
    *(
        "\\sqrt[3]{x} and \\[1\\]",
        "Lines [3-1] and [7-9], matrix［7］ and 【说明】.",
        "\\[1] and !\\[2]",
    ),
    *("> ```\n> g [1]\n> ```", "`**[1]**` and `[Source 1]` and ```[^1]```", "`` i [1] ` j [2] ``"),
    *("1. text\n\n       h [1]\n", "spec:\n  levels: [1, 2]\n  - sizes: [3]", "Error [9]: no file"),
    *("```\nnever closed [9]", "The matrix [1, 2; 3] and (1) → [1, 2]", "````\n```\nrow[9]\n````"),
    *(
        "区间[1, 2]内，返回[1, 3]。",
        "[Sources](https://x.example/) and [Source code] and [Reference 9].",
    ),
    *("See pages [5] and chapters [4].", "Set this:\n\nlevels: [1]\nname: x", "//div[3]/p[1]"),
    *("Choose option [5] or [6].", "\\[^1] and ![^1] and [^note]", "for x ∈ [1, 2] and y ≥ [3]"),
    *("[1, 2, 3]", "Take x[1-2] of items[1-3].", "levels: [1]"),
    "The matrix [[1]] and rows[[2]] of [[1], [2]]; x = [[1]]. See [Section 1](#1-setup) (web 2).",
    "The weight `w[1]` of w[2] and a List<int>[1], x, [1] and a | [2], self.net[1].",
    *("Intervals [1,3] and [2,3] meet.", "Merge [1, 3] into [2, 3].", "区间 [1,3] 和 [2,3] 重叠。"),
    *("Start with [3, 1, 2]; a pass makes it [1, 3, 2].", "Of [1, 2] the subsets are [], [1]."),
    *("Out of [1, 3] it takes [0, 1].", "|a|\n|-|\n|[1, 2]|\n|[2, 1]|", "It gets [1, 2] → 3."),
    *("Ratings [1, 3] lie on [-1, 5] here", "Halves of [1, 2] make [0.5, 1].", "f(xs, [1, 2])"),
    "See [Table 1], (Figure 2), [step 1 to 3], 10<sup>2</sup>, m<sup>3</sup>, x[ 1 ], [1 or 2].",
]
_ARRAYS = product(
    ["the list", "an array of shape", "Shape", "a vector", "It returns", "x in", "the interval"],
    ["[1, 2]", "[2,3]", "[1, 2, 3]"],
    [" is short.", ".", " and more", "\n", ", too"],
)
UNTOUCHED += [f"Take {before} {numbers}{after}" for before, numbers, after in _ARRAYS]


@each_row("text", UNTOUCHED)
def test_the_writers_own_brackets_stay(text: str) -> None:
    """Neither cited nor removed, also what looks like a mark of another shape: exponents, YAML,
    footnotes of the writer's own, code, ranges of something else. The answer is byte-equal."""
    message = settle(Message("assistant", text), table())
    assert message.content == text
    assert message.citations == ()


@each_row(
    "text",
    [
        *("Wet [1]. Dry [2], warm [3]!", 'So ([s1.example][1]).\n\n[1]: https://s1.example/ "S1"'),
        *("Paris[1] is the capital.[2]", "It cost $5 [1] and later $6 [2], 45% [3] in 1932[1]."),
        *(
            "首都是巴黎[1]。東京は首都[2]、大阪は違う [3]。",
            "The old bridge[1] is green. A new bridge[2] is red.",
        ),
        *("**Bold** [1] and *it*[2] and `code` [3]", "~~old~~ [1]\nnext line [2]\n\n1. item [3]"),
        *("“Quote.” [1] 'x' [2] (so [3])", "It is 5 km[1] long, 6 km[2] wide, **5 m**[3] high."),
        *("([1], [2]) and (see [3])", "As S [1]: so.\n- **Name** [2]: it is\n- **Name [3]:** so"),
        *("Both [1][2] and [1, 3].", "(siehe: [1]) Source: [2] and others. (来源：[3]、[1])"),
        *("[1] says so. According to [2], it is.", "About ~~~ 5 metres [1], and ```x``` too [2]."),
        *("- [1] A title\n- point [2]\n> quoted [3]", "As www.example.org[1] and node.js[2] say."),
        *("| a | b |\n|---|---|\n| x [1] | [2] |", "C++[1], C#[2], Node.js[3], 5 °C[1], $x=1$[2]"),
        *("as shown in [1, 2], according to [1, 3]", "Python has lists [1, 2]. Sources: [1, 3]"),
        *("Sources:\n[1, 2]\n\n**Quellen:** [2, 3]", "**Bold [1]** and *it [2]*, __so [3]__"),
        *("It is so. (Source: [1]) Es ist so (Quelle: [2]).", "# Heading [1]\n\nSources: [1], [2]"),
        "| a | b |\n|---|---|\n| " + "Long cells stand here. " * 5 + "| [1] |",
        *("Rust 1.70[1] is out.", "It weighs 5 t[1] after 6 km/h[2] in v1.2.3[3]."),
        *("So [1] & [2] or [1]/[3], [1]-[3]", "CO2[1], H₂O[2], R&D[3], it's[1]"),
        *("So (Sources: [1], [2] and [3]).", "Row | Source\n---|---\na | [1]"),
        "<b>It</b> [1] is so<br>[2]",
        *("It costs $5[1], US$5.99[2] or \\$7M[3].", "On Disney+[1], for 100+ [2], **AA-** [3]."),
        *("In 1889,[1] it opened, [2] old.", "Yahoo![1] grew in Q3[2] by CD4+ [3] cells."),
        *("## [1] Title\n**[2] Name**: it", "He “sat”,[1] and **lay**,[2] in Rome, Italy,[3] too."),
        "See <https://x.example/> [1]. So<sup>[2]</sup>, of a matrix[3].",
    ],
)
def test_marks_are_found(text: str) -> None:
    """Models write marks with and without a blank, in groups, tables, lists and brackets."""
    definitions = re.compile(r"\n\[1\]: .*")
    assert marked(text) == re.findall(r"\[\d(?:, \d)*\]", definitions.sub("", text))


# What `[n]` means -> how models write it behind a word.
IN_MAY = {
    "[1]": "**[1]** | 【1†source】 | [^1] | [^1^] | [[1]] | [1](#ref-1) | [web:1] | [Ref. 1]"
    " | [see 1] | [[1]](https://s1.example/) | [[1]](https://s1.example/a_(b))"
    ' | [1](https://s1.example/) | [1](<https://s1.example/>) | [1](https://s1.example/ "S1")'
    " | [Source 1] | (Source 1) | [réf. 1] | [источник 1] | [١]"
    " | [kilde 1] | [πηγή 1] | [מקור 1] | [منبع ۱] | (see source 1) | 【1:0†a.pdf】",
    "[2]": "［2］ | [2†source] | [Result 2] | [Quelle 2] | [출처 2] | [zdroj 2]",
    "[1][2]": "[1-2] | 【1†L3-L9】【2†a.pdf】 | [doc 1, 2] | [source: 1, 2] | [1 and 2] | [१, २]"
    " | [Source 1][Source 2] | [source_1][Source-2] | [Quellen 1 und 2] | [джерела 1, 2]",
    "[1][3]": "［１，３］ | [１，３] | [1 and 3] | [1 & 3] | [Source: 1, Source: 3]"
    " | [citation: 1][citation: 3]",
    "[1][2][3]": "[1–3] | [1‑3] | [1 bis 3] | [1-2][3]",
}


@each_row(
    ("written", "plain"),
    [
        *(
            (f"It opened in May {way}.", f"It opened in May {plain}.")
            for plain, ways in IN_MAY.items()
            for way in ways.split(" | ")
        ),
        ("It opened in May *[1]* and __[2]__.", "It opened in May [1] and [2]."),
        ("It opened in May **[1][2]** and *[1], [3]*.", "It opened in May [1][2] and [1][3]."),
        ("It was so 【1†source】. It is long 【9†source】.", "It was so [1]. It is long."),
        ("It was so [[2]][[3]]. It is long.[[1]]", "It was so [2][3]. It is long.[1]"),
        ("大桥于五月开放【1】。大桥于五月开放〔2〕。", "大桥于五月开放[1]。大桥于五月开放[2]。"),
        ("大桥于五月开放[来源1]。大桥（来源2）。", "大桥于五月开放[1]。大桥[2]。"),
        ("यह मई में खुला [१, २]।", "यह मई में खुला [1][2]।"),
        ("The old bridge opened.¹ It is long.²", "The old bridge opened.[1] It is long.[2]"),
        ("It opened in spring¹ and is green².", "It opened in spring[1] and is green[2]."),
        ("In spring¹,² it is green¹⁻³.", "In spring[1][2] it is green[1][2][3]."),
        ("In spring<sup>1</sup> or winter <sup>1, 2</sup>.", "In spring[1] or winter[1][2]."),
        ("It opened in spring<sup>1</sup><sup>2</sup>.", "It opened in spring[1][2]."),
    ],
)
def test_marks_of_other_shapes_are_the_same_marks(written: str, plain: str) -> None:
    """The same text, numbers and spans as if the model had written `[n]`."""
    message, expected = (settle(Message("assistant", t), table()) for t in (written, plain))
    assert (message.content, message.citations) == (expected.content, expected.citations)
    assert message.content == plain
    assert message.citations


@each_row(
    ("text", "links"),
    [
        ("See [Wikipedia](https://s1.example/) for it.", ["[Wikipedia](https://s1.example/)"]),
        ("It is so [2](http://www.s2.example).", ["[2](http://www.s2.example)"]),
        ('It is [so](<https://s1.example/> "S1").', ['[so](<https://s1.example/> "S1")']),
        ("It is so [1] ([S3](https://s3.example/#a)).", ["[S3](https://s3.example/#a)", "[1]"]),
        ("In `[a](https://s1.example/)` and ![b](https://s2.example/)", []),
        ("By [another page](https://s1.example/a) and \\[c](https://s1.example/)", []),
    ],
)
def test_a_link_to_a_source_cites_it(text: str, links: list[str]) -> None:
    """In the words of the answer, which stay as they are; its number is that of its address."""
    message = settle(Message("assistant", text), table())
    assert message.content == text
    spans = [mark.span for c in message.citations for mark in c.marks if mark.span]
    assert sorted(text[slice(*span)] for span in spans) == sorted(links)


PARTS = st.sampled_from(
    ["word", "items[1]", "`a[1]`", "$x[2]$", "[0, 1]", "[2024]", "\n\n", "\n", "    ", "- ", "| ",
     "```\n", "[x](u)", "**", "“", "”", "(", ")", ".", ":", "=", "{", "}", "😀", "é", "首都"]
)  # fmt: skip


@given(st.lists(st.one_of(PARTS, st.sampled_from(["[1]", "[2]", "[1, 3]", "[9]"])), max_size=30))
def test_only_marks_change(parts: list[str]) -> None:
    """Whatever surrounds them: but for numbers in brackets and blanks, the answer stays equal."""
    text = " ".join(parts)
    shown, written = (
        re.sub(r"\[[\d, ]+\]|[ \t]", "", each)
        for each in (settle(Message("assistant", text), table()).content, text)
    )
    assert shown == written


SAID = st.sampled_from(
    ["It rose by 5 %", "It costs $5", "It is 20 °C", "It is “the old one”", "It uses `x[2]`",
     "It is known as H₂O", "It equals $x_1$", "彼は東京に行った"]
)  # fmt: skip
CITED = st.sampled_from(
    ["{} {}.", "{}.{}", "{}. {}", "{} {}, and so on.", "**{} {}.**", "**{}** {}.", "*{} {}*",
     "{} ({}).", "“{}” {}.", "{} {}: it is so.", "{} {}; more.", "- {} {}", "> {} {}",
     "| a | b |\n|---|---|\n| {} {} | y |"]
)  # fmt: skip
OWN = st.sampled_from(
    ["```py\nx = a[1] + b[2]\n```", "    code[3] = [1]", "$$ \\sum a[1] $$", '{"ids": [1, 2]}',
     "- [x] done", "The list [1, 2, 3] is sorted.", "Call `f(x)[1]`.", "x = [1] * 3",
     "See [2](https://a.example/).", "arr[i] < arr[2] holds.", "Output: [3, 1, 2]"]
)  # fmt: skip
GROUPS = st.sampled_from(["[1]", "[2][3]", "[3], [1]"])


@given(
    st.lists(st.tuples(CITED, SAID, GROUPS), max_size=4), st.lists(OWN, max_size=3), st.randoms()
)
def test_exactly_the_marks_of_prose_are_found(
    cited: list[tuple[str, str, str]], own: list[str], order: random.Random
) -> None:
    """However sentences are dressed, and whatever code, data and formulas stand between them."""
    parts = [(how.format(said, marks), marks) for how, said, marks in cited]
    parts += [(text, "") for text in own]
    order.shuffle(parts)
    text = "\n\n".join(part for part, _ in parts)
    assert marked(text) == re.findall(r"\[\d\]", " ".join(marks for _, marks in parts))
    assert settle(Message("assistant", text), table()).content == text
