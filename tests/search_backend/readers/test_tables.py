"""Tables reach the reader cell by cell: what stands in a column stays in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search_backend.documents import text_of
from tests.tables import each_row

Grid = list[list[str]]


def rows(text: str) -> Grid:
    """The cells of all Markdown tables in a text, row by row, without the rules below headings."""
    lines = [line for line in text.split("\n") if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [
        [cell.replace("\\|", "|") for cell in row]
        for row in cells
        if not all(re.fullmatch("-+", cell) for cell in row)
    ]


HEAD = "<tr><th>a</th><th>b</th><th>c</th></tr>"
A = ["a", "b", "c"]


@each_row(
    ("inside", "wanted"),
    [
        (f"{HEAD}<tr><td></td><td></td><td>3</td></tr>", [A, ["", "", "3"]]),
        (f"{HEAD}<tr><td>1</td><td>&nbsp;</td><td><b> </b></td></tr>", [A, ["1", "", ""]]),
        (f"{HEAD}<tr><td>1</td></tr>", [A, ["1", "", ""]]),
        ("<tr><td></td><th>x</th><th>y</th></tr><tr><th>r</th><td>1</td><td>2</td></tr>",
         [["", "x", "y"], ["r", "1", "2"]]),
        (f"<thead>{HEAD}</thead><tfoot><tr><td>7<td>8<td>9</tfoot><tbody><tr><td>1<td>2<td>3",
         [A, list("123"), list("789")]),
        ("<thead><tr><th rowspan=2>n<th colspan=2>2023</tr><tr><th>Q1<th>Q2</tr></thead>"
         "<tr><td>x<td>1<td>2", [["n", "2023", "2023"], ["n", "Q1", "Q2"], ["x", "1", "2"]]),
        (f"{HEAD}<tr><td rowspan=2>1<td>2<td>3<tr><td>5<td>6", [A, list("123"), list("156")]),
        (f"{HEAD}<tr><td rowspan=2 colspan=2>1<td>3<tr><td>6", [A, list("113"), list("116")]),
        (f"{HEAD}<tr><td>1<td rowspan=0>2<td>3<tr><td>4<td>6<tbody><tr><td>7<td>8<td>9",
         [A, list("123"), list("426"), list("789")]),
        (f"{HEAD}<tr><td rowspan=9>1<td>2<td>3<tbody><tr><td>7<td>8<td>9",
         [A, list("123"), list("789")]),
        (f"{HEAD}<tr><td colspan=3>All of it<tr><td>4<td>5<td>6",
         [A, ["All of it", "", ""], list("456")]),
        ("<tr><th colspan=2>a<th>b<tr><td colspan=2>1<td>2", [["a", "b"], ["1", "2"]]),
        ("<tr><td>1<td>2<tr><td>3<td>4", [["", ""], ["1", "2"], ["3", "4"]]),
        (f"{HEAD}<tr><td>1|2<td>`x|y`<td>3", [A, ["1|2", "`x|y`", "3"]]),
        (f"{HEAD}<tr><td>81<br>365<td><p>one</p><p>two</p><td>3",
         [A, ["81<br>365", "one<br>two", "3"]]),
        (f"{HEAD}<tr><td>1<td><ol start=4><li>x<li>y</ol><td>3", [A, ["1", "4. x<br>5. y", "3"]]),
        (f"{HEAD}<tr><td>1<td><table><tr><td>w<td>10<tr><td>h<td>20</table><td>3",
         [A, ["1", "w, 10<br>h, 20", "3"]]),
        (f"{HEAD}<tr><td>1<td><pre>x = 1\n  y</pre><td>3", [A, ["1", "`x = 1`<br>`  y`", "3"]]),
        (f"{HEAD}<tr><td>1<td><a href=#y><img src=y.png alt=Yes></a> since 2<td><img alt=''>",
         [A, ["1", "Yes since 2", ""]]),
        (f"{HEAD}<tr><td><img alt='Flag of Chad'> Chad<td><i class=ok aria-label=Yes></i><td>3",
         [A, ["Chad", "Yes", "3"]]),
        (f"{HEAD}<tr><td>1<td><i class=ok title=Yes></i><td><i title=No>3</i>",
         [A, ["1", "Yes", "3"]]),
        (f"{HEAD}<tr><td><svg><title>Not included</title><svg></svg></svg><td><svg aria-label=Yes>"
         "<title>Yes</title></svg><td>since 2 <svg aria-label=Yes aria-hidden=true></svg>",
         [A, ["Not included", "Yes", "since 2"]]),
        (f"{HEAD}<tr><td>1<td>2<td><input type=checkbox checked>", [A, ["1", "2", "[x]"]]),
        (f"{HEAD}<tr><td>1<td hidden>SECRET<td>3<tr><td hidden>SECRET<td>5<td hidden>SECRET",
         [A, ["1", "", "3"], ["", "5", ""]]),
        ("<tr><th>a<th style='display:none'>SECRET<th>c<tr><td>1<td style='display:none'>SECRET"
         "<td>3", [["a", "c"], ["1", "3"]]),
        (f"{HEAD}<tr><td style='text-decoration:line-through'>1<td>2<td><s>3</s>"
         "<tr style='text-decoration:line-through'><td><p>4<p>5<td><td>6",
         [A, ["~~1~~", "2", "~~3~~"], ["~~4~~<br>~~5~~", "", "~~6~~"]]),
        (f"{HEAD}<tr><td><ol><li>4<ul><li>5<ul><li>6</ul></ul><li>7</ol><td><td>8",
         [A, ["1. 4<br>  - 5<br>    - 6<br>2. 7", "", "8"]]),
    ],
)  # fmt: skip
def test_every_cell_stays_in_its_column(inside: str, wanted: Grid) -> None:
    """Empty, spanned, hidden and pictured cells; headings, sections, and what cells hold."""
    sheet = "<style>.sr-only{position:absolute;width:1px;height:1px;overflow:hidden}</style>"
    assert rows(text_of(f"{sheet}<table>{inside}</table>")) == wanted


ROLES = {"table": "table", "tbody": "rowgroup", "tr": "row", "th": "columnheader", "td": "cell"}


def test_a_table_that_roles_make() -> None:
    """Of other elements; text beside the cells keeps it from being one, and is not lost."""
    inside = f"<tbody>{HEAD}<tr><td>1</td><td></td><td><p>3</p><p>4</p></td></tr></tbody>"
    markup = f"<table>{inside}<tr><td colspan=2>5</td><td>6</td></tr></table>".replace(
        "cols", "aria-cols"
    )
    for tag, role in ROLES.items():
        markup = re.sub(f"<{tag}(?=[ >])", f"<div role={role}", markup).replace(
            f"</{tag}>", "</div>"
        )
    assert rows(text_of(markup)) == [A, ["1", "", "3<br>4"], list("556")]
    spans = re.sub(
        r"<div (role=(?:row|cell|columnheader)[ >].*?)</div>", r"<span \1</span>", markup
    )
    assert rows(text_of(spans))[-1] == list("556")
    loose = markup.replace("<div role=cell>1</div>", "<span>1</span>")
    assert text_of(loose).split() == ["a", "b", "c", "1", "3", "4", "5", "6"]


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, Grid]:
    """A table with spans and gaps, and what stands in each of its places."""
    width, height = draw(st.integers(2, 5)), draw(st.integers(1, 5))
    wanted = [["" for _ in range(width)] for _ in range(height)]
    taken = [[False] * width for _ in range(height)]
    markup = ""
    for row in range(height):
        markup += "<tr>"
        for column in range(width):
            if taken[row][column]:
                continue
            free = next((k for k in range(column, width) if taken[row][k]), width) - column
            # The first column has no spans, so that no column or row is there for spans only.
            is_first = column == 0
            columns = 1 if is_first else draw(st.integers(1, min(free, 2)))
            below = 1 if is_first else draw(st.integers(1, min(2, height - row)))
            word = "" if not is_first and draw(st.booleans()) else f"v{row}{column}"
            for y in range(row, row + below):
                for x in range(column, column + columns):
                    taken[y][x], wanted[y][x] = True, word
            markup += f"<td colspan={columns} rowspan={below}>{word}</td>"
        markup += "</tr>"
    names = [f"h{column}" for column in range(width)]
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{markup}</tbody></table>", [names, *wanted]


@settings(max_examples=120, deadline=None)
@given(tables())
def test_any_spans_are_written_out(table: tuple[str, Grid]) -> None:
    """Each place has what covers it, as a browser would draw it."""
    markup, wanted = table
    assert rows(text_of(markup)) == wanted


def test_tables_and_equations_of_papers() -> None:
    """LaTeXML makes tables of spans, and lays out equations as tables."""
    names = {"table": "ltx_tabular", "tr": "ltx_tr", "th": "ltx_td ltx_th", "td": "ltx_td"}
    markup = "<table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td></td></tr></table>"
    for tag, name in names.items():
        markup = markup.replace(f"<{tag}>", f'<span class="{name}">').replace(
            f"</{tag}>", "</span>"
        )
    assert rows(text_of(f"<p>{markup}")) == [["", ""], ["a", "b"], ["1", ""]]
    cell = '<td class="ltx_eqn_cell"><math alttext="\\displaystyle x"><mi>x</mi></math></td>'
    number = '<td class="ltx_eqn_eqno">(1)</td>'
    table = f'<table class="ltx_equation ltx_eqn_table"><tr><td></td>{cell}{number}</tr></table>'
    assert text_of(table) == "$x$\n\n(1)"


def test_the_caption_stands_above_the_table() -> None:
    """It is part of what the table says."""
    text = text_of(f"<table><caption>Tides in metres</caption>{HEAD}<tr><td>1<td>2<td>3</table>")
    assert text.startswith("Tides in metres\n\n| a | b | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |")


LONG = "A long text that only stands beside a menu on an old page. " * 9


@pytest.mark.parametrize(
    "markup",
    [
        "<table><tr><td>one<tr><td>two</table>",
        "<table role=presentation><tr><td>one<td>two</table>",
        f"<table><tr><td>one two<td>{LONG}</table>",
        "<table><tr><td>menu<td><h2>one</h2><p>two</table>",
        "<table><tr><td>menu<td><table><tr><td>one<tr><td>two</table></table>",
    ],
)
def test_a_table_that_arranges_a_page_is_text(markup: str) -> None:
    """One column, a role, long texts, headings or another table inside."""
    text = text_of(markup)
    assert "|" not in text
    assert "one" in text
    assert "two" in text


def test_a_table_inside_one_that_arranges_the_page() -> None:
    """The outer one is text, the inner one is a table."""
    inner = f"<table>{HEAD}<tr><td>1<td><td>3</table>"
    text = text_of(f"<table><tr><td>menu<td><h2>Tides</h2>{inner}</table>")
    assert rows(text) == [A, ["1", "", "3"]]
    assert "## Tides" in text


@pytest.mark.parametrize("cells", ["", "<tr>", "<tr><td><td>", "<tr><td hidden>x<td hidden>y"])
def test_a_table_of_nothing_but_a_caption(cells: str) -> None:
    """The caption is all that it says."""
    text = text_of(f"<p>Words.</p><table><caption>Tides</caption>{cells}</table>")
    assert text.startswith("Words.\n\nTides")
    assert "x" not in text


def test_spans_do_not_blow_up_a_table() -> None:
    """Thousands of columns and rows that one cell claims are not written out."""
    cell = "<td colspan=1000 rowspan=9999>x</td><td>y</td>"
    text = text_of(f"<table>{f'<tr>{cell * 3}</tr>' * 300}</table>")
    assert len(text) < 200_000


def test_a_table_in_an_article_is_whole() -> None:
    """Of a table that is main text no cell is left out, however little it looks like text."""
    words = "The harbour was built in three stages, and each of them is described here at length. "
    body = "".join(
        f"<tr><td>{year}<td>{year % 7 or ''}<td>{'–' if year % 3 else year * 2}"
        for year in range(1990, 2010)
    )
    text = text_of(
        f"<article><h1>Harbour</h1><p>{words * 5}</p><table>{HEAD}{body}</table><p>{words * 5}</p>"
    )
    assert rows(text)[1:] == [
        [str(year), str(year % 7 or ""), "–" if year % 3 else str(year * 2)]
        for year in range(1990, 2010)
    ]
