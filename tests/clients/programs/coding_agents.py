"""Coding agents as their users start them: `coding_agents.py AGENT MODEL|MCP`.

As a model's server we answer the agent's own requests. Over MCP its model, the same script, calls
our `web_search` among the agent's tools, and says what came back.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from kit import try_all

AGENT, BY_MCP = sys.argv[1], sys.argv[2] == "MCP"
OWN_TOOL = "Read the file weather.txt. Is it warm in Paris?"
CODEX = """
model = "{model}"
model_provider = "searchloop"
web_search = "{search}"
[model_providers.searchloop]
name = "searchloop"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "SEARCHLOOP_TOKEN"
request_max_retries = 0
stream_max_retries = 0
"""
CODEX_MCP = """
[mcp_servers.searchloop]
url = "{base}/mcp"
bearer_token_env_var = "SEARCHLOOP_TOKEN"
required = true
default_tools_approval_mode = "approve"
"""


def codex(at, home, search):
    """Its own search asks for no network; our library is offline too."""
    of = {"model": at.model, "base": at.base, "search": "cached" if search else "disabled"}
    text = (CODEX + CODEX_MCP if BY_MCP else CODEX).format(**of)
    (home / "config.toml").write_text(text)
    return ["exec", "--json", "--skip-git-repo-check"], {"CODEX_HOME": str(home)}


def claude(at, home, search):
    name = at.model + ("+web" if search else "")
    flags = ["-p", "--verbose", "--output-format=stream-json", "--include-partial-messages"]
    flags += [f"--model={name}", "--allowedTools=Bash,mcp__searchloop__web_search"]
    if BY_MCP:
        server = {"type": "http", "url": f"{at.base}/mcp", "headers": _headers(at)}
        flags.append(f"--mcp-config={json.dumps({'mcpServers': {'searchloop': server}})}")
    return flags, {
        "ANTHROPIC_BASE_URL": at.base,
        "ANTHROPIC_API_KEY": at.key,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    }


def opencode(at, home, search):
    name = at.model + ("+web" if search else "")
    options = {"baseURL": f"{at.base}/v1", "apiKey": at.key}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {name: {}}}
    server = {"type": "remote", "url": f"{at.base}/mcp", "headers": _headers(at)}
    told = {"provider": {"searchloop": provider}, "mcp": {"searchloop": server} if BY_MCP else {}}
    (home / "opencode.json").write_text(json.dumps(told))
    return ["run", "--format=json", f"--model=searchloop/{name}"], {}


def _headers(at):
    return {"Authorization": f"Bearer {at.key}"}


def started(at, question, search=False):
    home = Path(os.environ["HOME"], AGENT)
    home.mkdir(exist_ok=True)
    (home / "weather.txt").write_text("sunny in Paris\n")
    start = {"codex": codex, "claude": claude, "opencode": opencode}[AGENT]
    arguments, more = start(at, home, search)
    return subprocess.Popen(
        [shutil.which(AGENT), *arguments, question],
        env={**os.environ, "HOME": str(home), "SEARCHLOOP_TOKEN": at.key, **more},
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ask(at, question, stream=False, search=False, tool=False):
    if BY_MCP:
        question, search = f"{question} Look it up by MCP.", False
    process = started(at, OWN_TOOL if tool else question, search)
    out, errors = process.communicate(timeout=150)
    if process.returncode or "switched off" in out:
        raise RuntimeError(out + errors)
    events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    texts = [text for event in events if (text := text_of(event))]
    pieces = [e for e in events if e.get("event", {}).get("delta", {}).get("text")]
    return texts[-1], len(pieces), re.findall(r"library://docs/[\w/.-]+", out)


def text_of(event):
    """The whole text of an answer, which each agent says in its own event."""
    if event["type"] == "result":
        return event["result"]
    part = event.get("item") or event.get("part") or {}
    return part.get("text") if part.get("type") in {"agent_message", "text"} else None


def leave(at, question):
    process = started(at, question)
    with urllib.request.urlopen(f"{os.environ['GONE']}/asked", timeout=60):
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


ONLY_SEARCH = ("answer", "stream", "tools", "stop", "down")  # MCP is asked for nothing else
try_all(AGENT, ask, leave, *(ONLY_SEARCH if BY_MCP else () if AGENT == "claude" else ("stream",)))
