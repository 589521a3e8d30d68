"""Search over chats: any language, by turn, with a snippet; nothing deleted or temporary."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.log import EventLog
from searchloop.agent.log.find import PARTS, FoundTurn
from tests.waiting import LATE, until


@pytest.fixture
def log(store: Path | str) -> Iterator[EventLog]:
    """An empty log, on each store."""
    opened = EventLog(store)
    opened.chat_search.moment = LATE  # which a slow machine may need
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def quick_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventLog]:
    """One log for many generated texts."""
    opened = EventLog(tmp_path_factory.mktemp("log") / "sessions.sqlite3")
    yield opened
    opened.close()


def chat(log: EventLog, *turns: tuple[str, str], **settings: Any) -> str:
    """A session of questions and answers; the answers have one source."""
    session = log.create_session(model="m:x", settings=settings).id
    for question, answer in turns:
        ask(log, session, question, answer)
    return session


def ask(log: EventLog, session: str, question: str, answer: str, **more: Any) -> int:
    """Appends a turn; returns its number."""
    source = {"url": "https://example.org/fjord", "title": "Sognefjorden", "state": "opened"}
    said = {"text": answer, "sources": [source], "citations": []}
    events = [("user_message", {"text": question, **more}), ("message", said)]
    return log.append(session, events)[0].seq


def only(found: dict[str, list[FoundTurn]]) -> FoundTurn:
    """The one place that was found."""
    [[one]] = found.values()
    return one


LANGUAGES = {
    "en": ("How do heat pumps work in winter?", "They move heat.", "heat pump"),
    "de": ("Wie heizt man?", "Mit größeren Wärmepumpen geht es gut.", "warmepumpe"),
    "fr": ("Où vont-ils ?", "Ils ont mangé près du château hier.", "chateaux"),
    "pl": ("Gdzie?", "W Łodzi stoją czajniki.", "lodzi"),
    "tr": ("Nerede?", "İstanbul'da güzel ağaçlar var.", "istanbul"),
    "ru": ("Где?", "Самовары кипят на столе.", "самовар"),
    "el": ("Πού;", "Στη θάλασσα κολυμπούν δελφίνια.", "θαλασσα"),
    "zh": ("首都在哪里?", "北京是中华人民共和国的首都。", "人民共和国"),
    "ja": ("富士山はどこ?", "静岡県と山梨県の間にあります。", "山梨"),
    "ko": ("어디에?", "서울은 대한민국의 수도입니다.", "대한민국"),
    "th": ("ที่ไหน", "กรุงเทพเป็นเมืองหลวงของไทย", "เมืองหลวง"),
    "ar": ("أين؟", "القاهرة عاصمة مصر.", "عاصمة"),
    "he": ("איפה?", "ירושלים היא בירת ישראל.", "ירושלים"),
    "nfd": ("Wo?", "In Ko\u0308ln am Rhein.", "köln"),
    "code": ("What is it?", "Call read_file_text() with 3.11 on port 8,321.", "read_file_text"),
    "number": ("How many?", "There were 1,234,567 people.", "1234567"),
}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_language_is_found(log: EventLog, lang: str) -> None:
    """With other endings, without accents, inside a run without spaces; the words are marked."""
    question, answer, query = LANGUAGES[lang]
    other = {name: said for name, said in LANGUAGES.items() if name != lang}
    for said in other.values():
        chat(log, said[:2])
    session = chat(log, ("Hello", "Good day"), (question, answer))
    found = log.find(query)
    assert list(found) == [session]
    [one] = found[session]
    assert one.turn == 3
    assert one.part in PARTS
    assert one.words
    assert [one.snippet[start:end] for start, end in one.marks]


def test_each_part_of_a_turn_is_found(log: EventLog) -> None:
    """Question, answer, source and title, each named; the marks are places in the snippet."""
    session = chat(log, ("Where are whales?", "Near Bergen, in deep water."))
    log.update_session(session, title="Holiday plans")
    told = {word: only(log.find(word)) for word in ("whale", "bergen", "sognefjorden", "holidays")}
    assert [(one.turn, one.part) for one in told.values()] == [
        (1, "question"),
        (1, "answer"),
        (1, "sources"),
        (0, "title"),
    ]
    assert told["whale"].snippet == "Where are whales?"
    assert told["whale"].marks == ((10, 16),)
    assert told["whale"].words == ("whales",)


def test_the_snippet_stands_around_the_words(log: EventLog) -> None:
    """However long the answer is; words that stand together win over those that come first."""
    long = "Rain falls. " * 2_000
    chat(log, ("Why?", f"A kettle. {long} The kettle is by the samovar. {long}"))
    one = only(log.find("kettle samovar"))
    assert [one.snippet[start:end] for start, end in one.marks] == ["kettle", "samovar"]
    assert len(one.snippet) < 300
    assert one.snippet.startswith("… ")
    assert one.snippet.endswith(" …")
    assert one.marks[0][0] <= 50  # a narrow list shows little more


def test_words_may_be_spread_over_question_and_answer(log: EventLog) -> None:
    """All of them in one turn; a chat that has them in different turns is another matter."""
    session = chat(log, ("About kettles?", "They boil in a samovar."))
    chat(log, ("About kettles?", "No."), ("And so?", "A samovar."))
    assert list(log.find("kettle samovar")) == [session]


def test_a_word_may_be_cut_short_while_it_is_typed(log: EventLog) -> None:
    """The last one only, and not after a blank."""
    session = chat(log, ("Sognefjord?", "Yes, the thermodynamics of it."))
    assert list(log.find("thermodyn")) == [session]
    assert log.find("thermodyn ") == {}
    assert log.find("thermodyn yesterday") == {}


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_can_be_searched(quick_log: EventLog, said: str, query: str) -> None:
    """Whatever people wrote and look for."""
    session = chat(quick_log, (said, query))
    found = quick_log.find(query, 5)
    for turns in found.values():
        for one in turns:
            assert all(0 <= start < end <= len(one.snippet) for start, end in one.marks)
    quick_log.delete_session(session)


@given(st.text("\\w_.@&,+#'’·-abc 012ßÄ山ก", min_size=1, max_size=30))
def test_what_was_written_is_found_by_itself(quick_log: EventLog, said: str) -> None:
    """A query of the very words finds their turn, if they have any."""
    session = chat(quick_log, (said, ""))
    found = quick_log.find(f"{said} ")
    assert session in found or not found
    quick_log.delete_session(session)


def test_deleted_and_temporary_chats_are_never_found(log: EventLog) -> None:
    """Neither by words nor in the tables of the index."""
    kept = chat(log, ("A samovar?", "Yes."))
    gone = chat(log, ("A secretsamovar?", "Yes."))
    chat(log, ("A temporarysamovar?", "Yes."), temporary=True)
    assert list(log.find("secretsamovar")) == [gone]
    log.delete_session(gone)
    assert log.find("secretsamovar") == {}
    assert log.find("temporarysamovar") == {}
    assert list(log.find("samovar")) == [kept]
    with log.chat_search._db.reading() as db:
        rows = db.execute("SELECT DISTINCT session FROM found_turns").fetchall()
    assert [tuple(row) for row in rows] == [(kept,)]


def test_removed_turns_are_not_found_until_they_are_back(log: EventLog) -> None:
    """What a person took out of a chat; an earlier version of a question stays findable."""
    session = chat(log, ("First samovar?", "Yes."), ("Second kettle?", "No."))
    other = ask(log, session, "Third teapot?", "Maybe.", replaces=3)
    assert {log.find(w)[session][0].turn for w in ("samovar", "kettle", "teapot")} == {1, 3, other}
    log.append(session, [("turn_removed", {"turn": 3})])
    assert log.find("kettle") == {}
    assert only(log.find("teapot")).turn == other
    log.append(session, [("turn_restored", {"turn": 3})])
    assert only(log.find("kettle")).turn == 3


def test_what_takes_long_goes_on_in_the_background(log: EventLog) -> None:
    """An old home is indexed on a thread; a search meanwhile finds what is done, newest first."""
    sessions = [chat(log, (f"Samovar number {n}?", "Yes.")) for n in range(30)]
    log.chat_search.index(0.0)
    until(lambda: len(log.find("samovar", 50)) == 30)
    assert set(log.find("samovar", 50)) == set(sessions)
    assert log.chat_search.index(1.0)


def test_a_chat_that_is_deleted_while_it_is_indexed_stays_deleted(log: EventLog) -> None:
    """The index asks for the session in the transaction that would store it."""
    session = chat(log, ("A samovar?", "Yes."))
    log.delete_session(session)
    with suppress(AssertionError):
        log.chat_search._index(session, 2)
    assert log.find("samovar") == {}
