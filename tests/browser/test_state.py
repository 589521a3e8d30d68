"""The fold from events to what is shown: replays change nothing, and every ending ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

from searchloop.agent.log.events import Event
from searchloop.agent.log.session import BRANCHING, Turns
from searchloop.render.markdown import Incremental
from searchloop.render.tree import KnownLinks
from tests.browser.house import House

USAGE = {"searches": 1, "pages": 1, "seconds": 1.5}
CHANGE = {"kind": "file_change", "path": "a.md", "new": True, "diff": "+a"}
KINDS = (
    {"type": "user_message", "text": "q"},
    {"type": "run_started", "run_id": "r", "model": "m", "mode": "ask", "search": "auto"},
    {"type": "text_delta", "text": "a", "change": [0, {"t": "p", "c": ["a"]}]},
    {"type": "text_delta", "text": "b", "change": [0, {"in": [0, {"more": "b"}]}, {"t": "hr"}]},
    {"type": "thinking_delta", "text": "hm"},
    {"type": "search_started", "query": "x", "by": "local"},
    {"type": "search_started", "query": "", "by": "native"},
    {"type": "search_finished", "query": "x", "by": "local", "status": "ok", "results": 2},
    {"type": "page_opened", "url": "https://a.example/", "status": "ok"},
    {"type": "tool_call", "call_id": "c", "name": "web_search", "arguments": {"query": "x"}},
    {"type": "tool_call", "call_id": "d", "name": "open_page", "arguments": {"url": "u"}},
    {"type": "tool_call", "call_id": "e", "name": "clock", "arguments": None},
    {"type": "tool_result", "call_id": "c", "name": "web_search", "is_error": True, "content": "n"},
    {"type": "tool_result", "call_id": "e", "name": "clock", "is_error": False, "content": "12"},
    {"type": "message", "text": "so", "tool_calls": [{"id": "c"}], "blocks": ["so"]},
    {"type": "message", "text": "end", "tool_calls": [], "citations": [{"n": 1, "url": "u"}]},
    {"type": "notice", "code": "n", "message": "m"},
    {"type": "run_finished", "reason": "stop", "answer": "end", "usage": USAGE, "blocks": ["end"]},
    {"type": "run_finished", "reason": "error", "answer": "", "error": {"code": "x"}},
    {"type": "user_message", "text": "q2", "replaces": 1},
    {"type": "user_message", "text": "q3", "replaces": 3},
    {"type": "branch_chosen", "turn": 1},
    {"type": "turn_removed", "turn": 1},
    {"type": "turn_removed", "turn": 2},
    {"type": "turn_restored", "turn": 1},
    {"type": "run_resumed", "run_id": "r", "takeovers": 1},
    {"type": "plan", "plan_id": "abc", "title": "t", "steps": [], "by": "model"},
    {"type": "user_message", "text": "Carry out this plan: t\n\n1. x", "plan": "abc"},
    {"type": "tool_result", "call_id": "e", "name": "create_file", "details": CHANGE},
    {"type": "files_undone", "files": ["a.md"]},
    {"type": "servers_awaited", "servers": ["a"]},
    {"type": "servers_ready", "servers": ["a"], "missing": []},
    {"type": "something_new", "text": "of a later version"},
)
FOLD = """async ({ events, again }) => {
  const { emptyChat, reduce, isRunning } = await import("/static/chat/state.js");
  const once = events.reduce(reduce, emptyChat);
  let twice = emptyChat;
  for (const [from, to] of again) twice = events.slice(from, to).reduce(reduce, twice);
  twice = events.reduce(reduce, twice);
  return { once, twice, running: isRunning(once) };
}"""


@pytest.fixture(scope="module")
def modules(browser: Browser, house: House) -> Iterator[Page]:
    """A page in which a test may import the page's own modules."""
    page = browser.new_context(bypass_csp=True).new_page()
    page.goto(house.start_url)
    yield page
    page.context.close()


def numbered(kinds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events as a log holds them."""
    return [{"seq": i, "at": 1000.0 + i, **kind} for i, kind in enumerate(kinds, 1)]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_replay_changes_nothing(modules: Page, data: st.DataObject) -> None:
    """However often a reconnect repeats a beginning, the whole log gives the same chat, with the
    turns that the model is sent: the page and the prompt fold branches alike."""
    turns = [kind for kind in KINDS if kind["type"] in (*BRANCHING, "user_message")]
    kinds = data.draw(st.sampled_from((KINDS, turns)))
    events = numbered(data.draw(st.lists(st.sampled_from(kinds), max_size=25)))
    cut = st.integers(0, len(events))
    again = sorted(data.draw(st.lists(cut, max_size=4)))
    seen = modules.evaluate(FOLD, {"events": events, "again": [[0, to] for to in again]})
    assert seen["once"] == seen["twice"]
    assert seen["once"]["seq"] == len(events)
    log = [Event(e["seq"], e["type"], e, 0.0) for e in events]
    assert [turn["id"] for turn in seen["once"]["turns"]] == Turns.of(log).shown()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_after_the_end_nothing_spins(modules: Page, data: st.DataObject) -> None:
    """Whatever came before, `run_finished` ends every step of the run."""
    middle = data.draw(st.lists(st.sampled_from(KINDS), max_size=25))
    middle = [kind for kind in middle if kind["type"] not in BRANCHING]
    events = numbered([KINDS[0], *middle, data.draw(st.sampled_from(KINDS[17:19]))])
    chat = modules.evaluate(FOLD, {"events": events, "again": []})
    assert not chat["running"]
    assert all(step["done"] for step in chat["once"]["turns"][-1]["steps"])


def test_a_search_is_one_step_and_half_an_answer_gives_way(modules: Page) -> None:
    """The local search shows up twice in the log and once on the page. After a takeover the text
    begins anew, and a search of before does not spin for ever."""
    events = numbered([KINDS[0], KINDS[9], KINDS[5], KINDS[7]])
    chat = modules.evaluate(FOLD, {"events": events, "again": []})["once"]
    [step] = chat["turns"][0]["steps"]
    assert (step["kind"], step["query"], step["results"], step["done"]) == ("search", "x", 2, True)
    kinds = [KINDS[0], KINDS[1], *(k for k in KINDS if k["type"].endswith("_delta"))]
    kinds += [k for k in KINDS if k["type"] == "search_started"]
    whole = {"type": "text_delta", "text": "Whole", "change": [0, "Whole"]}
    kinds += [{"type": "run_resumed"}, whole]
    (turn,) = modules.evaluate(FOLD, {"events": numbered(kinds), "again": []})["once"]["turns"]
    assert (turn["text"], turn["draftThinking"]) == ("Whole", "")
    assert all(step["done"] for step in turn["steps"])


def test_what_was_undone_and_run_is_said_where_it_happened(modules: Page) -> None:
    """Undoing tells of the newest change that still stands; a plan knows that it was run."""
    ask, plan, run, changed, undone = KINDS[0], *KINDS[-7:-3]
    kinds = [ask, changed, plan, run, changed, ask, undone, undone, undone]
    turns = modules.evaluate(FOLD, {"events": numbered(kinds), "again": []})["once"]["turns"]
    assert [turn["undone"] for turn in turns] == [["a.md"], ["a.md"], None]
    assert [turn["plans"] and turn["plans"][0]["ran"] for turn in turns] == [True, [], []]
    again = {**ask, "replaces": 1}
    kinds = [ask, changed, again, changed, {"type": "branch_chosen", "turn": 1}, undone]
    turns = modules.evaluate(FOLD, {"events": numbered(kinds), "again": []})["once"]["turns"]
    assert [(turn["id"], turn["undone"]) for turn in turns] == [(1, ["a.md"])]
    kinds = [ask, changed, run, changed, undone]
    turns = modules.evaluate(FOLD, {"events": numbered(kinds), "again": []})["once"]["turns"]
    assert [turn["undone"] for turn in turns] == [None, ["a.md"]]


GROW = """async (runs) => {
  const { changed } = await import("/static/chat/state.js");
  const { grow, h, render } = await import("/static/lib/dom.js");
  const cite = (n, marks) => h("button", { class: "chip" }, `${n}/${marks}`);
  const wrong = [];
  for (const changes of runs) {
    const place = h("div");
    let nodes = [];
    for (const change of changes) {
      const now = changed(nodes, change);
      let same = 0;
      while (same < nodes.length && nodes[same] === now[same]) same++;
      if (grow(place.childNodes[same], nodes[same], now[same], cite)) same++;
      while (place.childNodes.length > same) place.lastChild.remove();
      place.append(...now.slice(same).map((node) => render(node, cite)));
      const whole = h("div", {}, now.map((node) => render(node, cite)));
      if (place.innerHTML !== whole.innerHTML) wrong.push([place.innerHTML, whole.innerHTML]);
      nodes = now;
    }
  }
  return wrong;
}"""
TEXTS = "a; word;\n;\n\n;- ;  - ;1. ;[1];[2];[3];**;*;`;```\n;> ;# ; [t](https://a.example/);| b |"
PARTS = st.sampled_from([*TEXTS.split(";"), "| x | y |\n|---|---|\n"])


@given(
    st.lists(st.lists(PARTS, max_size=40).map("".join), min_size=1, max_size=10), st.integers(1, 7)
)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_grows_in_place_is_what_would_be_made_anew(
    modules: Page, texts: list[str], size: int
) -> None:
    """After each piece of an answer, chips and nested lists included."""
    links = [{"n": n, "url": f"https://{'abc'[n - 1]}.example/"} for n in (1, 2, 3)]
    runs = []
    for text in texts:
        growing = Incremental(KnownLinks(links))
        runs.append([growing.feed(text[i : i + size]) for i in range(0, len(text), size)])
    assert modules.evaluate(GROW, runs) == []
