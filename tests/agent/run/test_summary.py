"""A chat that outgrows its model's window goes on with a summary that can be read."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchloop.agent.errors import ConfigError, ProviderError
from searchloop.agent.log.events import Event, is_summary, messages_from, sent, size_of
from searchloop.agent.log.session import Turns
from searchloop.agent.run.summary import edit_summary
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.text import tokens
from searchloop.agent.types import (
    Capabilities,
    Finished,
    Message,
    ProviderData,
    Request,
    StreamEvent,
    TextDelta,
    Usage,
)
from tests.agent.scripted import (
    MODEL,
    Hold,
    House,
    Scripted,
    SearchApp,
    abandon,
    call,
    calls,
    found,
    open_house,
    page,
    reached,
    says,
)

FACT = "The code word is Zugspitze."
URL = "https://a.example/page"
FILLER = "Some words about nothing in particular, to fill the window. " * 30


class Remembering(Scripted):
    """A model that knows what its request says, and refuses a request larger than its window."""

    def __init__(self, window: int, *, told: bool = True, summaries: bool = True) -> None:
        super().__init__((), Capabilities(context=window if told else None))
        self._window, self._summaries = window, summaries

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answers, or summarises by copying the facts."""
        self.requests.append(replace(request, messages=tuple(request.messages)))
        size = tokens(request.system) + sum(map(size_of, request.messages))
        if size > self._window:
            raise ProviderError("context_length", "The conversation is too long for the model.")
        text = "\n".join(message.content for message in request.messages)
        known = FACT if FACT in text else "I do not know."
        if summarises(request):
            if not self._summaries:
                raise ProviderError("server_error", "It failed.")
            known = f"{known} It was cited [1]."
        elif "code word?" not in request.messages[-1].content:
            known = FILLER
        raw = ProviderData(self.name, request.model, "1", ({"opaque": f"raw {len(text)}"},))
        message = Message("assistant", known, provider_data=raw)
        yield TextDelta(known)
        yield Finished(message, "stop", Usage(input_tokens=size, output_tokens=tokens(known)))


def summarises(request: Request) -> bool:
    """Whether this request asks for a summary."""
    return request.system.startswith("You summarise")


def summaries(house: House) -> list[Event]:
    """The summaries in the log."""
    return [event for event in house.log.read(house.session) if event.type == "summary"]


def codes(house: House) -> list[str]:
    """The codes of the notices in the log."""
    return [e.data["code"] for e in house.log.read(house.session) if e.type == "notice"]


def contents(messages: Sequence[Message]) -> list[str]:
    """What messages say."""
    return [message.content for message in messages]


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("written", [True, False])
async def test_a_fact_of_the_first_turn_is_known_at_the_end(
    tmp_path: Path, told: bool, written: bool
) -> None:
    """40 turns in a window a tenth of their length: made in time, or when the server refuses."""
    model = Remembering(1800, told=told, summaries=written)

    async with open_house(tmp_path, model) as house:
        for turn in range(39):
            asked = FACT if turn == 0 else f"Tell me more, part {turn}."
            ended = await house.ask(asked)
            assert ended.data["reason"] == "stop", ended.data
        ended = await house.ask("What is the code word?")
        assert ended.data["answer"] == FACT
        whole = house.log.read(house.session)
        assert sum(size_of(m) for m in messages_from(whole)) > 9 * 1800
        assert len([e for e in whole if e.type == "run_finished"]) == 40
        assert set(codes(house)) == {"summarised" if written else "turns_left_out"}
        made = summaries(house)
        assert len(made) >= 2
        for event in made:
            assert event.data["turns"][-1] == event.data["upto"]
            assert event.data["by"] == "auto"
            assert event.data["model"] == (MODEL if written else None)
            assert tokens(event.data["text"]) < 600
    steps = [r for r in model.requests if not summarises(r)]
    for before, after in itertools.pairwise(steps):
        said, now = contents(before.messages), contents(after.messages)
        grown = now[: len(said)] == said
        assert grown or now[0].startswith("[A summary"), (
            "a request that neither grew nor began anew"
        )


async def test_sources_of_replaced_turns_stay_known(tmp_path: Path) -> None:
    """The number, the address and the text of a page that was opened long ago."""
    opened = page("The bridge was opened in 1931.")
    app = SearchApp({"/api/web-search": found(URL), "/api/open-page": opened})
    script = Scripted(
        [
            calls(call("web_search", 1, query="bridge")),
            calls(call("open_page", 2, url=URL)),
            says("The bridge was opened in 1931 [1]."),
            *(says("Yes.") for _ in range(3)),
            says("The bridge dates from 1931 [1]. See https://evil.example/?q=1"),
            says("As said, the bridge was opened in 1931 [1]."),
        ]
    )

    async with open_house(tmp_path, script, app=app) as house:
        await house.ask("When was it opened?", search="local")
        for _ in range(3):
            await house.ask("Really?")
        await house.runner.compact(house.session)
        await house.runner.wait(house.session)
        (made,) = summaries(house)
        assert made.data["by"] == "user"
        assert made.data["text"].endswith(f"[1] {URL}")
        ended = await house.ask("And again?")
        (citation,) = ended.data["citations"]
        assert (citation["n"], citation["url"], citation["verified"]) == (1, URL, True)
        table = SourceTable.of(messages_from(house.log.read(house.session)))
        assert "1931" in (table.text(URL) or "")
        assert table.met("https://evil.example/?q=1") is None, "a model wrote it, no user"
        first = script.requests[-1].messages
        assert contents(first)[1:] == ["Really?", "Yes.", "Really?", "Yes.", "And again?"]


async def test_a_second_refusal_is_told_with_its_remedy(tmp_path: Path) -> None:
    """The chat is not dead: a shorter question is answered."""
    model = Remembering(1500, told=False)

    async with open_house(tmp_path, model) as house:
        await house.ask("Tell me.")
        ended = await house.ask("word " * 5000)
        assert ended.data["error"]["code"] == "context_length"
        assert len([r for r in model.requests if not summarises(r)]) == 3
        ended = await house.ask(FACT)
        assert ended.data["reason"] == "stop", ended.data


async def filled(house: House, turns: int = 4) -> list[int]:
    """Asks some questions; returns their numbers."""
    for turn in range(turns):
        await house.ask(f"Question {turn}?")
    return [e.seq for e in house.log.read(house.session) if e.type == "user_message"]


def script(count: int, *more: Any) -> Scripted:
    """A model that gives so many answers, and then `more`."""
    return Scripted([*(says(f"Answer {n}.") for n in range(count)), *more])


async def compacted(house: House) -> Event:
    """The newest summary after one made by hand."""
    await house.runner.compact(house.session)
    await house.runner.wait(house.session)
    return summaries(house)[-1]


async def test_a_branch_before_a_summary_does_without_it(tmp_path: Path) -> None:
    """And one behind it goes on with it; a removed turn does not live on in a summary."""
    model = script(4, says("SHORT"), *(says(f"Later {n}.") for n in range(4)))

    async with open_house(tmp_path, model) as house:
        turns = await filled(house)
        made = await compacted(house)
        assert made.data["turns"] == turns[:2]
        await house.ask("Behind?", replaces=turns[3])
        last = contents(model.requests[-1].messages)
        assert "SHORT" in last[0]
        assert last[1:] == ["Question 2?", "Answer 2.", "Behind?"]
        await house.ask("Before?", replaces=turns[1])
        last = contents(model.requests[-1].messages)
        assert last == ["Question 0?", "Answer 0.", "Before?"]
        house.log.append(house.session, [("branch_chosen", {"turn": turns[3]})])
        assert "SHORT" in sent(messages_from(house.log.read(house.session)))[0].content
        house.log.append(house.session, [("turn_removed", {"turn": turns[0]})])
        left = sent(messages_from(house.log.read(house.session)))
        assert not any("SHORT" in m.content or "Question 0" in m.content for m in left)


async def test_a_summary_that_the_user_edits_counts_from_then_on(tmp_path: Path) -> None:
    """The model gets the new words; the log keeps both."""
    model = script(4, says("WRONG"), says("Fine."))

    async with open_house(tmp_path, model) as house:
        await filled(house)
        with pytest.raises(ConfigError, match="summarised"):
            edit_summary(house.log, house.session, "RIGHT")
        first = await compacted(house)
        edited = edit_summary(house.log, house.session, "RIGHT")
        assert (edited["upto"], edited["by"]) == (first.data["upto"], "user")
        await house.ask("And now?")
        text = contents(model.requests[-1].messages)[0]
        assert "RIGHT" in text
        assert "WRONG" not in text
        assert len(summaries(house)) == 2


async def test_a_takeover_between_summary_and_answer_uses_the_summary(tmp_path: Path) -> None:
    """Nothing is paid twice: the next process answers from the summary in the log."""
    model = Remembering(1800)
    hold = Hold()

    class Dying(Remembering):
        """Falls silent at the first step after a summary."""

        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            if request.messages[0].content.startswith("[A summary") and not summarises(request):
                await hold.wait()
            async for event in super().stream(request):
                yield event

    async with open_house(tmp_path, Dying(1800)) as house:
        session = house.session
        for turn in range(30):
            await house.runner.start(session, FACT if turn == 0 else "Tell me: code word?" * 9)
            done = asyncio.ensure_future(house.runner.wait(session))
            dead = asyncio.ensure_future(reached(hold))
            await asyncio.wait({done, dead}, return_when=asyncio.FIRST_COMPLETED)
            if hold.reached.is_set():
                break
            hold.reached.set()
            await dead
            hold.reached.clear()
        await house.runner.aclose(hand_over=True)
        abandon(house.log)
    async with open_house(tmp_path, model) as house:
        house.session = session
        assert await house.runner.recover() == 1
        await house.runner.wait(session)
        assert house.log.last_event(session).data["answer"] == FACT
        assert len(summaries(house)) == 1
    (request,) = model.requests
    assert request.messages[0].content.startswith("[A summary")


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("ask"), st.integers(0, 8)),
            st.tuples(st.just("summary"), st.integers(1, 6)),
            st.tuples(
                st.sampled_from(["branch_chosen", "turn_removed", "turn_restored"]),
                st.integers(1, 8),
            ),
        ),
        max_size=14,
    )
)
def test_a_summary_covers_what_is_shown_and_hides_nothing(acts: list[tuple[str, int]]) -> None:
    """Whatever is asked anew, hidden and summarised: the whole transcript stays in the log's fold,
    and a model gets a summary of exactly those shown turns that it does not get themselves."""
    events: list[Event] = []
    asked: list[int] = []
    for seq, (act, n) in enumerate(acts, 1):
        data: dict[str, Any] = {"turn": asked[n % len(asked)] if asked else 0}
        if act == "ask":
            data = {"text": f"Q{seq}"}
            if n < len(asked):
                data["replaces"] = asked[n]
            asked.append(seq)
        elif act == "summary":
            covered = Turns.of(events).shown()[:n]
            if not covered:
                continue
            data = {"upto": covered[-1], "turns": covered, "text": f"{covered}"}
        kind = "user_message" if act == "ask" else act
        events.append(Event(seq, kind, data, 0.0))
        whole = messages_from(events)
        plain = messages_from([e for e in events if e.type != "summary"])
        assert contents([m for m in whole if not is_summary(m)]) == contents(plain)
        first, *rest = [*sent(whole)] or [Message("user", "")]
        shown = [f"Q{turn}" for turn in Turns.of(events).shown()]
        if is_summary(first):
            replaced = [f"Q{turn}" for turn in json.loads(first.details["summary"])]
            assert replaced + contents(rest) == shown
        else:
            assert contents(sent(whole)) == shown
