"""Parts that other packages bring: found by entry points, told by name when they are broken."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from searchloop.agent.run.question import PluginTools, tool_plugins
from searchloop.search_backend.engines import Engine
from searchloop.search_backend.plugin.entry_points import find_parts
from tests.test_package import Environment, wheel

__all__ = ["wheel"]  # a fixture

# A package with one part of each kind, and broken ones beside them.
PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "bird-parts"
version = "1.2"

[tool.hatch.build.targets.wheel]
only-include = ["bird_parts"]

[project.entry-points."searchloop.engines"]
heron = "bird_parts.heron:ENGINE"
dodo = "bird_parts.dodo:ENGINE"
ddg = "bird_parts.cuckoo:ENGINE"
egg = "bird_parts.tools:count_birds"

[project.entry-points."searchloop.readers"]
nest = "bird_parts.nest"

[project.entry-points."searchloop.providers"]
parrot = "bird_parts.parrot"
mute = "bird_parts.heron"
dodo = "bird_parts.gone"

[project.entry-points."searchloop.tools"]
count_birds = "bird_parts.tools:count_birds"
stone = "bird_parts.tools:STONE"
cuckoo = "bird_parts.tools:web_search"
"""
HERON = """
from searchloop import Engine, SearchResult

def search(query, access):
    return [SearchResult("Herons", "https://heron.example/", f"All on {query.text}.", "heron")]

ENGINE = Engine("heron", "Heron", search, remote=False)
"""
PARROT = """
from searchloop import Capabilities, Finished, Message, ModelInfo, TextDelta, ToolCall, Usage

SETTINGS = ()

class Parrot:
    name = "parrot"

    def capabilities(self, model):
        return Capabilities(tools=True, native_search=False)

    def check(self, model):
        pass

    async def models(self):
        return [ModelInfo("parrot:grey", "Grey parrot")]

    async def stream(self, request):
        last = request.messages[-1]
        if last.role == "tool":
            text = f"I was told: {last.content}"
            yield TextDelta(text)
            yield Finished(Message("assistant", text), "stop", Usage())
        else:
            offered = {tool.name for tool in request.tools}
            call = ToolCall("call_0123456789", "count_birds", {"kind": "heron"})
            assert "count_birds" in offered, offered
            yield Finished(Message("assistant", "", tool_calls=(call,)), "tool_calls", Usage())

def create(env, transport):
    return Parrot()
"""
NEST = """
from searchloop import Page, Reader

def read(body, url, charset):
    return Page(url, url, "A nest", body.decode()[::-1])

READER = Reader(frozenset({"text/x-nest"}), frozenset({".nest"}), read)
"""
TOOLS = """
STONE = 7

def count_birds(kind: str) -> int:
    "How many birds of a kind there are."
    return {"heron": 12}[kind]

def web_search(query: str) -> str:
    "Searches elsewhere."
    return "mine"
"""
FILES = {
    "__init__.py": "",
    "heron.py": HERON,
    "dodo.py": "raise RuntimeError('extinct')",
    "cuckoo.py": HERON.replace('"heron"', '"ddg"'),
    "parrot.py": PARROT,
    "nest.py": NEST,
    "tools.py": TOOLS,
}


def write(folder: Path) -> None:
    """The package as its author has it."""
    (folder / "bird_parts").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT, "utf-8")
    for name, text in FILES.items():
        (folder / "bird_parts" / name).write_text(text, "utf-8")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package where Python finds it, with the metadata of an installed one."""
    write(tmp_path)
    info = tmp_path / "bird_parts-1.2.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: bird-parts\nVersion: 1.2\n")
    points = PYPROJECT[PYPROJECT.index("[project.entry") :].replace('[project.entry-points."', "[")
    info.joinpath("entry_points.txt").write_text(points.replace('"]', "]").replace('"', ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    tool_plugins.cache_clear()
    yield
    tool_plugins.cache_clear()
    for name in [name for name in sys.modules if name.startswith("bird_parts")]:
        del sys.modules[name]


def test_a_good_part_is_brought_and_a_broken_one_is_told_by_name(installed: None) -> None:
    """An exception at import, an object of another kind, a name that is taken: each says so."""
    find = find_parts.__wrapped__
    found = {p.name: p for p in find("engines", (Engine,), ("ENGINE",), frozenset({"ddg"}))}
    assert found["heron"].value.title == "Heron"
    assert {part.package for part in found.values()} == {"bird-parts 1.2"}
    assert found["dodo"].problem == "It could not be loaded: RuntimeError: extinct"
    assert found["ddg"].problem == "There is another part named ddg."
    assert found["egg"].problem == "It is no Engine."
    assert [found[name].value for name in ("dodo", "ddg", "egg")] == [None] * 3


def test_tools_of_packages_join_and_broken_ones_are_noticed(installed: None) -> None:
    """A function becomes a tool; what is none, or would stand for one of ours, is a notice."""
    source, session = PluginTools(), SimpleNamespace()
    tools = asyncio.run(source.tools(session))  # type: ignore[arg-type]
    assert [one.spec.name for one in tools] == ["count_birds"]
    notices = {n["message"].split()[2]: n for n in source.notices(session)}  # type: ignore[arg-type]
    assert set(notices) == {"stone", "cuckoo"}
    assert notices["stone"]["message"].startswith(
        "The plugin stone of bird-parts 1.2 is not used. It could not be loaded:"
    )
    assert notices["cuckoo"]["message"].endswith("There is another tool named web_search.")
    assert {n["remedy"] for n in notices.values()} == {"Update or uninstall bird-parts."}


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the second package, built by its own build system."""
    folder = tmp_path_factory.mktemp("birds")
    write(folder)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "out")]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    return next((folder / "out").glob("*.whl"))


@pytest.mark.integration
def test_a_second_package_brings_all_four_kinds(tmp_path: Path, wheel: Path, birds: Path) -> None:
    """Built, installed beside searchloop, listed, used, and uninstalled again."""
    env = Environment(tmp_path, wheel, birds)
    listed = json.loads(env.run("searchloop", "plugins", "-o", "json"))["plugins"]
    states = {(row["kind"], row["name"]): row["problem"] for row in listed}
    assert {key for key, problem in states.items() if not problem} == {
        *(("engines", "heron"), ("readers", "nest")),
        *(("providers", "parrot"), ("tools", "count_birds")),
    }
    assert states["providers", "dodo"].startswith("It could not be loaded: ModuleNotFoundError")
    assert "create(env, transport)" in states["providers", "mute"]
    assert {row["package"] for row in listed} == {"bird-parts 1.2"}
    assert "bird-parts 1.2" in env.run("searchloop", "plugins")
    found = json.loads(env.run("searchloop", "search", "--engine", "heron", "tea", "-o", "json"))
    assert [r["snippet"] for r in found["results"]] == ["All on tea."]
    read = (
        "from searchloop.search_backend.readers import reader_for_name as r;"
        "print(r('x.nest').read(b'gge', 'u', None).text)"
    )
    assert env.run("python", "-c", read).strip() == "egg"
    question = ("-m", "parrot:grey", "How many herons?", "-o", "json")
    told = json.loads(env.run("searchloop", "ask", *question))
    assert told["answer"] == "I was told: 12"
    assert "parrot:grey" in env.run("searchloop", "models")
    env.remove("bird-parts")
    assert env.run("searchloop", "plugins").startswith("No plugins")
