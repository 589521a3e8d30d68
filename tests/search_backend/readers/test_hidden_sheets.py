"""What a browser does not show is not read, and what it shows is: styles, sheets, elements.

Every case was held against the pixels that Chromium paints.
"""

from __future__ import annotations

from html import escape

from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.readers._html.bounds import parsed
from searchloop.search_backend.readers._html.hidden import remove_hidden
from tests.tables import each_row

WORD = "smuggled"
SHOWN = "<p>" + "Ordinary visible words about tea that stay on the page. " * 9 + "</p>"
K = f"<p class=k>{WORD}</p>"


def is_seen(body: str, head: str = "") -> bool:
    """Whether the word of a page with this in it is left."""
    markup = f"<!doctype html><html><head>{head}</head><body>{SHOWN}{body}{SHOWN}</body></html>"
    tree, _ = parsed(markup)
    remove_hidden(tree)
    assert tree.body is not None
    text = tree.body.text(deep=True)
    assert text.count("Ordinary visible words") == 18
    return WORD in text


HIDDEN_STYLES = [
    "DISPLAY : NONE",
    r"d\69splay:n\00006f ne",
    "display:none!important;display:block",
    "--d:none;display:var(--d)",
    "display:var(--x,none)",
    "visibility:collapse",
    "content-visibility:hidden",
    "opacity:1e-9",
    "font-size:.5pt",
    "font-size:1px",
    "font:0/0 a",
    "transform:scale3d(0,0,0)",
    "scale:0 1",
    "translate:-9999px",
    "text-indent:-99rem",
    "text-indent:100%;white-space:nowrap;overflow:hidden",
    "position:absolute;inset:-9999px auto auto -9999px",
    "height:1px;overflow:hidden",
    "max-block-size:0;overflow:clip",
    "line-height:0;overflow:hidden",
    "position:absolute;clip:rect(1px,1px,1px,1px)",
    "clip-path:polygon(0 0,0 0,0 0)",
    "-webkit-clip-path:inset(50%)",
    "-webkit-text-fill-color:transparent",
    "color:#fefefe",
    "color:#fff;background:#fff",
    "background:#0f0;color:hsl(120,100%,50%)",
]
SHOWN_STYLES = [
    "dis/**/play:none",
    "display:none;display:block",
    "display:nonesuch",
    "content:'x;display:none;y'",
    r"color:red\;display:none",
    "background:(;display:none",
    "opacity:.3",
    "font-size:8px",
    "transform:translateX(-5px)",
    "left:-9999px",
    "max-height:0",
    "height:0;min-height:40px;overflow:hidden",
    "height:0;padding:40px;overflow:hidden",
    "clip:rect(0,0,0,0)",
    "clip-path:inset(5%)",
    "color:white;background:navy",
    "color:#fff;background:#000",
    "color:white;background-image:linear-gradient(#000,#111)",
    "color:transparent;text-shadow:0 0 0 black",
    "background:linear-gradient(red,blue);-webkit-background-clip:text;color:transparent",
]


@each_row("style", HIDDEN_STYLES)
def test_styles_that_hide_text(style: str) -> None:
    """On the element, around it, and by a rule for its class."""
    assert not is_seen(f'<p style="{escape(style)}">{WORD}</p>')
    assert not is_seen(f'<div style="{escape(style)}"><div><p>{WORD}</p></div></div>')
    assert not is_seen(K, f"<style>.k{{{style}}}</style>")


@each_row("style", SHOWN_STYLES)
def test_styles_that_hide_nothing(style: str) -> None:
    """What only looks like hiding takes nothing away."""
    assert is_seen(f'<p style="{escape(style)}">{WORD}</p>')
    assert is_seen(K, f"<style>.k{{{style}}}</style>")


# (sheet, body, whether it is seen)
SHEETS = [
    ('[data-k^="a"]{display:none}', f"<p data-k=ab>{WORD}</p>", False),
    (".a.b{display:none}", f"<p class=a>{WORD}</p>", True),
    (":is(.k,.l){display:none}", K, False),
    (r".md\:hide{display:none}", f"<p class='md:hide'>{WORD}</p>", False),
    (r".\6b{display:none}", K, False),
    ("p/**/.k{display:none}", K, False),
    (".k:hover{display:none}", K, True),
    (".k::before{display:none}", K, True),
    ("@media screen and (min-width:1px){.k{display:none}}", K, False),
    ("@media (max-width:600px){.k{display:none}}", K, True),
    ("@media not print{.k{display:none}}", K, False),
    ("@layer x{.k{display:none}}", K, False),
    ('@import url("a;b{.css");.k{display:none}', K, False),
    (".k{display:none}.k{display:block}", K, True),
    ("#i{display:block}.k{display:none}", f"<p id=i class=k>{WORD}</p>", True),
    ("#i{display:block}.k{display:none!important}", f"<p id=i class=k>{WORD}</p>", False),
    (".k{display:none}", f"<p class=k style='display:block'>{WORD}</p>", True),
    (".k{display:none}.open.k{display:block}", K, False),
    (".k{display:none}.open.k{display:block}", f"<p class='k open'>{WORD}</p>", True),
    (".k{display:none}@media (min-width:9px){.k{display:block}}", K, True),
    ("[hidden]{display:block}", f"<p hidden>{WORD}</p>", True),
    (".w{font-size:0}.w p{font-size:16px}", f"<div class=w><p>{WORD}</p></div>", True),
    (".w{font-size:0}.w p{font-size:16px}", f"<div class=w>{WORD}<p>x</p></div>", False),
    (".w{font-size:0}.k{font-size:1em}", f"<div class=w>{K}</div>", False),
    (".w{visibility:hidden}.k{visibility:visible}", f"<div class=w>{K}</div>", True),
    ('.z{content:"}"}.k{display:none}', K, False),
    ('.z{content:"/*"}.k{display:none}.y{content:"*/"}', K, False),
    (".z{}}.k{display:none}", K, True),
    ("<!-- .k{display:none} -->", K, False),
    (".k{display:none", K, False),
    (":root{--a:none}.k{display:var(--a)}", K, False),
    ("body{background:#000;color:#eee}.k{color:white}", K, True),
    (".w{background:navy}.k{color:#fff}", f"<div class=w>{K}</div>", True),
    (".k{position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden}", K, False),
]


@each_row(("sheet", "body", "seen"), SHEETS)
def test_sheets_are_weighed_as_a_browser_does(sheet: str, body: str, seen: bool) -> None:
    """Selectors, conditions and the order of rules."""
    assert is_seen(body, f"<style>{sheet}</style>") is seen


@each_row(
    ("body", "seen"),
    [
        (f"<p popover>{WORD}</p>", False),
        (f"<p hidden style='display:flex'>{WORD}</p>", True),
        (f"<p><font color=#ffffff>{WORD}</font></p>", False),
        (f"<table><tr><td bgcolor=navy><font color=white>{WORD}</font></table>", True),
        (f"<ruby>x<rp>{WORD}</rp><rt>y</rt></ruby>", False),
        (f"<style media=print>.k{{display:none}}</style>{K}", True),
        (f"<noscript><style>.k{{display:none}}</style></noscript>{K}", True),
        (f"<link rel=stylesheet href='data:text/css,.k{{display:none}}'>{K}", False),
        (f"<p><span style='height:0;overflow:hidden'>{WORD}</span></p>", True),
    ],
)
def test_elements_and_places_of_sheets(body: str, seen: bool) -> None:
    """Whatever hides them, or does not."""
    assert is_seen(body) is seen


def test_white_text_beside_a_sheet_that_was_not_read_is_kept() -> None:
    """It may have a dark ground there; what is clear by itself goes."""
    head = "<link rel=stylesheet href=/all.css>"
    assert is_seen(f"<p style='color:white'>{WORD}</p>", head)
    assert not is_seen(f"<p style='color:white;background:white'>{WORD}</p>", head)
    assert not is_seen(f"<p style='position:absolute;left:-9999px'>{WORD}</p>", head)


def test_a_large_sheet_is_read_for_the_simple_ways() -> None:
    """One class or id outside conditions still counts; what might undo it is not looked for."""
    much = ".none{margin:1px}" * 3_000
    assert not is_seen(K, f"<style>{much}p.k{{font-size:0}}</style>")
    assert is_seen(K, f"<style>{much}@media print{{.k{{font-size:0}}}}</style>")


def test_much_that_no_script_shows_is_hidden_however_much_it_is() -> None:
    """A sheet may keep a page away until a script comes, but not by letters of no size."""
    much = f"<p class=k>{WORD} {'more such words ' * 60}</p>"
    assert not is_seen(much, "<style>.k{font-size:0}</style>")
    assert is_seen(much, "<style>.k{display:none}</style>")


PIECES = st.sampled_from(
    [
        *"{}();:,.#\"'\\/*@ -&>~",
        *(".k", "#i", "p", "@media ", "display", "none", "var(--a)", "--a", "opacity", "0"),
        *("url(", ":is(", ":not(", "!important", "font-size", "color", "#fff"),
    ]
)


@given(st.lists(PIECES, max_size=60).map("".join))
def test_no_sheet_or_style_stops_the_reader(text: str) -> None:
    """Whatever stands there, the page is read, and no visible word beside it is lost."""
    text = text.replace("<", "")
    is_seen(f"<i class=k id=i style='{escape(text)}'>{WORD}</i>", f"<style>b {text}</style>")
