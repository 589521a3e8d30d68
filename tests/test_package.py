"""One package is installed, `searchloop`, and no other distribution can get in its way.

Each test makes an environment of its own from the wheel, as `pip install searchloop` would; what
searchloop needs is taken from this one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from email import message_from_string
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from scripts.install import PARTS
from tests import pyright
from tests.once import once
from tests.source_tree import ROOT, modules, report

pytestmark = pytest.mark.integration

ASK = """
from searchloop import Agent, AgentError, Answer, Settings, Tool, run_agent_loop, tool

@tool
def current_stock(item: str) -> int:
    "How many of an item are in the warehouse."
    return 12

with Agent(tools=[current_stock]) as agent:
    answer = agent.ask("Which search engines need no key?", search="local")
print(answer.text, [citation.url for citation in answer.citations])

import searchloop.web.serve as serve, searchloop.web as web
print(serve.__file__, web.__file__)
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the source archive, as an index would hold both."""
    return next((once(tmp_path_factory, "dist", _each_way) / "archive").glob("*.whl"))


def _each_way(folder: Path) -> None:
    _build(ROOT, folder / "clone")
    with tarfile.open(next((folder / "clone").glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "source", filter="data")
    tree = next((folder / "source").iterdir())
    _build(tree, folder / "archive", "-t", "wheel")
    for name in PARTS:  # pip makes such a tree of a zip of the repository: it knows no links
        (tree / "searchloop" / name).rename(tree / name)
        (tree / "searchloop" / name).write_text(f"../{name}", "utf-8")
    _build(tree, folder / "zip", "-t", "wheel")
    one, *others = (next((folder / n).glob("*.whl")) for n in ("clone", "archive", "zip"))
    for other in others:
        differ = set(zipfile.ZipFile(one).namelist()) ^ set(zipfile.ZipFile(other).namelist())
        report(differ, f"Only in one of the wheels {one} and {other}:")


def _build(source: Path, to: Path, *targets: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", *targets, "-d", str(to)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=300)


class Environment:
    """A virtual environment with the wheel in it, and a user's folder to work in."""

    def __init__(self, folder: Path, *distributions: Path | Sequence[Path]) -> None:
        self._folder = folder
        make = [sys.executable, "-m", "venv", "--without-pip", str(folder / "env")]
        subprocess.run(make, check=True, timeout=120)
        self._bin = folder / "env" / "bin"
        self._site = next((folder / "env").glob("lib/python*/site-packages"))
        (self._site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
        self.home = folder / "work"
        self.home.mkdir()
        for each in distributions:
            self.install(*([each] if isinstance(each, Path) else each))

    def install(self, *wheels: Path) -> None:
        """Puts the files of wheels in place, over whatever is there."""
        how = ("--no-deps", "--no-index", "--no-cache", "--reinstall")
        self._pip("install", *how, *map(str, wheels))

    def remove(self, *names: str) -> None:
        """Uninstalls distributions."""
        self._pip("uninstall", *names)

    def _pip(self, action: str, *command: str) -> None:
        uv = [str(Path(sys.executable).parent / "uv"), "-q", "--no-config", "--offline", "pip"]
        said = [*uv, action, "--python", str(self._bin / "python"), *command]
        subprocess.run(said, check=True, timeout=120, capture_output=True)

    def run(self, *command: str, code: int = 0) -> str:
        """Standard output of a program of this environment, run in the user's folder."""
        env = {
            **os.environ,
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "SEARCHLOOP_HOME": str(self._folder / "data"),
            "SEARCHLOOP_OFFLINE": "1",
        }
        env.pop("PYTHONPATH", None)
        program = [str(self._bin / command[0]), *command[1:]]
        done = subprocess.run(
            program, cwd=self.home, env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def asks(self) -> None:
        """Asks a question as a library, and looks at what is served."""
        said = self.run("python", "-c", ASK)
        assert "searchloop" in said
        assert said.splitlines()[-1].count(str(self._site)) == 2

    def works(self) -> None:
        """Asks as a library and on the command line."""
        self.asks()
        told = json.loads(
            self.run(
                "searchloop", "ask", "--web", "-o", "json", "Which search engines need no key?"
            )
        )
        assert told["reason"] == "stop"
        assert told["citations"]


def foreign(folder: Path, name: str, files: dict[str, str], number: str = "1.0") -> Path:
    """A wheel of somebody else's."""
    plain = re.sub(r"[-.]+", "_", name)
    path = folder / f"{plain}-{number}-py3-none-any.whl"
    info = f"{plain}-{number}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(inside, text)
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        listed = [*files, f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"]
        archive.writestr(f"{info}/RECORD", "".join(f"{line},,\n" for line in listed))
    return path


def test_the_wheel_holds_one_package_with_all_that_it_needs(wheel: Path) -> None:
    """Code, page, type marker and the documents of the built-in library, and nothing beside."""
    inside = set(zipfile.ZipFile(wheel).namelist())
    beside = {n for n in inside if not n.startswith("searchloop/") and ".dist-info/" not in n}
    assert {name.partition("/")[2] for name in beside} == {"data/share/man/man1/searchloop.1"}
    documents = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    docs = "searchloop/search_backend/builtin_docs"
    wanted = {f"{docs}/{path.relative_to(ROOT).as_posix()}" for path in documents}
    static = (ROOT / "web" / "static").rglob("*")
    wanted |= {f"searchloop/{p.relative_to(ROOT).as_posix()}" for p in static if p.is_file()}
    wanted |= {f"searchloop/{module.path.removeprefix('searchloop/')}" for module in modules()}
    report((wanted | {"searchloop/py.typed"}) - inside, "Not in the wheel:")


def test_other_distributions_may_come_and_go(wheel: Path, tmp_path: Path) -> None:
    """web.py and an `agent` from an index bring top-level packages of those names, before ours and
    after it, and so may files of the user."""
    files = {"web/__init__.py": "", "web/serve.py": "raise RuntimeError('web.py')\n"}
    web = foreign(tmp_path, "web.py", files)
    others = ("agent/__init__.py", "cli/__init__.py", "search_backend.py")
    agent = foreign(tmp_path, "agent", dict.fromkeys(others, "raise RuntimeError('not ours')\n"))
    environment = Environment(tmp_path, (web, agent), wheel)
    environment.asks()
    environment.install(web, agent)
    environment.works()
    environment.remove("web.py", "agent")
    environment.asks()


def test_type_checkers_see_what_a_program_gets(wheel: Path, tmp_path: Path) -> None:
    """mypy --strict takes a typical program, reveals its types, and finds its mistakes; pyright
    finds the same.
    """
    environment = Environment(tmp_path, wheel)
    text = (ROOT / "tests" / "searchloop" / "typical.txt").read_text("utf-8")
    (environment.home / "typical.py").write_text(text, "utf-8")
    wanted = {
        number: line.partition("# ")[2].strip()
        for number, line in enumerate(text.splitlines(), 1)
        if "# " in line and not line.startswith("#")
    }
    mypy = ("-m", "mypy", "--strict", "--output=json", "--cache-dir", os.devnull)
    found = environment.run("python", *mypy, "typical.py", code=1)
    told = {}
    for each in map(json.loads, found.splitlines()):
        shown = each["message"].removeprefix("Revealed type is ").strip('"')
        error = each["severity"] == "error"
        told[each["line"]] = (
            each["code"] if error else re.sub(r"builtins\.|searchloop\.", "", shown)
        )
    assert told == wanted
    mistakes = {n for n, line in enumerate(text.splitlines(), 1) if "reveal_type" not in line}
    python = environment.run("python", "-c", "import sys; print(sys.executable)").strip()
    shown = pyright.errors(environment.home, [environment.home / "typical.py"], python)
    assert {e["range"]["start"]["line"] + 1 for e in shown} == mistakes & wanted.keys()


def _with_pip(wheel: Path, folder: Path, run: Callable[..., str]) -> list[str]:
    programs = folder / "env" / "bin"
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "env"))
    pip = (sys.executable, "-m", "pip", "-q", "--python", str(programs / "python"))
    run(*pip, "install", str(wheel))
    return [str(programs / "searchloop")]


def _with_pipx(wheel: Path, folder: Path, run: Callable[..., str]) -> list[str]:
    run(sys.executable, "-m", "pipx", "install", "--quiet", str(wheel))
    return [str(folder / "pipx-bin" / "searchloop")]


def _with_uvx(wheel: Path, folder: Path, run: Callable[..., str]) -> list[str]:
    uvx = Path(sys.executable).parent / "uvx"
    return [str(uvx), "-q", "--python", sys.executable, "--from", str(wheel), "searchloop"]


@pytest.mark.parametrize("install", [_with_pip, _with_pipx, _with_uvx])
def test_an_empty_machine_gets_a_cited_answer(
    wheel: Path, tmp_path: Path, install: Callable[..., list[str]]
) -> None:
    """The installers people use resolve what the wheel says it needs, without any network, and the
    program answers with sources. What is needed comes from a folder of wheels of the right names
    and versions; their content is that of this environment."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    site = f"{sysconfig.get_path('purelib')}\n"
    for name in {*_needed(wheel), "pip"}:
        foreign(folder, name, {f"needed_{name}.pth": site}, version(name))
    tools = {"PIPX_HOME": "pipx", "PIPX_BIN_DIR": "pipx-bin", "UV_CACHE_DIR": "uv", "HOME": "home"}
    env = {
        "PATH": "/usr/bin:/bin",
        **{name: str(tmp_path / path) for name, path in tools.items()},
        **{f"{tool}_FIND_LINKS": str(folder) for tool in ("PIP", "UV")},
        "PIP_NO_INDEX": "1",
        "UV_NO_INDEX": "1",
        "UV_OFFLINE": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "SEARCHLOOP_HOME": str(tmp_path / "data"),
        "SEARCHLOOP_OFFLINE": "1",
    }

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout

    program = install(wheel, tmp_path, run)
    told = json.loads(run(*program, "ask", "--web", "-o", "json", "Which engines need no key?"))
    assert (told["reason"], told["search_path"]) == ("stop", "local:library")
    assert told["citations"]


def _needed(wheel: Path) -> list[str]:
    """What the wheel wants on this machine, without extras."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        told = message_from_string(archive.read(name).decode())
    wanted = map(Requirement, told.get_all("Requires-Dist") or [])
    return [r.name for r in wanted if not r.marker or r.marker.evaluate({"extra": ""})]
