"""Stop, failure, and a server that goes away: never a stuck spinner, never an empty bubble."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.conftest import Enter
from tests.browser.house import MODEL, STALL, House, LedOllama
from tests.browser.steps import ask, choose_model, last_turn, wait_for_answer
from tests.fakes import json_reply

SECONDS = 60.0


def stop(page: Page) -> Locator:
    """The button that replaces Send."""
    return page.get_by_role("button", name="Stop answering")


@pytest.fixture
def chatting(page: Page) -> Page:
    """A page with the local model chosen."""
    choose_model(page, f"ollama:{MODEL}")
    return page


def hung_up(ollama: LedOllama) -> bool:
    """Whether the connection of the last chat was closed on the model's side."""
    chats = [r for r in ollama.requests if r.path == "/api/chat"]
    return chats[-1].gone.wait(SECONDS)


def test_stop_works_before_the_first_word(chatting: Page, ollama: LedOllama) -> None:
    """The model has said nothing yet: Stop ends the run, hangs up, and the next question works.

    The seconds until then are those that went by, whatever the browser's clock says.
    """
    ollama.script = lambda messages: [STALL]
    chatting.evaluate("Date.now = () => 4e12")
    ask(chatting, "Wait for ever")
    expect(chatting.locator(".activity-clock")).to_have_text(re.compile(r"^\d{1,2}\ss$"))
    place = stop(chatting).bounding_box()
    stop(chatting).click()
    turn = wait_for_answer(chatting)
    sends = chatting.get_by_role("button", name="Send").bounding_box()
    assert place
    assert sends, "Stop stands where Send stood"
    assert (place["x"] + place["width"], place["y"]) == (sends["x"] + sends["width"], sends["y"])
    expect(turn.locator(".note")).to_contain_text("Stopped")
    assert hung_up(ollama)
    ollama.script = lambda messages: ["Here I am."]
    ask(chatting, "And now?")
    expect(chatting.locator(".turn")).to_have_count(2)
    expect(wait_for_answer(chatting).locator(".answer")).to_have_text("Here I am.")


def test_stop_works_after_a_reload_and_keeps_what_was_written(
    chatting: Page, ollama: LedOllama
) -> None:
    """A reload in mid-answer shows the words so far, and Stop; Escape is the same as Stop."""
    ollama.script = lambda messages: ["The first words", " of a long answer", STALL]
    ask(chatting, "Tell me a story")
    expect(last_turn(chatting).locator(".answer")).to_contain_text("of a long answer")
    chatting.reload()
    expect(last_turn(chatting).locator(".answer")).to_have_text(
        re.compile("The first words of a long answer")
    )
    expect(stop(chatting)).to_be_visible()
    chatting.get_by_label("Your question").press("Escape")
    turn = wait_for_answer(chatting)
    expect(turn.locator(".answer")).to_contain_text("of a long answer")
    expect(turn.locator(".note")).to_contain_text(
        "what was written so far is kept", ignore_case=True
    )
    expect(chatting.get_by_role("button", name="Send")).to_be_visible()
    assert hung_up(ollama)


def test_a_failed_answer_names_cause_and_remedy_and_can_be_tried_again(
    chatting: Page, ollama: LedOllama
) -> None:
    """No empty bubble: what happened, the code, what to do, Retry in the failed one's place."""
    ollama.script = lambda messages: json_reply({"error": "the model runner broke"}, 400)
    ask(chatting, "Fail, please")
    turn = wait_for_answer(chatting)
    note = turn.locator(".note.bad")
    expect(note).to_contain_text("The answer failed")
    expect(note).to_contain_text("the model runner broke")
    expect(note).to_have_attribute("data-code", re.compile("."))
    expect(note.get_by_role("button", name="Copy details")).to_be_visible()
    ollama.script = lambda messages: ["Better now."]
    note.get_by_role("button", name="Retry").click()
    expect(chatting.locator(".versions")).to_have_text("2/2")
    again = wait_for_answer(chatting)
    expect(again.locator(".bubble")).to_have_text("Fail, please")
    expect(again.locator(".answer")).to_have_text("Better now.")


def test_a_model_that_is_gone_offers_what_can_succeed(chatting: Page, ollama: LedOllama) -> None:
    """Another model, or this one again; no button that must fail once more."""
    ollama.script = lambda messages: json_reply({"error": "model 'qwen3:8b' not found"}, 404)
    ask(chatting, "Are you there?")
    note = wait_for_answer(chatting).locator(".note.bad")
    expect(note.get_by_role("button", name="Retry")).to_have_count(0)
    note.get_by_role("button", name=re.compile("^Get ")).click()
    refused = "no model can be got from the network"  # this machine is offline
    expect(chatting.get_by_role("alert")).to_contain_text(refused)
    note.get_by_role("button", name="Use Quotes only").click()
    expect(chatting.locator(".versions")).to_have_text("2/2")


LOOKED_AT_AGAIN = """() => {
  for (const hidden of [true, false]) {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }
  dispatchEvent(new Event("focus"));
}"""


def test_two_tabs_see_the_words_as_they_come(chatting: Page, ollama: LedOllama) -> None:
    """A tab that comes late has the beginning, and then each new piece like the first tab.

    A tab that is gone back to is told twice, as seen and as focused: it goes on all the same.
    """
    gate = threading.Event()
    ollama.script = lambda messages: ["One. ", gate, "Two.\n\nThree."]
    ask(chatting, "Count")
    expect(last_turn(chatting).locator(".answer")).to_contain_text("One.")
    other = chatting.context.new_page()
    other.goto(chatting.url)
    expect(last_turn(other).locator(".answer")).to_contain_text("One.")
    other.evaluate(LOOKED_AT_AGAIN)
    gate.set()
    for tab in (chatting, other):
        expect(wait_for_answer(tab).locator(".answer p")).to_have_text(["One. Two.", "Three."])


def test_a_chat_deleted_elsewhere_says_so(chatting: Page, house: House, ollama: LedOllama) -> None:
    """The page does not go on with a chat that is gone."""
    ollama.script = lambda messages: ["Fine."]
    ask(chatting, "To be deleted")
    wait_for_answer(chatting)
    house.call("DELETE", f"/api/sessions/{chatting.url.rpartition('/')[2]}")
    expect(chatting.get_by_role("alert")).to_contain_text("This chat is not here")
    expect(chatting.locator(".turn")).to_have_count(0)


@pytest.fixture
def own_house(tmp_path: Path, ollama: LedOllama) -> Iterator[House]:
    """A server that a test may kill."""
    token = "a-token-that-stays-the-same-over-restarts"
    settings = {
        "SEARCHLOOP_OFFLINE": "1",
        "OLLAMA_HOST": ollama.url,
        "SEARCHLOOP_TOKEN": token,
        "SEARCHLOOP_MODEL": f"ollama:{MODEL}",
    }
    served = House(tmp_path, settings)
    served.start()
    yield served
    served.stop()


def test_a_server_that_dies_in_mid_answer_and_comes_back(
    enter: Enter, own_house: House, ollama: LedOllama
) -> None:
    """The loss is said, the words stay, the run goes on once it is back, and so does asking."""
    ollama.script = lambda messages: ["Words that were said", STALL]
    page = enter(own_house, fresh=True)
    ask(page, "Do not die")
    expect(last_turn(page).locator(".answer")).to_contain_text("Words that were said")
    own_house.stop(kill=True)
    expect(page.locator("#connection")).to_contain_text("Connection lost, trying again")
    expect(last_turn(page).locator(".answer")).to_contain_text("Words that were said")
    ollama.script = lambda messages: ["The whole answer."]
    own_house.start()
    turn = wait_for_answer(page)
    expect(page.locator("#connection")).to_be_hidden()
    expect(turn.locator(".answer")).to_have_text("The whole answer.")
    expect(page.locator(".spinner:visible")).to_have_count(0)
    ollama.script = lambda messages: ["Back again."]
    ask(page, "Are you there?")
    expect(page.locator(".turn")).to_have_count(2)
    expect(wait_for_answer(page).locator(".answer")).to_have_text("Back again.")
    not_yet: list[Route] = []
    page.route("**/api/models", lambda route: not_yet.append(route))
    page.goto(own_house.start_url)
    expect(page.locator("#model-name")).to_have_text("…")  # nothing is claimed before it is known
    ask(page, "Before the models are known?")
    expect(wait_for_answer(page).locator(".facts")).to_contain_text(MODEL)


@pytest.mark.integration
def test_a_server_started_anew_knows_this_page_no_more(
    enter: Enter, own_house: House, ollama: LedOllama
) -> None:
    """With another token nothing spins and nothing is claimed; signed in again, all is there."""
    ollama.script = lambda messages: ["Words that were said", STALL]
    page = enter(own_house, fresh=True)
    ask(page, "Do not die")
    expect(last_turn(page).locator(".answer")).to_contain_text("Words that were said")
    own_house.stop(kill=True)
    ollama.script = lambda messages: ["The whole answer."]
    own_house.settings["SEARCHLOOP_TOKEN"] = "another-token-of-another-start"
    own_house.start()
    turn = wait_for_answer(page)
    expect(turn.locator(".note")).to_contain_text("What became of this answer is not known here")
    expect(turn.locator(".answer")).to_have_text("Words that were said")
    expect(page.get_by_role("alert").locator(".note")).to_have_attribute("data-code", "no_token")
    expect(page.locator(".spinner:visible, .activity.running")).to_have_count(0)
    page.get_by_label("Your question").fill("Not lost")
    page.context.new_page().goto(own_house.start_url)
    page.bring_to_front()
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(last_turn(page).locator(".answer")).to_have_text("The whole answer.")
    expect(page.get_by_role("alert")).to_have_text("")
    expect(page.get_by_label("Your question")).to_have_value("Not lost")
