"""Code reaches the reader line by line, whatever a highlighter made of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.readers import read
from tests.tables import each_row

CODE = "def pour(pot):\n    if pot.full:\n        return 45 < 50\n\n    return None"
LINES = [line.replace("<", "&lt;") for line in CODE.split("\n")]
NUMBERS = range(1, len(LINES) + 1)
TEXT = "\n".join(LINES)
COUNT = "\n".join(map(str, NUMBERS))


def text_of(markup: str) -> str:
    """The text of a short page."""
    body = f"<title>T</title><main>{markup}</main>".encode()
    return read(body, url="https://e.example/", content_type="text/html", charset="utf-8").text


def each(form: str, between: str = "") -> str:
    """Each line in this form, with {n} for its number and {line} for itself."""
    return between.join(form.format(n=n, line=line) for n, line in zip(NUMBERS, LINES, strict=True))


TOKENS = TEXT.replace("def", "<span class=k>def</span>").replace("45", "<span class=mi>45</span>")
BLOCKS = {
    "plain": f"<pre>{TEXT}</pre>",
    "code": f"<pre><code>{TEXT}\n</code></pre>",
    "pygments": f"<div class=highlight><pre><span></span>{TOKENS}\n</pre></div>",
    "pygments table": "<table class=highlighttable><tr><td class=linenos><div class=linenodiv><pre>"
    f"{COUNT}</pre></div></td><td class=code><div class=highlight><pre>{TOKENS}\n</pre></div></td>"
    "</tr></table>",
    "pygments inline": f"<pre>{each('<span class=linenos>{n}</span>{line}', chr(10))}</pre>",
    "hugo": "<div class=highlight><table class=lntable><tr><td class=lntd><pre class=chroma><code>"
    f"{each('<span class=lnt>{n}' + chr(10) + '</span>')}</code></pre></td><td class=lntd><pre "
    "class=chroma><code>" + each("<span class=line><span class=cl>{line}\n</span></span>")
    + "</code></pre></td></tr></table></div>",
    "hugo inline": "<pre class=chroma><code>"
    + each("<span class=line><span class=ln>{n}</span><span class=cl>{line}\n</span></span>")
    + "</code></pre>",
    "rouge": "<div class=highlight><pre class=highlight><code><table class=rouge-table><tbody><tr>"
    f"<td class='rouge-gutter gl'><pre class=lineno>{COUNT}\n</pre></td><td class=rouge-code><pre>"
    f"{TOKENS}\n</pre></td></tr></tbody></table></code></pre></div>",
    "hljs-ln": "<pre><code class=hljs><table class=hljs-ln><tbody>"
    + each("<tr><td class='hljs-ln-line hljs-ln-numbers' data-line-number={n}><div class=hljs-ln-n "
           "data-line-number={n}></div></td><td class='hljs-ln-line hljs-ln-code' "
           "data-line-number={n}>{line}</td></tr>")
    + "</tbody></table></code></pre>",
    "github": "<table class='highlight js-file-line-container'><tbody>"
    + each("<tr><td id=L{n} class='blob-num js-line-number' data-line-number={n}></td>\n"
           "<td id=LC{n} class='blob-code blob-code-inner js-file-line'>{line}</td></tr>\n")
    + "</tbody></table>",
    "hugo styles": "<pre style='color:#fff;background-color:#000'><code>"
    + each("<span style='display:flex;'><span style='white-space:pre;user-select:none;"
           "margin-right:0.4em'>{n}</span><span>{line}\n</span></span>")
    + "</code></pre>",
    "rustdoc": "<div><pre class=src-line-numbers>" + each("<a href=#{n}>{n}</a>\n")
    + f"</pre><pre class=rust><code>{TEXT}\n</code></pre></div>",
    "rustdoc inline": "<pre class=rust><code>"
    + each("<a href=#{n} id={n} data-nosnippet>{n}</a>{line}", chr(10)) + "</code></pre>",
    "javadoc": "<pre>" + each("<span class=source-line-no>00{n}</span>{line}\n") + "</pre>",
    "javadoc before 16": "<pre>" + each("<span class=sourceLineNo>00{n}</span>{line}\n") + "</pre>",
    "geshi list": "<ol class=text>"
    + each("<li class=li1><div class=de1>{line}</div></li>").replace("    ", "&nbsp; &nbsp; ")
    .replace("de1></", "de1>&nbsp;</") + "</ol>",
    "list": "<div class=source><ol>" + each("<li><div>{line}</div></li>")
    .replace("    ", "&nbsp; &nbsp; ").replace("<div></", "<div>&nbsp;</") + "</ol></div>",
    "numbered cells": "<table>" + each("<tr><td data-line-number={n}></td><td>{line}</td></tr>")
    + "</table>",
    "sourcegraph": "<table><tbody>"
    + each("<tr><td class=line data-line={n}></td><td class=code><span>{line}</span></td></tr>")
    + "</tbody></table>",
    "gitea": "<div class='file-view code-view'><table><tbody>"
    + each("<tr><td class=lines-num><span id=L{n} data-line-number={n}></span></td>"
           "<td class='lines-code chroma'><code class=code-inner>{line}\n</code></td></tr>")
    + "</tbody></table></div>",
    "cgit": "<table class=blob><tr><td class=linenumbers><pre>"
    + each("<a id=n{n} href='#n{n}'>{n}</a>\n") + f"</pre></td><td class=lines><pre><code>{TEXT}\n"
    "</code></pre></td></tr></table>",
    "prism": f"<pre class=line-numbers><code>{TOKENS}<span aria-hidden=true "
    f"class=line-numbers-rows>{'<span></span>' * len(LINES)}</span></code></pre>",
    "prism in react": "<pre>" + each("<div class=token-line><span class='token plain'>{line}</span>"
                                     "</div>") + "</pre>",
    "react syntax highlighter": "<pre><code>"
    + each("<span class='linenumber react-syntax-highlighter-line-number'>{n}</span><span>{line}\n"
           "</span>") + "</code></pre>",
    "hexo": "<figure class='highlight python'><table><tr><td class=gutter><pre>"
    + each("<span class=line>{n}</span><br>") + "</pre></td><td class=code><pre>"
    + each("<span class=line>{line}</span><br>") + "</pre></td></tr></table></figure>",
    "gitlab": "<div class='file-content code'><div class=line-numbers>"
    + each("<a class=file-line-num href='#L{n}'>{n}</a>") + "</div><pre class=code><code>"
    + each("<span id=LC{n} class=line>{line}</span>", "\n") + "</code></pre></div>",
    "github in react": "<div><div class=react-line-numbers>"
    + each("<div class=react-line-number>{n}</div>") + "</div><div class=react-code-lines>"
    + each("<div><div class='react-file-line html-div'>{line}</div></div>") + "</div></div>",
    "shiki": "<pre class=shiki><code>" + each("<span class=line>{line}</span>", "\n")
    + "</code></pre>",
    "shiki as blocks": "<pre class=shiki><code>"
    + each("<span class=line style='display:block'>{line}</span>") + "</code></pre>",
    "lines as blocks": "<p><code>" + each("<span style='display: block'>{line}</span>")
    + "</code></p>",
    "code as block": f"<p><code style='display:block; white-space:pre'>{TEXT}</code></p>",
    "rehype": "<pre><code style='display:grid'>" + each("<span data-line=''>{line}</span>", "\n")
    + "</code></pre>",
    "div a line": f"<pre>{each('<div>{line}</div>')}</pre>",
    "div a line, apart": f"<pre>{each('<div class=line>{line}</div>', chr(10))}</pre>",
    "div a line in code": f"<code>{each('<div>{line}</div>')}</code>",
    "br": f"<pre>{each('{line}', '<br>')}</pre>",
    "br in code": f"<p><code>{each('{line}', '<br>')}</code></p>".replace("    ", "&nbsp; &nbsp; "),
    "prettify": f"<pre class=prettyprint><ol class=linenums>{each('<li class=L0>{line}</li>')}</ol>"
    "</pre>",
    "codemirror 5": "<div class=CodeMirror><div class=CodeMirror-code>"
    + each("<div style='position:relative'><div class=CodeMirror-gutter-wrapper><div "
           "class='CodeMirror-linenumber CodeMirror-gutter-elt'>{n}</div></div><pre "
           "class=' CodeMirror-line ' role=presentation><span>{line}</span></pre></div>")
    + "</div></div>",
    "codemirror 6": "<div class=cm-editor><div class=cm-gutters>"
    + each("<div class=cm-gutterElement>{n}</div>") + "</div><div class=cm-content>"
    + each("<div class=cm-line>{line}</div>") + "</div></div>",
    "syntaxhighlighter": "<div class='syntaxhighlighter'><div class=toolbar><span><a href='#'>?</a>"
    "</span></div><table><tbody><tr><td class=gutter>"
    + each("<div class='line number{n}'>{n}</div>") + "</td><td class=code><div class=container>"
    + each("<div class='line number{n} index0'><code class='py plain'>{line}</code></div>")
    + "</div></td></tr></tbody></table></div>",
    "crayon": "<table class=crayon-table><tr class=crayon-row><td class=crayon-nums><div>"
    + each("<div class=crayon-num>{n}</div>") + "</div></td><td class=crayon-code><div "
    "class=crayon-pre>" + each("<div class=crayon-line>{line}</div>") + "</div></td></tr></table>",
    "some table": f"<table class=x><tr><td><pre>{COUNT}</pre></td><td><pre>{TOKENS}</pre></td></tr>"
    "</table>",
    "geshi": f"<div class='wp_syntax'><table><tr><td class=line_numbers><pre>{COUNT}</pre></td>"
    f"<td class=code><pre>{TEXT}</pre></td></tr></table></div>",
    "monaco": "<div class=monaco-editor><div class=margin>"
    + each("<div><div class=line-numbers>{n}</div></div>") + "</div><div class=view-lines>"
    + each("<div class=view-line><span>{line}</span></div>") + "</div></div>",
    "hljs alone": f"<div class=hljs>{each('{line}', '<br>')}</div>".replace("    ", "&nbsp;   "),
    "typed": f"<div style='font-family: Menlo, monospace; white-space: pre-wrap'>{TEXT}</div>",
    "latexml": "<div class='ltx_listing ltx_lstlisting'><div class=ltx_listing_data><a href=data:x>"
    "⬇</a></div>" + each("<div class=ltx_listingline>{line}</div>") + "</div>",
    "expressive code": "<div class=expressive-code><figure><pre><code>"
    + each("<div class=ec-line><div class=gutter><div class=ln aria-hidden=true>{n}</div></div>"
           "<div class=code><span>{line}</span></div></div>") + "</code></pre></figure></div>",
    "hljs lines": f"<pre><code class=hljs>{each('<div class=hljs-line>{line}</div>')}</code></pre>",
    "w3schools": f"<div class='w3-code notranslate'>{each('{line}', '<br>')}</div>".replace(
        "    ", "&nbsp;&nbsp; &nbsp;"),
    "ace": "<div class=ace_editor><div class=ace_gutter>"
    + each("<div class=ace_gutter-cell>{n}</div>") + "</div><div class=ace_content>"
    + each("<div class=ace_line><span>{line}</span></div>") + "</div></div>",
    "numbers below": f"<pre><code>{TOKENS}\n</code><ul class=pre-numbering>"
    + each("<li>{n}</li>") + "</ul></pre>",
    "sourcehut": "<div class=code-view><pre class=lines>" + each("<a href='#L{n}'>{n}</a>\n")
    + f"</pre><div class=highlight><pre>{TOKENS}\n</pre></div></div>",
    "doxygen": "<div class=fragment>" + each("<div class=line><a id=l{n}></a><span class=lineno>"
                                             "  {n}</span>{line}</div>\n") + "</div>",
    "vitepress": "<div class=language-><button class=copy></button><span class=lang>py</span><pre "
    "class=shiki><code>" + each("<span class=line><span>{line}</span></span>", "\n")
    + "</code></pre></div>",
    "blank lines": "<div class=hljs>" + each("<div>{line}</div>").replace("<div></div>",
                                                                       "<div>&nbsp;</div>")
    + "</div>",
    "tt": f"<p><tt>{each('{line}', '<br>')}</tt></p>".replace("    ", "&nbsp; &nbsp; "),
    "samp": f"<samp style='display:block;white-space:pre'>{TEXT}</samp>",
    "redmine": "<table class='filecontent syntaxhl'><tbody>"
    + each("<tr id=L{n}><th class=line-num data-txt={n}><a href='#L{n}'></a></th>"
           "<td class=line-code><pre>{line}\n</pre></td></tr>") + "</tbody></table>",
    "gitweb": "<div class=page_body>" + each("<div class=pre><a id=l{n} href='#l{n}' class=linenr>"
                                             "   {n}</a> {line}</div>") + "</div>",
    "read aloud from a box": "<div><textarea>pour</textarea><div class=react-code-file-contents "
    "role=presentation aria-hidden=true><div class=react-line-numbers>"
    + each("<div class=react-line-number>{n}</div>") + "</div><div class=react-code-lines>"
    + each("<div><div class='react-file-line html-div'>{line}</div></div>") + "</div></div></div>",
    "copy button": f"<pre>{TOKENS}<button class=copy>Copy</button></pre>",
}  # fmt: skip


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
        ("<pre class=language-js><code class=language-js>{}</code></pre>", "js"),
        ("<pre><code class='hljs python'>{}</code></pre>", "python"),
        ("<pre><code class='hljs language-rust'>{}</code></pre>", "rust"),
        ("<div class='highlight-python notranslate'><div class=highlight><pre>{}</pre></div></div>",
         "python"),
        ("<div class='highlight highlight-source-shell'><pre>{}</pre></div>", "shell"),
        ("<div class=sourceCode><pre class='sourceCode haskell'><code>{}</code></pre></div>",
         "haskell"),
        ("<pre class='brush: java; title: x'>{}</pre>", "java"),
        ("<pre class=chroma><code data-lang=go>{}</code></pre>", "go"),
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


@each_row(
    ("markup", "code"),
    [
        ("<pre>a\n<del>- b</del>\n<ins>+ c</ins>\nd</pre>", "a\n- b\n+ c\nd"),
        ("<pre><code><del>a\n  b</del>\n<ins>c</ins></code></pre>", "-a\n-  b\n+c"),
        ("<pre>x = <del>1</del><ins>2</ins>;</pre>", "x = ~~1~~2;"),
        ("<pre>a\n<s>b</s> c</pre>", "a\n~~b~~ c"),
        ("<pre>a\n<del>b</del><ins>c</ins></pre>", "a\n~~b~~c"),
        ("<pre><span class=s>'a'</span></pre>", "'a'"),
    ],
)
def test_what_was_edited_in_code_is_marked(markup: str, code: str) -> None:
    """Whole lines as in a diff, words as in a text: the old value does not join the new one."""
    assert text_of(markup) == f"```\n{code}\n```"


def test_markup_that_is_shown_as_it_was_keeps_its_lines() -> None:
    """In the elements of old pages, and of some that write Markdown in them."""
    shown = "Before.\n\n```\n<b>a</b>\n  &amp; b"
    assert text_of("<p>Before.<xmp><b>a</b>\n  &amp; b</xmp>") == f"{shown}\n```"
    assert text_of("<p>Before.<plaintext><b>a</b>\n  &amp; b").startswith(shown)


def test_the_name_of_a_file_is_no_line_of_it() -> None:
    """MkDocs writes it as the first row of the table of its code."""
    name = "<tr><th colspan=2 class=filename><span class=filename>a.py</span></th></tr>"
    block = BLOCKS["pygments table"].replace("<tr>", f"{name}<tr>", 1)
    assert text_of(f"<p>Before.</p>{block}") == f"Before.\n\na.py\n\n```\n{CODE}\n```"


def test_lines_that_a_sheet_makes_are_lines() -> None:
    """With nothing between their elements but the rule that each is a block."""
    code = each("<span class=row>{line}</span>")
    for laid in ("block;min-height:1em", "flex"):
        sheet = f"<style>pre .row{{display:{laid}}}</style>"
        assert text_of(f"{sheet}<p>Before.</p><pre><code>{code}</code></pre>") == (
            f"Before.\n\n```\n{CODE}\n```"
        )


def test_numbers_that_only_a_colour_or_link_tells_apart_are_no_code() -> None:
    """As on cnblogs.com, or a link, if each line has the next one."""
    for form in ("<span style='color: #008080;'> {n}</span> {line}", "<a href=#{n}>{n}</a>{line}"):
        assert text_of(f"<pre>{each(form, chr(10))}</pre>") == f"```\n{CODE}\n```"


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
