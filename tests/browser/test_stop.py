"""Stop, failure, and a server that goes away: never a stuck spinner, never an empty bubble."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Enter
from tests.browser.house import LOCAL, MODEL, STALL, House, LedOllama
from tests.browser.steps import (
    asked,
    begun,
    hold,
    last_turn,
    open_chat,
    place,
    told,
    wait_for_answer,
)
from tests.fakes import json_reply

SECONDS = 60.0


def stop(page: Page) -> Locator:
    """The button that replaces Send."""
    return page.get_by_role("button", name="Stop answering")


def hung_up(ollama: LedOllama) -> bool:
    """Whether the connection of the last chat was closed on the model's side."""
    chats = [r for r in ollama.requests if r.path == "/api/chat"]
    return chats[-1].gone.wait(SECONDS)


def test_stop_works_before_the_first_word(page: Page, ollama: LedOllama) -> None:
    """The model has said nothing yet: Stop ends the run, hangs up, and the next question works.

    The seconds until then are those that went by, whatever the browser's clock says.
    """
    page.evaluate("Date.now = () => 4e12")
    begun(page, ollama, "Wait for ever", STALL)
    expect(page.locator(".activity-clock")).to_have_text(re.compile(r"^\d{1,2}\ss$"))
    before = place(stop(page))
    stop(page).click()
    turn = wait_for_answer(page)
    sends = place(page.get_by_role("button", name="Send"))  # Stop stands where Send stood
    assert (before["x"] + before["width"], before["y"]) == (sends["x"] + sends["width"], sends["y"])
    expect(turn.locator(".note")).to_contain_text("Stopped")
    assert hung_up(ollama)
    turn = told(page, ollama, "And now?", "Here I am.")
    expect(turn.locator(".answer")).to_have_text("Here I am.")


def test_stop_works_after_a_reload_and_keeps_what_was_written(
    page: Page, ollama: LedOllama
) -> None:
    """A reload in mid-answer shows the words so far, and Stop; Escape is the same as Stop. A press
    goes on, in the newest question alone."""
    begun(page, ollama, "Tell me a story", "The first words", " of a long answer", STALL)
    expect(last_turn(page).locator(".answer")).to_contain_text("of a long answer")
    page.reload()
    expect(last_turn(page).locator(".answer")).to_have_text(
        re.compile("The first words of a long answer")
    )
    expect(stop(page)).to_be_visible()
    page.get_by_label("Your question").press("Escape")
    turn = wait_for_answer(page)
    expect(turn.locator(".answer")).to_contain_text("of a long answer")
    expect(turn.locator(".note")).to_contain_text(
        "what was written so far is kept", ignore_case=True
    )
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert hung_up(ollama)
    ollama.script = lambda messages: [f"After: {messages[-3]['content']}"]
    turn.get_by_role("button", name="Continue").click()
    expect(page.locator(".turn")).to_have_count(2)
    expect(wait_for_answer(page).locator(".answer")).to_have_text("After: Tell me a story")
    expect(page.get_by_role("button", name="Continue")).to_have_count(0)


def test_the_limit_that_ended_an_answer_is_named(page: Page, house: House) -> None:
    """With one press to go on, and one that leads to the limits."""
    ended = {"reason": "limit", "answer": "Half", "limit": "the step limit of 1"}
    open_chat(page, house, house.chat(("user_message", {"text": "Go"}), ("run_finished", ended)))
    note = last_turn(page).locator(".note")
    expect(note).to_contain_text("It was the step limit of 1.")
    expect(note.get_by_role("button", name="Continue")).to_be_visible()
    note.get_by_role("button", name="Limits of an answer").click()
    expect(page.get_by_label("Model steps")).to_be_visible()


def test_a_failed_answer_names_cause_and_remedy_and_can_be_tried_again(
    page: Page, ollama: LedOllama
) -> None:
    """No empty bubble: what happened, the code, what to do, Retry in the failed one's place."""
    broke = json_reply({"error": "the model runner broke"}, 400)
    note = told(page, ollama, "Fail, please", broke).locator(".note.bad")
    expect(note).to_contain_text("The answer failed")
    expect(note).to_contain_text("the model runner broke")
    expect(note).to_have_attribute("data-code", re.compile("."))
    expect(note.get_by_role("button", name="Copy details")).to_be_visible()
    ollama.script = lambda messages: ["Better now."]
    note.get_by_role("button", name="Retry").click()
    expect(page.locator(".versions")).to_have_text("2/2")
    again = wait_for_answer(page)
    expect(again.locator(".bubble")).to_have_text("Fail, please")
    expect(again.locator(".answer")).to_have_text("Better now.")


def test_a_model_that_is_gone_offers_what_can_succeed(page: Page, ollama: LedOllama) -> None:
    """Another model, or this one again; no button that must fail once more."""
    gone = json_reply({"error": "model 'qwen3:8b' not found"}, 404)
    note = told(page, ollama, "Are you there?", gone).locator(".note.bad")
    expect(note.get_by_role("button", name="Retry")).to_have_count(0)
    note.get_by_role("button", name=re.compile("^Get ")).click()
    refused = "no model can be got from the network"  # this machine is offline
    expect(page.get_by_role("alert")).to_contain_text(refused)
    note.get_by_role("button", name=re.compile("^Use ")).click()
    expect(page.locator(".versions")).to_have_text("2/2")
    lacks = json_reply({"error": "registry.ollama.ai/library/x does not support tools"}, 400)
    ollama.script = lambda messages: lacks
    note = asked(page, "And with tools?").locator(".note.bad")
    expect(note.get_by_role("button", name="Retry")).to_have_count(0)
    expect(note.get_by_role("button", name=f"Use {MODEL}")).to_be_visible()


@pytest.mark.integration
def test_a_server_that_dies_comes_back_and_knows_this_page_no_more(
    enter: Enter, tmp_path: Path, ollama: LedOllama
) -> None:
    """In mid-answer the loss is said, the words stay, and the run goes on once it is back. With
    another token nothing spins and nothing is claimed; signed in again, all is there."""
    settings = {"SEARCHLOOP_OFFLINE": "1", "OLLAMA_HOST": ollama.url, "SEARCHLOOP_MODEL": LOCAL}
    with House(tmp_path, settings) as own:
        page = enter(own, fresh=True)
        begun(page, ollama, "Do not die", "Words that were said", STALL)
        expect(last_turn(page).locator(".answer")).to_contain_text("Words that were said")
        own.stop(kill=True)
        expect(page.locator("#connection")).to_contain_text("Connection lost, trying again")
        expect(last_turn(page).locator(".answer")).to_contain_text("Words that were said")
        ollama.script = lambda messages: ["The whole answer."]
        own.start()
        turn = wait_for_answer(page)
        expect(page.locator("#connection")).to_be_hidden()
        expect(turn.locator(".answer")).to_have_text("The whole answer.")
        expect(page.locator(".spinner:visible")).to_have_count(0)
        hold(page, "**/api/models")
        page.goto(own.start_url)
        expect(page.locator("#model-name")).to_have_text("…")  # nothing is claimed before
        expect(asked(page, "Before the models are known?").locator(".facts")).to_contain_text(MODEL)
        page.unroute("**/api/models")
        begun(page, ollama, "Once more", "Words that were said", STALL)
        expect(last_turn(page).locator(".answer")).to_contain_text("Words that were said")
        own.stop(kill=True)
        ollama.script = lambda messages: ["The whole answer."]
        own.settings["SEARCHLOOP_TOKEN"] = "another-token-of-another-start"
        own.start()
        turn = wait_for_answer(page)
        unknown = "What became of this answer is not known here"
        expect(turn.locator(".note")).to_contain_text(unknown)
        expect(turn.locator(".answer")).to_have_text("Words that were said")
        alert = page.get_by_role("alert")
        expect(alert.locator(".note")).to_have_attribute("data-code", "no_token")
        expect(page.locator(".spinner:visible, .activity.running")).to_have_count(0)
        page.get_by_label("Your question").fill("Not lost")
        page.context.new_page().goto(own.start_url)
        page.bring_to_front()
        page.evaluate("dispatchEvent(new Event('focus'))")
        expect(last_turn(page).locator(".answer")).to_have_text("The whole answer.")
        expect(alert).to_have_text("")
        expect(page.get_by_label("Your question")).to_have_value("Not lost")
