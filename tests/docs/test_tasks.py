"""The tasks in docs/guides/python-tasks.md: short, and each does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Warm
from tests.docs.conftest import ROOT

TEXT = (ROOT / "docs" / "guides" / "python-tasks.md").read_text("utf-8")
PARTS = re.split(r"^## (\d+)\. (.+)$", TEXT, flags=re.M)[1:]
MOST_LINES = 15


def blocks(number: int) -> list[str]:
    """The code under a heading."""
    text = PARTS[3 * (number - 1) + 2]
    return re.findall(r"^```(?:python|ipython|toml)\n(.*?)^```$", text, re.M | re.S)


def run(command: list[str], folder: Path, env: dict[str, str]) -> str:
    """What a program prints. It has to end well, without a word about anything it forgot."""
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def program(warm: Warm, machine: dict[str, str], tmp_path: Path) -> Callable[..., str]:
    """Runs the code of a program in a process of its own, to a good end; what it prints."""

    def run_it(code: str, **more: str) -> str:
        env = {**machine, "PYTHONPATH": str(tmp_path), **more}
        ran = warm.run(("-c", code), env, tmp_path, b"")
        assert ran.code == 0, ran.out + ran.err
        return ran.out

    return run_it


def test_each_is_short() -> None:
    """At most fifteen lines of Python each, without blank ones."""
    assert [int(number) for number in PARTS[::3]] == list(range(1, 19))
    lines = {n: [line for line in blocks(n)[0].splitlines() if line] for n in range(1, 19)}
    sizes = {n: len(each) for n, each in lines.items()}
    assert {n: size for n, size in sizes.items() if size > MOST_LINES} == {}


# What runs after the program, and what is printed in the end.
RUNS = {
    1: ("", r"The tool says: 12"),
    2: ("", r"^Sydney Harbour Bridge 1932$"),
    3: (
        "from fastapi.testclient import TestClient\n"
        "with TestClient(app) as client:\n"
        "    print(client.get('/ask', params={'q': 'Is it so?'}).text)\n",
        r"^It is so\.$",
    ),
    5: ("", r"30 days of leave(.|\n)* local:wiki$"),
    7: ("", r"10 of bolt are ordered\."),
    9: ("print((notes / 'todo.md').read_text())", r"It is so\.(.|\n)*- rope\n- tea"),
    11: ("", r"\[1\] \d+\n1 library://"),
    12: ("", r"^It is so\.\nstop$"),
    13: ("", r"The warehouse is closed\. Say that it opens at eight\."),
    14: ("", r"^It is so\.\nIt is so\.$"),
    15: ("", r"^It is so\.$"),
    16: ("", r"^limit 0\.0$"),
    17: ("", r"^The tool says: 12"),
    10: ("", r"^contradicted The bridge was opened in 1931\.$"),
}


@pytest.mark.parametrize("number", RUNS)
def test_the_task_is_done(number: int, program: Callable[..., str]) -> None:
    """The program runs as it is printed, and what it prints is right."""
    after, shown = RUNS[number]
    said = program(blocks(number)[0] + after)
    assert re.search(shown, said, re.M), said


def test_the_notebook_task(tmp_path: Path, machine: dict[str, str]) -> None:
    """A cell may await; the answer is shown as markup."""
    code = (
        "from IPython.core.interactiveshell import InteractiveShell as Shell\n"
        "shell = Shell.instance()\n"
        f"result = shell.run_cell({blocks(4)[0]!r})\n"
        "result.raise_error()\n"
        "print(shell.display_formatter.format(result.result)[0]['text/html'])\n"
    )
    offline = {**machine, "SEARCHLOOP_OFFLINE": "1"}
    assert "<p>" in run([sys.executable, "-c", code], tmp_path, offline)


def test_the_plugin_task(
    tmp_path: Path, machine: dict[str, str], program: Callable[..., str]
) -> None:
    """Installed, it serves the command line; in a program, `Agent` takes it as it is."""
    module, entry = blocks(6)
    (tmp_path / "bird_parts.py").write_text(module, "utf-8")
    about = tmp_path / "bird_parts-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bird-parts\nVersion: 1.0\n")
    lines = re.sub(r'\[project\.entry-points\."(.+)"\]', r"[\1]", entry).replace('"', "")
    (about / "entry_points.txt").write_text(lines, "utf-8")
    env = {**machine, "PYTHONPATH": str(tmp_path)}
    tool = [sys.executable, "-m", "searchloop.cli"]
    assert "bird-parts 1.0" in run([*tool, "plugins"], tmp_path, env)
    said = run([*tool, "ask", "Pretty Polly", "-m", "parrot:grey"], tmp_path, env)
    assert said.strip() == "Pretty Polly"
    code = (
        "from bird_parts import parrot; from searchloop import Agent\n"
        "with Agent(model=parrot) as agent: print(agent.ask('Pretty Polly').text)\n"
    )
    assert program(code).strip() == "Pretty Polly"


def test_the_servers_task(tmp_path: Path, program: Callable[..., str]) -> None:
    """A server that the program names brings its tools; each call asks the handler."""
    server = "from mcp.server.mcpserver import MCPServer\nserver = MCPServer('sums')\n"
    tool = "@server.tool()\ndef add(a: int, b: int) -> int:\n    return a + b\n\nserver.run()\n"
    (tmp_path / "sums.py").write_text(server + tool, "utf-8")
    said = program(blocks(18)[0])
    assert re.search(r"^5$", said, re.M), said


def test_the_test_task(tmp_path: Path, machine: dict[str, str]) -> None:
    """pytest runs it without a plugin, and it can fail."""
    code = blocks(8)[0]
    (tmp_path / "test_ferry.py").write_text(code, "utf-8")
    wrong = code.replace("It leaves at 07:40 [1].", "It leaves at 08:40 [1].")
    (tmp_path / "test_wrong.py").write_text(wrong, "utf-8")
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_ferry.py", "test_wrong.py"]
    env = {**machine, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with pytest.raises(AssertionError, match="1 failed, 1 passed"):
        run([sys.executable, *command], tmp_path, env)
