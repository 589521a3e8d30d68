"""A machine as the documents' examples find it: a model that answers, a folder of notes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Warm
from tests.fake_ollama import Answer, FakeOllama, Model, call, say

ROOT = Path(__file__).resolve().parents[2]
CALLS = {
    "add": {"a": 2, "b": 3},
    "current_stock": {"item": "bolt"},
    "order": {"item": "bolt", "count": 20},
    "web_search": {"query": "days of leave"},
    "replace_in_file": {
        "path": "todo.md",
        "old_text": "- tea\n- rope",
        "new_text": "- rope\n- tea",
    },
}
# What the schemas of the examples ask for.
VALUES = {"city": "Oslo", "name": "Sydney Harbour Bridge", "opened": 1932}


def answer(body: Any) -> Answer:
    """Fills a schema, or calls the tool that the example is about once and repeats what it said."""
    if isinstance(wanted := body.get("format"), dict):
        return say(json.dumps({name: VALUES[name] for name in wanted["properties"]}))
    messages = body["messages"]
    if messages[-1]["role"] == "tool":
        return say(f"The tool says: {messages[-1]['content']} [1]")
    offered = sorted(tool["function"]["name"] for tool in body.get("tools") or ())
    known = [(name, CALLS.get(name.removeprefix("mcp_sums_"))) for name in offered]
    called = any(message["role"] == "tool" for message in messages)
    return next((call(n, given) for n, given in known if given and not called), say("It is so."))


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """A Python that has loaded the library; what it warns about is an error."""
    started = Warm("-W", "error")
    yield started
    started.close()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Its environment: our programs, Ollama with a model, a home with notes, nothing else."""
    notes = tmp_path / "me" / "notes"
    notes.mkdir(parents=True)
    (notes / "todo.md").write_text("# To do\n\n- tea\n- rope\n", "utf-8")
    (tmp_path / "me" / "projects" / "tides").mkdir(parents=True)
    programs = [str(Path(sys.executable).parent), str(ROOT / ".venv" / "bin")]
    with FakeOllama([Model("qwen3:8b", num_ctx=32_768)], answer) as ollama:
        yield {
            "PATH": os.pathsep.join([*programs, os.environ.get("PATH", "")]),
            "HOME": str(tmp_path / "me"),
            "SEARCHLOOP_HOME": str(tmp_path / "data"),
            "OLLAMA_HOST": ollama.url,
        }
