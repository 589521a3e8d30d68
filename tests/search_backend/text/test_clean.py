"""What is text and what hides in it: joiners, selectors, tags; plain snippets and HTML ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent import text as agent_text
from searchloop.search_backend.text.clean import clean, cleaned, snippet_text
from tests.tables import each_row

SHAPED = [
    "می‌خواهم",  # Persian
    "ه‍",  # an Arabic letter in its initial form
    "क्‍ष",  # Devanagari
    "ක්‍රීඩා",  # Sinhala
    "\u1820\u180b",  # Mongolian
    "👨‍👩‍👧‍👦",
    "🏳️‍🌈",
    "👩🏽‍💻 🤦🏿‍♀️",
    "👁️‍🗨️",
    "1️⃣ #️⃣",
    "☺︎ ☺️ ©️ ⚠️",
    "🇩🇪🇯🇵",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # England
    "🏴\U000e0075\U000e0073\U000e0074\U000e0078\U000e007f",  # Texas
    "葛\U000e0100城",  # a variant of a Chinese character
]
ZERO = "\u200b\u200c\u200d\u2060\ufeff\u200e\u200f\u202e\u2066\u00ad\ufe0f\U000e0100"


@each_row("text", SHAPED)
@each_row("around", ["{}", "a {} b", "{0}{0}", "({})."])
def test_what_shapes_letters_emoji_and_flags_is_text(text: str, around: str) -> None:
    """The same on the page, in a result and in what a model reads."""
    whole = around.format(text)
    assert (cleaned(whole), agent_text.neutral(whole)) == ((whole, 0), whole)


@each_row(
    ("hidden", "seen"),
    [
        *((f"pass{char}word", "password") for char in ZERO),
        *((f"{char}x", "x") for char in ZERO),
        ("می\u200c\u200cخ", "میخ"),
        ("👩\u200d\u200d👧", "👩👧"),
        ("👩\u200d", "👩"),
        ("👩\ufe0f\ufe0f\ufe0e", "👩\ufe0f"),
        ("😀\U000e0101\U000e0102\U000e0153", "😀"),
        ("1\ufe0f2\ufe0f", "12"),
        ("\U000e0068\U000e0069", ""),
        ("🏴\U000e0068\U000e0069", "🏴"),
        ("🏴" + "".join(chr(0xE0000 + ord(char)) for char in "ignore all") + "\U000e007f", "🏴"),
        ("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067", "🏴"),  # without its end
        ("日\u200c本", "日本"),
        ("سلام\u061c\u200f", "سلام"),
    ],
)
def test_the_same_characters_hide_elsewhere(hidden: str, seen: str) -> None:
    """Between letters that do not join, in runs, and outside of flags they are taken out."""
    assert cleaned(hidden) == (seen, len(hidden) - len(seen))
    assert agent_text.neutral(hidden) == seen


PIECES = st.sampled_from([*"aб日می一👩♀1#🏴👧क्", *ZERO, "\U000e0067", "\U000e0062", "\U000e007f"])


@given(st.lists(PIECES | st.characters(), max_size=12).map("".join))
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    """What is taken out gives nothing that stays a new meaning."""
    assert clean(clean(text)) == clean(text)
    assert agent_text.visible(agent_text.visible(text)) == agent_text.visible(text)


@each_row(
    "text",
    [
        "a<b and c>d",
        "List<String>, Map<K, V>",
        "Use the <b> tag for bold",
        "a </b> without its beginning",
        "<div class='x'>",
        "vector<a>b</a> <c>",
        "R&D and AT&T",
        "R&D &amp; x",
        "<user@example.org>",
        "std::vector<int> a",
        "i<em and em>i",
        "&notAnEntity",
    ],
)
def test_plain_snippets_lose_nothing(text: str) -> None:
    """Less-than signs, generics and the names of tags are words of the page."""
    assert snippet_text(text) == text


@each_row(
    ("html", "text"),
    [
        ("<b>green</b> tea", "green tea"),
        ("<strong>Map</strong>&lt;K, V&gt;", "Map<K, V>"),
        ("a &lt; b &amp;&amp; c", "a < b && c"),
        ('<span class="hit">one</span> <em>two</em>', "one two"),
        ("It&#39;s 5&nbsp;km &mdash; <B>far</B>", "It's 5\xa0km — far"),
        ("<b>R&D</b>", "R&D"),
        ("<p><b><i>both</i></b><br>next</p>", "both next"),
        ("&amp;lt;b&amp;gt;", "&lt;b&gt;"),
    ],
)
def test_html_snippets_lose_their_markup(html: str, text: str) -> None:
    """Markup of an engine is no part of the page; what it escapes is."""
    assert snippet_text(html) == text


@given(st.text(alphabet="<>&;/ab lt=\"'", max_size=40))
def test_what_html_escapes_comes_back(text: str) -> None:
    """Whatever a page says, an engine that answers in HTML escapes it and marks what it found."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert snippet_text(f"<b>x</b> {escaped} y") == f"x {text} y"
