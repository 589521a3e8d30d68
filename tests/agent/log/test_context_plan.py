"""The context plan: what is sent fits the window, begins like before, and holds the question."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from searchloop.agent.errors import ProviderError
from searchloop.agent.log.events import size_of
from searchloop.agent.log.window import brief, fit
from searchloop.agent.text import tokens
from searchloop.agent.tools.dispatcher import Fence
from searchloop.agent.types import Budget, Citation, Mark, Message, ToolCall
from tests.agent.scripted import check_calls_are_answered

FENCE = Fence("mark")
TRAM = "The tram to Lindhaug runs again since Monday."


def user(text: str) -> Message:
    """A question."""
    return Message("user", text)


def page(n: int, text: str) -> list[Message]:
    """A step that reads a page: the call and its result."""
    url = f"https://a.example/{n}"
    asked = ToolCall(f"call-{n}", "open_page", {"url": url})
    head = f"[{n}] Page {n}\n{url}\nThe whole page. Cite it as [{n}].\n"
    content, start, end = FENCE.around_at(text, "page", head)
    details = {"kind": "page", "n": n, "url": url, "text": [start, end]}
    return [
        Message("assistant", "", tool_calls=(asked,)),
        Message("tool", content, tool_call_id=asked.id, tool_name="open_page", details=details),
    ]


def search(n: int, results: int = 6) -> list[Message]:
    """A step that searches."""
    asked = ToolCall(f"call-{n}", "web_search", {"query": f"tram {n}"})
    rows = [{"n": i, "url": f"https://a.example/{i}", "title": f"Page {i}"} for i in range(results)]
    lines = "\n".join(f"[{r['n']}] {r['title']}\n{r['url']}\n{'snippet ' * 30}" for r in rows)
    content = f"{results} results.\n{FENCE.around(lines, 'search results')}"
    details: dict[str, Any] = {"kind": "search", "query": f"tram {n}", "results": rows}
    return [
        Message("assistant", "", tool_calls=(asked,)),
        Message("tool", content, tool_call_id=asked.id, tool_name="web_search", details=details),
    ]


def answer(text: str, n: int | None = None) -> Message:
    """An answer, perhaps one that cites page `n` for all of it."""
    cited = (
        (Citation(n, f"https://a.example/{n}", marks=(Mark((len(text), len(text))),)),) if n else ()
    )
    return Message("assistant", text, citations=cited)


def filler(size: int) -> str:
    """Sentences that answer nothing."""
    return ("Nothing of note was said about the weather that day. " * (size // 50 + 1))[:size]


def research(turns: int, pages: int = 2, size: int = 8000) -> list[Message]:
    """A session that searches and reads in every turn."""
    said: list[Message] = []
    for turn in range(turns):
        said.append(user(f"Question {turn}: when does the tram to Lindhaug run?"))
        said += search(1000 + turn)
        for i in range(pages):
            n = turn * pages + i + 1
            said += page(n, filler(size // 2) + TRAM + filler(size // 2))
        said.append(answer(f"{TRAM} [{turn * pages + 1}]", turn * pages + 1))
    return said


def requests(messages: list[Message]) -> list[list[Message]]:
    """The transcript as it was at each request."""
    points = [i for i, m in enumerate(messages) if m.role == "assistant"]
    return [messages[:i] for i in points]


def texts(messages: list[Message]) -> list[tuple[str, str]]:
    """What is compared of messages."""
    return [(m.role, m.content) for m in messages]


def test_cuts_are_rare() -> None:
    """Most requests begin exactly as the one before: the server's cache of it holds."""
    budget, broken, before = Budget(16_384, 700), 0, [("", "")]
    asked = requests(research(12, 3, 4000))
    for messages in asked:
        now = texts(fit(messages, budget).messages)
        broken += now[: len(before)] != before and before != [("", "")]
        before = now
    assert len(asked) > 50
    assert broken <= len(asked) // 6


def test_a_used_page_keeps_what_was_used() -> None:
    """A page that shrinks keeps its number, title, address and the passage that was cited."""
    said = [user("When?"), *page(1, filler(3000) + TRAM + filler(3000)), answer(f"{TRAM} [1]", 1)]
    short = brief(said[2], said).content
    assert short.startswith("[1] Page 1\nhttps://a.example/1\n")
    assert TRAM in short
    assert short.endswith("<<mark end>>")
    assert len(short) < 900


def test_old_pages_shrink_before_anything_else() -> None:
    """Pages of earlier turns shrink; questions, answers and the last result stay whole."""
    said = [*research(2, 2, 4000), user("And on Sunday?"), *page(9, filler(2000))]
    fitted = fit(said, Budget(5000, 500))
    kept = texts(fitted.messages)
    assert [m for m in said if m.role == "user"] == [m for m in fitted.messages if m.role == "user"]
    assert (said[-1].role, said[-1].content) in kept
    assert all(m in fitted.messages for m in said if m.role == "assistant" and m.citations)
    shortened = [m for m in fitted.messages if "[shortened" in m.content]
    assert len(shortened) >= 2


@pytest.mark.parametrize("turns", [1, 2, 6])
def test_being_asked_for_the_answer_is_no_question(turns: int) -> None:
    """Asked for its answer now, a model still has its question and reads what was just found."""
    made = [page(n, filler(4600)) for n in (98, 99)]
    every = Message("assistant", "", tool_calls=tuple(c for m, _ in made for c in m.tool_calls))
    found = [user("And on Sunday?"), every, *(result for _, result in made)]
    nudge = Message("user", "Answer now.", details={"nudge": True})
    fitted = fit([*research(turns, 1, 3000), *found, nudge], Budget(5000, 500))
    assert texts(fitted.messages[-5:]) == texts([*found, nudge])


def test_a_question_that_is_too_large_is_an_error() -> None:
    """Nothing is cut from a question: it is refused with both sizes."""
    with pytest.raises(ProviderError) as caught:
        fit([user("word " * 20_000)], Budget(4096, 300))
    assert caught.value.code == "question_too_long"
    assert "4,096" in caught.value.message
    assert not caught.value.retryable


def test_thinking_counts_in_its_turn_only() -> None:
    """Thinking is sent back within a turn, so it takes room there and none afterwards."""
    thought = Message("assistant", "Yes.", thinking="hm " * 2000)
    within = fit([user("A?"), thought, user("B?")], Budget(50_000)).tokens
    now = fit([user("A?"), thought], Budget(50_000)).tokens
    assert now - within >= 1400


STEPS = st.lists(
    st.tuples(st.sampled_from(["user", "page", "search", "answer"]), st.integers(0, 9000)),
    max_size=30,
)


@given(STEPS, st.sampled_from([2048, 4096, 10_000]))
@settings(max_examples=60, deadline=None)
def test_any_session_fits_and_keeps_its_question(steps: list[tuple[str, int]], window: int) -> None:
    """Whatever was said: it fits, calls have results, and the last question is there, whole."""
    said = [user("First?")]
    for n, (kind, size) in enumerate(steps, 1):
        if kind == "user":
            said.append(user(f"Question {n}? {filler(size // 20)}"))
        elif kind == "answer":
            said.append(answer(filler(size // 3) + f" [{n}]", n))
        else:
            said += page(n, filler(size)) if kind == "page" else search(n, size // 1000)
    budget = Budget(window, 400)
    last = max(i for i, m in enumerate(said) if m.role == "user")
    fixed = sum(size_of(m) for m in said[last:] if m.role != "tool")
    assume(fixed < budget.room // 2)
    fitted = fit(said, budget)
    assert fitted.tokens + budget.answer <= window
    assert [m for m in said if m.role == "user"][-1] in fitted.messages
    check_calls_are_answered(fitted.messages)
    assert texts(fit(said, budget).messages) == texts(fitted.messages)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("It’s “fine” – really… " * 100, 500, 900),
        ("It's 'fine' - really.. " * 100, 500, 700),
        ("31415926535897 " * 100, 466, 1400),
        ("奥林匹克运动会" * 100, 500, 800),
        ("Пример текста на русском языке. " * 100, 800, 1600),
    ],
)
def test_tokens_are_estimated_by_script_and_digits(text: str, least: int, most: int) -> None:
    """One typographic apostrophe changes nothing; digits take one token for one to three."""
    assert least <= tokens(text) <= most
    assert tokens(f"{'word ' * 400}’") - tokens("word " * 400) <= 1
