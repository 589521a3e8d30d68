"""The first minute: what is there, the one step that is left, and where it leads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.checks import sticks_out
from tests.browser.conftest import SMALL, Enter
from tests.browser.house import House
from tests.browser.test_rooms import BAD, GOOD, vendor
from tests.fake_ollama import FakeOllama, Model
from tests.fakes import FakeServer
from tests.ports import closed_address

pytestmark = pytest.mark.integration
TWO = [Model("small:1b", disk=800_000_000), Model("large:4b", disk=2_500_000_000)]
HUGE = [Model("huge:400b", disk=10**15)]  # which no memory holds
# What is there -> the step that is left, and its buttons with what has the focus after each.
STATES: dict[str, tuple[str, dict[str, str]]] = {
    "nothing": (
        "who answers",
        {"Test and save": "#first-key", "Run a free model here": "#provider-ollama"},
    ),
    "empty": ("Ollama is running, without a model.", {"Get a model": "#pull-ollama"}),
    "keys": ("Your keys work.", {"Choose a model": ".picker input"}),
    "huge": ("Models are there.", {"Choose a model": ".picker input"}),
    "models": ("", {}),
    "last": ("", {}),
}


@pytest.fixture(params=STATES)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, House]]:
    """A server that was just set up, in one of these states."""
    name = request.param
    with ExitStack() as after:
        models = {"empty": (), "huge": HUGE, "models": TWO, "last": TWO}.get(name)
        where = closed_address()
        if models is not None:
            where = after.enter_context(FakeOllama(models)).url
        settings = {"OLLAMA_HOST": where}
        if name == "keys":
            cloud = after.enter_context(FakeServer(vendor))
            settings |= {"ANTHROPIC_BASE_URL": cloud.url, "ANTHROPIC_API_KEY": GOOD}
        if name == "last":
            (tmp_path / "data").mkdir()
            (tmp_path / "data" / "last-model").write_text("ollama:small:1b")
        yield name, after.enter_context(House(tmp_path, settings))


FITS = "(s => s.scrollHeight <= s.clientHeight + 1)(document.querySelector('#scroller'))"


def test_each_state_has_one_clear_next_step(enter: Enter, state: tuple[str, House]) -> None:
    """The step leads to where it is done; with a model there is none, and the best one answers.
    Nothing is cut off at 320 px, and the step, where one is left, is in sight there.
    """
    name, house = state
    words, ways = STATES[name]
    page = enter(house, viewport={"width": 1280, "height": 720})
    expect(page.get_by_label("Your question")).to_be_focused()
    if not words:
        expect(page.locator(".missing")).to_have_count(0)
        best = {"models": "large:4b", "last": "small:1b"}[name]
        expect(page.locator("#model-name")).to_contain_text(best)
        offered = page.get_by_role("group", name="Ollama is running here.").get_by_role("radio")
        expect(offered).to_have_count({"models": 2, "last": 0}[name])
        if name == "models":  # the focus stays on the choice, and the best one can be taken again
            expect(offered.first).to_be_checked()
            expect(page.locator(".answering")).to_contain_text("2.5 GB")
            for key, other in (("ArrowDown", "small:1b"), ("ArrowUp", best)):
                page.locator(".answering :checked").press(key)
                expect(page.locator("#model-name")).to_contain_text(other)
                expect(page.locator(".answering :checked")).to_be_focused()
    assert page.evaluate(FITS), "nothing of the empty chat has to be scrolled to"
    small = enter(house, **SMALL)
    assert sticks_out(small) == []
    expect(small.locator("#send")).to_be_in_viewport()
    for button, target in ways.items():
        for each in (enter(house, viewport={"width": 1280, "height": 720}), enter(house, **SMALL)):
            step = each.locator(".missing")
            expect(step).to_have_count(1)
            expect(step).to_contain_text(words)
            expect(step.locator(".primary")).to_be_in_viewport()
            step.get_by_role("button", name=button).click()
            expect(each.locator(target)).to_be_focused()
            expect(each.locator(target)).to_be_in_viewport()


@pytest.mark.parametrize("server", ["ollama:large:4b", "openai-chat:large"])
def test_a_server_of_ones_own_needs_no_key(page: Page, server: str) -> None:
    """On another machine of the house too: no key is said to work where none is."""

    def elsewhere(route: Route) -> None:
        told = route.fetch().json()
        models = [{**told["models"][0], "id": server, "available": True, "local": False}]
        why = {"by": "none", "why": ""}
        route.fulfill(json={**told, "models": models, "default_why": why})

    page.route("**/api/models", elsewhere)
    page.reload()
    expect(page.locator(".missing")).to_contain_text("Models are there.")


def test_a_first_key_is_pasted_where_one_asks(enter: Enter, tmp_path: Path) -> None:
    """Whose it is, is seen by its beginning; it is refused in words, or its models are there."""
    settings = {"OLLAMA_HOST": closed_address()}
    with (
        FakeServer(vendor) as cloud,
        House(tmp_path, {**settings, "ANTHROPIC_BASE_URL": cloud.url}) as house,
    ):
        page = enter(house, fresh=True)
        key, whose = page.locator("#first-key"), page.locator("#first-key-of")
        begins = {"AIza0": "gemini", "sk-ant-0": "anthropic", "sk-0": "openai", "xai-0": "xai"}
        for text, name in {**begins, "unheard-of": "xai"}.items():
            key.fill(text)
            expect(whose).to_have_value(name)
        whose.select_option("anthropic")
        key.fill(BAD)
        whose.select_option("anthropic")
        key.press("Enter")
        expect(page.locator(".missing")).to_contain_text("key refused")
        expect(page.locator(".missing").get_by_role("alert")).to_contain_text("Nothing was saved.")
        assert BAD not in page.inner_text("body")
        key.fill(GOOD)
        whose.select_option("anthropic")
        page.get_by_role("button", name="Test and save").click()
        page.get_by_role("option", name="claude-haiku-5").click()
        expect(page.locator("#model-name")).to_have_text("claude-haiku-5")
        expect(page.locator(".missing")).to_have_count(0)
        expect(page.get_by_label("Your question")).to_be_visible()
