"""Addresses that a user wrote, in any script and with anything around; addresses of one page."""

from __future__ import annotations

import unicodedata

from searchloop.agent.search.citations import without_tracking
from searchloop.agent.search.source_numbers import SourceTable, urls_in
from searchloop.agent.types import Message
from searchloop.analysis.addresses import url_key
from tests.growth import check_growth
from tests.tables import cut, each_row


def typed(text: str, url: str) -> bool:
    """Whether `url` may be opened after the user wrote `text`."""
    return SourceTable.of([Message("user", text)]).met(url) is not None


URLS = cut(
    "https://a.example/x HTTPS://A.Example/x http://a.example:8080/x?q=1&r=2#part "
    "https://en.example/wiki/A_(b) https://en.example/wiki/A_(b)/c[0] "
    "https://en.example/wiki/Schrödinger's_cat https://fr.example/l'été "
    "https://ja.example/wiki/日本 https://ja.example/wiki/イーロン・マスク "
    "https://bücher.example/ä https://xn--bcher-kva.example/ https://例え.jp/道 http://192.0.2.1/x "
    "http://[2001:db8::1]/x https://web.example/2020/https://a.example/x "
    "https://a.example/a,b;c/d.html https://fa.example/wiki/می‌خواهم "
    "https://a.example/?q=x%20y"
)
AROUND = [
    *cut(
        "{}→ https://b.example/,{} b.example/q和{} Ссылка:{} url={} {} ({}) “{}” „{}“ «{}» ‘{}’ "
        "'{}' \"{}\" <{}> [text]({}). [{}]({}) **{}** `{}` ~~{}~~ "
        "请总结{}，然后翻译 请看{}。 「{}」を要約して "
        "『{}』 【{}】 （{}） 《{}》 {}、{} {}！ {}？ "
        "{}… {}۔ {}; {}!!! see:{} {}—then \u2066{}\u2069 👉{}👈 "
        "{}👍🏽 {}–"
    ),
    "Read {}, please.",
    "Read {}.",
    "| {} |",
    "لخص {}، ثم ترجم",
    "لخص {}؟",
    "סכם את {}, בבקשה",
    "สรุป {} ให้หน่อย",
    "इसे पढ़ो {}।",
]


@each_row("around", AROUND)
@each_row("url", URLS)
def test_an_address_is_found_whatever_stands_around_it(url: str, around: str) -> None:
    """Quotes, brackets and punctuation of every script; brackets inside stay."""
    text = around.replace("{}", url)
    assert url in urls_in(text)
    assert typed(text, url)


def test_signs_of_every_script_end_an_address() -> None:
    """Punctuation, symbols and blanks."""
    signs = [c for c in map(chr, range(0x80, 0x20000)) if unicodedata.category(c)[0] in "PSZ"]
    assert len(signs) > 6000
    lost = [c for c in signs if not typed(f"https://a.example/x{c} b.example{c}", URLS[0])]
    assert not lost


X = "https://a.example/x"
TOUCHED = [
    *cut("https://a.example/xを要約 สรุปhttps://a.example/xให้หน่อย 请看https://a.example/x然后"),
    *cut(
        "请看https：//a．example/x。 ｈｔｔｐｓ：／／ａ．ｅｘａｍｐｌｅ／ｘ a.example/x,b.example/y"
    ),
    *(
        "https://a.example/x를 요약",
        "[x](https://a.example/x)and more",
        "&lt;https://a.example/x&gt;",
    ),
    *("[url]https://a.example/x[/url]", "https://a.example/x[the text]"),
]


@each_row(
    ("text", "url"),
    [
        *((text, X) for text in TOUCHED),
        ("https://a.exampleを見て", "https://a.example/"),
        ("https://ja.example/wiki/日本を要約", "https://ja.example/wiki/日本"),
        ("https://ja.example/wiki/東京タワーについて", "https://ja.example/wiki/東京タワー"),
        ("https://a.example/x,https://b.example/y", "https://b.example/y"),
        ("https://a.example/x)https://b.example/y", "https://b.example/y"),
        ("смотри:пример.рф/x", "https://пример.рф/x"),
        ("a.example/x;b.example/y", "https://b.example/y"),
        ("https://a.example/x?q=1&amp;r=2", "https://a.example/x?q=1&r=2"),
        ("https://de.example/wiki/Ko\u0308ln", "https://de.example/wiki/K%C3%B6ln"),
    ],
)
def test_prose_may_touch_an_address(text: str, url: str) -> None:
    """Scripts without blanks and forgotten ones: the shorter reading counts as well."""
    assert typed(text, url)


@each_row(
    ("text", "addresses"),
    [
        ("Read u.example/q", "https://u.example/q http://u.example/q u.example/q"),
        *(
            (text, "https://example.org/")
            for text in ("example.org", "EXAMPLE.ORG.", "<example.org>")
        ),
        ("What is on example.org?", "https://example.org"),
        ("www.x.de/ä", "https://www.x.de/ä https://x.de/%C3%A4"),
        ("münchen.de und пример.рф", "https://münchen.de/ https://пример.рф"),
        ("xn--bcher-kva.example", "https://bücher.example/"),
        ("bücher.example", "https://xn--bcher-kva.example/"),
        ("例え.jpを見て", "https://例え.jp"),
        ("उदाहरण.भारत www.example.org। पढ़ो", "https://उदाहरण.भारत https://www.example.org"),
        ("ดู ตัวอย่าง.ไทย/หน้า", "https://ตัวอย่าง.ไทย/หน้า"),
        ("Siehe mu\u0308nchen.de/x", "https://münchen.de/x"),
        ("请看example.org/x，谢谢", "https://example.org/x"),
        ("example.orgを要約", "https://example.org/"),
        ("「example.org/x」 [site](example.org/y)", "https://example.org/x https://example.org/y"),
        ("//cdn.example/x.js", "https://cdn.example/x.js"),
        ("_example.org/x_ ~~example.com/y~~", "https://example.org/x https://example.com/y"),
        ("(news.example.co.uk:8080/a?b=c#d)", "https://news.example.co.uk:8080/a?b=c"),
        ("docs.python.org/3/library/re.html", "https://docs.python.org/3/library/re.html"),
        ("point.md/ro 1und1.de, t3n.de", "https://point.md/ro https://1und1.de https://t3n.de"),
        ("ko.example/페이지를 봐", "https://ko.example/페이지"),
        ("https://ko.example/글에서 찾아", "https://ko.example/글"),
        ("https://tr.example/x'i oku, a.example/y's words", "https://tr.example/x"),
        ("δες gr.example/σελίδα·", "https://gr.example/σελίδα"),
        ("open 192.0.2.7:8080/x and 192.0.2.8/y", "https://192.0.2.7:8080/x https://192.0.2.8/y"),
        ("open localhost:8000, localhost/admin!", "http://localhost:8000 http://localhost/admin"),
        ("打开localhost:3000/docs看看", "http://localhost:3000/docs"),
        ("see [::1]:8080/x and nas:5000", "http://[::1]:8080/x http://nas:5000"),
        ("请打开例子.测试看看", "https://例子.测试"),
        ("请总结中文网.中国的首页", "https://中文网.中国"),
        ("请阅读清华大学.cn/news，谢谢", "https://清华大学.cn/news"),
    ],
)
def test_an_address_needs_no_scheme(text: str, addresses: str) -> None:
    """As people write them; the secure scheme is meant."""
    assert [url for url in cut(addresses) if not typed(text, url)] == []


@each_row(
    "text",
    [
        "main.py README.md script.sh main.rs index.html a.tar.gz data.csv notes.txt report.pdf",
        "a.parquet b.mkv c.heic d.epub e.patch f.lua G.svelte h.dart i.proto J.scala k.webm l.diff",
        "Node.js, Vue.js and package.json; see main.py:10 and README.md#usage.",
        "src/main.py ./setup.cfg ../a.toml /etc/hosts.conf C:\\x\\y.txt ~/a.env",
        "e.g. this, i.e. that, U.S. and Ph.D., a.m., v1.2, 3.5, 1.2.3, 1.2.3.4, 10.000,50, No.1",
        "user＠host.example",
        "user@host.example first.last@host.example <a.b@c.example> mailto:me@host.example",
        "os.path.join(a) np.array([1]) x.append(1)",
        "ftp://files.example/x file:///etc/passwd javascript:alert(1.2)",
        "... a..b .example x. y https:// http:// example",
        "at 10:30, John 3:16, a:b, 2001:2002, localhost, C:1, dict[k:v], main.py:1200",
    ],
)
def test_other_words_with_dots_are_none(text: str) -> None:
    """Names of files, abbreviations, numbers, mail addresses, calls, and other schemes."""
    assert urls_in(text) == []


def test_what_was_typed_is_all_that_was_typed() -> None:
    """Other paths, queries and hosts, and prefixes of an address, are not."""
    text = "Read https://a.example/x?q=1 and u.example/q and user@mail.example and main.py"
    for url in cut(
        "https://a.example/ https://a.example/x https://a.example/x?q=2 "
        "https://a.example/x?q=1&secret=2 https://a.example.evil.example/x?q=1 "
        "https://u.example/ https://u.example/q/r https://u.example/q?data=1 "
        "https://v.u.example/q https://mail.example/ https://user@mail.example/ "
        "https://main.py/ https://u.example@evil.example/q https://u.example:8443/q"
    ):
        assert not typed(text, url), url


def test_the_spelling_of_the_user_is_opened() -> None:
    """A model hides nothing in a parameter that does not count; the secure scheme is taken."""
    table = SourceTable.of([Message("user", "https://a.example/x http://b.example/y c.example")])
    for url in ("https://a.example/x?utm_source=SECRET", "https://a.example/x?ref=secret#SECRET"):
        assert table.met(url) == "https://a.example/x"
    assert table.met("http://a.example/x") == "https://a.example/x"
    assert table.met("https://b.example/y?gclid=1") == "https://b.example/y"
    assert table.met("http://b.example/y") == "http://b.example/y"
    assert table.met("http://c.example/?fbclid=SECRET") == "https://c.example"


@each_row(
    "unit", cut("a. a.b@ あ. あaあ. x.com http://x)/ https://a( é a- 1. x.y/ 、a.b x😀 http://x/–")
)
def test_hostile_prose_costs_linear_time(unit: str) -> None:
    """Much of one thing costs about four times as much as a quarter of it."""
    check_growth(urls_in, unit * (80_000 // len(unit)))


TRACKING = (
    "utm_source=x utm_campaign=y&utm_term=z UTM_Medium=x gclid=1 fbclid=1 msclkid=1 srsltid=A"
    " mc_cid=1 mc_eid=2 igshid=1 igsh=1 yclid=1 gad_source=1 gbraid=1 wbraid=1 dclid=1 _ga=1"
    " _hsenc=1 ref=hackernews ref=producthunt.com ref=nav_main ref_src=twsrc ref_=sr_1_1 ttclid=1"
    " ref=sr_1_1 spm=a2 trk=x ocid=x cmpid=x mkt_tok=1 at_medium=x mtm_source=x"
    " __hstc=1 mibextid=x ved=2a rdid=x ncid=x itm_source=x"
)
SAME = {
    "https://example.org/a": "http://example.org/a https://m.example.org/a https://example.org/a/ "
    "https://mobile.example.org/a https://amp.example.org/a https://EXAMPLE.org:443/a "
    "https://example.org./a? https://example.org/b/../a https://example.org/a#part "
    "https://example.org/a#:~:text=words https://example.org/a?CMP=Share_iOSApp_Other "
    "https://example.org/a?WT.mc_id=x https://www.google.com/amp/s/www.example.org/a",
    "https://example.org/story": "https://example.org/story/amp https://example.org/story/amp/ "
    "https://example.org/story?amp=1 https://example.org/story?amp https://example.org/story.amp "
    "https://example.org/story?outputType=amp https://example.org/amp/story",
    "https://example.org/story.html": "https://example.org/story.amp.html",
    "https://example.org/2024/a": "https://example.org/amp/2024/a",
    "https://example.org/a?b=1": "https://example.org/a?PHPSESSID=1f&b=1 "
    "https://example-org.cdn.ampproject.org/v/s/example.org/a/amp?b=1",
    "https://a.b/x": "https://a-b.cdn.ampproject.org/c/s/a.b/x?amp_js_v=0.1&usqp=mq",
    "https://example.org": "http://www.example.org:80/ https://example.org/#/ "
    "https://example.org/index.html",
    "https://example.org/你": "https://example.org/%E4%BD%A0 https://example.org/%e4%bd%a0",
    "https://example.org/~a": "https://example.org/%7Ea",
    "https://example.org/a%2Fb": "https://example.org/a%2fb",
    "https://example.org/?q=a%20b": "https://example.org/?q=a+b",
    "https://example.org/?b=1&a=2": "https://example.org/?a=2&b=1",
    "https://bücher.example/": "https://xn--bcher-kva.example/",
    "https://app.example/#/route1": "https://app.example/#/route1",
    "https://doi.org/10.1000/ABC": "https://dx.doi.org/10.1000/abc",
    "https://en.wikipedia.org/wiki/Tea": "https://en.m.wikipedia.org/wiki/Tea "
    "https://en.wikipedia.org/wiki/Tea?mobileaction=toggle_view",
    "https://www.youtube.com/watch?v=dQw4w9WgXcQ": "https://youtu.be/dQw4w9WgXcQ?si=abc&t=10 "
    "https://m.youtube.com/watch?v=dQw4w9WgXcQ&t=1s https://youtube.com/shorts/dQw4w9WgXcQ "
    "https://youtube-nocookie.com/embed/dQw4w9WgXcQ "
    "https://youtube.com/watch?feature=share&v=dQw4w9WgXcQ",
    "https://open.spotify.com/track/1": "https://open.spotify.com/track/1?si=abc",
    "https://x.com/tea/status/7": "https://twitter.com/tea/status/7 "
    "https://mobile.twitter.com/tea/status/7?s_cid=2 https://x.com/tea/status/7?s=20&t=Ab-1",
    "https://redd.it/1ab2c": "https://www.reddit.com/r/tea/comments/1ab2c/best_pot/ "
    "https://old.reddit.com/r/tea/comments/1ab2c/pot/?sort=new https://redd.it/1ab2c?share=1 "
    "https://reddit.com/comments/1ab2c/x/",
    "https://stackoverflow.com/q/11227809": "https://stackoverflow.com/questions/11227809/why-is",
    "https://tea.stackexchange.com/q/12/3": "https://tea.stackexchange.com/questions/12/a/3#3",
    "https://amazon.de/dp/B00ABCDEFG": "https://www.amazon.de/a/dp/B00ABCDEFG?th=1&psc=1 "
    "https://amazon.de/Tea-Pot/dp/B00ABCDEFG/ref=sr_1_1 https://amazon.de/gp/product/B00ABCDEFG",
}


OTHER = [
    "https://x.com/search?q=tea https://x.com/search?q=pot https://twitter.com.example/a "
    "https://x.com.example/a https://nottwitter.com/a https://x.com/a",
    "https://example.org/a?cmp=3 https://example.org/a?cmp=4 https://example.org/A",
    "https://example.org/q/7?page=1 https://example.org/q/7?page=2",
    "https://app.example/#/route1 https://app.example/#/route2 https://app.example/#!/a "
    "https://app.example/#!/b https://app.example/#!a https://app.example/",
    "https://mobile.de/a https://de/a https://m.de/a https://example.de/a",
    "https://amp.dev/a https://dev/a",
    "https://example.org/ https://example.org/amp https://example.org/amplifier "
    "https://example.org/?amp=12 https://example.org/?ref=4711 https://example.org/?ref=4712 "
    "https://example.org/?ref=AB-1234 https://example.org/?si=1 https://example.org/?si=2 "
    "https://example.org/?reference=a https://example.org/?src=a https://example.org/?src=b "
    "https://example.org/?q=1 https://example.org/?q=2 https://example.org:8443/ "
    "https://user@example.org/ https://a.example.org/ https://b.example.org/ "
    "https://example.org/?q=a%26b https://example.org/?q=a&b",
    "https://example.org/story https://example.org/story/amps",
    "https://api.github.com/repos/a/contents/c https://api.github.com/repos/a/contents/c?ref=main",
    "https://gitlab.com/a/b/-/raw/x?ref=dev https://gitlab.com/a/b/-/raw/x?ref=main",
    "https://git.example.org/a/raw/x https://git.example.org/a/raw/x?ref=dev",
    "https://www.youtube.com/watch?v=dQw4w9WgXcQ https://youtu.be/dQw4w9WgXcR "
    "https://www.youtube.com/@a https://www.youtube.com/@b "
    "https://www.youtube.com/playlist?list=A https://www.youtube.com/playlist?list=B",
    "https://redd.it/1ab2c https://redd.it/1ab2d "
    "https://reddit.com/r/tea/comments/1ab2c/pot/c0mment",
    "https://stackoverflow.com/q/1 https://stackoverflow.com/a/1 https://superuser.com/q/1",
    "https://amazon.de/dp/B00ABCDEFG https://amazon.com/dp/B00ABCDEFG",
    "https://example.org/questions/1/a https://example.org/questions/1/b",
    "https://example.org/a%2Fb https://example.org/a/b https://example.org/a/.b",
    "https://example.org/a%3Fq=1 https://example.org/a?q=1",
    "https://example.org/a%23b https://example.org/a#b",
    "https://example.org/%E4 https://example.org/%F6",
    "https://de.m.example.org/ https://en.m.example.org/",
    "https://x.cdn.ampproject.org/c/s/a.example/ https://x.cdn.ampproject.org/c/s/b.example/",
]


@each_row(("page", "others"), SAME.items())
def test_which_addresses_are_one_page(page: str, others: str) -> None:
    """In the source table of a chat as in the results of a search: both ask one function."""
    assert {url_key(url) for url in cut(others)} == {url_key(page)}


@each_row("parameter", cut(TRACKING))
def test_parameters_that_track_make_no_other_page(parameter: str) -> None:
    """The names that advertisers, shops and social networks add."""
    page = "https://example.org/a?q=1"
    assert url_key(f"https://example.org/a?{parameter}&q=1") == url_key(page)


@each_row("pages", OTHER)
def test_which_addresses_are_other_pages(pages: str) -> None:
    """Each of them is a page of its own."""
    assert len({url_key(url) for url in cut(pages)}) == len(cut(pages))


def test_a_link_is_shown_without_its_tracking() -> None:
    """All else stays as it is."""
    assert without_tracking("https://a.example/x?utm_source=y") == "https://a.example/x"
    assert without_tracking("https://a.example/x?b=%2f&fbclid=1#c") == "https://a.example/x?b=%2f#c"
    for url in (
        *("https://a.example/x?", "https://a.example/x?b&&c", "https://a.example/?amp=1"),
        *("https://github.com/a/b/x?ref=main", "https://a.example/?ref=AB-12"),
    ):
        assert without_tracking(url) == url
