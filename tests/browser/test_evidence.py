"""What an answer rests on, as a reader sees it: verdicts and passages where they are cited."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from searchloop.agent.types import NOTHING
from searchloop.search_backend.library import Library
from searchloop.search_backend.types import Page as Stored
from tests import six_verdicts
from tests.browser.conftest import DESKTOP, PHONE, Enter
from tests.browser.house import MODEL, House, LedOllama
from tests.browser.steps import chat_of, do, open_chat, place, wait_for_answer
from tests.browser.test_settings import opened

URL = "https://tide.example/table"
TEXT = "Ebb is at six [1]. Flood is at noon [1]. Nobody swims [1]."


def cites(text: str, *judged: dict[str, Any], title: str = "Tides") -> list[dict[str, Any]]:
    """Citations with the marks of the text in their order, each judged so."""
    found: dict[int, dict[str, Any]] = {}
    for mark, said in zip(re.finditer(r"\[(\d)\]", text), judged, strict=True):
        n = int(mark[1])
        made = {"n": n, "url": URL + "/2" * (n - 1), "title": title, "quote": None, "spans": []}
        cited = found.setdefault(n, {**made, "verified": False, "marks": []})
        cited["marks"].append({"span": list(mark.span()), "quote": None, "verified": True, **said})
    return list(found.values())


UNJUDGED = cites(TEXT, {"quote": "Low water: 06:00"}, {"quote": "High water: 12:00"}, {})


def answered(
    house: House, *events: tuple[str, dict[str, Any]], text: str = TEXT, **more: Any
) -> str:
    """A chat in the log of the server with one answer, and `events` before that; its id."""
    title = more.pop("title", "When is ebb?")
    source = {"n": 1, "url": URL, "title": "Tides", "state": "cited"}
    lists = {"citations": UNJUDGED, "sources": [source], "usage": NOTHING.as_dict(), **more}
    path = {"search_path": "local:ddg"}
    started = {"run_id": "r", "model": "m:x", "mode": "ask", "search": "off", **path}
    ended = {"run_id": "r", "reason": "stop", "answer": text, **path, **lists}
    chat = house.chat(
        ("user_message", {"text": title}),
        ("run_started", started),
        *events,
        ("message", {"text": text, **lists}),
        ("run_finished", ended),
        model="builtin:extractive",
    )
    house.log.update_session(chat, title=title)
    return chat


def show(page: Page, house: House, chat: str) -> None:
    """Opens a chat by its address."""
    open_chat(page, house, chat)
    expect(page.locator(".turn-foot")).to_be_visible()


ARABIC = (
    "المدّ يأتي عند الظهر [1]، انظر `tide --utc` هنا.\n\n1. אבג ראשון\n2. second\n\n"
    "| الميناء | Time |\n|---|---|\n| حيفا | 12:00 |\n\n```python\nprint('شمال')\n```\n"
)


def test_a_search_that_failed_is_not_folded_away(page: Page, house: House) -> None:
    """The one line that stays says that it failed, and how many did where others did not. A search
    that was widened and a page that is an old copy say so in their lines."""
    error = {"code": "resting", "message": "Brave failed a moment ago (rate).", "remedy": ""}
    asked = [{"engine": "brave", "status": "skipped", "ms": 0, "error": error}]
    lifted = "Nothing was found with time_range=d, so the search was repeated without."
    copy = "This is a stored copy of 2026-05-06, 200 days old."
    found = {"query": "ebb", "by": "local:ddg", "status": "ok", "results": 2, "attempts": asked}
    found["notes"] = [{"code": "x", "message": lifted}]
    read = {"url": URL, "status": "ok", "title": "Ebb", "notes": [{"code": "y", "message": copy}]}
    lost = {"query": "flood", "by": "local", "status": "error", "results": 0, "attempts": []}
    summary = page.locator(".activity > summary")
    show(page, house, answered(house, ("search_finished", lost)))
    expect(summary).to_contain_text(re.compile(r"^Search failed, "))
    events = [("search_finished", lost), ("search_finished", found), ("page_opened", read)]
    show(page, house, answered(house, *events))
    expect(summary).to_contain_text(re.compile(r"^Searched 2 queries, 1 failed, "))
    summary.click()
    steps = page.locator(".step")
    expect(steps.nth(1)).to_contain_text("Searched “ebb” · 2 results")
    expect(steps.nth(1)).to_contain_text("Brave failed a moment ago (rate)")
    expect(steps.nth(1)).to_contain_text(lifted.removesuffix("."))
    expect(steps.last).to_contain_text(copy.removesuffix("."))


SIDES = """() => {
  const of = (css) => getComputedStyle(document.querySelector(css)).direction;
  const found = {};
  for (const css of ["#title", ".session a", ".bubble", ".answer > p", ".answer > ol",
    ".answer > .scroll-x", ".answer .code", ".answer pre", ".answer p code",
    ".answer .chip"]) found[css] = of(css);
  const text = document.createRange();
  text.selectNodeContents(document.querySelectorAll(".answer li")[1]);
  const item = document.querySelectorAll(".answer li")[1].getBoundingClientRect();
  const gap = item.right - text.getBoundingClientRect().right;
  found["English in a Hebrew list"] = gap < 2 ? "rtl" : "ltr";
  return found;
}"""


def test_text_from_right_to_left_stands_on_its_side(page: Page, house: House) -> None:
    """Title, question, paragraph, list and table go by their own letters; code never turns."""
    read = {"url": URL, "status": "ok", "title": "לוח גאות", "invisible": 3}
    found = {"query": "ebb", "by": "local:ddg", "status": "ok", "results": 2, "invisible": 4}
    steps = [("search_finished", found), ("page_opened", read)]
    cited = cites(ARABIC, {"verified": None})
    chat = answered(house, *steps, text=ARABIC, citations=cited, title="متى الجزر؟")
    show(page, house, chat)
    expect(page.locator(".session a").first).to_have_text("متى الجزر؟")
    expect(page.locator(".answer .chip")).to_be_visible()
    sides = page.evaluate(SIDES)
    turned = {css for css, side in sides.items() if side == "rtl"}
    assert turned == {
        *("#title", ".bubble", ".answer > p", ".answer > ol", ".answer > .scroll-x"),
        *(".session a", ".answer .chip", "English in a Hebrew list"),
    }
    page.locator(".activity > summary").click()
    expect(page.locator(".step")).to_contain_text(
        ["4 invisible characters removed", "3 invisible characters removed"]
    )
    page.locator(".answer .chip").focus()
    expect(page.locator("#card")).to_contain_text("3 invisible characters removed")
    do(page, chat_of(page), "Delete")
    expect(page.locator(".toast")).to_have_text("Deleted “\u2068متى الجزر؟\u2069”.Undo")
    page.locator(".toast button").click()


LOOK = """chip => {
  const { backgroundColor, borderTopStyle, borderTopLeftRadius } = getComputedStyle(chip);
  const sign = chip.querySelector("use").getAttribute("href");
  return [sign, backgroundColor, borderTopStyle, borderTopLeftRadius];
}"""
# What each card marks in its passage: the words that it shares with the claim.
SHARED = [["is at six sharp"], ["flood"], ["The tide turns twice"], ["Harbour", "m deep"], [], []]


def checked(house: House) -> str:
    """A chat whose answer has each of the six verdicts."""
    return answered(house, **six_verdicts.answer())


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_each_mark_shows_its_own_verdict(enter: Enter, house: House, size: str) -> None:
    """Shape, words and passage: on the chip, in its name, in its card; by mouse and by finger. In
    the list, at how many places a source bears the answer out; one only found is not cited."""
    page = enter(**(PHONE if size == "phone" else {}))
    show(page, house, checked(house))
    chips, card = page.locator(".answer .chip"), page.locator("#card")
    expect(chips).to_have_text(["1", "1", "2", "2", "3", "4"])
    looks = [chips.nth(i).evaluate(LOOK) for i in range(6)]
    assert len({look[0] for look in looks}) == 6, "each has a sign of its own"
    assert len({tuple(look[1:]) for look in looks}) == 6, "and another fill, border or corner"
    for i, (n, verdict, quote, _, passage) in enumerate(six_verdicts.PLACES):
        words = six_verdicts.WORDS[verdict]
        (chips.nth(i).tap if size == "phone" else chips.nth(i).hover)()
        expect(card.locator(".verdict")).to_have_text([words])
        expect(card.locator("blockquote")).to_have_text([passage] if passage else [])
        expect(card.locator("mark")).to_have_text(SHARED[i])
        expect(card.locator("q")).to_have_text([quote] if verdict == "misquoted" and quote else [])
        link = card.get_by_role("link", name="Open the page")
        expect(link).to_have_attribute("href", six_verdicts.url(n))
        nearest = int(verdict in ("misquoted", "unclear"))
        expect(card.get_by_text("The nearest words there:")).to_have_count(nearest)
        expect(card.get_by_text("· read")).to_have_count(int(verdict != "unread"))
        said = words.partition(",")[0] if verdict != "unread" else words
        name = f"Source {n}: {six_verdicts.TITLES[n].lower()}.example. {said}"
        expect(chips.nth(i)).to_have_accessible_name(name)
        expect(chips.nth(i)).to_have_accessible_description(re.compile(f"^{words}.*{passage}"))
        box, room = place(card), page.viewport_size or DESKTOP
        assert 0 <= box["x"] <= box["x"] + box["width"] <= room["width"]
        assert 0 <= box["y"] <= box["y"] + box["height"] <= room["height"]
        page.keyboard.press("Escape")
        expect(card).to_be_hidden()
        page.mouse.move(0, 0)
    told = six_verdicts.WORDS
    shown = [page.locator(".source").nth(n).locator(".verdict") for n in range(4)]
    expect(shown[0]).to_have_text(["Misquoted, 1×", "Quoted, 1×"])
    expect(shown[0].first).to_have_attribute("title", told["misquoted"].partition(",")[0])
    expect(shown[1]).to_have_text(["Contradicted, 1×", "Supported, 1×"])
    expect(shown[2]).to_have_text(["Unclear"])
    expect(shown[3]).to_have_text(["Only found"])
    expect(page.locator(".source .trail")).to_contain_text(["cited", "cited", "cited", "found"])
    expect(page.locator(".source").nth(3)).not_to_contain_text("cited")
    for line in page.locator(".source .verdict").all():
        expect(line).to_be_in_viewport() if size == "desktop" else expect(line).to_be_visible()
    expect(page.locator(".sources .counts")).to_have_text("4 cited, 3 read, 4 found")
    told = "2 hold, 1 contradicted, 1 misquoted, 1 unclear, 1 unread"
    expect(page.locator(".sources > p")).to_have_text(told)
    wrong = ["1 of 6 claims contradicted", "1 quotation not in its source"]
    expect(page.locator(".activity .doubts .verdict")).to_have_text(wrong)
    wavy = "CSS.highlights.get('contradicted').values().next().value.toString()"
    assert page.evaluate(wavy) == "The harbour is 5 m deep"


CHINESE = "东京是日本的首都，人口约一千四百万[1]。"


def test_shared_words_are_found_in_scripts_without_spaces(page: Page, house: House) -> None:
    """Chinese is cut into words, too; single letters of grammar are not marked."""
    passage = "**东京**的中心是日本首都的政府所在地。"
    cited = cites(CHINESE, {"verdict": "supported", "passage": passage}, title="东京")
    show(page, house, answered(house, text=CHINESE, citations=cited))
    page.locator(".answer .chip").hover()
    expect(page.locator("#card blockquote")).to_have_text("东京的中心是日本首都的政府所在地。")
    marked = page.locator("#card mark").all_inner_texts()
    assert "东京" in marked[0]
    assert any("首都" in words for words in marked)
    assert "中心" not in "".join(marked)


QUOTED = ("“at six”", "„at six“", "«at six»", "「at six」", '"at six"')


def test_what_a_page_says_speaks_in_the_face_of_sources(page: Page, house: House) -> None:
    """Words that are on the page, however they are quoted; not what is misquoted or only said."""
    verdicts = [(words, "quoted") for words in QUOTED]
    verdicts += [("“at nine”", "misquoted"), ("It is noon", "quoted")]
    text = "".join(f"Then “as they say” it is {words} [1]. \n\n" for words, _ in verdicts)
    judged = [{"quote": words[1:-1], "verdict": verdict} for words, verdict in verdicts]
    show(page, house, answered(house, text=text, citations=cites(text, *judged)))
    expect(page.locator(".answer .chip.quoted")).to_have_count(6)
    expect(page.locator(".answer .said")).to_have_text(list(QUOTED))
    face = "(node) => getComputedStyle(node).fontFamily.startsWith('ui-serif')"
    assert page.locator(".said").first.evaluate(face)
    assert not page.locator(".answer p").first.evaluate(face)


def test_a_contradicted_answer_leads_to_another(
    page: Page, house: House, ollama: LedOllama
) -> None:
    """Its note offers other models; the answer of one stands in its place, the old one is kept."""
    ollama.script = lambda messages: ["It is 8 m deep."]
    show(page, house, checked(house))
    page.locator(".contradiction").get_by_role("button", name="Answer again with").click()
    page.get_by_role("menuitem", name=f"With {MODEL}").click()
    expect(page.locator(".versions")).to_have_text("2/2")
    expect(wait_for_answer(page).locator(".answer")).to_have_text("It is 8 m deep.")
    page.get_by_role("button", name="Earlier version").click()
    expect(page.locator(".contradiction")).to_be_visible()


def test_each_contradiction_is_told_with_its_own_words(page: Page, house: House) -> None:
    """Its own short sentence and its own passage, also where one source contradicts twice."""
    text = "He added “the pride of all” [1]. It is 504 m long [1]. Opened in 1931 [1]."
    judged: list[dict[str, Any]] = [{"verdict": "misquoted", "passage": None}]
    for passage in ("It is 503 m long.", "It was opened in 1932."):
        judged.append({"verdict": "contradicted", "passage": passage})
    show(page, house, answered(house, text=text, citations=cites(text, *judged)))
    told = page.locator(".contradiction dd")
    said = ["It is 504 m long", "It is 503 m long.", "Opened in 1931", "It was opened in 1932."]
    expect(told).to_have_text(said)
    wavy = "[...CSS.highlights.get('contradicted')].map(String)"
    assert page.evaluate(wavy) == said[::2]


def test_no_doubt_is_folded_away(page: Page, house: House) -> None:
    """Of many chips side by side only the first is shown, unless one of the others is in doubt."""
    for verdict, shown in (("supported", ["1", "+2"]), ("contradicted", ["1", "2", "3"])):
        judged = [{"verdict": each, "passage": "So."} for each in ("supported",) * 2 + (verdict,)]
        text = "Ebb [1][2][3]."
        show(page, house, answered(house, text=text, citations=cites(text, *judged)))
        expect(page.locator(".answer .chip:visible")).to_have_text(shown)


STARTS = """() => {
  const left = document.querySelector(".answer p").getBoundingClientRect().left;
  return [...document.querySelectorAll(".answer .chip")]
    .filter((chip) => chip.getBoundingClientRect().left < left + 8).length;
}"""


def test_no_chip_starts_a_line(page: Page, house: House) -> None:
    """At any width the chip stays with the word before it, with and without a blank between."""
    text = "Ebb is at six [1] or so[1]. 首都[1]。 " * 6
    marks = cites(text, *[{"verdict": "quoted", "passage": "So."}] * 18)
    show(page, house, answered(house, text=text, citations=marks))
    expect(page.locator(".answer .chip")).to_have_count(18)
    for width in range(320, 760, 11):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(STARTS) == 0, width
    page.set_viewport_size(DESKTOP)


def test_a_page_of_the_web_is_read_here_and_kept(page: Page, house: House) -> None:
    """At its passage; kept in the library, it outlives its chat until it is forgotten there."""
    chat = answered(house)
    library = Library(house.home / "data")
    library.remember(Stored(URL, URL, "Tides", "Low water: 06:00. " + "Ebb and flood. " * 20), chat)
    show(page, house, chat)
    page.locator(".answer .chip").first.click()
    page.locator("#card").get_by_role("button", name="Read here").click()
    reader = page.locator("#reader")
    expect(reader.locator("mark").first).to_have_text("Low water: 06:00")
    reader.get_by_role("button", name="Keep in library").click()
    expect(reader).to_contain_text("In your library.")
    for layer in (reader, page.locator("#card")):
        page.keyboard.press("Escape")
        expect(layer).to_be_hidden()
    house.call("DELETE", f"/api/sessions/{chat}")
    assert [found["url"] for found in library.named("tide.example", 9)] == [URL]
    opened(page, "library")
    for name in ("Forget pages", "Forget it"):
        page.get_by_role("button", name=name).click()
    expect(page.get_by_text("Pages that were opened")).to_have_count(0)
    assert not library.named("tide.example", 9)


def test_what_was_never_checked_has_no_verdict(page: Page, house: House) -> None:
    """A log from before there were verdicts: quotes are shown, and nothing is said of them."""
    show(page, house, answered(house))
    chips, card = page.locator(".answer .chip"), page.locator("#card")
    for at, quote in enumerate(["Low water: 06:00", "High water: 12:00", ""]):
        chips.nth(at).hover()
        expect(card.locator("strong")).to_have_text("Tides")
        expect(card.locator("blockquote")).to_have_text([quote] if quote else [])
        expect(chips.nth(at)).to_have_accessible_name("Source 1: tide.example")
        page.keyboard.press("Escape")
    expect(page.locator(".verdict, .chip .icon")).to_have_count(0)
    expect(page.locator(".source .state")).to_have_text("cited, not checked")


def test_a_chat_without_sources_stands_in_the_middle(page: Page, house: House) -> None:
    """Its answers and the box under them, where one with sources leaves room beside them."""
    middles = []
    for chat in (answered(house, citations=[], sources=[]), checked(house)):
        show(page, house, chat)
        main, answer, box = (place(page.locator(f)) for f in ("#main", ".answer", "#composer"))
        assert abs(answer["x"] - box["x"]) < 2
        middles.append(abs(box["x"] + box["width"] / 2 - main["x"] - main["width"] / 2))
    assert middles[0] < 2 < middles[1]
