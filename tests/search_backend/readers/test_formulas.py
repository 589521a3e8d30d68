"""Formulas reach the reader once, as TeX: from MathML, MathJax, KaTeX and images."""

from __future__ import annotations

from tests.search_backend.documents import text_of
from tests.tables import each_row

FRACTION = "<mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mn>2</mn></mfrac>"


@each_row(
    ("mathml", "tex"),
    [
        (FRACTION, r"\frac{a+1}{2}"),
        ("<msup><mn>10</mn><mn>24</mn></msup>", "10^{24}"),
        ("<msub><mi>x</mi><mrow><mi>i</mi><mo>+</mo><mn>1</mn></mrow></msub>", "x_{i+1}"),
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
        ("<table><tr><th>a<th>b<tr><td><math><mo>|</mo><mi>x</mi><mo>|</mo></math><td>1</table>",
         "| a | b |\n| --- | --- |\n| $\\|x\\|$ | 1 |"),
        (f"is <span class=MathJax data-mathml='<math>{X2}</math>'><nobr aria-hidden=true>x2</nobr>"
         "</span>", "is $x^2$"),
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
