"""Formulas: TeX that the converter knows whole becomes MathML, any other stays as written."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from searchloop.render.formulas import mathml
from searchloop.render.markdown import render
from searchloop.render.tree import words
from tests.searchloop.render.test_markdown import problems
from tests.tables import each_row

SHOWN = {
    r"\frac{a}{b} + x^{2}": "ab+x2",
    r"\sum_{i=1}^{n} i^2": "\u2211i=1ni2",
    r"\begin{aligned} a &= b \\ c &= d \end{aligned}": "a=bc=d",
    r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}": "(1234)",
    r"\text{if } x < 0": "if\xa0x<0",
    r"\mathbb{R} \to \mathcal{L}": "\u211d\u2192\u2112",
    r"f'(x) \le \sqrt[3]{y}": "f\u2032(x)\u2264y3",
    r"\left| \vec{v} \cdot \hat{n} \right|": "|v\u2192\xb7n^|",
    r"\begin{gathered} a \\ b \end{gathered}": "ab",
    r"x \& y": "x&y",
}


@each_row("tex", SHOWN)
def test_a_formula_is_shown_whole(tex: str) -> None:
    """Every letter of it, in one element that also holds the TeX."""
    node = mathml(tex, display=False)
    assert isinstance(node, dict)
    assert node["a"]["alttext"] == tex
    assert words([node]) == SHOWN[tex]


@each_row(
    "tex",
    [
        r"\unheardof{x}",
        r"\ce{H2O}",
        r"\frac{a",
        "{" * 1000,
        "x_{" * 150 + "}" * 150,
        r"\left( x",
        r"\begin{nothing} x \end{nothing}",
    ],
)
def test_what_cannot_be_shown_whole_stays_as_it_was_written(tex: str) -> None:
    """With its dollar signs; no part of it goes missing."""
    [paragraph] = render(f"So ${tex}$.")
    assert words([paragraph]) == f"So ${tex}$."


KNOWN = r"\frac \sqrt \left \right \\ & { } ^ _ a <b> 1 ' [ ] | \limits \sum é \text \mathrm \not"
PARTS = [*KNOWN.split(), " ", r"\begin{cases}", r"\end{cases}", r"\href{javascript:x}{y}"]
TEX = st.lists(
    st.sampled_from([*PARTS, r"\color{red}", r"\style{a}{b}", r"\hspace{1em}"]), max_size=30
).map("".join)


@given(TEX)
def test_no_formula_holds_more_than_a_formula(tex: str) -> None:
    """No address, style or foreign element, and a size that its own bounds."""
    for display in (True, False):
        node = mathml(tex, display)
        if node is not None:
            assert problems([node], 40) == []
            assert len(json.dumps(node)) < 2000 + 400 * len(tex)


def test_lists_of_tasks_of_terms_and_footnotes() -> None:
    """What models write beside plain Markdown; letters in `[^...]` may be a regular expression."""
    tasks = render("- [ ] open\n- [x] done\n- [x](https://a.example/)")[0]
    assert isinstance(tasks, dict)
    assert [words([item]) for item in tasks["c"]] == ["\u2610 open", "\u2611 done", "x (a.example)"]
    assert [item.get("a") for item in tasks["c"]] == [{"class": "task"}] * 2 + [None]
    terms = render("Term\n: what it means\n: what else")
    assert terms == [
        {
            "t": "dl",
            "c": [
                {"t": "dt", "c": ["Term"]},
                {"t": "dd", "c": ["what it means"]},
                {"t": "dd", "c": ["what else"]},
            ],
        }
    ]
    said, note = render("As told[^1] by [^abc].\n\n[^1]: In a book.")
    assert said == {"t": "p", "c": ["As told", {"t": "sup", "c": ["1"]}, " by [^abc]."]}
    assert isinstance(note, dict)
    assert (note["a"], words([note])) == ({"class": "footnote"}, "1In a book.")
