"""The main text of pages of each kind: what is kept, what goes, and how it is written down."""

from __future__ import annotations

import pytest

from searchloop.search_backend.readers import read
from searchloop.search_backend.types import Page
from tests.tables import each_row

WORDS = "The harbour was built in three stages, and each of them is described here at some length. "
ADVICE = "You should rinse the pot first, because old leaves make every new tea taste of hay. "
NAV = "<nav><ul><li><a href=/>Home</a><li><a href=/shop>Shop</a></ul></nav>"
FOOTER = (
    "<footer class=site-footer><ul><li><a href=/terms>Terms of service</a><li><a href=/privacy>"
    "Privacy</a></ul><p>Copyright 2026 Example. All rights reserved.</p></footer>"
)


def page(body: str, head: str = "") -> Page:
    """A page with the furniture every site has."""
    markup = f"<html><head><title>T</title>{head}</head><body>{NAV}{body}{FOOTER}</body></html>"
    return read(markup.encode(), url="https://example.org/a/", content_type="text/html")


def test_a_forum_whose_posts_stand_in_noscript() -> None:
    """What programs are served instead of scripts is the page, even beside much script."""
    posts = "".join(
        f"<div class='topic-body crawler-post'><span>user{n}</span><div class=post itemprop=text>"
        f"<p>{ADVICE * 2}</p></div></div>"
        for n in range(6)
    )
    script = f"<script>{'x=1;' * 5000}</script>"
    text = page(f"<div id=app></div>{script}<noscript>{posts}</noscript>").text
    assert text.count("rinse the pot") == 12


def test_posts_that_are_called_comments() -> None:
    """Some forums call every post a comment; there the comments are the page."""
    posts = "".join(
        f"<article class='cPost ipsComment'><div class='cPost_contentWrap ipsType_richText'>"
        f"<p>{ADVICE * 2}</p></div></article>"
        for _ in range(6)
    )
    assert page(f"<main><h1>Old pots</h1>{posts}</main>").text.count("rinse the pot") == 12


def test_a_list_of_things_is_no_navigation() -> None:
    """Cards with a name, a price and a link are what such a page is about."""
    cards = "".join(
        f"<li class=product-card><a href=/p/{n}><h3>Teapot number {n} in blue clay</h3></a>"
        f"<p>Holds {n} cups and keeps them warm for an hour.</p><span>${n}.50</span></li>"
        for n in range(1, 25)
    )
    text = page(f"<main><h1>Teapots</h1><ul class=product-grid>{cards}</ul></main>").text
    assert "Teapot number 7 in blue clay" in text
    assert "Holds 24 cups" in text
    assert "Privacy" not in text


CODE = "<pre><code>pour({n})\nif {n} > 4:\n    stop()</code></pre>"
TABLE = "<table><thead><tr><th>Pot<th>Size<tbody><tr><td>Clay {n}<td>4<tr><td>Tin {n}<td></table>"
NOTES = "<section class=footnotes><ol><li id=f1><p>{} <a href=#r1>↩</a></p></ol></section>"
BELONGS = {
    "code": (CODE, "```\npour({n})\nif {n} > 4:\n    stop()\n```"),
    "a table": (TABLE, "| Pot | Size |\n| --- | --- |\n| Clay {n} | 4 |\n| Tin {n} |  |"),
    "the caption of a table": (
        f"<figure class=wp-block-table>{TABLE}<figcaption>Pots of {{n}}</figcaption></figure>",
        "Pots of {n}",
    ),
    "the caption of code": (
        f"<figure><figcaption>pot{{n}}.py</figcaption>{CODE}</figure>", "pot{n}.py"
    ),
    "a numbered caption": (
        "<figure><img src=p.png alt=''><figcaption>Figure {n}. Pots.</figcaption></figure>",
        "Figure {n}. Pots.",
    ),
    "a note": (NOTES.format("Counted in {n}."), "1. Counted in {n}."),
    "terms": ("<dl><dt>Pot {n}<dd>Of clay<dt>Lid {n}<dd>Of tin</dl>", "Lid {n}\n: Of tin"),
    "what opens": (
        "<details><summary>More on pot {n}</summary><p>It is of clay.</details>",
        "More on pot {n}\n\nIt is of clay.",
    ),
    "a formula": (
        "<div><math display=block><mi>p</mi><mo>=</mo><mn>{n}</mn></math></div>", "$$p={n}$$"
    ),
}  # fmt: skip
AROUND = (
    "<article class=post>{0}</article><ol class=comment-list><li class=comment><p>Nice.</ol>",
    "<div class=document><div class=body role=main>{0}</div></div><ul class=sidebar><li>Index</ul>",
    "<table width=100%><tr><td><ul><li><a href=/a>A</a></ul><td>{0}</table>",
    "<div class=wrap>{0}<div class=cards><div class=card><a href=/r>Ten pots</a></div></div></div>",
)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", BELONGS)
def test_what_belongs_to_a_text_stays_wherever_it_stands(name: str, around: str) -> None:
    """First, between paragraphs, twice in a row, and at its end, where it looks like an end."""
    form, wanted = BELONGS[name]
    one, two, three, four = (form.format(n=n) for n in (41, 42, 43, 44))
    text = f"{one}<p>{WORDS}</p><p>{ADVICE}</p>{two}<p>{ADVICE * 3}</p><p>{WORDS}</p>{three}{four}"
    found = page(around.format(f"<h1>Harbours and pots</h1>{text}")).text
    assert [n for n in (41, 42, 43, 44) if wanted.format(n=n) not in found] == []
    assert "Terms of service" not in found


@pytest.mark.parametrize(
    "wrapper",
    ["<div style='opacity:0'>", "<div hidden id=S:1>", "<div class=w style='visibility:hidden'>"],
)
def test_a_page_that_fades_in_is_read(wrapper: str) -> None:
    """An element with the better part of the page waits for a script; small ones are hidden."""
    secret = "<p hidden>SECRET</p><p style='opacity:0'>SECRET</p>"
    text = page(f"{wrapper}<article>{f'<p>{WORDS * 3}</p>' * 5}{secret}</article></div>").text
    assert text.count("three stages") == 15
    assert "SECRET" not in text


STEPS = ("Heat the oven.", "Mix it all.", "Add water.", "Knead.", "Wait an hour.", "Bake.", "Cool.")
CODE = "pot = Pot()\npot.pour(45)"


def recipe(step: str, intro: int) -> str:
    """A recipe with so many paragraphs before its steps."""
    steps = "".join(step.format(n=n, step=text) for n, text in enumerate(STEPS, 1))
    return (
        f"<div class=content><h1>Simple bread</h1>{f'<p>{WORDS * 3}</p>' * intro}<h2>Method</h2>"
        f"<div class=method>{steps}</div><div class=comments><h3>Comments</h3><p>{ADVICE}</p></div>"
        "</div>"
    )


@each_row("intro", [1, 4, 10])
@each_row(
    "step",
    [
        "<li>{step}</li>",
        "<p>{n}. {step}</p>",
        "<h3>Step {n}</h3><p>{step}</p>",
        "<div class=step><span class=number>{n}</span><div class=step-text>{step}</div></div>",
    ],
)
def test_the_last_steps_of_a_recipe_stay(step: str, intro: int) -> None:
    """Of a list of which most is main text, no item is left out."""
    text = page(recipe(step, intro)).text
    assert [one for one in STEPS if one not in text] == []


@each_row("answers", [0, 1, 3])
@each_row("name", ["question", "post", "thread", "topic-post"])
@each_row("wrap", ["{}", "<div class=highlight>{}</div>"])
def test_the_code_of_a_question_stays(name: str, answers: int, wrap: str) -> None:
    """It stands between the sentences of the question, and is not only in the answers."""
    code = wrap.format(f"<pre><code>{CODE}</code></pre>")
    answer = f"<div class=answer><a href=/u>ann</a><div class=body><p>{WORDS * 3}</p></div></div>"
    text = page(
        f"<h1>Why is my tea cold?</h1><div class={name}><a href=/u/1>bob</a><div class=body><p>"
        f"{ADVICE}</p>{code}<p>What is wrong with it?</p></div></div>{answer * answers}"
    ).text
    assert f"```\n{CODE}\n```" in text


@each_row("count", [10, 40])
@each_row(
    "form",
    [
        "<li><a href=/s{n}>Story {n} about tea</a></li>",
        "<tr class=athing><td>{n}.<td><td class=title><span class=titleline><a href=/s{n}>Story "
        "{n} about tea</a></span><tr><td colspan=2><td class=subtext>{n} points by u",
        "<div class='thing link'><div class=score>{n}</div><div class=entry><p class=title><a "
        "class=title href=/s{n}>Story {n} about tea</a></p><p class=tagline>by u</div></div>",
    ],
)
def test_the_titles_of_a_list_of_links_stay(form: str, count: int) -> None:
    """Such a page is about its links."""
    items = "".join(form.format(n=n) for n in range(1, count + 1))
    around = {"<l": "<ol>{}</ol>", "<t": "<table>{}</table>"}.get(form[:2], "<div>{}</div>")
    text = page(f"<div id=content>{around.format(items)}</div>").text
    assert [n for n in range(1, count + 1) if f"Story {n} about" not in text] == []


@pytest.mark.parametrize("words", [1, 9])
def test_banners_sidebars_and_edit_links_go(words: int) -> None:
    """On a short page and on a long one."""
    paragraphs = f"<p>{WORDS * 2}</p>" * words
    text = page(
        "<body class=cookies-bar><div id=cookie-banner><p>We use cookies to improve it.</p></div>"
        f"<div class=page><h1>Tea [<a href=/edit?s=1>edit</a>]</h1>{paragraphs}</div>"
        "<div class=sidebar><h3>News</h3><ul><li><a href=/1>Ten harbours</a></ul></div>"
    ).text
    assert text.removeprefix("# Tea\n\n") == "\n\n".join([(WORDS * 2).strip()] * words)


@each_row(
    ("body", "text"),
    [
        ("<div>Site</div><form id=f><nav>A</nav><main><h1>Fees</h1><p>5 EUR.</main></form>",
         "# Fees\n\n5 EUR."),
        ("<div>Site</div><form id=f><p>The fee is 5 EUR.<p>Pay it at once, or later.</form>",
         "The fee is 5 EUR.\n\nPay it at once, or later."),
        ("<main><p>Text.<form><label>Your mail</label></form></main>", "Text."),
        ("<main><p>Text.<form><table><tr><th>Zone<th>Fare<tr><td>A<td>5</table><button>Compare"
         "</button></form></main>", "Text.\n\n| Zone | Fare |\n| --- | --- |\n| A | 5 |"),
        ("<main><p>Text.<form><table><tr><td>Name<td>Word<tr><td>a<td>b</table></form></main>",
         "Text."),
        ("<main><h3><button aria-expanded=false>How old?</button></h3><p>Two years.<button>Send"
         "</button></main>", "### How old?\n\nTwo years."),
        ("<article><header><h1>Pots</h1><p>A look.</header><p>Text.</article>",
         "# Pots\n\nA look.\n\nText."),
        ("<header><p>The site</header><article><p>Text.</article>", "Text."),
        ("<div id=didomi-host><div class=didomi-popup><p>Our 800 partners set cookies, to measure "
         "and to show what we must.</div></div><main><p>Five EUR.</main>", "Five EUR."),
        ("<main><blockquote><p>Be brief.</p><footer>Ann</footer></blockquote></main>",
         "> Be brief.\n\n> Ann"),
        ("<main><p>Text.<aside class='footnote brackets'><p>[1] More.</aside></main>",
         "Text.\n\n[1] More."),
        ("<main><p>Text.<aside class='note admonition'>Heed.</aside><aside>Ad.</aside></main>",
         "Text.\n\nHeed."),
    ],
)  # fmt: skip
def test_what_belongs_to_a_short_text_is_no_furniture(body: str, text: str) -> None:
    """A form around the page, a question to open, the head of an article, a note, an author."""
    found = page(body).text
    assert found.endswith(text)
    assert "cookies" not in found
    assert not page(body).text.startswith("The site")


def test_scripts_do_not_push_the_text_of_a_page_beyond_the_cap() -> None:
    """Shops write megabytes of them before the first word; what is told of the page stays."""
    told = '<script type="application/ld+json">{"datePublished": "2026-03-04"}</script>'
    script = f"<script>{'x=1;' * 600_000}</script>"
    found = page(f"{script}<main>{f'<p>{WORDS * 3}</p>' * 3}</main><!--{script}-->", told)
    assert (found.text.count("three stages"), found.cut) == (9, False)
    assert found.published == "2026-03-04"


@each_row(
    ("head", "shown", "day"),
    [
        ("", "<time datetime=2026-03-04>4 March</time>", "2026-03-04"),
        ("", "<p class=post-date>Posted on March 4, 2026</p>", "2026-03-04"),
        ("<meta name=DC.Date content=2026-03-04>", "", "2026-03-04"),
        ("<meta name=article:published_time content=2026-03-04>", "", "2026-03-04"),
        ("<meta name=date content='Wed, 04 Mar 2026 10:00:00 GMT'>", "", "2026-03-04"),
        ("<meta name=date content=2026-99-04>", "<b class=published>1998-02-28</b>", None),
        ("", "<b itemprop=datePublished>2025-01-02</b><time datetime=2026-03-04>", "2026-03-04"),
    ],
)
def test_a_date_that_is_marked_as_one_is_believed(head: str, shown: str, day: str | None) -> None:
    """Without linked data, it says when the page was written."""
    assert page(f"<main>{shown}</main><p>{WORDS * 4}</p>", head).published == day
