"""The page's words: the same in every language, and chosen by the browser or by hand."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.checks import TOO_WIDE
from tests.browser.conftest import SMALL, Enter
from tests.browser.house import ROOT, House
from tests.browser.steps import ask, asked
from tests.browser.test_settings import opened

pytestmark = pytest.mark.integration

LANGUAGES = sorted(path.stem for path in (ROOT / "web" / "static" / "locales").glob("*.json"))
KEPT = """async (names) => {
  const all = {};
  for (const n of names) all[n] = await (await fetch(`/static/locales/${n}.json`)).json();
  return all;
}"""


def places(entry: Any) -> set[str]:
    """The places that a text fills."""
    texts = entry.values() if isinstance(entry, dict) else [entry]
    return {found for text in texts for found in re.findall(r"\{(\w+)\}", text)}


AWAY = {"missing": "Ollama does not answer at http://127.0.0.1:9.", "remedy": "Start it."}
SPOKEN = ["index.js", "de.json"]  # the files of a language that a first visit wants
RESTS = "Brave Search failed a moment ago (rate); it is asked again in 40 s."
ASKED = {"code": "asked_sites", "message": "Also asked: brave (looks like a paper)."}
SAYS = [  # what a model lacks, why an engine rests, and where a document is
    # A key without its code, a known sentence in German, any other as the server wrote it.
    ("de-DE", "lackOf", {"missing": "OPENAI_API_KEY"}, "braucht einen Schlüssel"),
    ("de-DE", "lackOf", AWAY, "Ollama antwortet nicht unter http://127.0.0.1:9."),
    ("de-DE", "lackOf", {"missing": "It sulks", "remedy": "Wait."}, "It sulks. Wait."),
    # Why a site was asked.
    ("de-DE", "translated", ASKED, "Auch gefragt: Brave (sieht nach einem Fachartikel aus)."),
    # Chinese has no space before Chinese.
    ("zh-CN", "translated", {"code": "resting", "message": RESTS},
     "Brave Search 刚刚出错（请求过多），40 秒后再询问。"),
    # A page of an archive is called by archive and title, a file of the library by its path.
    ("en-US", "placeOf", "zim://wiki/A/Low_water%20mark#Tides", "wiki · A/Low water mark"),
    ("en-US", "placeOf", "zim://wiki", "wiki"),
    ("en-US", "placeOf", "library://docs/switch.md#auto", "Library · docs/switch.md"),
    ("en-US", "placeOf", "https://www.tide.example/a?b", "tide.example"),
]  # fmt: skip
CALLED = """async ([name, given]) => {
  await (await import("/static/locales/index.js")).known();
  const file = name === "placeOf" ? "lib/dom.js" : "locales/index.js";
  const said = (await import("/static/" + file))[name](given);
  return said.message ?? said;
}"""


def says(page: Page, locale: str) -> None:
    """What the page's own functions make of names and sentences of the server."""
    for _, name, given, said in (each for each in SAYS if each[0] == locale):
        assert page.evaluate(CALLED, [name, given]).startswith(said)


def test_every_language_has_the_same_words(browser: Browser, house: House) -> None:
    """Keys and places are those of the English catalogue, and each key is used somewhere.

    What the server says in English itself is held by tests/web/words/test_catalogues.py."""
    page = browser.new_context(bypass_csp=True, locale="en-US").new_page()
    page.goto(house.start_url)
    catalogues = page.evaluate(KEPT, LANGUAGES)
    says(page, "en-US")
    page.context.close()
    assert {"en", "de", "zh"} <= set(catalogues)
    english = catalogues["en"]
    for name, whole in catalogues.items():
        catalogue = {k: v for k, v in whole.items() if k.split(".")[0] not in ("help", "about")}
        assert catalogue.keys() == english.keys(), name
        wrong = [k for k in english if places(catalogue[k]) != places(english[k])]
        assert wrong == [], name
        assert all("other" in entry for entry in catalogue.values() if isinstance(entry, dict))
    parts = [*(ROOT / "web" / "static").rglob("*.*")]
    for folder in ("web", "cli", "agent", "searchloop"):
        parts += (ROOT / folder).rglob("*.py")
    code = "".join(p.read_text("utf-8") for p in parts if p.suffix in {".js", ".html", ".py"})
    # What is worked out: "reason." + code, `origin.${name}`, `${idea}.kind`.
    starts = tuple(set(re.findall(r"""[`"'](\w+\.[\w.]*)(?:[$]?[{]|[`"'])""", code)))
    starts += ("size.",)  # by the name of a setting
    ends = tuple(set(re.findall(r"""[}](\.\w+)[`"']""", code)))
    unsaid = [
        k for k in english if k not in code and not k.startswith(starts) and not k.endswith(ends)
    ]
    assert unsaid == [], "texts that nobody says"


# Not after a comma: `ddg,library` is what must be typed as it is.
ENGLISH = r"(?<!,)\b(the|of|and|with|is|are|not|from|for|your|this|nothing|settings|library)\b"
OTHERS = "code, pre, cite, option, [lang=en], .answer, .bubble, .source-title"
OTHERS += ", #title, #sessions, #announcer"  # what people, pages and models wrote
SAID = """(others) => {
  const said = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walk.nextNode(); text; text = walk.nextNode()) {
    const node = text.parentElement;
    if (!node.closest(others) && node.checkVisibility()) said.push(text.data);
  }
  return said;
}"""
HALF_WIDTH = r"[\u4e00-\u9fff][,;:?!]|[,;:?!][\u4e00-\u9fff]|[\u4e00-\u9fff] [\u4e00-\u9fff]"


def speaks_one_language(page: Page, where: str) -> None:
    """No word of another language is left, no punctuation of one, and everything has its room."""
    said = page.evaluate(SAID, OTHERS)
    assert [text for text in said if re.search(ENGLISH, text, re.IGNORECASE)] == [], where
    assert [text for text in said if re.search(HALF_WIDTH, text)] == [], where
    assert page.evaluate(TOO_WIDE) == [], where
    assert page.evaluate("document.documentElement.scrollWidth") == 320, where


@pytest.mark.parametrize(("locale", "words"), [("de-DE", "Websuche"), ("zh-CN", "网络搜索")])
def test_the_browser_chooses_a_language_and_the_setting_overrules(
    enter: Enter, locale: str, words: str
) -> None:
    """Words, numbers and `lang` follow the browser's; nothing is left in English from the empty
    page over a searched answer, menus and settings, on the smallest phone, until it is chosen."""
    page = enter(fresh=True, bypass_csp=True, locale=locale, **SMALL)
    expect(page.get_by_role("switch", name=words)).to_be_visible()
    assert page.evaluate("document.documentElement.lang") in (locale, locale[:2])
    says(page, locale)
    speaks_one_language(page, "empty")
    page.keyboard.press("Control+/")
    expect(page.locator("#shortcuts")).to_be_visible()
    speaks_one_language(page, "keys")
    page.keyboard.press("Escape")
    for menu in ("agent", "workspace", "attach", "model"):
        page.locator(f"#{menu}").click()
        expect(page.locator(":popover-open")).to_be_visible()
        speaks_one_language(page, menu)
        page.keyboard.press("Escape")
    page.locator("#switch").click()
    expect(page.locator("#web-search")).to_be_checked()
    asked(page, "SEARCHLOOP_OFFLINE")
    page.locator(".activity > summary").click()
    expect(page.locator(".steps")).to_be_visible()
    speaks_one_language(page, "answer")
    page.locator("#open-sidebar").click()
    page.locator("#open-settings").click()
    rooms = page.locator("#settings nav button")
    expect(rooms.last).to_be_visible()
    speaks_one_language(page, "rooms")
    for name in rooms.evaluate_all("(all) => all.map((button) => button.dataset.page)"):
        page.locator(f'#settings nav [data-page="{name}"]').click()
        expect(page.locator(".settings-page .lead")).to_be_visible()
        expect(page.locator(".settings-page[aria-busy]")).to_have_count(0)
        speaks_one_language(page, name)
        page.locator("#settings .back").click()
    page.locator('#settings nav [data-page="appearance"]').click()
    with page.expect_navigation():
        page.locator("#set-language").select_option("en")
    expect(page.get_by_role("switch", name="Web search")).to_be_visible()


def test_a_german_page_says_errors_and_suggestions_in_german(enter: Enter, house: House) -> None:
    """With the names that the server gave; what has no sentence of its own keeps its words. A first
    visit loads no English; where that cannot be had later, an error is told by its code."""
    page = enter(fresh=True, locale="de-DE")
    loaded = page.evaluate("performance.getEntriesByType('resource').map((each) => each.name)")
    assert [name.rsplit("/", 1)[1] for name in loaded if "/locales/" in name] == SPOKEN
    page.route("**/*", lambda route: route.abort())
    ask(page, "Wer?")
    note = page.locator("#composer-notice")
    expect(note).to_contain_text("Der Server antwortet nicht.")
    page.unroute("**/*")
    lost = {"code": "resting", "message": RESTS, "remedy": ""}
    page.route("**/en.json", lambda route: route.abort())
    page.route("**/api/sessions", lambda r: r.fulfill(status=503, json={"error": lost}))
    page.locator("#question").press("Enter")
    expect(note.locator("details p")).to_have_text(RESTS)
    expect(note).to_contain_text("ruht eine Weile")
    page.unroute("**/en.json")
    page.locator("#question").press("Enter")
    expect(note).to_contain_text("Brave Search ist gerade ausgefallen")
    page.unroute("**/api/sessions")
    box = opened(page, "advanced").locator("#set-SEARCHLOOP_LIMITS-searches")
    box.fill("none")
    box.blur()
    told = page.get_by_role("alert").filter(has_text="searches ist 'none'")
    expect(told).to_contain_text("keine ganze Zahl über 0")
    page.keyboard.press("Escape")
    error = {"code": "forbidden", "message": "It said: not you.", "remedy": "Ask them."}
    page.route("**/messages", lambda r: r.fulfill(status=502, json={"error": error}))
    ask(page, "Warum?")
    expect(note).to_contain_text("Der Anbieter lehnt die Anfrage ab.")
    expect(note.locator(".note")).to_have_attribute("data-code", "forbidden")
    note.locator("summary").click()
    expect(note.locator("details p")).to_have_text("It said: not you. Ask them.")
    page.unroute("**/messages")
    page.locator("#new-chat").click()
    page.get_by_role("button", name="Was verlässt diesen Rechner").click()
    expect(page.locator(".bubble")).to_have_text("What leaves this machine when web search is on?")
    expect(page.locator(".answer .chip").first).to_be_visible()
