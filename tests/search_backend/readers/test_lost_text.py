"""Text that stands where few look: in a page's data, in figures, dates and closed panels."""

from __future__ import annotations

import json

from searchloop.search_backend.readers import read
from searchloop.search_backend.types import Page
from tests.tables import each_row

LONG = "The harbour was rebuilt after the storm and the old pier was opened to ships again. " * 4
MORE = "Trains stop at the new station every ten minutes and carry people to the centre. " * 4
TABS = "<div role=tablist>{}</div><div {}>" + f"<p>{MORE}</p></div>" + "<div {}><p>{{}}</p></div>"


def page(markup: str) -> Page:
    """A page as a server sends it."""
    body = f"<title>T</title>{markup}".encode()
    return read(body, url="https://e.example/x", content_type="text/html", charset="utf-8")


def linked(shown: str, **data: object) -> str:
    """An empty page with data for search engines."""
    told = json.dumps({"@graph": [data]})
    return f"<body>{shown}<script type='application/ld+json'>{told}</script></body>"


def of_next(shown: str, **props: object) -> str:
    """A page of Next before its scripts have run."""
    data = json.dumps({"props": {"pageProps": props}, "buildId": "x" * 90})
    return f"<div id=__next>{shown}</div><script id=__NEXT_DATA__>{data}</script>"


def stored(script: str, text: str) -> str:
    """A page whose script stores its text for other scripts."""
    return f"<div id=root></div><script>{script % text}</script><script>log('a b c d e f g h i')"


ARTICLE = {"@type": "NewsArticle", "headline": "The pier", "articleBody": LONG}
KETTLE = {"@type": "Product", "name": "Kettle", "description": "Of steel. It holds 1.7 litres.",
          "offers": {"price": 20, "priceCurrency": "EUR"}}  # fmt: skip


@each_row(
    ("markup", "said"),
    [
        (linked("<div id=root></div>", **ARTICLE), f"The pier\n\n{LONG.strip()}"),
        (linked("Loading...", **ARTICLE), f"The pier\n\n{LONG.strip()}"),
        (linked("加载中…", **ARTICLE), f"The pier\n\n{LONG.strip()}"),
        (linked("<p>Please wait", **KETTLE),
         "Kettle\n\nOf steel. It holds 1.7 litres.\n\n20 EUR"),
        (linked("Loading", text="码头于五月开放。"), "码头于五月开放。"),
        (linked("<div id=root></div>", name="A fair of boats and music", startDate="2026-05-03",
                location={"name": "The pier", "address": {"addressLocality": "Ostby"}}),
         "A fair of boats and music\n\nstartDate: 2026-05-03\n\nThe pier\n\n"
         "addressLocality: Ostby"),
        (linked(f"<main><div id=app></div></main><nav>{'A b. ' * 20}</nav>",
                name="Pump", sku="P-3", additionalProperty=[{"name": "Weight", "value": "7.4 kg"}],
                offers={"availability": "https://schema.org/InStock", "url": "https://e.example"}),
         "Pump\n\nsku: P-3\n\nWeight\n\n7.4 kg\n\navailability: InStock"),
        (f"<div id=app></div><noscript><p>{LONG}</noscript><script>x()</script>", LONG.strip()),
        (of_next("Loading…", post={"title": "x", "body": f"<h2>Pier</h2><p>{LONG}<p>1 &lt; 2."},
                 i18n={"a": MORE}, css="{ a b c d e f g h i }"),
         f"## Pier\n\n{LONG.strip()}\n\n1 < 2."),
        (of_next("", lines=[LONG, MORE]), f"{LONG.strip()}\n\n{MORE.strip()}"),
        (linked("Loading", name="Soup", cookTime="PT30M", nutrition={"calories": "9 kcal"},
                recipeIngredient=["2 onions", "1 l"], aggregateRating={"ratingValue": 4.6}),
         "Soup\n\ncookTime: PT30M\n\n9 kcal\n\n2 onions\n\n1 l\n\nratingValue: 4.6"),
        (stored("window.__NUXT__={a:['%s']}", MORE), MORE.strip()),
        (stored("window.__APOLLO_STATE__ = {\"P:1\": {\"body\": \"%s\"}}", f"{LONG}é"), f"{LONG}é"),
        (stored(r'self.__next_f.push([1,"5:[\"p\",{\"children\":\"%s\"}]"])', MORE), MORE.strip()),
    ],
)  # fmt: skip
def test_a_page_without_text_says_what_its_data_says(markup: str, said: str) -> None:
    """To search engines, or to its own scripts."""
    found = page(markup)
    assert (found.status, found.text) == ("ok", said)


@each_row(
    "markup",
    [
        linked(f"<main><p>{MORE}</p></main>", **ARTICLE),
        linked("<main><p>The pier is closed.</p></main>", **ARTICLE),
    ],
)
def test_a_page_with_text_says_nothing_else(markup: str) -> None:
    """Nobody sees its data, so they may say anything."""
    assert "harbour" not in page(markup).text


@each_row(
    "markup",
    [
        of_next("Loading...", a="x"),
        linked("<div id=root></div>", name="Shop"),
        "<div id=__next></div><script type=application/ld+json>{broken</script>",
        f"<div id=root></div><script type=application/json>{'[' * 9000}{']' * 9000}</script>",
    ],
)
def test_an_empty_page_with_empty_data_needs_a_browser(markup: str) -> None:
    """A word that asks to wait is not its text; the reader says what to do."""
    found = page(markup)
    assert (found.status, found.text, bool(found.error)) == ("needs_js", "", True)


FIX = "Correction: the year was 1921, not 1912."
AMENDED = "This article was amended on 3 May: the year was 1921."
EXPORTS = "Bar chart: exports rose from 12 to 19 million tonnes"


@each_row(
    ("markup", "said"),
    [
        (f"<article><p>{LONG}<aside class=correction>{FIX}</aside><p>{MORE}</article>", FIX),
        (f"<article><p>{LONG}<p>{MORE}</article><aside class=correction>{FIX}</aside>", FIX),
        (f"<article><p>{LONG}<p>{MORE}<footer><i>{AMENDED}</i></footer></article>", AMENDED),
        (f"<article><p>{LONG}<p>{MORE}</article><aside role=note><h2>N</h2>{FIX[12:]}", FIX[12:]),
        (f"<article><p>{LONG}</p><figure><img src=a><figcaption>{EXPORTS}.</figure><p>{MORE}</p>",
         f"\n\n{EXPORTS}.\n\n"),
        (f"<article><p>{LONG}</p><figure><img src=a.png alt='{EXPORTS}'></figure><p>{MORE}</p>",
         f"\n\nImage: {EXPORTS}\n\n"),
        (f"<article><p>{LONG}</p><figure><svg><title>Exports</title><desc>{EXPORTS}</desc></svg>"
         f"</figure><p>{MORE}</p>", f"Image: Exports {EXPORTS}"),
        (f"<article><p>{LONG}</p><figure><svg aria-label='{EXPORTS}'></svg></figure><p>{MORE}</p>",
         f"Image: {EXPORTS}"),
        (f"<article><p>{LONG}</p><h2>Hours</h2><div hidden=until-found>Six to nine.</div><p>{MORE}",
         "## Hours\n\nSix to nine."),
        (f"<article><p>{LONG}</p><p>{MORE} It opened <time datetime=2025-05-01T10:00Z>3 days ago"
         "</time>.</p>", "opened 3 days ago (2025-05-01)."),
        (f"<article><p>{LONG}</p><p>{MORE} From <time datetime=2025-05-01></time> on.</p>",
         "From 2025-05-01 on."),
        (f"<article><p>{LONG}</p><p>{MORE} On <time datetime=2025-05-01>1 May 2025</time>, it</p>",
         "On 1 May 2025, it"),
        (TABS.format("<a role=tab href=#a>A</a><a role=tab href=#b>B</a>", "id=a",
                     "id=b style=display:none").format("Takes 3 days."), "Takes 3 days."),
        (TABS.format("<b role=tab id=a>A</b><b role=tab id=b>B</b>", "aria-labelledby=a",
                     "aria-labelledby=b hidden").format("Takes 3 days."), "Takes 3 days."),
    ],
)  # fmt: skip
def test_what_is_seen_late_or_beside_is_read(markup: str, said: str) -> None:
    """Corrections, figures, closed panels, and the day that words stand for."""
    assert said in page(f"<main><h1>H</h1>{markup}</main>").text


def test_a_picture_that_tells_no_fact_is_no_text() -> None:
    """Most words for images name what everybody sees."""
    markup = (
        f"<article><p>{LONG}</p><figure><img alt='The harbour on a fine morning in May'></figure>"
    )
    assert "Image" not in page(f"{markup}<p>{MORE}</p>").text
