"""Code reaches the reader line by line, whatever a highlighter made of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.search_backend.documents import text_of
from tests.tables import each_row

DATA = Path(__file__).parents[1] / "data"
CODE = "def pour(pot):\n    if pot.full:\n        return 45 < 50\n\n    return None"
LINES = [line.replace("<", "&lt;") for line in CODE.split("\n")]
NUMBERS = range(1, len(LINES) + 1)


def each(form: str, between: str = "") -> str:
    """Each line in this form, with {n} for its number and {line} for itself."""
    return between.join(form.format(n=n, line=line) for n, line in zip(NUMBERS, LINES, strict=True))


# One block of code as each program writes it, by the name of the program.
BLOCKS: dict[str, str] = json.loads((DATA / "highlighters.json").read_text("utf-8"))


@each_row("name", BLOCKS)
def test_every_highlighter_keeps_lines_and_indentation(name: str) -> None:
    """One block of code, without numbers of lines and buttons."""
    assert text_of(f"<p>Before.</p>{BLOCKS[name]}<p>After.") == (
        f"Before.\n\n```\n{CODE}\n```\n\nAfter."
    )


@each_row("name", BLOCKS)
def test_blanks_in_elements_of_their_own(name: str) -> None:
    """Highlighters mark the indentation as well."""
    markup = re.sub(
        r"(?<=[>\n]) {4,}", lambda blanks: f"<span class=w>{blanks[0]}</span>", BLOCKS[name]
    )
    assert text_of(markup) == f"```\n{CODE}\n```"


@pytest.mark.parametrize("name", ["github", "gitea", "codemirror 6", "syntaxhighlighter", "crayon"])
def test_blanks_between_elements_are_no_code(name: str) -> None:
    """Outside of <pre> they only arrange the markup."""
    markup = re.sub(r"(?<=>)(?=<(?:tr|td|div|tbody)|</(?:tr|tbody))", "\n      ", BLOCKS[name])
    assert text_of(markup) == f"```\n{CODE}\n```"


@each_row(
    ("markup", "language"),
    [
        ("<pre><code class=language-python>{}</code></pre>", "python"),
        ("<pre class='lang-c++ prettyprint'>{}</pre>", "c++"),
        ("<pre><code class='hljs python'>{}</code></pre>", "python"),
        ("<pre><code class='hljs language-rust'>{}</code></pre>", "rust"),
        ("<div class='highlight-python notranslate'><div class=highlight><pre>{}</pre></div></div>",
         "python"),
        ("<div class='highlight highlight-source-shell'><pre>{}</pre></div>", "shell"),
        ("<div class=sourceCode><pre class='sourceCode haskell'><code>{}</code></pre></div>",
         "haskell"),
        ("<pre class='brush: java; title: x'>{}</pre>", "java"),
        ("<figure><pre data-language=tsx><code>{}</code></pre></figure>", "tsx"),
        ("<div class=highlight-default><pre>{}</pre></div>", ""),
        ("<pre><code class=language-none>{}</code></pre>", ""),
    ],
)  # fmt: skip
def test_the_language_stands_on_the_fence(markup: str, language: str) -> None:
    """As highlighters write it into classes and data."""
    assert text_of(markup.format("x = 1")) == f"```{language}\nx = 1\n```"


@given(st.lists(st.sampled_from(["`", "``", "```", "````", "a", " b", "\n"]), max_size=12))
def test_a_fence_is_longer_than_what_it_holds(parts: list[str]) -> None:
    """No run of backticks ends the code before its end."""
    code = "x" + "".join(parts) + "y"
    first, *inside, last = text_of(f"<p>Go.</p><pre>{code}</pre>").split("\n")[2:]
    assert first == last
    assert set(first) == {"`"}
    assert first not in code
    assert "\n".join(inside) == code


@each_row(
    ("markup", "text"),
    [
        ("call <code>f(x)</code> now", "call `f(x)` now"),
        ("call <code>a`b</code> now", "call ``a`b`` now"),
        ("call <code>`a`</code> now", "call `` `a` `` now"),
        ("call <code><b>f</b>(&lt;x&gt;)</code> now", "call `f(<x>)` now"),
        ("call <a href=/f><code>f</code></a> now", "call [`f`](https://e.example/f) now"),
        ("call <code><a href=/f>f</a></code> now", "call [`f`](https://e.example/f) now"),
        ("an empty <code></code> one", "an empty one"),
    ],
)
def test_code_within_a_line(markup: str, text: str) -> None:
    """Between backticks, more of them than it has."""
    assert text_of(f"<p>{markup}") == text


@pytest.mark.parametrize(
    "markup",
    [
        "<pre><code><span class='token deleted'><span class='token prefix'>-</span><span class="
        "'token line'>  a\n</span></span><span class='token inserted'><span class='token prefix'>+"
        "</span><span class='token line'>  b\n</span></span></code></pre>",
        "<pre><code><span class='line diff remove'>  a</span>\n"
        "<span class='line diff add'>  b</span></code></pre>",
        "<table class=diff-table><tr><td class=blob-num data-line-number=1></td>"
        "<td class=blob-code><span class='blob-code-inner blob-code-marker' data-code-marker='-'>"
        "  a</span></td></tr><tr><td class=blob-num data-line-number=1></td>"
        "<td class=blob-code><span data-code-marker='+' class='blob-code-inner'>"
        "  b</span></td></tr></table>",
    ],
)
def test_lines_of_a_diff_keep_their_signs(markup: str) -> None:
    """Where a sheet draws them, too: without them both lines look as if they counted."""
    assert "\n-  a\n+  b\n" in text_of(markup)


def test_markup_that_is_shown_as_it_was_keeps_its_lines() -> None:
    """In the elements of old pages, and of some that write Markdown in them."""
    shown = "Before.\n\n```\n<b>a</b>\n  &amp; b"
    assert text_of("<p>Before.<xmp><b>a</b>\n  &amp; b</xmp>") == f"{shown}\n```"
    assert text_of("<p>Before.<plaintext><b>a</b>\n  &amp; b").startswith(shown)


def test_lines_that_a_sheet_makes_are_lines() -> None:
    """With nothing between their elements but the rule that each is a block."""
    code = each("<span class=row>{line}</span>")
    for laid in ("block;min-height:1em", "flex"):
        sheet = f"<style>pre .row{{display:{laid}}}</style>"
        assert text_of(f"{sheet}<p>Before.</p><pre><code>{code}</code></pre>") == (
            f"Before.\n\n```\n{CODE}\n```"
        )


def test_numbers_that_are_code_stay() -> None:
    """What looks like the number of a line is dropped only where numbers of lines stand."""
    data = "<span style='color: #008080;'>{}</span> {}"
    for first, second in ((1, 3), (5, 10)):
        rows = f"{data.format(first, 'a')}\n{data.format(second, 'b')}"
        assert text_of(f"<pre>{rows}</pre>") == f"```\n{first} a\n{second} b\n```"
    assert text_of("<pre>1 a\n2 b</pre>") == "```\n1 a\n2 b\n```"
    contents = "<pre><a href='#s1'>1</a>. Tea\n<a href='#s2'>2</a>. Pots</pre>"
    assert text_of(contents) == "```\n1. Tea\n2. Pots\n```"
    assert text_of("<ol><li><div>a</div><li><div>b</div></ol>") == "1. a\n2. b"
    assert text_of("<pre>1\n2\n3</pre>") == "```\n1\n2\n3\n```"
    row = "<tr><td class=hljs-ln-code>{}</td></tr>"
    table = f"<table class=hljs-ln>{row.format(42)}{row.format(7)}</table>"
    assert text_of(table) == "```\n42\n7\n```"
