"""A collector that takes OTLP over HTTP, and what reaches it from the terminal and the library.

What a process may take of its machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from searchloop import Agent, AnswerError
from searchloop.agent.settings import Environment, Settings
from searchloop.agent.tools import tool
from tests.agent.scripted import Scripted, call, calls, says
from tests.crash.harness import ROOT
from tests.fakes import FakeServer, Reply, json_reply

# What https://github.com/open-telemetry/semantic-conventions-genai requires of each span
# that we send (docs/gen-ai/gen-ai-spans.md, gen-ai-agent-spans.md).
CALLED = "gen_ai.operation.name"
SPANS = {
    "invoke_agent": {CALLED, "gen_ai.provider.name", "gen_ai.agent.name", "gen_ai.request.model"},
    "chat": {CALLED, "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.conversation.id"},
    "execute_tool": {CALLED, "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.type"},
}
CANARIES = ("KANARIENFRAGE", "KANARIENWORT", "KANARIENANTWORT", "sk-canary-0123456789")


class Collector(FakeServer):
    """Takes what is sent as a collector does: protobuf, decoded with the standard's own schema."""

    def __init__(self) -> None:
        kind = {"content-type": "application/x-protobuf"}
        super().__init__(lambda received: Reply([], headers=kind))

    def _bodies(self, path: str) -> list[bytes]:
        asked = [r for r in self.requests if r.path == path]
        assert {r.headers["content-type"] for r in asked} <= {"application/x-protobuf"}
        return [r.body for r in asked]

    def spans(self) -> list[Any]:
        """Every span."""
        sent = [ExportTraceServiceRequest.FromString(b) for b in self._bodies("/v1/traces")]
        scopes = [s for each in sent for r in each.resource_spans for s in r.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    def everything(self) -> bytes:
        """All bytes that came."""
        return b"".join(r.body + repr(r.headers).encode() for r in self.requests)


def attributes(thing: Any) -> dict[str, Any]:
    """Name and value."""
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in thing.attributes}


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "KANARIENWORT"


def environment(home: Path, collector: Collector, *more: dict[str, str]) -> dict[str, str]:
    """Settings with a collector."""
    own = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_OTEL_ENDPOINT": collector.url}
    for each in more:
        own |= each
    return own


@pytest.mark.parametrize("provider", ["openai", "gemini", "anthropic", "ollama", "openai-chat"])
def test_the_library_tells_a_collector_what_the_conventions_ask(
    provider: str, tmp_path: Path
) -> None:
    """Spans of a run with a tool, with every required attribute, the well-known name of
    the provider, one trace, and none of the words that were asked, read or said, and no key."""
    model = Scripted([calls(call("look")), says("KANARIENANTWORT is it.")])
    model.name = provider
    with Collector() as collector:
        env = environment(tmp_path, collector, {"OPENAI_API_KEY": CANARIES[-1]})
        own = Settings.load(Environment({"flag": env}))
        with Agent(own, tools=[look], providers=[model]) as agent:
            said = agent.ask("KANARIENFRAGE?", model=f"{provider}:one", mode="agent")
        assert "KANARIENANTWORT" in said.text
        spans, everything = collector.spans(), collector.everything()
    kinds = [attributes(span)[CALLED] for span in spans]
    assert sorted(kinds) == ["chat", "chat", "execute_tool", "invoke_agent"]
    for span, kind in zip(spans, kinds, strict=True):
        assert span.name.split(" ")[0] == kind
        assert SPANS[kind] <= set(attributes(span))
        assert span.end_time_unix_nano >= span.start_time_unix_nano
    assert len({span.trace_id for span in spans}) == 1
    known_as = {"gemini": "gcp.gemini"}.get(provider, provider)
    named = {attributes(s).get("gen_ai.provider.name", known_as) for s in spans}
    assert named == {known_as}
    assert [word for word in CANARIES if word.encode() in everything] == []


def test_a_model_that_fails_is_a_failed_span(tmp_path: Path) -> None:
    """The error's code on the step and the run; the status says error."""
    refusing = FakeServer(lambda received: json_reply({"error": {"message": "no"}}, 401))
    with refusing as model, Collector() as collector:
        env = environment(tmp_path, collector, {"OPENAI_CHAT_BASE_URL": model.url})
        settings = Settings.load(Environment({"flag": env}))
        with Agent(settings) as agent, pytest.raises(AnswerError):
            agent.ask("KANARIENFRAGE?", model="openai-chat:m")
        spans = {attributes(s)[CALLED]: s for s in collector.spans()}
    assert set(spans) == {"chat", "invoke_agent"}
    codes = {attributes(span)["error.type"] for span in spans.values()}
    assert codes == {"unauthorized"}
    assert {span.status.code for span in spans.values()} == {2}


def test_the_terminal_tells_a_collector_too(tmp_path: Path) -> None:
    """`searchloop ask` is watched as the server is, and writes the same log if told."""
    with Collector() as collector:
        more = {"SEARCHLOOP_OFFLINE": "1", "SEARCHLOOP_LOG": "json,info", "HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-m", "searchloop.cli", "ask", "--web", "How does it search?"],
            cwd=ROOT,
            env=environment(tmp_path, collector, more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        names = {span.name for span in collector.spans()}
    assert {"invoke_agent searchloop", "execute_tool web_search"} <= names
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert {"run_started", "run_finished"} <= {line["message"] for line in lines}
    assert all("How does it" not in json.dumps(line) for line in lines)
