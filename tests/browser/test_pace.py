"""How much a long chat costs: what one more word makes anew, and what opening it takes."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from bench.page import long_session
from tests.browser.conftest import Enter
from tests.browser.house import LOCAL, House, LedOllama
from tests.browser.steps import begun, last_turn, open_chat, wait_for_answer

pytestmark = pytest.mark.integration
TURNS = 200  # of a chat
RESTYLED = 400  # elements of a frame with new words; each of the turns has more than a hundred
TIMELINE = "devtools.timeline"


def long_chat(page: Page, house: House, **more: Any) -> str:
    """Opens a chat of many turns, of a server that knew nothing of it; its id."""
    chat = long_session(house.home / "data", **{"turns": TURNS, **more}, model=LOCAL)
    open_chat(page, house, chat)
    page.reload()
    expect(page.locator("#model")).to_have_attribute("data-id", LOCAL)
    return chat


def worked(tools: CDPSession) -> float:
    """Processor seconds of the main thread so far, which no other program lengthens."""
    found = tools.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in found if each["name"] == "TaskDuration"))


def traced(browser: Browser, page: Page, act: Any) -> list[dict[str, Any]]:
    """What the browser's timeline tells of an act."""
    browser.start_tracing(page=page, categories=[TIMELINE])
    act()
    events: list[dict[str, Any]] = json.loads(browser.stop_tracing())["traceEvents"]
    return events


def restyled(events: list[dict[str, Any]]) -> list[int]:
    """How many elements each new computation of style went through."""
    sizes = [e["args"].get("elementCount", 0) for e in events if e["name"] == "UpdateLayoutTree"]
    assert sizes, "the browser tells no styles in its timeline any more"
    return sizes


def test_a_word_more_does_not_style_the_whole_chat_anew(
    browser: Browser, enter: Enter, house: House, ollama: LedOllama
) -> None:
    """Neither what is typed nor what is answered touches the turns above."""
    page = enter(reduced_motion="reduce")
    long_chat(page, house)
    expect(page.locator(".turn")).to_have_count(TURNS)
    typed = restyled(traced(browser, page, lambda: page.keyboard.type("What is new?")))
    assert max(typed) < RESTYLED, typed
    gates = [threading.Event() for _ in range(3)]
    said = [f"Words of paragraph {n}.\n\n" for n in range(3)]
    pieces = [piece for pair in zip(gates, said, strict=True) for piece in pair]
    begun(page, ollama, "Tell me", *pieces)
    gates[0].set()
    expect(last_turn(page)).to_contain_text("paragraph 0")

    def read() -> None:
        for gate, words in zip(gates[1:], said[1:], strict=True):
            gate.set()
            expect(last_turn(page)).to_contain_text(words.strip())

    told = restyled(traced(browser, page, read))
    assert max(told) < RESTYLED, told
    wait_for_answer(page)


def many_turns(count: int) -> tuple[dict[str, Any], str]:
    """The shape of a chat of so many turns, and its last element."""
    return {"turns": count}, f".turn >> nth={count - 1}"


def many_paragraphs(count: int) -> tuple[dict[str, Any], str]:
    """The same of one answer of 25 times so many paragraphs."""
    said = "A paragraph of some words.\n\n" * 25 * count
    return {"turns": 1, "said": said}, f".answer > p >> nth={25 * count - 1}"


@pytest.mark.parametrize("shape", [many_turns, many_paragraphs])
def test_a_chat_costs_its_length_to_open(enter: Enter, house: House, shape: Any) -> None:
    """Four times the chat is reloaded and drawn for less than eight times the processor time."""
    page = enter(reduced_motion="reduce")

    def cost(count: int) -> float:
        chat, last = shape(count)
        long_chat(page, house, **chat)
        page.locator(last).wait_for(state="attached")
        tools = page.context.new_cdp_session(page)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = worked(tools)
        page.reload()
        page.locator(last).wait_for(state="attached")
        page.evaluate("new Promise(requestAnimationFrame)")
        spent = worked(tools) - before
        tools.detach()
        return spent

    small = cost(TURNS // 4)
    assert cost(TURNS) < 8 * small


FOLDED = """async (count) => {
  const { emptyChat, reduce } = await import("/static/chat/state.js");
  const began = performance.now();
  let chat = emptyChat;
  const type = "user_message";
  for (let seq = 1; seq <= count; seq++) chat = reduce(chat, { seq, type, text: "Q" });
  return chat.turns.length === count && performance.now() - began;
}"""


def test_a_chat_costs_its_length_to_fold(enter: Enter) -> None:
    """Sixteen times the questions are taken in for far less than 256 times the time."""
    page = enter(bypass_csp=True)
    page.evaluate(FOLDED, 500)  # compiled once
    few, many = (min(page.evaluate(FOLDED, n) for _ in range(3)) for n in (1_000, 16_000))
    assert 0 < many < 100 * few


def test_long_code_is_drawn_in_parts(page: Page, ollama: LedOllama) -> None:
    """Those off the screen are not laid out, those that stand are not made anew; all is copied."""
    half = [f"x{n} = some(words)  # of code\n" for n in range(3_000)]
    more, end = threading.Event(), threading.Event()
    pieces = ("```\n", "".join(half), more, "".join(half), end, "```\n")
    parts = begun(page, ollama, "Write it", *pieces).locator(".code .part")
    expect(parts.nth(20)).to_be_attached()
    page.evaluate("window.first = document.querySelector('.part')")
    more.set()
    expect(parts.nth(40)).to_be_attached()
    assert page.evaluate("first.isConnected")
    end.set()
    code = wait_for_answer(page).locator(".code code")
    expect(code).to_have_js_property("textContent", "".join(half * 2))
    assumed = "70 * parseFloat(getComputedStyle(document.documentElement).fontSize)"
    heights = "parts => parts.map((part) => part.offsetHeight)"
    laid_out = [h for h in parts.evaluate_all(heights) if h != page.evaluate(assumed)]
    assert 0 < len(laid_out) < 9
