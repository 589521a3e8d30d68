"""What stands in a text arrives whole, in the layouts of common generators of pages."""

from __future__ import annotations

from itertools import product

from searchloop.search_backend.readers import read
from tests.tables import each_row

SENTENCES = (
    "The harbour was built in three stages, and each of them is told of in the parts below.",
    "Most of the stone came from a quarry that lies twelve kilometres to the north of the town.",
    "You can set the time in the file of settings, in seconds, or on the command line instead.",
    "In the second stage engineers put concrete piers, which still stand, for the wooden ones.",
    "When nothing is set, the server waits until the client closes it, which may take long.",
)
LINKS = "".join(f"<li><a href='/d/{n}'>Chapter {n} of it</a></li>" for n in range(20))
FOOT = "<footer class=footer><p>Copyright Example. All rights reserved.</p></footer>"
LAYOUTS = {
    "mkdocs": f"<main class=md-main><div class='md-sidebar'><nav class=md-nav><ul>{LINKS}</ul>"
    "</nav></div><div class=md-content><article class='md-content__inner md-typeset'>{}</article>"
    f"</div></main>{FOOT}",
    "docusaurus": f"<div id=__docusaurus><aside><nav class=menu><ul>{LINKS}</ul></nav></aside>"
    "<main><article><div class='theme-doc-markdown markdown'>{}</div></article><nav "
    f"class=pagination-nav><a href=/n>Chapter 7</a></nav></main>{FOOT}</div>",
    "sphinx": f"<nav class=wy-nav-side><ul>{LINKS}</ul></nav><section class=wy-nav-content-wrap>"
    "<div class=rst-content><div role=main class=document><div itemprop=articleBody>{}</div></div>"
    f"</div></section>{FOOT}",
    "mdbook": f"<nav id=sidebar class=sidebar><ol class=chapter>{LINKS}</ol></nav><div class=page>"
    "<div id=content class=content><main>{}</main></div></div>",
    "wordpress": f"<header id=masthead><nav><ul>{LINKS}</ul></nav></header><div id=content><main>"
    "<article class='post hentry'><div class=entry-content>{}</div></article></main><aside "
    f"class=widget-area><h2>Recent</h2><a href=/1>Chapter 7</a></aside></div>{FOOT}",
    "layout table": f"<table><tr><td><ul>{LINKS}</ul></td><td>{{}}</td></tr></table>",
    "discourse": "<div id=main-outlet><div class='topic-body crawler-post'><div class=post "
    "itemprop=text>{}</div></div></div>",
    "readme": "<main><div id=readme><article class='markdown-body' itemprop=text>{}</article></div>"
    f"</main>{FOOT}",
}
PARTS = {
    "<table><thead><tr><th></th><th>Gold</th></tr></thead><tbody><tr><td>Chad</td><td>"
    "</td></tr><tr><td>Peru</td><td>8</td></tr></tbody></table>": (
        "|  | Gold |\n| --- | --- |\n| Chad |  |\n| Peru | 8 |"
    ),
    "<pre><code>def f(x):\n    return x\n\nf(1)</code></pre>": "def f(x):\n    return x\n\nf(1)",
    "<pre>ls -l</pre>": "```\nls -l\n```",
    "<dl><dt>--wait</dt><dd>Seconds.</dd><dt>--again</dt><dd>How often.</dd></dl>": (
        "--wait\n: Seconds.\n\n--again\n: How often."
    ),
    "<ol><li>Open it.</li><li>Close it.<ol type=a><li>Slowly.</li></ol></li></ol>": (
        "1. Open it.\n2. Close it.\n   a. Slowly."
    ),
    "<ul><li>Fast</li><li>Cheap</li></ul>": "- Fast\n- Cheap",
    "<blockquote><p>Be brief.</p></blockquote>": "> Be brief.",
    "<div class='admonition note'><p class=admonition-title>Note</p><p>Take care.</p>"
    "</div>": "Take care.",
    "<aside class='footnote-list brackets'><aside class='footnote brackets'><span>[1]"
    "</span><p>In 1890.</p></aside></aside>": "[1]\n\nIn 1890.",
    "<details><summary>More of it</summary><p>Words inside.</p></details>": (
        "More of it\n\nWords inside."
    ),
    "<p><math display=block alttext='E=mc^2'><mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c"
    "</mi><mn>2</mn></msup></math></p>": "$$E=mc^2$$",
    "<figure><img src=a.png><figcaption>Figure 2: The old pier.</figcaption></figure>": (
        "Figure 2: The old pier."
    ),
    "<p>It works.</p>": "It works.",
    "<h3>Usage</h3><pre>run me</pre>": "### Usage\n\n```\nrun me\n```",
    "<section class=footnotes><hr><ol><li><p>A note. <a href='#r'>↩</a></p></li></ol>"
    "</section>": "1. A note.",
}


@each_row(("layout", "start"), product(LAYOUTS, range(0, len(PARTS), 3)))
def test_all_parts_of_a_text_arrive(layout: str, start: int) -> None:
    """Six parts between paragraphs, and nothing of what stands around."""
    parts = [*PARTS, *PARTS][start : start + 6]
    body = "".join(
        f"<p>{SENTENCES[n % 5]} {SENTENCES[(n + 1) % 5]}</p>{part}" for n, part in enumerate(parts)
    )
    inside = f"<h1>The guide</h1>{body}<p>{SENTENCES[0]}</p>"
    page = f"<title>The guide</title><body>{LAYOUTS[layout].format(inside)}"
    text = read(page.encode(), url="https://e.example/guide/", content_type="text/html").text
    assert [PARTS[part] for part in parts if PARTS[part] not in text] == []
    assert "Chapter 7" not in text
    assert "All rights" not in text
