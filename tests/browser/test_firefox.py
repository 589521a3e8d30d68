"""The page in Firefox: asked, switched, changed and looked at; `make torture` has it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.house import MODEL, House, LedOllama
from tests.conftest import skip_without
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.torture
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # what WebDriver calls the id of one
ENTER = "\ue007"
KEPT = """
window.faults = [];
addEventListener("error", event => faults.push(event.message));
addEventListener("unhandledrejection", event => faults.push(String(event.reason)));
"""


EMPTIED = """
const box = document.getElementById("question");
box.value = "";
box.dispatchEvent(new Event("input"));
"""


class Firefox:
    """Firefox without a window, led by its own protocol, Marionette."""

    def __init__(self, program: str, profile: Path) -> None:
        port = free_port()
        prefs = {"marionette.port": port, "intl.accept_languages": "en-US"}
        lines = (f"user_pref({json.dumps(n)}, {json.dumps(v)});\n" for n, v in prefs.items())
        (profile / "user.js").write_text("".join(lines), "utf-8")
        command = [program, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._number = 0
        until(lambda: self._connect(port))
        self._read()
        self.send("WebDriver:NewSession")

    def _connect(self, port: int) -> bool:
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        except OSError:
            return False
        return True

    def _read(self) -> Any:
        head = b""
        while not head.endswith(b":"):
            head += self._socket.recv(1)
        left, parts = int(head[:-1]), []
        while left:
            parts.append(self._socket.recv(left))
            left -= len(parts[-1])
        return json.loads(b"".join(parts))

    def send(self, command: str, **more: Any) -> Any:
        """Has the browser do this, and gives what it says."""
        self._number += 1
        body = json.dumps([0, self._number, command, more]).encode()
        self._socket.sendall(str(len(body)).encode() + b":" + body)
        _, _, error, result = self._read()
        assert error is None, error
        return result["value"] if isinstance(result, dict) and "value" in result else result

    def run(self, script: str) -> Any:
        """Runs a script in the page."""
        return self.send("WebDriver:ExecuteScript", script=script, args=[], sandbox="default")

    def sees(self, selector: str, text: str = "") -> None:
        """Waits for an element that is shown and has this text."""
        found = f"""return [...document.querySelectorAll({json.dumps(selector)})]
          .some(e => e.checkVisibility() && e.textContent.includes({json.dumps(text)}))"""
        until(lambda: self.run(found))

    def press(self, selector: str, keys: str = "") -> None:
        """Presses an element once it is shown, or types into it."""
        self.sees(selector)
        at = {"using": "css selector", "value": selector}
        element = self.send("WebDriver:FindElement", **at)[ELEMENT]
        if keys:
            self.send("WebDriver:ElementSendKeys", id=element, text=keys)
        else:
            self.send("WebDriver:ElementClick", id=element)

    def close(self) -> None:
        """Ends it."""
        self._socket.close()
        self._process.terminate()
        self._process.wait(30)


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    """Firefox, where it is installed; one for all cases."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        skip_without("Firefox")
    made = Firefox(program, tmp_path_factory.mktemp("firefox"))
    yield made
    made.close()


@pytest.fixture
def page(firefox: Firefox, house: House) -> Iterator[Firefox]:
    """The page of a new chat in it, in which nothing may fail."""
    firefox.send("WebDriver:SetWindowRect", width=1280, height=900)
    firefox.send("WebDriver:Navigate", url="about:blank")
    firefox.send("WebDriver:Navigate", url=house.start_url)
    firefox.sees(".suggestions button")
    firefox.run(KEPT)
    yield firefox
    firefox.run(EMPTIED)  # what is not sent waits for the next case
    assert firefox.run("return faults") == []


def ask(page: Firefox, ollama: LedOllama, answer: str, question: str = "And when?") -> None:
    """Asks the model of this machine, which answers so."""
    ollama.script = lambda messages: [answer]
    if page.run("return document.getElementById('model').dataset.id") != f"ollama:{MODEL}":
        page.press("#model")
        page.press(f'[role="option"][data-id="ollama:{MODEL}"]')
        page.sees("#model-name", MODEL)
    page.press("#question", question + ENTER)
    page.sees('.turn:last-child[aria-busy="false"] .turn-foot button')


def looking_changes_nothing(page: Firefox, ollama: LedOllama) -> None:
    """Two answers side by side, and back: the chat keeps its model."""
    ask(page, ollama, "Six.")
    page.press(".turn-foot .quiet:has(.word)")
    page.press('[role="menu"] button')
    page.sees(".compare .column:nth-child(2) .answer, .compare .column:nth-child(2) .note")
    page.press(".compare header button")
    page.sees("#model-name", MODEL)
    assert page.run("return document.getElementById('model').dataset.id") == f"ollama:{MODEL}"


def a_narrow_page_has_one_row(page: Firefox, ollama: LedOllama) -> None:
    """Of controls; no level of a heading is left out, rare buttons have words, all fits."""
    ask(page, ollama, "## Ebb\n\nSix.\n\n#### Flood\n\nNoon.", "Tides? " * 12)
    page.send("WebDriver:SetWindowRect", width=480, height=900)
    page.sees(".question [data-unfold]")
    assert (
        page.run(
            """return new Set([...document.querySelectorAll("#composer :is(button, label.switch)")]
          .filter(e => e.checkVisibility())
          .map(e => Math.round(e.getBoundingClientRect().bottom / 16))).size"""
        )
        == 1
    )
    assert page.run(
        "return [...document.querySelectorAll('.answer [aria-level]')].map(e => e.ariaLevel)"
    ) == ["3", "4"]
    page.sees(".tools .word", "Side by side")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


def a_preview_is_sealed(page: Firefox, ollama: LedOllama) -> None:
    """A drawing stands beside its code, runs nothing, and goes with Escape."""
    code = "<svg viewBox='0 0 9 9' onload='parent.hacked = 1'><circle r='4'/></svg>"
    ask(page, ollama, f"```svg\n{code}\n```\n")
    page.press(".code-bar button")
    page.sees("#preview iframe")
    page.sees("#preview p", "can load and send nothing")
    assert page.run("return typeof hacked") == "undefined"
    page.run(
        """document.getElementById("preview").dispatchEvent(
          new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }))"""
    )
    assert page.run("return document.getElementById('preview')") is None


def one_menu_takes_commands_models_and_texts(page: Firefox, ollama: LedOllama) -> None:
    """By / at the start, by @ and # within the text, with the keys."""
    page.press("#question", "/")
    page.sees("#slash li", "/search on")
    page.run("document.getElementById('question').value = ''")
    page.press("#question", "@qw")
    page.sees("#slash li", MODEL)
    page.press("#question", ENTER)
    page.sees("#switch-state", "This question alone is answered by")
    page.press("#question", "#search-swit")
    page.sees("#slash li", "The web-search switch")
    page.press("#question", ENTER)
    page.sees("#shelf li", "search-switch.md")
    page.press("#shelf li button")


def all_kinds_of_answers(page: Firefox, ollama: LedOllama) -> None:
    """A search, a table with a long word, a formula, and every room of the settings, dark."""
    page.press("#model")
    page.press('[role="option"][data-id="builtin:extractive"]')
    page.sees("#model-name", "Quotes only")
    page.press("#switch")
    page.sees("#switch-state", "Web search is on")
    page.press("#question", "How does the search switch decide?" + ENTER)
    page.sees('.turn[aria-busy="false"] .answer .chip')
    ask(page, ollama, f"Six. $x^2$\n\n| a | b |\n|---|---|\n| {'long' * 90} | 2 |\n")
    page.sees(".turn:last-child .answer td", "long")
    page.sees(".turn:last-child .answer math")
    page.press("#open-settings")
    for room in ("search", "tools", "library", "advanced", "appearance"):
        page.press(f'#settings nav [data-page="{room}"]')
        page.sees(".settings-body > .settings-page:not([aria-busy]) > :nth-child(3)")
    page.press("#set-theme label:last-child")
    assert page.run("return getComputedStyle(document.body).colorScheme") == "dark"
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


CASES = (
    *(looking_changes_nothing, a_narrow_page_has_one_row, a_preview_is_sealed),
    *(one_menu_takes_commands_models_and_texts, all_kinds_of_answers),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_firefox_does_what_chromium_does(page: Firefox, ollama: LedOllama, case: Any) -> None:
    """What people missed on the page, tried in another browser; nothing breaks."""
    case(page, ollama)
