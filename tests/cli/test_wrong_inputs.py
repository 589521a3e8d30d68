"""Wrong inputs at the terminal: no traceback, one sentence, and each answer names the remedy."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.cli.conftest import Cli

# What is typed -> a word of the remedy.
WRONG = {
    "aks hi": "did you mean ask",
    "serv": "did you mean serve",
    "comp": "did you mean completions",
    "modles": "did you mean models",
    "sessions improt x.json": "did you mean import",
    "mcp lst": "did you mean list",
    "models alais": "did you mean alias",
    "search-backend": "clear-cache",
    "search-backend srve": "did you mean serve",
    "completions": "shell is missing",
    "ask": "question",
    "ask ''": "question",
    "ask hi -m nothing-of-the-kind": "provider:model",
    "ask hi -m builtn:extractive": "did you mean builtin:extractive",
    "ask hi -m builtin:": "provider:model",
    "ask hi -m :x": "provider:model",
    "ask hi -m extractiv": "did you mean extractive",
    "ask hi -m extractive:7b": "asked: builtin",
    "ask hi -m opnai:gpt-9": "did you mean openai:gpt-9",
    "ask hi -m openai:gpt-9": "openai_api_key",
    "ask hi -m openai": "openai:",
    "ask hi --mode agnt": "agent",
    "ask hi --search nativ": "native",
    "ask hi --approve maybe": "auto",
    "ask hi --max-steps 0": "at least 1",
    "ask hi --max-steps many": "whole number",
    "ask hi --max-cost -1": "above 0",
    "ask hi --max-cost free": "above 0",
    "ask hi --max-seconds nan": "above 0",
    "ask hi -f nowhere.txt": "nowhere.txt",
    "ask hi -f .": "check the path",
    "ask hi --schema nowhere.json": "file",
    "ask hi --option temperature": "key=value",
    "ask hi --option heat=1": "temperature",
    "ask hi --option temperature=9": "0 to 2",
    "ask hi --session nowhere": "sessions",
    "ask hi -c": "session",
    "ask hi --agent nobody": "agents",
    "ask hi --agent codr": "did you mean coder",
    "ask hi --project nowhere": "projects",
    "ask hi --workspace nowhere": "folder",
    "ask hi --domain http://": "example.org",
    "ask hi -o yaml": "json",
    "ask hi -s @nowhere.txt": "file",
    "ask hi --colour": "searchloop ask --help",
    "ask hi --sytem x": "did you mean --system",
    "ask hi --run-plan": "question",
    "chat --session nowhere": "sessions",
    "chat -m builtn:x": "builtin",
    "search": "query is missing",
    "search x --engine gogle": "google",
    "search x --engine ddgg": "did you mean ddg",
    "search x --engine duckduckgo": "did you mean ddg",
    "search x -n 0": "at least 1",
    "search x --time-range h": "choose from d, w, m",
    "open https://a.example/ --reader locl": "did you mean local",
    "open https://a.example/ --offset -1": "whole number",
    "open": "url is missing",
    "open not-an-address": "http",
    "open http://127.0.0.1/": "public",
    "check": "CLAIM",
    "check '' x.txt": "claim",
    "check x": "file",
    "check x nowhere.txt": "nowhere.txt",
    "check /etc/passwd 'The sky is blue.'": "the claim comes first",
    "check x nowhere.txt --fail-on wrong": "contradicted",
    "audit nowhere.md": "nowhere.md",
    "models pul x": "pull",
    "models alias A! x": "provider:model",
    "models default nothing-at-all": "provider:model",
    "library add nowhere": "nowhere",
    "library remove nowhere": "library",
    "mcp add": "add",
    "mcp test nobody": "searchloop mcp add",
    "mcp add x": "--",
    "sessions restore nowhere.db": "nowhere.db",
    "sessions undo nowhere": "session",
    "sessions delete nowhere": "session",
    "sessions delete": "delete ID",
    "config set NAME x": "'set NAME x' is not understood",
    "sessions import nowhere.json": "nowhere.json",
    "export nowhere": "session",
    "agents show nobody": "agents",
    "setup --engine gogle": "engine",
    "setup --provider opnai": "did you mean openai",
    "setup --set SEARCH_ENGINS=ddg": "did you mean search_engines",
    "setup --set OPENAI_API_KEY=x": "--key-stdin",
    "setup --key-stdin": "--engine",
    "config --orign": "did you mean --origin",
    "export --format pdf": "choose from md",
    "projects show nowhere": "projects",
    "agents edit coder": "agents edit -h",
    "completions tcsh": "bash",
    "serve --port 99999999": "65535",
    "search-backend --port x": "port",
}
# A search may look like a command, and whether an address is public is found out by asking.
CODES = {"sessions improt x.json": 0, "open http://127.0.0.1/": 1}
NARROW = {"COLUMNS": "40", "TERM": "dumb", "NO_COLOR": "1"}


@pytest.mark.parametrize("typed", WRONG)
def test_a_wrong_input_names_the_remedy(cli: Cli, typed: str) -> None:
    """On stderr, in words, without colours; the exit code is that of bad input or of a failure."""
    words = shlex.split(typed)
    online = {"SEARCHLOOP_OFFLINE": ""} if words[0] == "open" else {}
    ran = cli(*words, **NARROW, **online)
    assert ran.code == CODES.get(typed, 2)
    assert "Traceback" not in ran.err
    assert "\x1b" not in ran.err + ran.out
    assert WRONG[typed].lower() in re.sub(r"\s+", " ", ran.err).lower()


def test_there_are_sixty() -> None:
    """As many as were promised."""
    assert len(WRONG) >= 60
