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


@pytest.fixture
def firefox(tmp_path: Path) -> Iterator[Firefox]:
    """Firefox, where it is installed."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        pytest.skip("no Firefox here: sudo apt-get install firefox-esr")
    made = Firefox(program, tmp_path)
    yield made
    made.close()


def test_firefox_asks_switches_and_sets(firefox: Firefox, house: House, ollama: LedOllama) -> None:
    """An answer with a table, code and a formula, a search, a room, a long word; nothing breaks."""
    ollama.script = lambda messages: [
        f"Six. $x^2$\n\n| a | b |\n|---|---|\n| {'long' * 90} | 2 |\n\n```python\nprint(1)\n```\n"
    ]
    firefox.send("WebDriver:Navigate", url=house.start_url)
    firefox.sees(".suggestions button")
    firefox.run(KEPT)
    firefox.press("#switch")
    firefox.sees("#switch-state", "Web search is on")
    firefox.press("#question", "How does the search switch decide?" + ENTER)
    firefox.sees('.turn[aria-busy="false"] .answer .chip')
    firefox.press("#switch")
    firefox.press("#model")
    firefox.press(f'[role="option"][data-id="ollama:{MODEL}"]')
    firefox.sees("#model-name", MODEL)
    firefox.press("#question", "And when?" + ENTER)
    firefox.sees('.turn:last-child[aria-busy="false"] .answer td', "long")
    firefox.sees(".turn:last-child .answer math")
    firefox.press("#open-settings")
    for room in ("search", "tools", "library", "advanced", "appearance"):
        firefox.press(f'#settings nav [data-page="{room}"]')
        firefox.sees(".settings-body > .settings-page:not([aria-busy]) > :nth-child(3)")
    firefox.press("#set-theme label:last-child")
    assert firefox.run("return getComputedStyle(document.body).colorScheme") == "dark"
    wide = "return document.documentElement.scrollWidth <= innerWidth"
    assert firefox.run(wide)
    assert firefox.run("return faults") == []
