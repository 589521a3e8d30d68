"""Watching a server: metrics, the structured log and spans."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from searchloop.agent.errors import ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Observers
from searchloop.agent.log.events import Event
from searchloop.agent.observe.logs import OURS, configure
from searchloop.agent.observe.metrics import Metrics
from searchloop.agent.observe.telemetry import Telemetry
from searchloop.agent.settings import Environment
from searchloop.compose import Services, open_services
from tests.crash.harness import ROOT
from tests.fakes import FakeServer, json_reply
from tests.tables import each_row
from tests.web.faces import said as answered

KEY = "canary-Key-93kd02kf+/83"


class Watched(NamedTuple):
    """A house, and what its log says."""

    house: Services
    lines: io.StringIO

    async def ask(self, question: str, *asked: tuple[str, str]) -> tuple[str, Event]:
        """A turn in a session of its own for each (model, search); the last one's run and end."""
        log, runner = self.house.log, self.house.runner
        for model, search in asked:
            session = log.create_session(model=model, search=search).id
            run = await runner.start(session, question)
            await runner.wait(session)
        await runner.aclose()
        return run, log.last_event(session)


@pytest.fixture
def quiet() -> Iterator[None]:
    """The process's own logging is put back afterwards."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    yield
    root.handlers[:], level = before
    root.setLevel(level)
    logging.getLogger(OURS).setLevel(logging.NOTSET)


def watched(home: Path, form: str = "json", **env: str) -> Watched:
    """A house at debug level."""
    given = {"SEARCHLOOP_HOME": str(home), "SEARCHLOOP_LOG": f"{form},debug"}
    given |= {"SEARCHLOOP_TITLES": "0", "SEARCHLOOP_FOLLOW_UPS": "0"}  # one request a step
    house = open_services(Environment({"flag": {**given, **env}}))
    lines = io.StringIO()
    configure(house.settings.env, house.secrets, lines)
    return Watched(house, lines)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("form", ["json", "text"])
async def test_the_log_holds_no_content(form: str, tmp_path: Path) -> None:
    """At debug level: runs, searches and tool calls with their run's id, but no question, query,
    answer, page address or key, though the search, the model and the key are all there."""
    env = {"SEARCHLOOP_OFFLINE": "1", "BRAVE_API_KEY": KEY}
    here = watched(tmp_path, form, **env)
    question = "How does the search switch decide between native and local search?"
    run, last = await here.ask(question, ("builtin:extractive", "auto"))
    assert (last.type, last.data["reason"]) == ("run_finished", "stop")
    said = here.lines.getvalue()
    for kind in ("run_started", "search_finished", "tool_call", "tool_result", "run_finished"):
        line = next(line for line in said.splitlines() if kind in line)
        assert run in line
    content = [question, "switch decide", last.data["answer"][:30], KEY]
    content += [source["url"] for source in last.data["sources"]]
    content += [source["title"] for source in last.data["sources"]]
    assert len(content) > 5
    assert [words for words in content if words in said] == []
    if form == "json":
        assert {json.loads(line)["level"] for line in said.splitlines()} <= {"info", "debug"}


@pytest.mark.usefixtures("quiet")
def test_keys_are_taken_out_at_the_sink(tmp_path: Path) -> None:
    """Whatever writes them, in whatever form, in tracebacks too."""
    here = watched(tmp_path, OPENAI_API_KEY=KEY)
    forms = [KEY, quote(KEY, safe=""), KEY[:8], b64encode(KEY.encode()).decode()]
    for form in forms:
        logging.getLogger("searchloop.agent.test").warning("sent %s away", form)
        logging.getLogger("somebody.else").error(f"GET https://h/?k={form}")
        try:
            raise ValueError(f"bad key: {form}")
        except ValueError:
            logging.getLogger("searchloop.agent.test").exception("it failed")
    logging.getLogger("searchloop.agent.test").warning("Authorization: Bearer abcdef123456")
    logging.getLogger("searchloop.agent.test").warning("at postgresql://me:hunter2hunter2@db/x")
    said = here.lines.getvalue()
    assert said.count("it failed") == len(forms)
    assert "ValueError" in said
    leaked = [*forms[:3], forms[3][4:16], KEY[-8:], "abcdef123456", "hunter2"]
    assert [secret for secret in leaked if secret in said] == []


@pytest.mark.usefixtures("quiet")
def test_libraries_and_errors_quote_nothing_unasked(tmp_path: Path) -> None:
    """Of another's message the words of its code stay, of an exception its type and place; and
    nothing that is logged can begin a line of its own."""
    here = watched(tmp_path, "text")
    logging.getLogger("httpx2").warning("GET %s failed", "https://example.org/secret-path")
    logging.getLogger("httpx2").info("GET https://example.org/secret-path")
    logging.getLogger("asyncio").error("Task failed: ValueError('secret-path')")
    logging.getLogger("searchloop.agent.test").warning("first\n2026 error forged: %s", "line")
    try:
        raise ValueError("secret-path")
    except ValueError:
        logging.getLogger("searchloop.agent.test").exception("it failed")
    said = here.lines.getvalue()
    assert "secret-path" not in said
    assert "GET %s failed" in said
    assert "error=ValueError at web/test_watching.py" in said
    assert len(said.splitlines()) == 4


@pytest.mark.usefixtures("quiet")
async def test_numbers_of_a_run(tmp_path: Path) -> None:
    """Runs, requests, errors, searches, tools and appends are counted, by names of our own only."""
    replies = [json_reply({"error": {"message": "no"}}, 401), answered("At noon.")]
    with FakeServer(replies) as server:
        here = watched(tmp_path, OPENAI_CHAT_BASE_URL=server.url, SEARCHLOOP_OFFLINE="1")
        chat = ("openai-chat:m", "off")
        await here.ask("Which ferry leaves Zanzibar?", chat, chat, ("builtin:extractive", "auto"))
    found = numbers(here.house.metrics.text())
    assert found['searchloop_runs_total{provider="openai-chat",reason="error"}'] == 1
    assert found['searchloop_runs_total{provider="openai-chat",reason="stop"}'] == 1
    assert found['searchloop_runs_total{provider="builtin",reason="incomplete"}'] == 1
    assert found['searchloop_provider_requests_total{provider="openai-chat"}'] == 2
    refused = 'code="unauthorized",provider="openai-chat"'
    assert found[f"searchloop_provider_errors_total{{{refused}}}"] == 1
    assert any(n.startswith('searchloop_searches_total{engine="library"') for n in found)
    assert any(n.startswith('searchloop_tool_calls_total{effect="network"') for n in found)
    assert found["searchloop_runs_active"] == 0
    assert found["searchloop_append_seconds_count"] >= 6
    assert found['searchloop_append_seconds_bucket{le="+Inf"}'] >= 6
    assert found["searchloop_process_resident_memory_bytes"] > 1e6
    assert "Zanzibar" not in here.house.metrics.text()


def numbers(text: str) -> dict[str, float]:
    """The samples of an exposition, each once, as the readers of it take them."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            name = f"{sample.name}{{{labels}}}" if labels else sample.name
            assert name not in found
            found[name] = sample.value
    return found


def test_labels_are_bounded_and_plain() -> None:
    """Names from elsewhere cannot break a line, nor make it endless."""
    metrics = Metrics()
    for name in ['e"} 1\nforged 2', "x" * 61, *(f"e{i}" for i in range(500))]:
        data = {"by": name, "status": "ok", "attempts": []}
        metrics.stored("s", [Event(1, "search_finished", data, 0.0)], 0.001)
    found = numbers(metrics.text())
    assert len(found) < 250
    assert sum(n for name, n in found.items() if "searches_total" in name) == 502


def test_without_the_extra_numbers_say_how_to_install_it() -> None:
    """One sentence and what to do; counting goes on costing nothing."""
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "from searchloop.agent.observe.metrics import Metrics\n"
        "try: Metrics().text()\n"
        "except Exception as error: print(error.code, error.remedy)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "missing_extra Install it with `pip install 'searchloop[metrics]'`.\n"


def test_observers_are_told_before_followers(tmp_path: Path) -> None:
    """Whoever sees the end of a run may end the program, and nothing of it must be missing then."""
    waiting: list[bool] = []
    follower: Any = None

    class Looking(Observers):
        def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
            waiting.append(bool(follower.take(0)))

    log = EventLog(tmp_path / "sessions.sqlite3", observer=Looking())
    session = log.create_session(model="p:m").id

    async def told() -> list[Event]:
        nonlocal follower
        follower = log._followers.join(session)
        log.append(session, [("run_finished", {})])
        return follower.take(0) or []

    with closing(log):
        assert len(asyncio.run(told())) == 1
    assert waiting == [False]


def test_spans_of_a_run() -> None:
    """With the step's own tokens, the times of the log, and the failure of a tool, of one that
    fails; what else a span holds is read by a collector (`agent/observe`)."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    def message(asked: int, said: int, **more: Any) -> dict[str, Any]:
        return {"text": "", "usage": {"input_tokens": asked, "output_tokens": said}, **more}

    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(provider)
    call = {"call_id": "c", "name": "look", "arguments": {}, "effect": "read"}
    told = [
        ("run_started", {"run_id": "r", "model": "p:m", "mode": "ask", "search_path": "off"}),
        ("message", message(10, 3, stop_reason="tool_calls")),
        ("tool_call", call),
        ("tool_result", {**call, "is_error": True, "content": "shut"}),
        ("tool_call", {**call, "call_id": "d"}),
        ("tool_result", {**call, "call_id": "d", "is_error": False, "content": "open"}),
        ("message", message(25, 7, stop_reason="stop")),
        ("run_finished", message(25, 7, reason="stop", answer="At noon.")),
    ]
    for second, (kind, data) in enumerate(told):
        telemetry.stored("s", [Event(second, kind, data, float(second))], 0.0)
    spans = exporter.get_finished_spans()
    times = [(span.start_time / 1e9, span.end_time / 1e9) for span in spans]
    assert times == [(0, 1), (2, 3), (4, 5), (5, 6), (0, 7)]
    assert {span.parent.span_id for span in spans[:-1]} == {spans[-1].context.span_id}
    assert [span.attributes.get("error.type") for span in spans[1:3]] == ["tool_error", None]
    tokens = [spans[3].attributes[f"gen_ai.usage.{name}_tokens"] for name in ("input", "output")]
    assert tokens == [15, 4]


@each_row(("endpoint", "code"), [("collector", "bad_otel"), ("http://192.0.2.1:4318", "offline")])
def test_an_endpoint_that_cannot_be(endpoint: str, code: str, tmp_path: Path) -> None:
    """No address, or one elsewhere while nothing may leave: said at the start."""
    flags = {"SEARCHLOOP_HOME": str(tmp_path), "SEARCHLOOP_OFFLINE": "1"}
    with pytest.raises(ConfigError) as failed:
        open_services(Environment({"flag": {**flags, "SEARCHLOOP_OTEL_ENDPOINT": endpoint}}))
    assert failed.value.code == code
