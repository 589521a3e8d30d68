"""The first minute: what is there, the one step that is left, and where it leads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Enter
from tests.browser.house import House
from tests.browser.test_looks import TOO_WIDE
from tests.browser.test_rooms import GOOD, vendor
from tests.fake_ollama import FakeOllama, Model
from tests.fakes import FakeServer
from tests.ports import closed_address

pytestmark = pytest.mark.integration
TWO = [Model("small:1b", disk=800_000_000), Model("large:4b", disk=2_500_000_000)]
# What is there -> the step that is left, its button, and what has the focus after it.
STATES: dict[str, tuple[str, str, str]] = {
    "nothing": ("who answers", "Paste a key", "#key-ANTHROPIC_API_KEY"),
    "free": ("who answers", "Run a free model here", "#provider-ollama"),
    "empty": ("Ollama is running, without a model.", "Get a model", "#pull-ollama"),
    "keys": ("Your keys work.", "Choose a model", "#set-SEARCHLOOP_MODEL"),
    "models": ("", "", ""),
    "last": ("", "", ""),
}


@pytest.fixture(scope="module", params=STATES)
def state(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, House]]:
    """A server that was just set up, in one of these states."""
    name, home = request.param, tmp_path_factory.mktemp("new")
    with ExitStack() as after:
        models = {"empty": (), "models": TWO, "last": TWO}.get(name)
        where = closed_address()
        if models is not None:
            where = after.enter_context(FakeOllama(models)).url
        settings = {"OLLAMA_HOST": where}
        if name == "keys":
            cloud = after.enter_context(FakeServer(vendor))
            settings |= {"ANTHROPIC_BASE_URL": cloud.url, "ANTHROPIC_API_KEY": GOOD}
        if name == "last":
            (home / "data").mkdir()
            (home / "data" / "last-model").write_text("ollama:small:1b")
        house = House(home, settings)
        house.start()
        after.callback(house.stop)
        yield name, house


def fits(page: Page) -> bool:
    """Nothing of the empty chat has to be scrolled to."""
    whole: bool = page.evaluate(
        "(() => { const s = document.querySelector('#scroller');"
        " return s.scrollHeight <= s.clientHeight + 1; })()"
    )
    return whole


def test_each_state_has_one_clear_next_step(enter: Enter, state: tuple[str, House]) -> None:
    """The step leads to where it is done; with a model there is none, and the best one answers."""
    name, house = state
    words, button, target = STATES[name]
    page = enter(house, viewport={"width": 1280, "height": 720})
    expect(page.get_by_label("Your question")).to_be_focused()
    if not words:
        expect(page.locator(".missing")).to_have_count(0)
        best = {"models": "large:4b", "last": "small:1b"}[name]
        expect(page.locator("#model-name")).to_contain_text(best)
    assert fits(page)
    if words:
        step = page.locator(".missing")
        expect(step).to_have_count(1)
        expect(step).to_contain_text(words)
        expect(step.locator(".primary")).to_have_count(1)
        step.get_by_role("button", name=button).click()
        expect(page.get_by_role("dialog", name="Settings")).to_be_visible()
        expect(page.locator(target)).to_be_focused()
        expect(page.locator(target)).to_be_in_viewport()


def test_a_small_phone_shows_the_step_at_once(enter: Enter, state: tuple[str, House]) -> None:
    """Nothing is cut off at 320 px, and the step, where one is left, is in sight."""
    name, house = state
    phone = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}
    page = enter(house, **phone)
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    expect(page.locator("#send")).to_be_in_viewport()
    if STATES[name][1]:
        button = page.locator(".missing").get_by_role("button", name=STATES[name][1])
        expect(button).to_be_in_viewport()
        button.click()
        expect(page.locator(STATES[name][2])).to_be_in_viewport()


@pytest.mark.parametrize("state", ["last"], indirect=True)
def test_the_usual_model_is_remembered(enter: Enter, state: tuple[str, House]) -> None:
    """What answered last is there after a restart, before anybody chooses."""
    _, house = state
    assert (Path(house.home) / "data" / "last-model").exists()
    house.stop()
    house.start()
    page = enter(house, fresh=True)
    expect(page.locator("#model-name")).to_contain_text("small:1b")
