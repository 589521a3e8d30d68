"""Lists, lines and marks within a line: numbers, nesting, definitions, struck and quoted text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.search_backend.documents import text_of
from tests.tables import each_row


@each_row(
    ("markup", "text"),
    [
        ("<ol start=4><li>a<li>b</ol>", "4. a\n5. b"),
        ("<ol><li>a<li value=7>b<li>c</ol>", "1. a\n7. b\n8. c"),
        ("<ol reversed start=10><li>a<li>b</ol>", "10. a\n9. b"),
        ("<ol type=a><li>a<li>b</ol>", "a. a\nb. b"),
        ("<ol type=A start=27><li>a</ol>", "AA. a"),
        ("<ol type=i start=3><li>a<li>b</ol>", "iii. a\niv. b"),
        ("<ol type=I start=1999><li>a</ol>", "MCMXCIX. a"),
        ("<ol style='list-style-type: lower-alpha'><li>a</ol>", "a. a"),
        ("<ol start=9><li>a<li>b<ol><li>c</ol></ol>", "9. a\n10. b\n    1. c"),
        ("<ol><li><p>a</p><p>b</p><li><p>c</p></ol>", "1. a\n\n   b\n2. c"),
        ("<ol><li>a<br>b<li>c</ol>", "1. a\n   b\n2. c"),
        ("<ol><li>a<pre>x\n  y</pre>b<li>c</ol>", "1. a\n\n```\nx\n  y\n```\n\n   b\n2. c"),
        ("<ul><li><ul><li>a</ul></ul>", "- a"),
        ("<ol><li>a</li><ol><li>b<li>c</ol><li>d</ol>", "1. a\n   1. b\n   2. c\n2. d"),
        ("<ol><li><h3>a</h3><p>b</p><li><h3>c</h3></ol>", "1. ### a\n\n   b\n\n2. ### c"),
        ("<ol style='list-style: none'><li>a<li>b</ol>", "- a\n- b"),
        ("<p><a href=/u>items[0]</a> <a href=/u>a] b</a>",
         "[items[0]](https://e.example/u) [a) b](https://e.example/u)"),
        ("<ol><li>a</ol><p>and</p><ol start=2><li>b</ol>", "1. a\n\nand\n\n2. b"),
        ("<dl><dt>tea<dd>a drink<dd>a meal<dt>pot<dd>a vessel</dl>",
         "tea\n: a drink\n: a meal\n\npot\n: a vessel"),
        ("<dl><div><dt>tea<dd>a drink</div><div><dt>pot<dt>jug<dd>a vessel</div></dl>",
         "tea\n: a drink\n\npot\njug\n: a vessel"),
        ("<dl><dt>tea<dd><p>a drink</p><p>hot</p></dl>", "tea\n: a drink\n\n  hot"),
        ("<dl><dd>only moved in</dl>", "only moved in"),
        ("<ul><li><label><input type=checkbox checked><span></span></label> a</ul>", "- [x] a"),
        ("<p>one<br>two<br><br>three", "one\ntwo\n\nthree"),
        ("<h2>one<br>two</h2><p>three", "## one two\n\nthree"),
        ("<h2>one<span>two</span></h2><h2>three</h2>", "## onetwo\n\n## three"),
        ("<ul class=inline-task-list><li class=checked><span>a</span><li>b</ul>",
         "- [x] a\n- [ ] b"),
        ("<ul class=to-do-list><li><div class='checkbox checkbox-on'></div> <span>a</span></ul>"
         "<ul class=to-do-list><li><div class='checkbox checkbox-off'></div> b</ul>",
         "- [x] a\n- [ ] b"),
        ("<ul><li data-checked=true><p>a</p><li data-checked=false><p>b</p></ul>",
         "- [x] a\n- [ ] b"),
        ("<ol><li data-list=checked>a<li data-list=unchecked>b</ol>", "1. [x] a\n2. [ ] b"),
        ("<p><span role=checkbox aria-checked=true></span>a", "[x] a"),
        ("<p><input type=checkbox checked> I agree", "I agree"),
        ("<blockquote><p>a</p><ul><li>b</ul></blockquote>", "> a\n\n> - b"),
        ("<blockquote><blockquote><p>a</blockquote><p>b</blockquote><p>c", "> > a\n\n> b\n\nc"),
        ("<p>was <s>20</s> 15, <del>30</del> 25, <strike> 9 </strike>8",
         "was ~~20~~ 15, ~~30~~ 25, ~~9~~ 8"),
        ("<p>was <span style='text-decoration: line-through'>20 <b>EUR</b></span> 15",
         "was ~~20 EUR~~ 15"),
        ("<p>was <span class='line-through x'>20 <span>EUR</span></span> <span>15</span>",
         "was ~~20 EUR~~ 15"),
        ("<p style='text-decoration:line-through'>20 EUR</p><p>15 EUR", "~~20 EUR~~\n\n15 EUR"),
        ("<del><p>20</p><p>30</p></del><p>15", "~~20~~\n\n~~30~~\n\n15"),
        ("<p><b style='display:block'>a</b>b<a style='display:block' href=/u>c</a>",
         "a b [c](https://e.example/u)"),
        ("<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>だ", "漢(かん)字(じ)だ"),
        ("<p>he said <q>tea</q>.", "he said “tea”."),
        ("<h2>Tea<a class=headerlink href='#tea'>¶</a></h2>", "## Tea"),
        ("<h2>Tea<span class=mw-editsection><span>[</span><a href=/e>edit</a><span>]</span></span>"
         "</h2>", "## Tea"),
        ("<h1><img src=l.png alt='Tea and pots'></h1><p>x", "# Tea and pots\n\nx"),
        ("<p>good <img class=emoji alt='😀'> tea <img src=x.png alt='a cup of tea'> here",
         "good 😀 tea here"),
    ],
)  # fmt: skip
def test_lists_and_lines_keep_their_shape(markup: str, text: str) -> None:
    """Numbers as the page counts, items inside items, terms, lines broken by hand, struck text."""
    assert text_of(markup) == text


LISTS = st.recursive(
    st.just([]),
    lambda inner: st.lists(st.tuples(st.booleans(), inner), min_size=1, max_size=3),
    max_leaves=9,
)


def build(
    items: list[tuple[bool, list[object]]], indent: str, is_numbered: bool
) -> tuple[str, str]:
    """The markup and the text of a list. An item has a list inside, numbered or not."""
    markup, text = "", ""
    for number, (kind, inner) in enumerate(items, 1):
        label = f"{number}." if is_numbered else "-"
        more, below = build(inner, indent + " " * (len(label) + 1), kind) if inner else ("", "")  # type: ignore[arg-type]
        markup += f"<li>x{number}{more}</li>"
        text += f"{indent}{label} x{number}\n{below}"
    return f"<ol>{markup}</ol>" if is_numbered else f"<ul>{markup}</ul>", text


@given(LISTS.filter(bool), st.booleans())
def test_any_lists_inside_lists(items: list[tuple[bool, list[object]]], is_numbered: bool) -> None:
    """Each item stands as far to the right as the text that it belongs to."""
    markup, text = build(items, "", is_numbered)
    assert text_of(markup) == text.rstrip("\n")


@each_row(
    ("sheet", "markup", "text"),
    [
        (".c1{text-decoration-line:line-through}", "<p class=c1>20 EUR</p><p>15 EUR",
         "~~20 EUR~~\n\n15 EUR"),
        ("a.x{text-decoration:line-through}", "<p><a class=x href=/u>20</a> <a href=/v>15</a>",
         "[~~20~~](https://e.example/u) [15](https://e.example/v)"),
        ("a:hover{text-decoration:line-through}", "<p><b>20</b> <a>15</a>", "20 15"),
        ("@media print{b{text-decoration:line-through}}", "<p><b>20</b> 15", "20 15"),
        (".c2{vertical-align:super}", "<p><span>10</span><span class=c2>24</span><span> kg",
         "10^24 kg"),
        (".c2{vertical-align:.4em;font-size:60%}", "<p>10<span class=c2>24</span> kg", "10^24 kg"),
        (".c2{vertical-align:-4px}", "<p>10<span class=c2>24</span> kg", "1024 kg"),
        (".c2{vertical-align:4px}", "<p>Tea<span class=c2>time</span>", "Teatime"),
        ("", "<p>10<span style='position:relative;top:-4.0pt'>24</span> kg", "10^24 kg"),
        ("", "<p>May <span style='position:relative;top:-4pt'>24</span>", "May 24"),
        ("", "<p>10<span style='margin-top:-4pt'>24</span> kg", "1024 kg"),
        (".c3{font-size:.6em;vertical-align:sub}", "<p>H<span class=c3>2</span>O", "H2O"),
        (".c2{vertical-align:super}.c3{text-decoration:line-through}",
         "<p><span class=c3>9 m<span class=c2>2</span></span> 5 m<span class=c2>2</span> big",
         "~~9 m^2~~ 5 m^2 big"),
        (".al{list-style-type:lower-alpha}", "<ol class=al><li>a<li>b</ol>", "a. a\nb. b"),
        ("p{white-space:pre-wrap}", "<p>one\n<p style='white-space:normal'>two\nthree",
         "one\n\ntwo three"),
        ("", "<p style='white-space: nowrap'>one\ntwo", "one two"),
        (".k{font-family:Menlo,monospace;white-space:pre}", "<div class=k>a\n  b</div>",
         "```\na\n  b\n```"),
        ("", "<div class=d-flex><span>Weight</span><b>3 kg</b>", "Weight 3 kg"),
        ("", "<div class=flex><b>$</b><b>19</b><b>.99</b>", "$19.99"),
        ("", "<div class=flex>T<b>ea</b>, <i>please</i>", "Tea, please"),
        ("", "<p><span>T</span><span>ea</span>", "Tea"),
        (".k{white-space:pre}", "<p><code class=k>a\n  b</code>", "```\na\n  b\n```"),
    ],
)  # fmt: skip
def test_what_a_sheet_says_of_the_shape_of_text(sheet: str, markup: str, text: str) -> None:
    """Struck, raised, lowered, in lines as typed, counted by letters: in a sheet of any size."""
    for more in ("", ".unused{color:red}" * 4_000):
        first = "Tea is a drink that most people make with hot water."
        made = text_of(f"<style>{more}{sheet}</style><div>{first}</div>{markup}")
        assert made == f"{first}\n\n{text}"


@each_row(
    ("sheet", "text"),
    [
        (".row{color:red;display:flex}", "Weight 3 kg"),
        (".card .row{display:inline-flex}", "Weight 3 kg"),
        ("#r{display: grid; gap: 1em}", "Weight 3 kg"),
        (".card li{display:flex}", "Weight3 kg"),
        # No selectors, and no reason to read nothing.
        (".1a{display:flex}.1a div{display:flex}.row>>div{display:flex}", "Weight3 kg"),
        ("span{color:red}.v{display:block}", "Weight 3 kg"),
        (".v+span{float:left}.v+*{float:right}", "Weight3 kg"),
        ("#r .v{float:right}", "Weight 3 kg"),
        (".flex{color:red}", "Weight3 kg"),
        ("@media print{.row{display:flex}}", "Weight3 kg"),
    ],
)
def test_words_side_by_side_stay_apart(sheet: str, text: str) -> None:
    """What a sheet puts into a row is no one word; what it does not may be."""
    row = "<div class='row 1a' id=r><span class=v>Weight</span><span>3 kg</span></div>"
    assert text_of(f"<style>{sheet}</style><p>Tea.</p><div class=card>{row}</div>") == (
        f"Tea.\n\n{text}"
    )


def test_what_a_sheet_takes_back_is_not_struck() -> None:
    """The rule that weighs most counts."""
    sheet = ".a i{text-decoration:line-through}.a .b{text-decoration:none}"
    text = text_of(f"<style>{sheet}</style><div class=a><i>20</i> <i class=b>15</i></div>")
    assert text == "~~20~~ 15"
