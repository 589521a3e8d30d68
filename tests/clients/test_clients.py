"""Clients of other makers are tried at our server, and the documents say what came of it.

`make clients` installs them and runs this, and writes its table anew. Those that are installed
anyway are tried by `make integration`. The server is ours on a free port, its model plays a script.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.fakes import FakeServer, Received, Reply, json_reply
from tests.tables import each_row
from tests.waiting import until
from tests.web.faces import KEY, MODEL, called, desk, model

HERE = Path(__file__).parent
PROGRAMS, NODE, ROOT = HERE / "programs", HERE / "node", HERE.parents[1]
PYTHON, README = ROOT / "build/clients/bin/python", ROOT / "README.md"
AGENTS = ROOT / "build/agents/node_modules/.bin"
GUIDE = ROOT / "docs" / "guides" / "other-programs.md"
CHECKS = ("answer", "stream", "search", "tools", "stop", "down", "off")
# The name of a client, its protocol, its script.
CLIENTS = (
    ("openai-python", "Chat Completions", "openai_chat.py"),
    ("openai-python", "Responses", "openai_responses.py"),
    ("anthropic-python", "Messages", "anthropic_messages.py"),
    ("MCP SDK for Python", "MCP", "mcp_sdk.py"),
    ("LiteLLM", "Chat Completions", "litellm_chat.py"),
    ("`llm`", "Chat Completions", "llm_models.py"),
    ("pydantic-ai", "Responses", "pydantic_responses.py"),
    ("openai-agents", "Responses", "openai_agents.py"),
    ("LangChain", "Responses", "langchain_openai_responses.py"),
    ("LangChain", "Messages", "langchain_anthropic_messages.py"),
    ("openai-node", "Chat Completions", "openai_chat.js"),
    ("openai-node", "Responses", "openai_responses.js"),
    ("@anthropic-ai/sdk", "Messages", "anthropic_messages.js"),
    ("ai-sdk", "Responses", "ai_sdk.js"),
    ("claude-code", "Messages", "coding_agents.py claude MODEL"),
    ("claude-code", "MCP", "coding_agents.py claude MCP"),
    ("codex", "Responses", "coding_agents.py codex MODEL"),
    ("codex", "MCP", "coding_agents.py codex MCP"),
    ("opencode", "Chat Completions", "coding_agents.py opencode MODEL"),
    ("opencode", "MCP", "coding_agents.py opencode MCP"),
)
SAMPLE = CLIENTS[1:4]  # installed for other tests too
# What a client cannot do, whoever serves it; the guide says why.
KNOWN = {("`llm`", "search"), ("codex", "search"), ("opencode", "search")}
SHELL = {"exec_command": "cmd", "Bash": "command", "bash": "command"}  # a coding agent's own tool
NO = "**no**"
DEAD = {"OLLAMA_HOST": "http://127.0.0.1:1"}  # where no provider answers
Tried = tuple[str, str, dict[str, str]]  # a client, its protocol, what came of it
TABLE = re.compile(r"(?<=<!-- clients -->\n).*?(?=<!-- /clients -->)", re.DOTALL)


def minded(asked: Received) -> Reply:
    """The model, which knows a coding agent's own shell, and our search among its tools."""
    if asked.method == "GET":
        return model(asked)
    last, tools = asked.json["messages"][-1], asked.json.get("tools", ())
    names = [tool["function"]["name"] for tool in tools]
    found = "search-switch" in last["content"] or "switched off" in last["content"]
    if b"by MCP" in asked.body and not found:
        ours = [name for name in names if name.endswith("web_search") and name != "web_search"]
        if ours:
            return called(ours[0], query="search switch")
        if "WaitForMcpServers" in names:
            return called("WaitForMcpServers")
    for name in SHELL.keys() & names:
        if last["role"] == "user" and "weather.txt" in last["content"]:
            return called(name, **{SHELL[name]: "cat weather.txt", "description": "Reads it"})
    return model(asked)


@contextmanager
def place(home: Path) -> Iterator[dict[str, str]]:
    """Two servers, one of them with its search off, as the environment of a client."""

    def gone(asked: Received) -> Reply:
        # The last request may be of another client, which is tried at the same time.
        def waiting() -> list[Received]:
            return [each for each in at.server.requests if b"wait for ever" in each.body]

        with suppress(AssertionError):  # who left before the model was asked has stopped the run
            until(waiting, 60 if asked.path.endswith("asked") else 5)
        if asked.path.endswith("asked"):
            return json_reply(None)
        return json_reply(all(each.gone.wait(50) for each in waiting()))

    with ExitStack() as stack:
        at = stack.enter_context(desk(home / "on", minded, SEARCH_ENGINES="library", **DEAD))
        off = stack.enter_context(desk(home / "off", minded, SEARCHLOOP_CLIENT_SEARCH="off"))
        told = stack.enter_context(FakeServer(gone))
        yield {
            "BASE": at.running.serving.base,
            "OFF": off.running.serving.base,
            "GONE": told.url,
            "MODEL": MODEL,
            "DOWN": "ollama:gone",
            "KEY": KEY,
            "HOME": str(home),
            "PATH": f"{AGENTS}:{os.environ['PATH']}",
            # A client that would ask anybody else finds nobody.
            "HTTPS_PROXY": "http://127.0.0.1:1",
            "NO_PROXY": "127.0.0.1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "PYTHONDONTWRITEBYTECODE": "1",
        }


def tried(script: str, python: Path, home: Path) -> dict[str, str]:
    """What came of one client: its version, and for each check "ok", "-" or what went wrong."""
    name, *more = script.split()
    node = name.endswith(".js")
    command = [shutil.which("node") or "node", NODE / name] if node else [python, PROGRAMS / name]
    with place(home) as env:
        done = subprocess.run(
            [*command, *more], env=env, capture_output=True, text=True, timeout=500
        )
    assert done.stdout, done.stderr[-2000:]
    told: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.integration
@each_row("client", SAMPLE)  # type: ignore[untyped-decorator]
def test_the_makers_own_clients_get_everything(
    tmp_path: Path, client: tuple[str, str, str]
) -> None:
    """Answer, stream, cited search, own tools, stop, and both refusals."""
    told = tried(client[2], Path(sys.executable), tmp_path)
    assert {told[name] for name in CHECKS} <= {"ok", "-"}, told


@pytest.mark.clients
def test_the_table_of_clients_is_what_they_do(tmp_path: Path) -> None:
    """The table is written anew where it differs; only what is known to be red may be."""
    with ThreadPoolExecutor(2) as pool:
        homes = [tmp_path / str(n) for n in range(len(CLIENTS))]
        scripts = [script for _, _, script in CLIENTS]
        results = list(pool.map(tried, scripts, [PYTHON] * len(CLIENTS), homes))
    tried_all = [(*c[:2], told) for c, told in zip(CLIENTS, results, strict=True)]
    fresh = [_written(README, _by_protocol(tried_all)), _written(GUIDE, _by_client(tried_all))]
    red = {(n, by, c): told[c] for n, by, told in tried_all for c in CHECKS if _mark(told[c]) == NO}
    assert {(name, check) for name, _, check in red} == KNOWN, red
    assert fresh == [True, True], "A table is new: commit it."


def _mark(told: str) -> str:
    return {"ok": "yes", "-": "-"}.get(told, NO)


def _by_client(tried_all: list[Tried]) -> str:
    """One row a client."""
    rows = [[n, t["version"], by, *(_mark(t[c]) for c in CHECKS)] for n, by, t in tried_all]
    return _table(["client", "version", "asks by", *CHECKS], rows)


def _by_protocol(tried_all: list[Tried]) -> str:
    """One row a protocol: "yes", or how many of its clients."""
    rows = []
    for protocol in dict.fromkeys(by for _, by, _ in tried_all):
        of = [(name, told) for name, by, told in tried_all if by == protocol]
        names = ", ".join(f"{name} {told['version']}" for name, told in of)
        marks = [[m for _, told in of if (m := _mark(told[c])) != "-"] for c in CHECKS]
        cells = [f"{m.count('yes')} of {len(m)}" if NO in m else (m or "-")[0] for m in marks]
        rows.append([protocol, names, *cells])
    return _table(["asked by", "clients that were tried", *CHECKS], rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rows])


def _written(page: Path, table: str) -> bool:
    """Writes a table into a page. Returns whether it stood there already."""
    text = page.read_text("utf-8")
    page.write_text(TABLE.sub(lambda _: table, text), "utf-8")
    return TABLE.findall(text) == [table]
