"""Formulas reach the reader once, as TeX: from MathML, MathJax, KaTeX and images."""

from __future__ import annotations

import re

from searchloop.search_backend.readers import read
from tests.tables import each_row


def text_of(markup: str) -> str:
    """The text of a short page."""
    body = f"<title>T</title><main>{markup}</main>".encode()
    return read(body, url="https://e.example/", content_type="text/html", charset="utf-8").text


FRACTION = "<mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mn>2</mn></mfrac>"


@each_row(
    ("mathml", "tex"),
    [
        (FRACTION, r"\frac{a+1}{2}"),
        ("<msup><mi>x</mi><mn>2</mn></msup>", "x^2"),
        ("<msup><mn>10</mn><mn>24</mn></msup>", "10^{24}"),
        ("<msup><mn>10</mn><mrow><mo>−</mo><mn>6</mn></mrow></msup>", "10^{-6}"),
        ("<msub><mi>x</mi><mrow><mi>i</mi><mo>+</mo><mn>1</mn></mrow></msub>", "x_{i+1}"),
        ("<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>", "x_1^2"),
        ("<msup><mrow><mo>(</mo><mi>a</mi><mo>+</mo><mi>b</mi><mo>)</mo></mrow><mn>2</mn></msup>",
         "(a+b)^2"),
        ("<msup><mrow><mi>a</mi><mi>b</mi></mrow><mn>2</mn></msup>", "{ab}^2"),
        ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt>", r"\sqrt{x+1}"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", r"\sqrt[3]{x}"),
        ("<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>"
         "<msup><mi>i</mi><mn>2</mn></msup>", r"\sum_{i=1}^n i^2"),
        ("<munder><mi>lim</mi><mrow><mi>x</mi><mo>→</mo><mn>0</mn></mrow></munder><mi>f</mi>",
         r"\lim_{x\to0}f"),
        ("<msubsup><mo>∫</mo><mn>0</mn><mi>∞</mi></msubsup><mi>x</mi>", r"\int_0^{\infty}x"),
        ("<mi>sin</mi><mo>&#x2061;</mo><mi>θ</mi>", r"\sin\theta"),
        ("<mi>α</mi><mi>x</mi><mo>≤</mo><mi>Ω</mi>", r"\alpha x\le\Omega"),
        ("<mn>2</mn><mo>&#x2062;</mo><mi>x</mi><mo>≠</mo><mn>3</mn>", r"2x\ne3"),
        ("<mover><mi>x</mi><mo>¯</mo></mover>", r"\overline{x}"),
        ("<mover><mi>v</mi><mo>→</mo></mover>", r"\vec{v}"),
        ("<mi mathvariant=bold>v</mi>", r"\mathbf{v}"),
        ("<mi>rate</mi>", r"\mathrm{rate}"),
        ("<mi>x</mi><mtext> if odd</mtext>", r"x\text{if odd}"),
        ("<mo>(</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3"
         "</mn></mtd><mtd><mn>4</mn></mtd></mtr></mtable><mo>)</mo>",
         r"(\begin{matrix} 1 & 2 \\ 3 & 4 \end{matrix})"),
        ("<mfenced open=[ close=]><mi>a</mi><mi>b</mi></mfenced>", "[a, b]"),
        ("<mmultiscripts><mi>C</mi><mprescripts/><mn>6</mn><mn>14</mn></mmultiscripts>",
         "{}_6^{14}C"),
        ("<mo>{</mo><mi>a</mi><mo>}</mo>", r"\{a\}"),
        ("<mmultiscripts><mi>C</mi><mn>6</mn><none/><mprescripts/><none/><mn>14</mn>"
         "</mmultiscripts>", "{}^{14}C_6"),
        ("<mtext>if&nbsp;</mtext><mi>x</mi>", r"\text{if }x"),
        ("<maction actiontype=toggle><mi>a</mi><mi>b</mi></maction>", "a"),
        ("<menclose notation=updiagonalstrike><mi>x</mi></menclose>", r"\cancel{x}"),
        (f"<semantics>{FRACTION}<annotation encoding='application/x-tex'>\\tfrac{{a+1}}2"
         "</annotation></semantics>", r"\tfrac{a+1}2"),
    ],
)  # fmt: skip
def test_mathml_becomes_tex(mathml: str, tex: str) -> None:
    """Fractions, powers, roots, indexes, sums, functions, accents, matrices; its own TeX if any."""
    assert text_of(f"<p>so <math>{mathml}</math> holds") == f"so ${tex}$ holds"


X2 = "<mrow><msup><mi>x</mi><mn>2</mn></msup></mrow>"
SOURCE = '<annotation encoding="application/x-tex">x^2</annotation>'


@each_row(
    ("markup", "text"),
    [
        # Wikipedia: MathML that is hidden, and an image for eyes.
        ("<p>is <span class=mwe-math-element><span class='mwe-math-mathml-inline mwe-math-mathml-"
         "a11y' style='display: none;'><math alttext='{\\displaystyle x^2}'><semantics>"
         f"{X2}{SOURCE}</semantics></math></span><img class='mwe-math-fallback-image-inline' "
         "aria-hidden=true alt='{\\displaystyle x^2}'></span> here", "is $x^2$ here"),
        ("<p>is <img class=mwe-math-fallback-image-inline alt='{\\displaystyle x^2}'> here",
         "is $x^2$ here"),
        ("<p>is<dl><dd><span class=mwe-math-element><img class='mwe-math-fallback-image-display' "
         "alt='{\\displaystyle x^2}'></span></dl>", "is\n\n$$x^2$$"),
        # MathJax: the source in a script, and before it what it was drawn as.
        ("<p>is <script type='math/tex'>x^2 < y</script> here", "is $x^2 < y$ here"),
        ("<p>is <span class=MathJax_Preview>x2</span><script type='math/tex'>x^2</script> here",
         "is $x^2$ here"),
        ("<p>is <span class=MathJax_Preview></span><span class=MathJax><span>x</span><span>2</span>"
         "</span><script type='math/tex'>x^2</script> here", "is $x^2$ here"),
        ("<p>is</p><script type='math/tex; mode=display'>\\frac{1}{2}</script><p>here",
         "is\n\n$$\\frac{1}{2}$$\n\nhere"),
        ("<p>is <mjx-container jax=CHTML><mjx-math aria-hidden=true><mjx-c>x2</mjx-c></mjx-math>"
         f"<mjx-assistive-mml><math>{X2}</math></mjx-assistive-mml></mjx-container> here",
         "is $x^2$ here"),
        # KaTeX: once for screen readers, once for eyes.
        (f"<p>is <span class=katex><span class=katex-mathml><math><semantics>{X2}{SOURCE}"
         "</semantics></math></span><span class=katex-html aria-hidden=true><span>x</span>"
         "<span>2</span></span></span> here", "is $x^2$ here"),
        (f"<p>is<span class=katex-display><span class=katex><math display=block><semantics>{X2}"
         f"{SOURCE}</semantics></math><span class=katex-html aria-hidden=true>x2</span></span>",
         "is$$x^2$$"),
        (f"<p>is <math alttext='x^{{2}}' display=block>{X2}</math> here", "is $$x^{2}$$ here"),
        ("<p>is <img class=latex alt='x^2' src=/latex.php> here", "is $x^2$ here"),
        # Only the address of the image says what it shows.
        ("<p>is <img src='https://latex.codecogs.com/svg.image?\\inline&space;x%5E2'> here",
         "is $x^2$ here"),
        ("<p>is <img src='//latex.codecogs.com/gif.latex?\\dpi{120}&space;x^2&plus;1&space;<&space;"
         "y' title='x'> here", "is $x^2+1 < y$ here"),
        ("<p>is <img src='https://s0.wp.com/latex.php?latex=%5Cfrac%7Ba%7D%7Bb%7D+%2B+1&bg=fff'>"
         " here", "is $\\frac{a}{b} + 1$ here"),
        ("<p>is <img src='/equation?tex=x%5E2&size=2' alt=''> here", "is $x^2$ here"),
        ("<p>is <img src='/x.png?text=a b' alt='a cup'> <img src='/math.png?size=2'> here",
         "is here"),
        ("<table><tr><th>a<th>b<tr><td><math><mo>|</mo><mi>x</mi><mo>|</mo></math><td>1</table>",
         "| a | b |\n| --- | --- |\n| $\\|x\\|$ | 1 |"),
        # Names with a prefix, as in XHTML; MathJax 4; an image whose words are TeX.
        ("<mml:math><mml:msup><mml:mi>x</mml:mi><mml:mn>2</mml:mn></mml:msup></mml:math>", "$x^2$"),
        ("<m:math><m:mfrac><m:mn>1</m:mn><m:mi>n</m:mi></m:mfrac></m:math>", r"$\frac{1}{n}$"),
        ("<mjx-container class=MathJax><mjx-math data-latex='x^2' aria-hidden=true><mjx-msup "
         "data-latex=2></mjx-msup></mjx-math></mjx-container>", "$x^2$"),
        ("<img alt='a_{ij}' src=1.gif>, <img alt='\\alpha^2' src=2.gif>", r"$a_{ij}$, $\alpha^2$"),
        ("<img alt='my_photo_1' src=1.gif>ok", "ok"),
    ],
)  # fmt: skip
def test_a_formula_is_written_once(markup: str, text: str) -> None:
    """Pages have it as an image, a script, for eyes and for screen readers."""
    assert text_of(markup) == text


def stack(*parts: str, is_low: bool = False) -> str:
    """What KaTeX puts one over the other, from the bottom up."""
    inside = "".join(
        f"<span style='top:-1em'><span class=pstrut></span>{one}</span>" for one in parts
    )
    low = "<span class='vlist-t vlist-t2'>" if is_low else "<span class=vlist-t>"
    return f"{low}<span class=vlist-r><span class=vlist>{inside}</span></span></span>"


def katex(inside: str) -> str:
    """A formula of KaTeX for eyes alone."""
    return f"<span class=katex><span class=katex-html aria-hidden=true>{inside}</span></span>"


def signs(text: str) -> str:
    """Each sign as KaTeX draws it."""
    return "".join(f"<span class=mord>{sign}</span>" for sign in text)


def chtml(inside: str) -> str:
    """A formula of MathJax made of elements: `mi:x` is a sign."""
    drawn = re.sub(
        r"(m[ion]):(.)",
        lambda m: f"<mjx-{m[1]}><mjx-c class='mjx-c{ord(m[2]):X} TEX-I'></mjx-c></mjx-{m[1]}>",
        re.sub(r"<(/?)(\w+)", r"<\1mjx-\2", inside),
    )
    return f"<mjx-container><mjx-math aria-hidden=true>{drawn}</mjx-math></mjx-container>"


def svg(inside: str) -> str:
    """A formula of MathJax as a drawing: `mi:x@9` is a sign that stands 9 above the line."""
    drawn = re.sub(
        r"(m[ion]):(.)@(-?\d+)",
        lambda m: (
            f"<g data-mml-node={m[1]} transform='translate(6,{m[3]}) scale(0.7)'><use data-c="
            f"'{ord(m[2]):X}' xlink:href='#MJX-1-TEX-{ord(m[2]):X}'></use></g>"
        ),
        re.sub(r"<(m\w+)", r"<g data-mml-node=\1", re.sub(r"</\w+", "</g", inside)),
    )
    return f"<mjx-container jax=SVG><svg>{drawn}</svg></mjx-container>"


@each_row(
    ("markup", "tex"),
    [
        (katex(signs("x") + f"<span class=msupsub>{stack(signs('2'))}</span>"), "x^2"),
        (katex(signs("x") + f"<span class=msupsub>{stack('i', '2', is_low=True)}</span>"), "x_i^2"),
        (katex(signs("W") + f"<span class=msupsub>{stack('0', is_low=True)}</span>"), "W_0"),
        (katex(f"<span class=mfrac>{stack('2', '<b class=frac-line></b>', signs('a+1'))}</span>"),
         r"\frac{a+1}{2}"),
        (katex(f"(<span class=mfrac>{stack('k', 'n')}</span>)"), r"({n \atop k})"),
        (katex(f"<span class=sqrt>{stack(signs('x+1'))}</span>"), r"\sqrt{x+1}"),
        (katex(f"<span class=sqrt><span class=root>3</span>{stack(signs('x'))}</span>"),
         r"\sqrt[3]{x}"),
        (katex(f"<span class='mop op-limits'>{stack(signs('i=1'), '∑', 'n')}</span>"),
         r"\sum_{i=1}^n"),
        (katex(f"<span class='mop op-limits'>{stack('i', 'max')}</span>"), r"\max_i"),
        (katex(f"<span class=accent>{stack('v', '<span class=overlay></span>')}</span>"),
         r"\vec{v}"),
        (katex("<span class=mtable>" + "".join(
            f"<span class=col-align-c>{stack(*column)}</span>" for column in ("13", "24"))
            + "</span>"), r"\begin{matrix} 1 & 2 \\ 3 & 4 \end{matrix}"),
        (katex("<span class='mord text'>if&nbsp;</span>x"), r"\text{if }x"),
        (chtml("<msup>mi:𝑥<script>mn:2</script></msup>"), "x^2"),
        (chtml("<msubsup>mi:x<script>mn:2<spacer></spacer>mi:i</script></msubsup>"), "x_i^2"),
        (chtml("<mfrac><frac><num>mi:amo:+mn:1</num><dbox><dtable><line></line><row><den>mn:2</den>"
               "</row></dtable></dbox></frac></mfrac>"), r"\frac{a+1}{2}"),
        (chtml("<msqrt><sqrt><surd>mo:√</surd><box>mi:xmo:+mn:1</box></sqrt></msqrt>"),
         r"\sqrt{x+1}"),
        (chtml("<munderover><over>mi:n</over><box><munder><row><base>mo:∑</base></row><row><under>"
               "<texatom>mi:imo:=mn:1</texatom></under></row></munder></box></munderover>"),
         r"\sum_{i=1}^n"),
        (chtml("<mover><over>mo:¯</over><base>mi:x</base></mover>"), r"\overline{x}"),
        (chtml("<msubsup><texatom></texatom><script>mn:7mn:3</script></msubsup>mi:C"), "_3^7 C"),
        (svg("<msubsup>mi:u@0mi:i@363mi:j@-292</msubsup>"), "u_j^i"),
        (svg("<munderover>mo:∑@0mi:i@-9mi:n@9</munderover>"), r"\sum_i^n"),
        (svg("<mfrac>mn:1@9mn:2@-9<rect></rect></mfrac>"), r"\frac{1}{2}"),
        ("<span class=MathJax data-mathml='<math><msup><mi>x</mi><mn>2</mn></msup></math>'><nobr "
         "aria-hidden=true>x2</nobr></span>", "x^2"),
    ],
)  # fmt: skip
def test_a_formula_that_is_only_drawn(markup: str, tex: str) -> None:
    """By KaTeX, or by MathJax as elements or as a drawing, without the source beside it."""
    assert text_of(f"<p>so {markup} holds") == f"so ${tex}$ holds"


@each_row(
    "markup",
    [
        f"<math><semantics>{X2}<annotation encoding='application/x-tex'>SECRET</annotation>"
        "</semantics></math>",
        f"<math alttext='SECRET'>{X2}</math>",
        f"<math><semantics>{X2}<annotation encoding='application/x-tex'>\\text{{SECRET}} x^2"
        "</annotation></semantics></math>",
        "<p hidden><math><mtext>SECRET</mtext></math></p><p>x^2",
        "<p style='display:none'><script type='math/tex'>SECRET</script></p><p>x^2",
        "<math><mphantom><mtext>SECRET</mtext></mphantom><msup><mi>x</mi><mn>2</mn></msup></math>",
    ],
)
def test_a_formula_hides_nothing(markup: str) -> None:
    """A source that says more than is shown is not believed, and what is hidden stays so."""
    text = text_of(f"<p>words</p>{markup}")
    assert "SECRET" not in text
    assert "x^2" in text


def test_a_deep_formula_costs_little() -> None:
    """Formulas inside each other end at some depth."""
    assert "x" in text_of("<math>" + "<mrow><msqrt>" * 600 + "<mi>x</mi>")
