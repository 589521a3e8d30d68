"""`Agent` and `AsyncAgent`: the same words, the same answers, the same errors."""

from __future__ import annotations

import asyncio
import gc
import inspect
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from contextvars import ContextVar
from pathlib import Path
from traceback import format_exception_only
from typing import Any, cast

import pytest
import uvloop

from searchloop import (
    Agent,
    AgentError,
    Answer,
    AnswerError,
    AsyncAgent,
    AsyncChat,
    Chat,
    ConfigError,
    Conflict,
    EventLog,
    Limits,
    ProviderError,
    events,
)
from searchloop.agent.log.events import Event, event_of
from searchloop.streams import Stream
from searchloop.testing import ScriptedModel, call, offline
from tests.fake_ollama import FakeOllama, Model, say
from tests.searchloop.both_faces import FACES, opened
from tests.tables import each_row
from tests.waiting import until

DOWN = ProviderError("down", "The model is down.", "Start it.")
MADE: dict[str, Any] = {"Agent": Agent, "AsyncAgent": AsyncAgent}


def test_both_faces_have_the_same_words() -> None:
    """A word of one face is one of the other, with the same parameters."""
    for one, other in ((Agent, AsyncAgent), (Chat, AsyncChat)):
        words = {n: v for n, v in vars(one).items() if n[0] != "_" and callable(v)}
        words |= {n: getattr(one, n) for n in ("ask", "stream")}
        for name, function in words.items():
            twin = getattr(other, "aclose" if name == "close" else name)
            assert list(inspect.signature(function).parameters) == list(
                inspect.signature(twin).parameters
            ), name


@FACES
def test_a_stream_ends_with_its_answer(face: str, tmp_path: Path) -> None:
    """Typed events come in order, the last is `run_finished`, and the answer is kept; it is the one
    that `ask` gives as a whole.
    """
    with opened(face, tmp_path, "It is noon.", "It is noon.") as agent:
        stream = agent.stream("What time is it?")
        got = list(stream)
        answer, whole = stream.answer, agent.ask("What time is it?")
    assert (whole.text, whole.reason, whole.model) == (answer.text, "stop", "scripted:default")
    assert isinstance(got[0], events.UserMessage)
    assert isinstance(got[-1], events.RunFinished)
    assert [e.seq for e in got] == sorted({e.seq for e in got})
    said = [text for e in got if e.type == "text_delta" for text in [e.text]]
    assert "".join(said) == answer.text == got[-1].answer == "It is noon."


# The deltas that a reader saw before the message took the others with it -> what it is told.
LATE = {
    (): ["It is noon."],
    ("It is",): ["It is", " noon."],
    ("It is", " noon."): ["It is", " noon."],
    ("It was",): ["It was"],
}


@pytest.mark.parametrize("seen", LATE)
def test_a_slow_reader_is_told_the_whole_text(seen: tuple[str, ...]) -> None:
    """Deltas are gone once their message is there; what was not seen of them comes before it."""

    def raw() -> Iterator[Event]:
        yield event_of(1, "user_message", {"text": "When?"}, 0.0)
        for n, text in enumerate(seen, 2):
            yield event_of(n, "text_delta", {"text": text}, 0.0)
        yield event_of(9, "message", {"text": "It is noon.", "tool_calls": []}, 0.0)

    got = list(Stream(raw(), str))  # type: ignore[arg-type]
    assert [e.text for e in got if e.type == "text_delta"] == LATE[seen]
    assert [e.seq for e in got] == sorted({e.seq for e in got})


@FACES
@pytest.mark.parametrize(
    ("turn", "code", "kept"), [(DOWN, "down", ""), ("", "empty_answer", "")], ids=["down", "empty"]
)
def test_a_failed_model_raises(
    face: str, turn: object, code: str, kept: str, tmp_path: Path
) -> None:
    """`ask` raises, and a stream after its last event, with code, message, remedy and what came."""
    with opened(face, tmp_path, turn, turn) as agent:
        with pytest.raises(AnswerError) as asked:
            agent.ask("hi")
        seen = []
        with pytest.raises(AnswerError) as streamed:
            seen.extend(iter(agent.stream("hi")))
    assert seen[-1].error["code"] == code
    for error in (asked.value, streamed.value):
        assert (error.code, error.answer.text) == (code, "")
        assert error.message in str(error)
        assert error.remedy in str(error)
    again = pickle.loads(pickle.dumps(asked.value))
    assert (again.code, again.answer) == (code, asked.value.answer)


@FACES
def test_a_chat_goes_on(face: str, tmp_path: Path) -> None:
    """Its questions see those before and stay in it, whatever session they name; its id opens it
    again; other questions see none of it.
    """
    with opened(face, tmp_path, *"1234") as agent:
        chat, other = agent.chat(system="Count."), agent.chat().id
        first = chat.ask("a", session=other)
        assert list(chat.stream("b", session=other))[-1].session_id == chat.id
        again = agent.chat(chat.id).ask("c")
        agent.ask("d")
        asked = [[m.content for m in r.messages if m.role == "user"] for r in agent.model.requests]
        systems = ["Count." in r.system for r in agent.model.requests]
    assert first.session_id == again.session_id == chat.id
    assert asked == [["a"], ["a", "b"], ["a", "b", "c"], ["d"]]
    assert systems == [True, True, False, False]


@FACES
def test_options_of_the_agent_hold_where_a_question_says_nothing(face: str, tmp_path: Path) -> None:
    """Agent, chat, question: the nearest wins."""
    usual = {"system": "From the agent.", "options": {"seed": 1}}
    with opened(face, tmp_path, "1", "2", "3", **usual) as agent:
        agent.ask("a")
        agent.ask("b", system="From the question.", options={"seed": 2})
        agent.chat(system="From the chat.").ask("c")
        told = [(r.system.split("From the ")[1][:5], r.options) for r in agent.model.requests]
    assert told == [("agent", {"seed": 1}), ("quest", {"seed": 2}), ("chat.", {"seed": 1})]


@FACES
def test_a_chat_with_a_folder_has_file_tools(face: str, tmp_path: Path) -> None:
    """`workspace` is all that it takes; mode and approvals are those of the chat. A wrong one is
    told when the chat is opened.
    """
    notes = tmp_path / "notes"
    notes.mkdir()
    steps = (call("create_file", path="a.md", content="Tea."), "Done.")
    with opened(face, tmp_path / "home", *steps) as agent:
        agent.chat(workspace=notes, mode="agent", approve="auto").ask("Note tea.")
        with pytest.raises(ConfigError):
            agent.chat(workspace=tmp_path / "nowhere")
    assert (notes / "a.md").read_text() == "Tea."


class Silent:
    """A tool that waits for ever, and says when it was reached and left."""

    def __init__(self) -> None:
        self.reached, self.left = threading.Event(), threading.Event()

    async def wait(self) -> str:
        """Waits."""
        self.reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()
        return ""


@pytest.mark.parametrize("way", ["ask", "stream", "leave", "break", "starting"])
async def test_to_cancel_the_task_stops_the_answer(
    way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A timeout, a cancelled task and a loop that is left, with `async with` or without, end the
    run, not only the waiting.
    """
    silent = Silent()
    model = ScriptedModel(["Half.", call("wait")], "Whole.")

    async def work(agent: AsyncAgent) -> None:
        if way == "ask":
            await agent.ask("hi")
            return
        stream = agent.stream("hi")
        async with stream if way == "leave" else nullcontext():
            async for event in stream:
                if event.type == "tool_call" and way in ("leave", "break"):
                    await asyncio.to_thread(silent.reached.wait, 60)
                    break

    async with AsyncAgent(offline(tmp_path), model=model, tools=[silent.wait]) as agent:
        task = asyncio.create_task(work(agent))
        if way == "starting":
            await asyncio.sleep(0)
        else:
            assert await asyncio.to_thread(silent.reached.wait, 60)
        if way not in ("leave", "break"):
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if way != "starting":
            assert await asyncio.to_thread(silent.left.wait, 60)
            (session,) = agent.log.sessions()
            assert (await agent.chat(session.id)).id == session.id
            assert (await agent.ask("again", session=session.id)).text == "Whole."
    assert [record.message for record in caplog.records] == []


@FACES
def test_an_answer_is_cancelled_by_its_session(face: str, tmp_path: Path) -> None:
    """From anywhere: its stream ends with what came, and the chat goes on."""
    silent, told = Silent(), list[Any]()
    turns = (["Half.", call("wait")], "Whole.")
    with opened(face, tmp_path, *turns, tools=[silent.wait]) as agent:
        chat = agent.chat()
        assert agent.cancel(chat.id) is False
        for event in chat.stream("hi"):
            told.append(event)
            if event.type == "tool_call":
                assert silent.reached.wait(60)
                assert agent.cancel(chat.id) is True
        assert told[-1].reason == "cancelled"
        assert chat.ask("again").text == "Whole."


def test_one_agent_serves_several_loops(tmp_path: Path) -> None:
    """Each thread has a loop of its own; all ask the same `AsyncAgent`, until it is closed."""
    model = ScriptedModel(*[f"Answer {n}." for n in range(8)])
    agent = AsyncAgent(offline(tmp_path), model=model)
    answers: list[Answer[object]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(asyncio.run(agent.ask("hi"))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    asyncio.run(agent.aclose())
    with pytest.raises(ConfigError, match="closed"):
        asyncio.run(agent.ask("hi"))
    assert sorted(a.text for a in answers) == sorted(f"Answer {n}." for n in range(8))


@FACES
def test_its_sessions_are_kept_and_deleted(face: str, tmp_path: Path) -> None:
    """The other words of an agent."""
    with opened(face, tmp_path, "1") as agent:
        chat = agent.chat()
        chat.ask("a")
        assert [m.id for m in agent.models() if m.id.startswith("scripted:")] == [
            "scripted:default"
        ]
        with pytest.raises(Conflict):
            agent.decide(chat.id, "call_x", "once")
        agent.delete(chat.id)
        assert agent.log.sessions() == []


@FACES
def test_a_wrong_keyword_names_the_method_and_what_it_takes(face: str, tmp_path: Path) -> None:
    """Not some inner function that the program has never called."""
    chat = face.replace("Agent", "Chat")
    with pytest.raises(TypeError, match=rf"^{face}\(\) takes no keyword 'serch'. .*search, "):
        MADE[face](offline(tmp_path), serch="auto")
    with opened(face, tmp_path) as agent:
        with pytest.raises(TypeError, match=rf"^{face}.ask\(\) takes no keyword 'thinking'. "):
            agent.ask("hi", thinking=True)
        with pytest.raises(TypeError, match=rf"^{face}.chat\(\) takes no keyword 'files'. "):
            agent.chat(files=[])
        with pytest.raises(TypeError, match=rf"^{chat}.stream\(\) takes no keyword 'serch'. "):
            agent.chat().stream("hi", serch="auto")
        assert agent.log.sessions()[1:] == []


FORMED, ABOVE = "mapping with some of", "above 0"
WRONG: list[tuple[str, Any, str, str]] = [
    (
        "search",
        "atuo",
        "'atuo'",
        "Did you mean auto? Choose one of auto, native, local, offline, off.",
    ),
    ("mode", "agnet", "'agnet'", "Did you mean agent? Choose one of ask, plan, agent."),
    ("approve", "yes", "'yes'", "Choose one of ask, auto, never."),
    ("limits", {"step": 1}, "limits takes no 'step'.", FORMED),
    ("limits", 5, "limits takes no 5.", FORMED),
    ("limits", {"steps": "many"}, "limits cannot have 'many' as steps", FORMED),
    ("limits", {"steps": 0}, "limits cannot have 0 as steps", ABOVE),
    ("limits", {"cost_usd": -1}, "limits cannot have -1 as cost_usd", ABOVE),
    ("limits", {"seconds": float("nan")}, "limits cannot have nan as seconds", ABOVE),
    ("limits", Limits(seconds=-1.5), "limits cannot have -1.5 as seconds", ABOVE),
    ("search_options", {"max_searches": 0}, "search_options cannot have 0 as max_searches", ABOVE),
    ("search_options", {"sites": []}, "search_options takes no 'sites'.", FORMED),
    ("search_options", {"allowed_domains": 7}, "cannot have 7 as allowed_domains", FORMED),
]


@FACES
@each_row(("name", "wrong", "what", "remedy"), WRONG)
def test_what_cannot_be_used_is_told_with_what_can(
    face: str, name: str, wrong: Any, what: str, remedy: str, tmp_path: Path
) -> None:
    """Wherever it is given, before anything is asked."""
    with opened(face, tmp_path) as agent:
        chat = agent.chat()
        for call_ in (
            lambda: MADE[face](offline(tmp_path), **{name: wrong}),
            lambda: agent.ask("hi", **{name: wrong}),
            lambda: chat.stream("hi", **{name: wrong}),
            lambda: agent.chat(**{name: wrong}),
        ):
            with pytest.raises(ConfigError) as caught:
                call_()
            assert caught.value.code == f"bad_{name}"
            assert what in caught.value.message
            assert remedy in caught.value.remedy


NEAR: dict[str, Callable[[Agent], object]] = {
    "ollama": lambda agent: agent.ask("hi", model="olama:qwen3"),
    "coder": lambda agent: agent.chat(agent="codr"),
    "ddg": lambda agent: Agent(agent.settings, engines=["dgd"]).ask("hi", search="local"),
    "steps": lambda agent: agent.ask("hi", limits=cast(Any, {"step": 3})),
    "country": lambda agent: agent.ask("hi", search_options={"countri": "DE"}),
    "temperature": lambda agent: agent.ask("hi", options={"temprature": 1}),
    "always": lambda agent: agent.decide("s", "c", cast(Any, "allways")),
    "search": lambda agent: agent.ask("hi", sarch="auto"),  # type: ignore[call-arg]
}


@each_row("meant", list(NEAR))
def test_a_name_with_a_slip_in_it_is_told_with_the_one_that_was_meant(
    meant: str, tmp_path: Path
) -> None:
    """By the library as at the terminal, and where nobody catches it: a traceback ends with it."""
    with Agent(offline(tmp_path)) as agent:
        with pytest.raises((AgentError, TypeError)) as caught:
            NEAR[meant](agent)
        assert agent.log.sessions() == []
    assert f"Did you mean {meant}? " in "".join(format_exception_only(caught.value))


OTHER: dict[str, tuple[object, ...]] = {  # what each is not
    **dict.fromkeys(("tools", "providers", "bring"), (["stock"], "stock", 3)),
    "engines": ([print], 3),
    "model": (3, ScriptedModel, b"a:b"),
    **dict.fromkeys(("settings", "store", "mcp", "hooks", "search_backend"), ([1], 3)),
    **dict.fromkeys(("system", "check_with"), (3, b"x")),
    "options": ("seed=1", 3),
}
OF_A_QUESTION: dict[str, tuple[object, ...]] = {
    "question": (None, b"hi", ["hi"]),
    "files": ([3], 3, b"x"),
    "session": (3,),
    "options": ("seed=1",),
}


@FACES
@each_row("name", [*OTHER, *OF_A_QUESTION])
def test_a_part_of_another_kind_is_named(face: str, name: str, tmp_path: Path) -> None:
    """When the agent is made, or the question asked, in words of what it takes; a single part
    stands for a list of one."""
    for wrong in OTHER.get(name, ()):
        with pytest.raises(TypeError, match=rf"{face}\({name}=...\) takes .*, not .+\.$"):
            MADE[face](**{"settings": offline(tmp_path), name: wrong})
    with opened(face, tmp_path) as agent:
        for wrong in OF_A_QUESTION.get(name, ()):
            with pytest.raises(TypeError, match=rf"{face}.ask\({name}=...\) takes"):
                agent.ask(**{"question": "hi", name: wrong})
        with pytest.raises(ConfigError, match=r"alone\.txt cannot be read"):
            agent.ask("hi", files=cast(Any, "alone.txt"))


def test_a_stream_has_its_answer_when_it_is_over(tmp_path: Path) -> None:
    """Before that it says so; there is never a None to forget."""
    with opened("Agent", tmp_path, "Done.") as agent, agent.stream("hi") as stream:
        with pytest.raises(Conflict, match="not over"):
            _ = stream.answer
        assert list(stream.text()) == ["Done."]
        assert stream.answer.text == "Done."


@pytest.mark.parametrize("limits", [{"steps": 1}, Limits(steps=1)], ids=["names", "Limits"])
@pytest.mark.parametrize("whose", ["agent", "question"])
def test_an_answer_that_ended_early_has_no_value(whose: str, limits: Any, tmp_path: Path) -> None:
    """Its text may be read all the same; a mapping of limits replaces what it names."""
    of_agent, of_question = ({}, {"limits": limits})[:: -1 if whose == "agent" else 1]
    with opened("Agent", tmp_path, call("nothing"), "1", **of_agent) as agent:
        answer = agent.ask("hi", schema=int, **of_question)
        assert answer.reason == "limit"
        with pytest.raises(AnswerError, match="ended early") as caught:
            _ = answer.value
        assert caught.value.answer.text == answer.text


@FACES
def test_nothing_is_stored_unless_asked(face: str, tmp_path: Path) -> None:
    """No file is made of a chat, which ends with its agent; nor is its model remembered."""
    home = tmp_path / "home"
    with opened(face, home, "One.", "Two.") as agent:
        first = agent.ask("hi")
        assert agent.ask("And?", session=first.session_id).text == "Two."
        said = [message.content for message in agent.model.requests[1].messages]
        assert said == ["hi", "One.", "And?"]
    assert [path for path in home.rglob("*") if path.is_file()] == []


@FACES
def test_agents_share_a_store(face: str, tmp_path: Path) -> None:
    """By its path one after another, by an open log at the same time; a log stays open."""
    place = tmp_path / "chats.sqlite3"
    with opened(face, tmp_path, "One.", store=str(place)) as agent:
        known = agent.ask("hi").session_id
    store = EventLog(place)
    with (
        opened(face, tmp_path, "Two.", store=store) as one,
        opened(face, tmp_path, "Three.", store=store) as other,
    ):
        one.ask("And?", session=known)
        other.ask("And then?", session=known)
        assert len(other.model.requests[0].messages) == 5
    assert [session.messages for session in store.sessions()] == [3]
    store.close()


def test_the_chats_of_the_page_are_a_store(tmp_path: Path) -> None:
    """`Settings.store` names it; there the model is remembered as on the page."""
    settings = offline(tmp_path)
    with opened("Agent", tmp_path, "One.", store=settings.store) as agent:
        agent.ask("hi")
    assert (tmp_path / "sessions.sqlite3").is_file()
    assert (tmp_path / "last-model").read_text().strip() == "scripted:default"


def test_on_uvloop(tmp_path: Path) -> None:
    """The program's loop may be another than the agent's."""

    async def main() -> list[str]:
        model = ScriptedModel("It is noon.", "It is one.")
        async with AsyncAgent(offline(tmp_path), model=model) as agent:
            whole = await agent.ask("When?")
            return [whole.text, "".join([t async for t in agent.stream("And?").text()])]

    assert uvloop.run(main()) == ["It is noon.", "It is one."]


def test_a_context_variable_of_the_program_reaches_its_tools(tmp_path: Path) -> None:
    """As spans of telemetry do: the agent's loop runs in the context of the one that asks."""
    who: ContextVar[str] = ContextVar("who", default="nobody")

    async def name() -> str:
        """Who asks."""
        return who.get()

    model = ScriptedModel(call("name"), lambda request: request.messages[-1].content)
    with Agent(offline(tmp_path), model=model, tools=[name]) as agent:
        who.set("Ada")
        assert agent.ask("Who am I?").text == "Ada"


def test_an_agent_that_nobody_closes_ends_by_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With its thread and its connections, once no name holds it; nothing is said of them."""
    gc.collect()  # what earlier tests left, and what is said of it
    caplog.clear()
    with FakeOllama([]) as ollama:
        before = {*threading.enumerate()}
        agent = Agent(offline(tmp_path, OLLAMA_HOST=ollama.url))
        agent.models()
        (thread,) = (t for t in {*threading.enumerate()} - before if t.name == "agent")
        del agent
        # The thread itself may hold the last call for a moment longer.
        until(lambda: gc.collect() >= 0 and not thread.is_alive())
    assert caplog.messages == []


def test_a_program_may_end_with_agents_open(tmp_path: Path) -> None:
    """Its traceback is all that is printed; an answer under way is no reason to wait."""
    code = (
        "from searchloop import Agent\n"
        "agent = Agent()\n"
        "agent.models()\n"
        "for event in Agent(model='ollama:a').stream('hi'):\n"
        "    if event.type == 'text_delta':\n"
        "        1 / 0\n"
    )
    with FakeOllama([Model("a")], lambda body: say("Hello.", end="stall")) as ollama:
        env = {"SEARCHLOOP_HOME": str(tmp_path), "OLLAMA_HOST": ollama.url}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=30
        )
    assert done.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert len(done.stderr.splitlines()) < 7, done.stderr
