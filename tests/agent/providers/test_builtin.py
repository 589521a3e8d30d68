"""builtin:extractive: searches, reads and quotes through the loop, whatever the page is made of."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop import Agent, Answer, AnswerError
from searchloop.agent.providers.builtin import SENTENCES, Extractive, query_of, sentences_for
from searchloop.agent.providers.builtin.quotes import best_quotes
from searchloop.agent.types import Finished, Limits, Message, Request, ToolCall, ToolSpec
from searchloop.agent.verdicts.check import check
from searchloop.agent.verdicts.page import Page
from tests.agent.scripted import SearchApp, found, page, settings
from tests.growth import check_growth
from tests.tables import cut, each_row

SEARCH = ToolSpec("web_search", "Search the web.", {"type": "object"})
PAGES = {
    "https://a.example/": (
        "# Tides\n\nThe **spring tide** follows the full moon by about two days.[12] I know.\n\n"
        "- The `SEARCHLOOP_HOME` folder holds nothing about the spring tide or the moon.\n"
        "```\nspring tide moon days in code that is never quoted, not even once\n```\n"
        "| spring | tide | moon | days |\n| --- | --- | --- | --- |\n"
    ),
    "https://b.example/": "A neap tide comes with the moon's [first quarter](https://q.example/).",
    "https://c.example/": "Cakes are baked in ovens, and this page has nothing about water at all.",
}


def world(pages: dict[str, str]) -> SearchApp:
    """A backend that finds these pages and opens them."""

    def opened(asked: dict[str, Any]) -> Any:
        answer = page(pages[asked["url"]])
        assert callable(answer)
        return answer(asked)

    return SearchApp({"/api/web-search": found(*pages), "/api/open-page": opened})


def ask(home: Path, app: SearchApp, question: str, **options: Any) -> Answer:
    """One answer of the built-in model, or what it says where it found nothing."""
    own = settings(home, SEARCHLOOP_MODEL="builtin:extractive")
    with Agent(own, search_backend=app) as agent:
        try:
            return agent.ask(question, **{"search": "local", **options})
        except AnswerError as error:
            return error.answer


def pages_of(pages: dict[str, str]) -> list[tuple[int, str]]:
    """Pages as the model has read them, numbered."""
    return list(enumerate(pages.values(), 1))


def quotes(answer: Answer) -> list[str]:
    """What stands between typographic quotation marks."""
    return re.findall("“([^”]*)”", answer.text)


def test_end_to_end(tmp_path: Path) -> None:
    """It searches once, opens what was found, and answers in verified, cited quotes."""
    app = world(PAGES)
    answer = ask(tmp_path, app, "When does the spring tide follow the full moon?")
    assert [path for path, _ in app.requests].count("/api/web-search") == 1
    assert [path for path, _ in app.requests].count("/api/open-page") == 3
    assert quotes(answer)[0] == "The spring tide follows the full moon by about two days."
    assert answer.citations
    assert all(c.verified for c in answer.citations)
    assert {c.url for c in answer.citations} <= {"https://a.example/", "https://b.example/"}
    assert "ovens" not in answer.text
    assert "in code" not in answer.text
    for citation in answer.citations:
        for start, end in citation.spans:
            assert answer.text[start:end] == f"[{citation.n}]"
    assert {s.url: s.state for s in answer.sources}["https://c.example/"] == "opened"
    assert (answer.usage.searches, answer.usage.pages) == (1, 3)


def test_names_are_quoted_as_they_are(tmp_path: Path) -> None:
    """Marks of Markdown go, underscores inside a name stay."""
    answer = ask(tmp_path, world(PAGES), "What does the SEARCHLOOP_HOME folder hold?")
    assert "The SEARCHLOOP_HOME folder holds nothing" in answer.text


def test_switched_off_it_says_what_it_is(tmp_path: Path) -> None:
    """Without search there is nothing to quote, and nothing is asked for."""
    app = world(PAGES)
    answer = ask(tmp_path, app, "When is spring tide?", search="off")
    assert "not a language model" in answer.text
    assert (app.requests, answer.citations) == ([], ())


def test_each_engine_and_each_page_that_failed_has_its_line(tmp_path: Path) -> None:
    """What stood in the way is said first, then by whom and why, with what to do."""
    failing = found(status="error")
    failing["attempts"].append({"engine": "zinc", "status": "empty", "ms": 1})
    answer = ask(tmp_path, SearchApp({"/api/web-search": failing}), "When is spring tide?").text
    assert answer == (
        "The web search failed, so there is nothing to quote.\n\n"
        "- tin: The engine is down. Wait.\n- zinc: empty"
    )
    refusing = {"code": "blocked", "message": "It wants a person.", "remedy": "Open it yourself."}
    shut = {"url": "https://a.example/", "title": "", "status": "blocked", "error": refusing}
    app = SearchApp(
        {"/api/web-search": found("https://a.example/"), "/api/open-page": {**shut, "content": ""}}
    )
    assert ask(tmp_path, app, "When is spring tide?").text == (
        "The search found pages, but none of them could be read.\n\n"
        "- https://a.example/: It wants a person. Open it yourself."
    )
    app = world({"https://c.example/": PAGES["https://c.example/"]})
    assert "No sentence of the pages" in ask(tmp_path, app, "When is spring tide?").text


UNREAD = page("", status="blocked")
CASES: list[tuple[str, Any, Any, str | None, str]] = [
    ("the engine failed", found(status="error"), UNREAD, "nothing_found", "local"),
    ("it is blocked", found(status="blocked"), UNREAD, "nothing_found", "local"),
    ("unknown words", found(status="empty"), UNREAD, "nothing_found", "local:tin"),
    ("no page can be read", found("https://a.example/"), UNREAD, "nothing_found", "local:tin"),
    ("no sentence fits", found("https://a.example/"), page("Cakes."), "nothing_found", "local:tin"),
    ("a quote", found("https://a.example/"), page(PAGES["https://a.example/"]), None, "local:tin"),
]


@pytest.mark.parametrize(("what", "search", "opened", "code", "path"), CASES)
def test_nothing_answered_has_its_own_reason(
    tmp_path: Path, what: str, search: Any, opened: Any, code: str | None, path: str
) -> None:
    """An answer without an answer is incomplete, its path names only who answered."""
    app = SearchApp({"/api/web-search": search, "/api/open-page": opened})
    answer = ask(tmp_path, app, "When is spring tide?")
    assert (answer.error or {}).get("code") == code, what
    assert "found" not in (answer.error or {}).get("message", "")  # some were: the text says more
    assert (answer.reason, answer.search_path) == ("incomplete" if code else "stop", path)


def test_a_page_is_read_once(tmp_path: Path) -> None:
    """Two parts of one page are one page: the third place goes to another."""
    text = "The spring tide follows the full moon by about two days."
    app = world(
        dict.fromkeys(("https://a.example/#x", "https://a.example/#y", "https://b.example/"), text)
    )
    ask(tmp_path, app, "When is spring tide?")
    opened = [asked["url"] for path, asked in app.requests if path == "/api/open-page"]
    assert sorted(opened) == ["https://a.example/#x", "https://b.example/"]


def test_a_topic_is_no_echo(tmp_path: Path) -> None:
    """Pages that hold the two words asked for are quoted; one that repeats a question is not."""
    pages = {"https://a.example/": "Spring tide is high.\n\nHow high can a spring tide get, then?"}
    assert quotes(ask(tmp_path, world(pages), "spring tide"))[0] == "Spring tide is high."
    asked = quotes(ask(tmp_path, world(pages), "How high can a spring tide get?"))
    assert asked == ["Spring tide is high."]


def test_a_limit_ends_in_what_was_read(tmp_path: Path) -> None:
    """Asked to answer now it answers; pages that no step was left for are not said to be none."""
    answer = ask(tmp_path, world(PAGES), "When is spring tide?", limits=Limits(steps=2))
    assert answer.reason == "limit"
    assert "spring tide" in answer.text
    answer = ask(tmp_path, world(PAGES), "When is spring tide?", limits=Limits(steps=1))
    assert "The search found pages, but none of them could be read." in answer.text
    assert "- https://a.example/" in answer.text


def test_call_ids_are_unique_over_turns(tmp_path: Path) -> None:
    """However many turns a session has, no two calls share an id."""
    own = settings(tmp_path, SEARCHLOOP_MODEL="builtin:extractive")
    with Agent(own, search_backend=world(PAGES)) as agent:
        session = agent.ask("When is spring tide?", search="local").session_id
        for question in ("And neap tide?", "And the moon?"):
            agent.ask(question, session=session)
        events = agent.log.read(session)
    ids = [e.data["call_id"] for e in events if e.type == "tool_call"]
    assert len(ids) == len(set(ids)) == 12


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("When does the spring tide follow the full moon?", "spring tide follow full moon"),
        ("Who is it?", "Who is it?"),
        ("Wann ist die Springflut?", "Springflut"),
        ("x " * 500, " ".join(["x"] * 24)),
    ],
)
def test_the_words_worth_searching_for(question: str, query: str) -> None:
    """Common words go, unless nothing is left; a long question is cut."""
    assert query_of(question) == query


HOSTILE = {
    "bars and spaces": "| " * 50_000,
    "stars": "*" * 100_000,
    "brackets": "[" * 100_000,
    "links": "[a](" * 25_000,
    "blank lines": "\n " * 50_000,
    "spaces": " " * 100_000,
    "vertical tabs": "\n" + "\v" * 100_000 + "x",
    "fences": "```\n" * 25_000,
    "quotes": "“" * 100_000,
    "marks": "[1] " * 25_000,
    "lines": "spring tide moon line of text that is long enough\n" * 2_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_page_can_stall_it(tmp_path: Path, name: str) -> None:
    """A hundred kilobytes of anything are read, quoted and checked, at the cost of their length."""
    question = "When does the spring tide follow the full moon?"

    def answered(text: str) -> None:
        pages = {"https://bad.example/": text, **PAGES}
        answer = ask(tmp_path, world(pages), question)
        assert answer.reason == "stop"
        assert all(c.verified for c in answer.citations)

    check_growth(answered, HOSTILE[name], clock=time.process_time)


WORDS = ["the spring tide ", "follows the moon ", "in 1932", ", and so on for a long while ", "é"]
MARKS = [
    *cut("** _ ` [2] [99] [tide](http://x/)"),
    "[1] ",
    "| ",
    "- ",
    "# ",
    "~~~ ",
    "```\n",
]
SIGNS = ["“", "”", '"', "«", "’", "(x)", "snake_case ", "2 * 3 ", "…", ". ", "! ", "\n", "\n\n"]
PIECES = st.sampled_from([*WORDS, *MARKS, *SIGNS])


@given(st.lists(PIECES, min_size=3, max_size=60))
def test_every_quote_is_in_the_page(pieces: list[str]) -> None:
    """Whatever the page: a quote is its own words, found again when it is checked."""
    text = "".join(pieces)
    call = ToolCall("c1", "open_page", {"url": "http://p/"})
    messages = [
        Message("user", "spring tide moon 1932"),
        Message("assistant", "", tool_calls=(call,)),
        Message(
            "tool",
            text,
            tool_call_id="c1",
            tool_name="open_page",
            details={"n": 1, "text": [0, len(text)]},
        ),
    ]

    async def answer() -> str:
        request = Request("extractive", messages, tools=(SEARCH,), answer_now=True)
        last = [event async for event in Extractive().stream(request)][-1]
        assert isinstance(last, Finished)
        return last.message.content

    for quote in re.findall("“([^”]*)”", asyncio.run(answer())):
        assert check(f"“{quote}”", Page(text)).verdict in ("quoted", "supported"), quote


@each_row(
    ("question", "language"),
    [
        ("How does the search switch decide?", "en"),
        ("Was ist Photosynthese?", "de"),
        ("Die Hauptstadt von Frankreich", "de"),
        ("welche modelle suchen in der bibliothek", "de"),
        ("Python 的 GIL 是什么？", "zh"),
        ("What does 道 mean?", "en"),
        ("What does 'und' mean, or 'ist'?", "en"),
        ("Who said ich bin ein Berliner?", "en"),
        ("検索はどこで行われますか？", "ja"),
        ("首都はどこですか", "ja"),
        ("¿Quién escribió Hamlet?", "es"),
        ("Quelle est la capitale de la France ?", "fr"),
        ("ما هي عاصمة فرنسا؟", "ar"),
        ("Какой город столица Франции?", "ru"),
        ("Wer erfand den Buchdruck?", "de"),
        ("What is Die Hard about?", "en"),
        ("Where is the Rue de la Paix?", "en"),
        ("پایتخت فرانسه کجاست؟", "en"),
        ("Яке місто є столицею Франції?", "en"),
        ("프랑스의 수도는 어디입니까?", "en"),
        ("1 + 1 = ?", "en"),
        ("Wie is de koning van het land?", "en"),
        ("Review this\n" + "- x = y\n" * 9 + "+ x = y # was z", "en"),
        ("", "en"),
    ],
)
def test_it_speaks_the_language_of_the_question(question: str, language: str) -> None:
    """One of eight; a question in another language gets English."""
    assert sentences_for(question) is SENTENCES[language]


@pytest.mark.parametrize(
    ("question", "language"),
    [("Wann folgt die spring tide auf den moon?", "de"), ("spring tide 是什么 moon？", "zh")],
)
def test_quotes_stay_in_their_own_language(tmp_path: Path, question: str, language: str) -> None:
    """Only what is said around them is in that of the question; so is that nothing was found."""
    say = SENTENCES[language]
    answer = ask(tmp_path, world(PAGES), question)
    assert answer.text.startswith(say.found)
    assert any("follows the full moon" in quote for quote in quotes(answer))
    assert ask(tmp_path, world({}), question).text == say.nothing
    assert ask(tmp_path, world(PAGES), question, search="off").text == say.unsearched


CAPITALS = {
    "https://a.example/": "# Letters\n\nGerman has a capital sharp s since 2017. A capital letter "
    "begins each sentence. The word capital has several meanings.",
    "https://b.example/": "# Japan\n\nTokyo is the capital of Japan. It has 14 million people.",
}
NOT_THERE = [
    ("What is the capital of France?", "en"),
    ("what is the capital of france", "en"),
    ("Who painted the Mona Lisa?", "en"),
    ("How tall is Mount Everest?", "en"),
    ("Was ist die Hauptstadt von Frankreich?", "de"),
    ("¿Cuál es la capital de Francia?", "es"),
    ("Quelle est la capitale de la France ?", "fr"),
    ("法国的首都在哪里？", "zh"),
    ("フランスの首都はどこですか？", "ja"),
    ("ما هي عاصمة فرنسا؟", "ar"),
    ("Какой город столица Франции?", "ru"),
]


@pytest.mark.parametrize(("question", "language"), NOT_THERE)
def test_what_no_page_answers_is_said_to_be_missing(
    tmp_path: Path, question: str, language: str
) -> None:
    """Pages that share a word with the question are not quoted; the model says so in its words."""
    answer = ask(tmp_path, world(CAPITALS), question)
    assert answer.text == SENTENCES[language].no_match
    assert answer.citations == ()


ANSWERED = [
    ("What is the capital of Japan?", "Tokyo is the capital of Japan."),
    ("Since when does German have a capital sharp s?", "since 2017"),
    ("日本的首都在哪里？", "东京是日本的首都。"),
    ("日本の首都はどこですか？", "日本の首都は東京です。"),
    ("Как называется столица Японии?", "Токио — столица Японии."),
    ("Welche Stadt ist Hauptstadt Japans?", "Tokio ist die Hauptstadt von Japan."),
    ("¿Qué ciudad es la capital del Japón?", "Tokio es la capital de Japón."),
    ("ما عاصمة اليابان؟", "طوكيو هي عاصمة اليابان."),
]
ELSEWHERE = {
    "zh": "巴黎是法国的首都。东京是日本的首都。北京是中国的首都。",
    "ja": "パリはフランスの首都です。日本の首都は東京です。京都は古い都です。",
    "ru": "Париж — столица Франции. Токио — столица Японии. Волга — большая река.",
    "de": "Paris liegt in Frankreich. Tokio ist die Hauptstadt von Japan. Der Rhein ist lang.",
    "es": "París está en Francia. Tokio es la capital de Japón. El Ebro es un río largo.",
    "ar": "باريس مدينة في فرنسا. طوكيو هي عاصمة اليابان. النيل نهر طويل.",
}


@each_row(("question", "words"), ANSWERED)
def test_the_page_that_answers_comes_before_those_that_mention(question: str, words: str) -> None:
    """In scripts with and without spaces, whatever the endings and articles of the words."""
    own = [text for text in ELSEWHERE.values() if words in text]
    pages = [*pages_of(CAPITALS), *enumerate(own, 3)]
    for order in (pages, pages[::-1]):
        found = best_quotes(question, order)
        assert any(words in quote.text for quote in found), found


PLANS = (
    "# Plans\n\n| Plan | Price per month | Storage |\n|---|---|---|\n| Team | $29 | 500 GB |\n"
    "| **Business** | $79 | [2 TB](https://a.example/) |\n\nAll plans renew every month.\n\n"
    "| | 2021 | 2020 |\n|---|---|---|\n| Revenue | 648.3 | 602.7 |\n"
)
SEATS = (  # `pro` is a common word of Czech
    "| Feature | Free | Pro |\n|---|---|---|\n| Seats | 1 | 10 |\n| Help | none | phone |\n"
)


@each_row(
    ("question", "said"),
    [
        ("How much does the Team plan cost per month?",
         "Plan: “Team” · Price per month: “$29” · Storage: “500 GB”"),
        ("What storage does the Business plan have?",
         "Plan: “Business” · Price per month: “$79” · Storage: “2 TB”"),
        ("What was the revenue in 2021?", "“Revenue” · 2021: “648.3” · 2020: “602.7”"),
        ("The seats of the Pro plan", "Feature: “Seats” · Free: “1” · Pro: “10”"),
    ],
)  # fmt: skip
def test_a_row_of_a_table_is_quoted_with_its_heads(question: str, said: str) -> None:
    """Each cell in quotation marks behind the head of its column, so that a check finds it."""
    found = [quote.said for page in (PLANS, SEATS) for quote in best_quotes(question, [(1, page)])]
    assert said in found
    assert check(said, Page(f"{PLANS}\n{SEATS}")).verdict in ("quoted", "supported")


KOREAN = [
    "# 백운사\n\n백운사는 1398년에 세워졌다. 대웅전의 높이는 12미터이다. 주지 스님은 혜광이다.",
    "# 한빛강\n\n한빛강은 설악산에서 시작하여 동해로 흐른다. 강의 길이는 87킬로미터이다. "
    "1972년에 댐이 완공되었다.",
    "# 산책\n\n백운사 근처를 걷는 것을 좋아한다. 한빛강 옆 카페의 커피는 맛있다.",
    "# 김도윤\n\n김도윤은 1921년에 부산에서 태어난 화가이다. 그는 1987년에 서울에서 사망했다.",
]


@each_row(
    ("question", "words"),
    [
        ("백운사는 언제 세워졌나요?", "1398"),
        ("한빛강은 어디에서 시작합니까?", "설악산"),
        ("한빛강의 길이는 얼마입니까?", "87"),
        ("김도윤은 어디에서 태어났나요?", "부산"),
        ("김도윤은 언제 사망했습니까?", "1987"),
        ("대한민국의 수도는 어디인가요?", ""),
        ("백운사의 입장료는 얼마인가요?", ""),
        ("카페의 주인은 누구인가요?", ""),
    ],
)
def test_korean_words_match_whatever_their_endings(question: str, words: str) -> None:
    """A verb has one ending in the question and another one in the answer."""
    found = " ".join(quote.text for quote in best_quotes(question, [*enumerate(KOREAN, 1)]))
    assert words in found if words else not found


@given(st.permutations(list(PAGES.values())), st.text(max_size=40))
def test_a_choice_is_stable_and_bounded(texts: list[str], question: str) -> None:
    """Whatever is asked of whatever pages: at most five sentences, each once, in their order."""
    pages = list(enumerate(texts, 1))
    found = best_quotes(question, pages)
    assert found == best_quotes(question, pages)
    assert len(found) <= 5
    assert [quote.n for quote in found] == sorted(quote.n for quote in found)
