"""What a browser can do besides: speech, off until it is wanted, and notices of a hidden tab."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.house import House, LedOllama
from tests.browser.steps import box, open_chat, told
from tests.browser.test_settings import opened

pytestmark = pytest.mark.integration

# A browser with two voices and a recogniser that a test speaks for.
SPEECH = """() => {
  const voices = [["Far", false], ["Near", true]].map(([name, localService]) =>
    ({ name, localService, lang: "en-GB" }));
  window.said = [];
  window.ended = 0;
  Object.defineProperty(speechSynthesis, "getVoices", { value: () => voices.slice(0, window.few) });
  speechSynthesis.speak = one => { said.push(one.text); if (said.length === 1) one.onstart(); };
  speechSynthesis.cancel = () => { window.ended += 1; };
  window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
}"""
LISTENS = """() => {
  window.webkitSpeechRecognition = window.SpeechRecognition = class {
    start() { window.heard = this; }
    stop() { this.onend(); }
  };
}"""
HEAR = "words => heard.onresult({ results: words.map(transcript => [{ transcript }]) })"


def test_an_answer_is_read_aloud_by_a_voice_of_this_computer(page: Page, ollama: LedOllama) -> None:
    """A voice elsewhere is named with where the text goes; code and marks are not read."""
    page.add_init_script(f"({SPEECH})()")
    page.reload()
    for few, said in ((1, "Far speaks. The text goes to"), (2, "Near speaks, on this computer.")):
        page.evaluate("n => { window.few = n; }", few)
        expect(opened(page, "appearance").locator("#voice")).to_contain_text(said)
        page.keyboard.press("Escape")
    turn = told(page, ollama, "When?", "Low *water* is at six.\n\n```sh\nls\n```\n\nHigh at noon.")
    read = turn.get_by_role("button", name="Read aloud")
    expect(read).to_have_count(0)  # nobody wanted it yet
    opened(page, "appearance").get_by_role("switch", name="reads an answer aloud").check()
    page.keyboard.press("Escape")
    read.click()
    expect(turn.locator(".spoken")).to_have_text("Low water is at six.")
    assert page.evaluate("said") == ["Low water is at six.", "High at noon."]
    expect(read).to_have_attribute("aria-pressed", "true")
    bar = turn.get_by_role("group", name="Reading aloud")
    expect(bar).to_contain_text("1 of 2Spoken by this computer")
    bar.get_by_role("button", name="Pause").click()
    bar.get_by_role("button", name="Go on").click()
    expect(bar.get_by_role("button", name="Pause")).to_be_focused()
    bar.get_by_role("button", name="Stop reading").click()
    expect(turn.locator(".spoken")).to_have_count(0)
    expect(bar).to_have_count(0)
    expect(read).to_be_focused()
    assert page.evaluate("ended") == 1


def test_a_question_is_dictated_and_a_refusal_is_a_sentence(page: Page) -> None:
    """What is heard stands where the caret was, unsent; a refused microphone is told."""
    page.add_init_script(f"({LISTENS})()")
    page.reload()
    dictate = page.get_by_role("button", name="Dictate")
    expect(dictate).to_have_count(0)
    wanted = opened(page, "appearance").get_by_role("switch", name="dictate a question")
    expect(page.locator("#voice")).to_contain_text("send the sound to their maker")
    wanted.check()
    page.keyboard.press("Escape")
    box(page).fill("Please:")
    dictate.click()
    bar = page.get_by_role("group", name="Listening")
    expect(bar).to_be_visible()
    for loud in ("true", "false"):  # the wave moves while there is a sound, and only then
        page.evaluate("on => on ? heard.onsoundstart() : heard.onsoundend()", loud == "true")
        moves = "n => String(n.getAnimations({ subtree: true }).length > 0)"
        assert bar.locator(".wave").evaluate(moves) == loud
    page.evaluate(HEAR, ["when is", "low water"])
    expect(box(page)).to_have_value("Please: when is low water")
    expect(bar).to_contain_text(re.compile(r"Listening\d+\ss"))
    bar.get_by_role("button", name="Done").click()
    expect(bar).to_have_count(0)
    expect(dictate).to_have_attribute("aria-pressed", "false")
    expect(box(page)).to_be_focused()
    dictate.click()
    expect(bar).to_be_visible()
    page.evaluate(HEAR, ["no"])
    expect(box(page)).to_have_value("Please: when is low water no")
    bar.get_by_role("button", name="Cancel").click()
    expect(box(page)).to_have_value("Please: when is low water")
    dictate.click()
    page.evaluate("heard.onerror({ error: 'not-allowed' }); heard.onend()")
    expect(page.get_by_role("alert")).to_contain_text("The browser refuses the microphone")
    expect(box(page)).to_have_value("Please: when is low water")


# A tab that can be hidden, and the parts of a browser that tell: what it was asked to show.
HIDDEN = """() => {
  Object.defineProperty(document, "hidden", { get: () => window.away });
  window.told = [];
  window.rung = 0;
  window.AudioContext = class extends AudioContext { constructor() { super(); rung += 1; } };
  window.Notification = class extends EventTarget {
    static async requestPermission() { return (this.permission = window.answer); }
    constructor(title, { body }) { super(); told.push([title, body]); }
  };
}"""
SEEN = "() => { window.away = false; document.dispatchEvent(new Event('visibilitychange')); }"
CALL = {"call_id": "c1", "name": "write_file", "arguments": {"path": "notes.md"}, "effect": "write"}
RUN = {"run_id": "r", "model": "m", "mode": "agent", "search": "off", "search_path": "off"}


def test_what_happens_in_a_hidden_tab_is_told(page: Page, house: House) -> None:
    """A refusal is a sentence; a call that waits is told, a short answer in the title alone."""
    asked = [("user_message", {"text": "Change my notes"}), ("run_started", RUN)]
    chat = house.chat(*asked, model="builtin:extractive", mode="agent")
    house.call("PATCH", f"/api/sessions/{chat}", {"title": "Tides"})
    open_chat(page, house, chat)
    page.evaluate(HIDDEN)
    wanted = opened(page, "appearance").get_by_role("switch", name="A notice of the browser")
    for answer in ("denied", "granted"):
        page.evaluate("given => { window.answer = given; }", answer)
        wanted.click()
        expect(page.locator("#notices .problem").first).to_have_text(
            ""
            if answer == "granted"
            else "The browser refuses notices of this page. "
            "They can be allowed in its settings for this address."
        )
        expect(wanted).to_be_checked(checked=answer == "granted")
    page.get_by_role("switch", name="A short sound").click()
    page.keyboard.press("Escape")
    page.evaluate("window.away = true")
    house.log.append(chat, [("tool_call", CALL), ("approval_requested", {**CALL, "server": None})])
    expect(page).to_have_title("Waiting for you: Tides - searchloop")
    assert page.evaluate("[told, rung]") == [[["Waiting for you", "Tides"]], 1]
    page.evaluate(SEEN)
    expect(page).to_have_title("Tides - searchloop")
    page.evaluate("window.away = true")
    house.log.append(chat, [("run_finished", {"reason": "stop", "answer": "Done."})])
    expect(page).to_have_title("Answer ready: Tides - searchloop")
    assert page.evaluate("[told.length, rung]") == [1, 1]
