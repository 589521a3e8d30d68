"""The source table: numbers, states, and which addresses may be opened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.log.events import Event, messages_from, result_data
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.types import Message, Source, SourceState, ToolResult
from searchloop.analysis.addresses import url_key

HOSTS = st.sampled_from(["https://a.example/", "https://b.example/x", "http://c.example/?q=1"])
STATES: st.SearchStrategy[SourceState] = st.sampled_from(["found", "opened", "cited"])


def test_numbers_come_in_order_of_appearance() -> None:
    """The same address keeps its number however often it is met; one that was only listed gets its
    number when it first matters."""
    table = SourceTable()
    assert [table.meet(u).n for u in ("http://a/", "http://b/", "http://a/")] == [1, 2, 1]
    assert table.numbered(2) == Source("http://b/", "", "found", 2)
    assert (table.numbered(3), len(table)) == (None, 2)
    assert table.meet("http://c/", number=False).n is None
    assert [table.meet(u).n for u in ("http://d/", "http://c/")] == [3, 4]


def test_a_state_only_grows() -> None:
    """Found, opened, cited: a page that was read stays read when a search finds it again."""
    table = SourceTable()
    table.meet("http://a/", "A", "opened")
    assert table.meet("http://a/", "Other").state == "opened"
    cited = table.meet("http://a/", state="cited")
    assert (cited.state, cited.title, cited.n) == ("cited", "A", 1)


@given(st.lists(st.lists(st.tuples(HOSTS, STATES, st.booleans()), max_size=4), max_size=8))
def test_numbers_are_the_same_after_a_reload(
    turns: list[list[tuple[str, SourceState, bool]]],
) -> None:
    """The table folded from the log gives every address the number it had while it was live."""
    live = SourceTable()
    log: list[Event] = []
    for number, turn in enumerate(turns):
        met = tuple(live.meet(url, "", state, number=n) for url, state, n in turn)
        call = {"id": f"c{number}", "name": "t", "arguments": {}, "problem": None}
        log.append(Event(len(log), "message", {"text": "", "tool_calls": [call]}, 0.0))
        result = ToolResult(f"c{number}", "t", "", sources=met)
        log.append(Event(len(log), "tool_result", result_data(result), 0.0))
    again = SourceTable.of(messages_from(log))
    for url in ("https://a.example/", "https://b.example/x", "http://c.example/?q=1"):
        assert again.met(url) == live.met(url)
        if live.met(url):
            assert again.meet(url, number=False) == live.meet(url, number=False)
    assert len(again) == len(live)


def test_a_page_that_once_had_two_numbers_keeps_both() -> None:
    """Chats of before know addresses as two pages that are one now; no number is used again."""
    urls = ("https://a.example/x", "https://www.a.example/x?ref=home", "https://b.example/")
    old = tuple(Source(url, "", "opened", n) for n, url in enumerate(urls, 1))
    table = SourceTable.of([Message("tool", "", sources=old)])
    numbered = [table.numbered(n) for n in (1, 2, 3)]
    assert [source and url_key(source.url) for source in numbered] == [*map(url_key, urls)]
    assert table.meet("https://c.example/").n == 4


def test_a_new_run_touches_nothing_yet() -> None:
    """`touched` lists this run's sources, numbered ones first; the past is not in it."""
    table = SourceTable.of([Message("tool", "", sources=(Source("http://old/", n=1),))])
    assert table.touched() == ()
    table.meet("http://listed/", number=False)
    table.meet("http://new/")
    assert [s.url for s in table.touched()] == ["http://new/", "http://listed/"]


def test_what_may_be_opened() -> None:
    """Addresses of the user, of results and of links on pages that were read; no others."""
    table = SourceTable.of(
        [
            Message("user", "Read https://asked.example/a, please."),
            Message("assistant", "I like https://invented.example/"),
            Message("tool", "", details={"links": ["https://linked.example/"]}),
            Message(
                "tool", "https://in-text.example/", sources=(Source("https://found.example/"),)
            ),
        ]
    )
    for name in ("asked.example/a", "linked.example/", "found.example/"):
        assert table.met(f"https://{name}")
    for name in ("invented.example/", "in-text.example/", "asked.example/", "asked.example/a?x=1"):
        assert not table.met(f"https://{name}")


def test_the_text_of_a_page_is_kept_once_and_bounded() -> None:
    """Parts add up, the same part is not kept twice, and no page takes more than its share."""
    table = SourceTable()
    for _ in range(3):
        table.read("http://a/", "first part")
        table.read("http://a/#x", "second part")
    assert table.text("http://a/") == "first part\nsecond part"
    for n in range(40):
        table.read("http://b/", f"{n}: " + "x" * 40_000)
    text = table.text("http://b/") or ""
    assert 40_000 < len(text) <= 400_000
    assert "39: " in text
    assert table.text("http://c/") is None
