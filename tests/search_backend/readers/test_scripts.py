"""Raised and lowered characters: an exponent, an index, the mark of a note; no wrong number."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.search_backend.documents import text_of
from tests.tables import each_row


def raised(words: str) -> str:
    """The text of `words`, in which `^{...}` is raised and `_{...}` lowered."""
    markup = re.sub(r"\^\{(.*?)\}", r"<sup>\1</sup>", words)
    return text_of("<p>" + re.sub(r"_\{(.*?)\}", r"<sub>\1</sub>", markup))


@each_row(
    ("words", "text"),
    [
        ("10^{24} kg", "10^24 kg"),
        ("10^{−6} m", "10^−6 m"),
        ("10^{1}, 10^{2} and 10^{3}", "10^1, 10^2 and 10^3"),
        ("Fe^{III} and Cu^{II}", "Fe^(III) and Cu^(II)"),
        ("x_{i}^{2} + x_{n+1}^{2}", "x_i^2 + x_(n+1)^2"),
        ("a^{n}b^{n} and x_{1}^{2}y_{1}^{3}", "a^n b^n and x_1^2 y_1^3"),
        ("it costs $5^{a} and £20^{a}", "it costs $5[a] and £20[a]"),
        ("Max Mustermann^{1*}, Li Wei^{3,†}", "Max Mustermann[1*], Li Wei[3,†]"),
        ("2^{10} bytes", "2^10 bytes"),
        ("2^{n} sets", "2^n sets"),
        ("x^{n-1} + 2^{n−1}", "x^(n-1) + 2^(n−1)"),
        ("10^{3–5} cells", "10^(3–5) cells"),
        ("6.02 × 10 ^{23}", "6.02 × 10 ^23"),
        ("20 m ^{2} of land", "20 m ^2 of land"),
        ("$19^{99} and 5^{49} €", "$19.99 and 5.49 €"),
        ("19^{,99} EUR", "19,99 EUR"),
        ("^{1}In the beginning ^{2}Now it was", "[1]In the beginning [2]Now it was"),
        ("$5.20^{15} a pound", "$5.20[15] a pound"),
        ("5^{1/2} inches", "5 1/2 inches"),
        ("x^{1/2}", "x^(1/2)"),
        ("1.^{er} and 2.^{o}", "1.er and 2.o"),
        ("3^{2} + 4^{2} = 5^{2}", "3^2 + 4^2 = 5^2"),
        ("1.05^{10} = 1.63", "1.05^10 = 1.63"),
        ("x^{2}y^{3}", "x^2 y^3"),
        ("e^{−x}", "e^(−x)"),
        ("E=mc^{2}.", "E=mc^2."),
        ("(a+b)^{2}", "(a+b)^2"),
        ("f(x)^{2} + 1", "f(x)^2 + 1"),
        ("sin^{2} θ", "sin^2 θ"),
        ("∇^{2}", "∇^2"),
        ("9.8 m s^{−2}", "9.8 m s^−2"),
        ("the isotope ^{238}U", "the isotope ^238U"),
        ("uranium (^{235}U)", "uranium (^235U)"),
        ("^{235}_{92}U", "^235_92U"),
        ("Na^{+} and Ca^{2+}", "Na^+ and Ca^(2+)"),
        ("SO_{4}^{2−}", "SO4^(2−)"),
        ("CO_{2}5", "CO2 5"),
        ("C_{6}H_{12}O_{6}", "C6H12O6"),
        ("Ca(OH)_{2}", "Ca(OH)2"),
        ("2H_{2} + O_{2}", "2H2 + O2"),
        ("PM_{2.5}", "PM2.5"),
        ("log_{2}8", "log_2 8"),
        ("log_{10} 100", "log_10 100"),
        ("1101_{2}", "1101_2"),
        ("FF_{16} = 255", "FF_16 = 255"),
        ("x_{i+1}", "x_(i+1)"),
        ("a_{1}2", "a_1 2"),
        ("x_{1}^{2}", "x_1^2"),
        ("1^{st}, 2^{nd}, 23^{rd}, 4^{th}", "1st, 2nd, 23rd, 4th"),
        ("le XXI^{e} siècle", "le XXIe siècle"),
        ("la 21^{e} édition, 1^{er} mai", "la 21e édition, 1er mai"),
        ("n^{o} 5, M^{me} Curie", "no 5, Mme Curie"),
        ("1^{a} edición", "1a edición"),
        ("20^{°}C", "20°C"),
        ("Aspirin^{®} and Word^{TM}", "Aspirin® and WordTM"),
        ("^{1}⁄_{2} cup", "1/2 cup"),
        ("2^{1}⁄_{2} cups", "2 1/2 cups"),
        ("^{3}/_{4} inch", "3/4 inch"),
        ("f^{(n)}(x) and 7^{(b)}", "f^(n)(x) and 7[b]"),
        ("^{99m}Tc", "^99mTc"),
        ("ℝ^{3}, ℝ^{n} and 𝔽^{2}", "ℝ^3, ℝ^n and 𝔽^2"),
        ("the sphere S^{1} has 10^{2} points", "the sphere S^1 has 10^2 points"),
        ("Smith J^{1}, Lee K^{2}, Kim^{2}", "Smith J[1], Lee K[2], Kim[2]"),
        ("Vitamin C^{1} in 12^{2} pots", "Vitamin C[1] in 12[2] pots"),
        ("a<sup>b^{c}</sup> and 10<sup>10^{100}</sup>", "a^(b^c) and 10^(10^100)"),
        ("<var>x</var><sub><var>i</var></sub>^{2}", "x_i^2"),
        ("said<sup class=reference>[5]</sup><sup class=reference>: 23</sup>", "said[5]: 23"),
        ("<code>x^{2}</code> and <code>H_{2}O</code>", "`x^2` and `H2O`"),
        ("2<span>1</span>⁄<span>2</span> cups", "2 1/2 cups"),
    ],
)
def test_what_is_raised_or_lowered_keeps_its_meaning(words: str, text: str) -> None:
    """Powers, units, isotopes, ions, molecules, indexes, ordinals and fractions."""
    assert raised(words) == text


@each_row(
    ("markup", "text"),
    [
        ("5.2^{1} million in 2019^{2}", "5.2[1] million in 2019[2]"),
        ("sold 1,234^{1} in 12^{2} of 30 towns^{3}.", "sold 1,234[1] in 12[2] of 30 towns[3]."),
        ("It grew 5%^{4} at home.^{5}", "It grew 5%[4] at home.[5]"),
        ("Smith^{1,2} and Jones^{2}", "Smith[1,2] and Jones[2]"),
        ("Smith^{a} has 12^{b}", "Smith[a] has 12[b]"),
        ("12^{a} of 30^{b}", "12[a] of 30[b]"),
        ("5.2^{†} million^{*}", "5.2[†] million[*]"),
        ("12^{[3]} of them", "12[3] of them"),
        ("12^{(3)} of them", "12[3] of them"),
        ("stays in^{2} place", "stays in[2] place"),
        ("(see 2019)^{2}", "(see 2019)[2]"),
        ("人口^{1}", "人口[1]"),
    ],
)
def test_marks_of_notes_without_a_link(markup: str, text: str) -> None:
    """By the words around them, and because notes are counted from 1."""
    assert raised(markup) == text


NOTES = (
    "<sup>{}</sup>",
    '<sup><a href="#fn{0}">{0}</a></sup>',
    '<a href="#fn{0}"><sup>{0}</sup></a>',
    '<sup id="cite_ref-{0}" class="reference"><a href="#cite_note-{0}"><span>[</span>{0}<span>]'
    "</span></a></sup>",
    '<a href="#fn:{0}" class="footnote" role="doc-noteref">{0}</a>',
    '<sup class="footnote-ref"><a href="/page#fn{0}">[{0}]</a></sup>',
    '<span style="vertical-align: super; font-size: 80%">{}</span>',
    '<span class="superscript">{}</span>',
)


@each_row("note", NOTES)
def test_a_note_does_not_change_the_number_before_it(note: str) -> None:
    """However the page writes the mark, also behind numbers that could be raised to a power."""
    one, two, three = (note.format(number) for number in (1, 2, 3))
    text = text_of(f"<p>5.2{one} million in 2019{two}, or 12{three} a head.<p>Then 10{two} more.")
    if note != NOTES[0] and "<a" in note:
        assert "Then 10[2] more" in text
    assert text.startswith("5.2[1] million in 2019[2], or 12[3] a head.")


MARK = "<sup class=ltx_note_mark>1</sup>"


@each_row(
    ("markup", "text"),
    [
        ("5.2<a class=footnote-anchor href='https://e.example/p#footnote-1'>1</a> m", "5.2[1] m"),
        ("Table<a href='/p#t5'>5</a>", "Table[5](https://e.example/p#t5)"),
        ("1<span class=frac><sup>1</sup>⁄<sub>2</sub></span> cups", "1 1/2 cups"),
        ("a note <a href='#r1'><g-emoji alias=x>↩</g-emoji></a>", "a note"),
        ("a note <a href='#r1'><svg></svg><i>↩︎</i></a>", "a note"),
        ("<s>$20</s><span class=sr-only>Sale price</span>$15", "~~$20~~ Sale price $15"),
        ("4<span class='x visually-hidden'>out of 5</span>7 votes", "4 out of 5 7 votes"),
        ("$20<span class=visually-hidden>.</span>99", "$20.99"),
        ("<my-name>Ann</my-name><my-age>42</my-age>", "Ann 42"),
        ("un<app-mark>break</app-mark>able", "unbreakable"),
        # A mark that begins a line is a note, and so is the same mark behind a number.
        ("12<sup>2</sup> and 45<sup>4</sup>.<p><sup>2</sup> Then.", "12[2] and 45^4.\n\n[2] Then."),
        ("x<sup>a&lt;b</sup> y<sup><a href='#n'>&amp;</a></sup>(z)", "x^(a<b) y[&] (z)"),
        ("a<sup><a href='#n1'>1</a></sup><p><sup>1</sup> b <a href='#r1'>↩</a>", "a[1]\n\n[1] b"),
        ("<b>5.2</b><sup>1</sup> and <i>7</i><sup>2</sup>, <i>x</i><sup><i>n</i></sup>",
         "5.2[1] and 7[2], x^n"),
        *(
            (f"10<span {style}>{inside}</span> kg", "10^6 kg")
            for inside in ("6", "<b>6</b>", "<i><b>6</b></i>")
            for style in ("style='vertical-align: super'", "class=sup")
        ),
        # LaTeXML writes the mark three times, and a sheet that is elsewhere shows it once.
        (f"in 2019.<span class=ltx_note>{MARK}<span class=ltx_note_outer><span class="
         f"ltx_note_content>{MARK}<span class='ltx_tag ltx_tag_note'>1</span>A note.</span></span>"
         "</span> So", "in 2019.[1] (A note.) So"),
        ("<pre>E = mc<sup>2</sup>\n  10<sup>24</sup> kg of H<sub>2</sub>O</pre>",
         "```\nE = mc^2\n  10^24 kg of H2O\n```"),
        ("2<sup>n<sup>2</sup></sup> and e<sup>x<sub>1</sub></sup>", "2^(n^2) and e^(x_1)"),
        ("an <a href=/a>area in km<sup>2</sup></a>", "an [area in km^2](https://e.example/a)"),
    ],
)  # fmt: skip
def test_numbers_and_words_that_stand_side_by_side(markup: str, text: str) -> None:
    """Notes, fractions, words for screen readers, elements of a site, what stands inside them: none
    is glued to the next."""
    assert text_of(f"<p>{markup}") == text


@given(
    st.sampled_from(["10", "2", "7", "x", "m", "km", "5.2", "2019", "cm"]),
    st.sampled_from(["sup", "sub"]),
    st.integers(1, 40),
    st.sampled_from(["", " ", " million", "8", "kg", ", ", "</p><p>9"]),
)
def test_a_number_is_never_glued_to_one(base: str, tag: str, number: int, after: str) -> None:
    """Whatever stands around it, the digits of a script join no others."""
    text = text_of(f"<p>of {base}<{tag}>{number}</{tag}>{after}</p>").removeprefix(f"of {base}")
    assert not text[0].isdigit()
    assert re.match(rf"\D{{1,2}}{number}(?!\d)", text)


SPAN = '<span style="display:inline-block;vertical-align:-0.4em;text-align:{}">{}<br>{}</span>'


@each_row(
    ("markup", "text"),
    [
        ("SO<span class=template-chem2-su><span>2−</span><span>4</span></span>", "SO4^(2−)"),
        ("SO" + SPAN.format("left", "2−", "4"), "SO4^(2−)"),
        (SPAN.format("right", "235", "92") + "U", "^235_92U"),
        (SPAN.format("right", "<sup>14</sup>", "<sub>6</sub>") + "C", "^14_6C"),
        ("<span class=sfrac><span class=tion><span class=num>22</span><span class=sr-only>/</span>"
         "<span class=den>7</span></span></span>", "22/7"),
        ("1<span class=sfrac><span class=sr-only>+</span><span class=tion><span class=num>2</span>"
         "<span class=sr-only>/</span><span class=den>3</span></span></span>", "1 2/3"),
        ("3<span class=sfrac><span class=tion><span class=num>1</span><span class=sr-only>/</span>"
         "<span class=den>4</span></span></span>", "3 1/4"),
    ],
)  # fmt: skip
def test_what_stands_over_something_else(markup: str, text: str) -> None:
    """Ions, isotopes and fractions of encyclopedias: two numbers of which none is a digit more."""
    sheet = "<style>.sr-only{position:absolute;clip:rect(0,0,0,0);height:1px;width:1px}</style>"
    assert text_of(f"{sheet}<p>So {markup} is") == f"So {text} is"
