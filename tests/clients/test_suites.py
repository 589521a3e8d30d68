"""Suites that others wrote for the protocols we serve, run against our server.

llmprobe asks every face at /v1; each of its MUST checks that applies holds. The suite of MCP is for
servers with tools, prompts and resources of its own; what it can check of ours holds, and REASONS
says why the rest does not apply. Neither needs a network.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import Received, Reply, sse
from tests.web.faces import DONE, KEY, MODEL, called, chunk, desk, listing, said

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
PROBE = ROOT / "tests/node/node_modules/.bin/llmprobe"
SUITE = HERE / "node/node_modules/.bin/conformance"
NODE_22 = HERE / "node/node_modules/node/bin/node"


def value_for(schema: Any) -> Any:
    """Something that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if "properties" in schema:
        return {name: value_for(inner) for name, inner in schema["properties"].items()}
    if schema.get("type") == "array":
        return [value_for(schema.get("items", {}))]
    return {"integer": 3, "number": 1.5, "boolean": True}.get(schema.get("type"), "Paris")


def model(asked: Received) -> Reply:
    """Calls the tool it has to, writes the JSON it is asked for, else repeats what it was told;
    within its tokens, each of which is a word, and up to a word that ends it."""
    if models := listing(asked):
        return models
    body = asked.json
    messages = body["messages"]
    tools = {t["function"]["name"]: t["function"] for t in body.get("tools", ())}
    told = " ".join(m["content"] for m in messages if isinstance(m["content"], str))
    forced = re.search(r"Call (?:the tool (\S+)|a tool) before you answer", told)
    if tools and messages[-1]["role"] != "tool" and (forced or "weather" in told.lower()):
        name = (forced and forced[1]) or next(iter(tools))
        return called(name, **value_for(tools[name].get("parameters") or {}))
    form = body.get("response_format") or {}
    if form:
        return said(
            json.dumps(value_for(form.get("json_schema", {}).get("schema", {"properties": {}})))
        )
    users = [
        m["content"] for m in messages if m["role"] == "user" and isinstance(m["content"], str)
    ]
    text = f"{' '.join(users)} One two three four five."
    for word in body.get("stop") or ():
        text = text.partition(word)[0]
    words = text.replace("[", "(").split()
    most = body.get("max_tokens") or body.get("max_completion_tokens") or len(words)
    count = {"prompt_tokens": len(told) // 4, "completion_tokens": min(most, len(words))}
    reason = "length" if len(words) > most else "stop"
    pieces = [chunk(content=f"{word} ") for word in words[:most]]
    return Reply([*pieces, chunk(reason=reason), sse({"choices": [], "usage": count}), DONE])


@pytest.mark.integration
@pytest.mark.skipif(not PROBE.exists(), reason="make node installs llmprobe")
def test_every_must_of_llmprobe_holds(tmp_path: Path) -> None:
    """Models, Chat Completions, Responses, Messages and the counting of tokens."""
    report = tmp_path / "report.json"
    with desk(tmp_path / "home", model, SEARCHLOOP_OFFLINE="1") as at:
        command = [PROBE, f"{at.running.serving.base}/v1", "-k", KEY, "-m", MODEL, "--save", report]
        quiet = ["--no-save", "--no-bench", "--no-color", "--timeout", "60"]
        done = subprocess.run([*command, *quiet], capture_output=True, text=True, timeout=300)
    assert report.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    results = json.loads(report.read_text())["conformance"]["results"]
    failed = [
        f"{each['name']}: {fault['message']}"
        for each in results
        for fault in each.get("failures", ())
        if fault["severity"] == "MUST"
    ]
    assert failed == []
    assert {"chat", "responses", "messages"} <= {each["surface"] for each in results}
    assert sum(each["outcome"] == "pass" for each in results) > 60


# Parts of names of scenarios, and why they do not apply to us.
REASONS = {
    "tools-call-": "calls tools that only the suite's own server has",
    "tasks-": "an extension; our tools answer while the client waits",
    "sep-2640-": "an extension for skills, of which there are none",
    "input-required-": "our tools ask the user nothing",
    "elicitation-": "our tools ask the user nothing",
    "prompts-": "there are no prompts",
    "resources-": "there are no resources",
    "completion-complete": "there is nothing to complete",
    "logging-set-level": "no messages of a log are sent",
    "json-schema-2020-12": "wants a tool of the suite's own server",
    "http-custom-header-server": "wants a tool whose argument comes in a header",
}
# Checks inside the other scenarios that want such a tool, prompt or resource.
WANTING = re.compile(r"Not testable: server does not list|-32601: Method not found")


def signed(app: Any) -> Any:
    """Adds the token, which the suite cannot send; what else the gate asks for stays."""

    async def with_token(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            token = (b"authorization", f"Bearer {KEY}".encode())
            scope = {**scope, "headers": [*scope["headers"], token]}
        await app(scope, receive, send)

    return with_token


@contextmanager
def mcp_server(home: Path) -> Iterator[str]:
    """Our server, which lets the suite in."""
    with desk(home, SEARCHLOOP_OFFLINE="1") as at:
        config = at.running.serving.config
        config.loaded_app = signed(config.loaded_app)
        yield f"{at.running.serving.base}/mcp"


@pytest.mark.clients
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_the_suite_of_mcp_finds_nothing_that_applies(tmp_path: Path, version: str) -> None:
    """What both versions of the protocol require, and our server can show."""
    node = NODE_22 if NODE_22.exists() else Path(shutil.which("node") or "node")
    with mcp_server(tmp_path / "home") as url:
        command = [node, SUITE, "server", "--url", url, "--requirements", version]
        done = subprocess.run(
            [*command, "-o", tmp_path / "told"], capture_output=True, text=True, timeout=300
        )
    held, failed = 0, []
    for path in sorted((tmp_path / "told").glob("*/checks.json")):
        checks = json.loads(path.read_text())
        skipped = any(part in path.parent.name for part in REASONS)
        held += sum(check["status"] == "SUCCESS" for check in checks)
        failed += [
            f"{path.parent.name}: {check['id']}: {check.get('errorMessage')}"
            for check in checks
            if check["status"] == "FAILURE" and not skipped
            if not WANTING.search(str(check.get("errorMessage")))
        ]
    assert failed == []
    assert held > 30, done.stdout[-2000:] + done.stderr[-2000:]
