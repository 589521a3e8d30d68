"""Coding agents at our server, as their users start them; each that is installed here is tried.

They are too large to be installed by `make clients`: put `claude`, `codex` and `opencode` on the
PATH. Their settings lie in the test's folder, and they ask nobody else.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.web.faces import KEY, MODEL, SWITCH, Desk, desk, model

pytestmark = pytest.mark.clients

CODEX = """
model = "{model}"
model_provider = "searchloop"
[model_providers.searchloop]
name = "searchloop"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "SEARCHLOOP_TOKEN"
[mcp_servers.searchloop]
url = "{base}/mcp"
bearer_token_env_var = "SEARCHLOOP_TOKEN"
"""


def codex(at: Desk, home: Path) -> tuple[list[str], dict[str, str]]:
    """Its own web search, which stays on this machine unless its user changes that."""
    base = at.running.serving.base
    (home / "config.toml").write_text(CODEX.format(model=MODEL, base=base))
    return ["exec", "--skip-git-repo-check", SWITCH], {"CODEX_HOME": str(home)}


def claude(at: Desk, home: Path) -> tuple[list[str], dict[str, str]]:
    """An answer, printed."""
    base = at.running.serving.base
    return ["-p", "Say hello.", "--model", MODEL], {
        "ANTHROPIC_BASE_URL": base,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def opencode(at: Desk, home: Path) -> tuple[list[str], dict[str, str]]:
    """A model's name that asks for an offline search."""
    base, name = at.running.serving.base, f"{MODEL}+offline"
    options = {"baseURL": f"{base}/v1", "apiKey": KEY}
    package = "@ai-sdk/openai-compatible"
    provider = {"npm": package, "options": options, "models": {name: {}}}
    (home / "opencode.json").write_text(json.dumps({"provider": {"searchloop": provider}}))
    return ["run", "-m", f"searchloop/{name}", SWITCH], {}


Start = Callable[[Desk, Path], tuple[list[str], dict[str, str]]]


@pytest.mark.parametrize(
    ("start", "says"),
    [(codex, "may search [1]"), (claude, "Hello."), (opencode, "may search [1]")],
    ids=["codex", "claude", "opencode"],
)
def test_an_agent_gets_its_answer(tmp_path: Path, start: Start, says: str) -> None:
    """What it prints is what the model said, with our search where it asked for one."""
    program = shutil.which(start.__name__)
    if program is None:
        pytest.skip(f"{start.__name__} is not installed; its own site says how")
    home = tmp_path / "home"
    home.mkdir()
    with desk(tmp_path / "ours", model, SEARCH_ENGINES="library") as at:
        arguments, more = start(at, home)
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "SEARCHLOOP_TOKEN": KEY, **more}
        done = subprocess.run(
            [program, *arguments],
            env=env,
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
        )
        asked = [each for each in at.server.requests if each.method == "POST"]
    assert says in done.stdout, done.stdout[-1000:] + done.stderr[-1000:]
    assert asked
