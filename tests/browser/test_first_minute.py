"""The first minute: what is there, the one step that is left, and where it leads."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, ViewportSize, expect

from tests.browser.checks import sticks_out
from tests.browser.conftest import SMALL, Enter
from tests.browser.house import House
from tests.browser.test_rooms import BAD, GOOD, vendor
from tests.fake_ollama import FakeOllama, Model
from tests.fakes import FakeServer
from tests.ports import closed_address

pytestmark = pytest.mark.integration
DESK: ViewportSize = {"width": 1280, "height": 720}
TWO = [Model("small:1b", disk=800_000_000), Model("large:4b", disk=2_500_000_000)]
HUGE = [Model("huge:400b", disk=10**15)]  # which no memory holds
FITS = "(s => s.scrollHeight <= s.clientHeight + 1)(document.querySelector('#scroller'))"


def new(enter: Enter, house: House) -> Page:
    """The page of a server that nobody has asked yet."""
    return enter(house, fresh=True, viewport=DESK)


def looked_at(page: Page) -> Locator:
    """What an empty chat says is missing; on a desk nothing has to be scrolled to, on the smallest
    phone nothing sticks out, and on both the next step is in sight."""
    page.reload()
    page.locator(".suggestions").wait_for()
    expect(page.locator("#model-name")).not_to_be_empty()
    expect(page.get_by_label("Your question")).to_be_focused()
    assert page.evaluate(FITS), "nothing of the empty chat has to be scrolled to"
    for size in (SMALL["viewport"], DESK):
        page.set_viewport_size(size)
        assert sticks_out(page) == []
        for part in page.locator("#send, .missing .primary").all():
            expect(part).to_be_in_viewport()
    return page.locator(".missing")


def one_step(page: Page, words: str, **ways: str) -> None:
    """One step is left; each of its buttons leads to where it is done."""
    for button, target in ways.items():
        step = looked_at(page)
        expect(step).to_have_count(1)
        expect(step).to_contain_text(words)
        expect(step.locator(".primary")).to_have_count(1)
        step.get_by_role("button", name=button.replace("_", " ")).click()
        expect(page.locator(target)).to_be_focused()
        expect(page.locator(target)).to_be_in_viewport()


class Filling(FakeOllama):
    """An Ollama that gets its models while people look on."""

    def fill(self, models: list[Model]) -> None:
        """It has these and no others."""
        self._models = {model.full_name: model for model in models}


def test_each_state_of_ollama_has_one_clear_next_step(enter: Enter, tmp_path: Path) -> None:
    """Without a model, with one too large, with two: with a model nothing is missing, and the best
    one answers, or the one that answered last."""
    with Filling() as local, House(tmp_path, {"OLLAMA_HOST": local.url}) as house:
        page = new(enter, house)
        one_step(page, "Ollama is running, without a model.", Get_a_model="#pull-ollama")
        local.fill(HUGE)
        one_step(page, "Models are there.", Choose_a_model=".picker input")
        local.fill(TWO)
        expect(looked_at(page)).to_have_count(0)
        expect(page.locator("#model-name")).to_contain_text("large:4b")
        offered = page.get_by_role("group", name="Ollama is running here.").get_by_role("radio")
        expect(offered).to_have_count(2)
        # The focus stays on the choice, and the best one can be taken again.
        expect(offered.first).to_be_checked()
        expect(page.locator(".answering")).to_contain_text("2.5 GB")
        for key, other in (("ArrowDown", "small:1b"), ("ArrowUp", "large:4b")):
            page.locator(".answering :checked").press(key)
            expect(page.locator("#model-name")).to_contain_text(other)
            expect(page.locator(".answering :checked")).to_be_focused()
        (tmp_path / "data" / "last-model").write_text("ollama:small:1b")
        page.goto(house.start_url)
        expect(looked_at(page)).to_have_count(0)
        expect(page.locator("#model-name")).to_contain_text("small:1b")
        expect(page.get_by_role("radio")).to_have_count(0)


def test_a_server_of_ones_own_needs_no_key(page: Page) -> None:
    """On another machine of the house too: no key is said to work where none is."""

    server = ""

    def elsewhere(route: Route) -> None:
        told = route.fetch().json()
        models = [{**told["models"][0], "id": server, "available": True, "local": False}]
        why = {"by": "none", "why": ""}
        route.fulfill(json={**told, "models": models, "default_why": why})

    page.route("**/api/models", elsewhere)
    for known in ("ollama:large:4b", "openai-chat:large"):
        server = known
        page.reload()
        expect(page.locator(".missing")).to_contain_text("Models are there.")


def test_a_first_key_is_pasted_where_one_asks(enter: Enter, tmp_path: Path) -> None:
    """With nothing here there is one step, with two ways. Whose a key is, is seen by its beginning;
    it is refused in words, or its models are there: choosing one is the step that is left."""
    with FakeServer(vendor) as cloud:
        settings = {"OLLAMA_HOST": closed_address(), "ANTHROPIC_BASE_URL": cloud.url}
        with House(tmp_path, settings) as house:
            first_key(new(enter, house))


def first_key(page: Page) -> None:
    """From nothing to a model."""
    ways = {"Test_and_save": "#first-key", "Run_a_free_model_here": "#provider-ollama"}
    one_step(page, "who answers", **ways)
    looked_at(page)
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
    expect(page.get_by_role("option", name="claude-haiku-5")).to_be_visible()
    one_step(page, "Your keys work.", Choose_a_model=".picker input")
    page.get_by_role("option", name="claude-haiku-5").click()
    expect(page.locator("#model-name")).to_have_text("claude-haiku-5")
    expect(page.locator(".missing")).to_have_count(0)
    expect(page.get_by_label("Your question")).to_be_visible()
