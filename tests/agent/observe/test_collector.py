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
from tests.chaos.dialects import Asked, load
from tests.crash.harness import ROOT
from tests.fakes import FakeServer, Received, Reply, json_reply

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


def model_server(provider: str) -> tuple[FakeServer, Any]:
    """A model that calls `look` once and then answers."""
    dialect = load(provider)

    def reply(received: Received) -> Reply:
        known = dialect.aside(received.method, received.path)
        if known is not None:
            return json_reply(known)
        dialect.hear(received.json)
        if "KANARIENWORT" in json.dumps(received.json):
            pieces = dialect.text("KANARIENANTWORT ", "is it.")
        else:
            pieces = dialect.calls(Asked("look", "{}"))
        return Reply(pieces, headers={"content-type": dialect.content_type})

    return FakeServer(reply), dialect


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
    model, dialect = model_server(provider)
    with model, Collector() as collector:
        keys = {s: "sk-canary-0123456789" for s in dialect.settings(model.url) if "KEY" in s}
        env = environment(tmp_path, collector, dialect.settings(model.url), keys)
        with Agent(Settings.load(Environment({"flag": env})), tools=[look]) as agent:
            name = f"{provider}:{dialect.models[0]}"
            said = agent.ask("KANARIENFRAGE?", model=name, mode="agent")
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


QUESTION = "How does it search?"


def ran(
    home: Path, env: dict[str, str], *words: str, said: str = ""
) -> subprocess.CompletedProcess[str]:
    """A command of the terminal, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "searchloop.cli", *words],
        cwd=ROOT,
        env={"HOME": str(home), **env},
        input=said,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_the_terminal_tells_a_collector_too(command: str, tmp_path: Path) -> None:
    """`searchloop ask` and `chat` are watched as the server is, and write the same log if told."""
    with Collector() as collector:
        more = {"SEARCHLOOP_OFFLINE": "1", "SEARCHLOOP_LOG": "json,info"}
        env = environment(tmp_path, collector, more)
        asked = (QUESTION,) if command == "ask" else ()
        done = ran(tmp_path, env, command, "--web", *asked, said="" if asked else f"{QUESTION}\n")
        assert done.returncode == 0, done.stderr
        names = {span.name for span in collector.spans()}
    assert "invoke_agent searchloop" in names
    assert "execute_tool web_search" in names
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert {"run_started", "run_finished"} <= {line["message"] for line in lines}
    assert all("How does it" not in json.dumps(line) for line in lines)


_ASKED = """
import json, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from searchloop.agent.observe.logs import be_a_server
be_a_server()
print(json.dumps(resource.getrlimit(resource.RLIMIT_NOFILE)))
"""


def test_a_server_asks_for_room_for_its_followers() -> None:
    """The usual 1,024 open files would end at the thousandth reader."""
    done = subprocess.run(
        [sys.executable, "-c", _ASKED], capture_output=True, text=True, check=True
    )
    soft, hard = json.loads(done.stdout)
    assert soft == 65_536 or soft == hard or hard < 0
    assert soft > 256
