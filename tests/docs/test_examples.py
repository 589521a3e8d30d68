"""Every ```python and ```sh block of the README and of docs/ runs as it is printed.

Each block runs in a folder, a home and a data folder of its own, offline, beside a fake Ollama.
A comment right before a block changes that:

    <!-- not run: REASON -->          for what no test can have: the network, this very suite
    <!-- runs until URL answers -->   for a server, which is stopped then; a free port takes the
                                      place of 8321, so that tests can run beside each other
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Warm
from tests.docs.conftest import ROOT
from tests.ports import free_port

# The reference is made of signatures and docstrings, whose examples test_docstrings.py runs.
PAGES = (
    ROOT / "README.md",
    *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "reference"),
)
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]+?) -->\n+)?^```(?P<language>[\w{}]*)\n(?P<code>.*?)^```$", re.M | re.S
)
NOT_RUN, UNTIL = re.compile(r"not run: (.+)"), re.compile(r"runs until (\S+) answers")
MOST_NOT_RUN = 4
PORT = "8321"
SECONDS = 180


@dataclass(frozen=True)
class Block:
    """One example. `place` is its file and line, `mark` the comment before it."""

    place: str
    language: str
    code: str
    mark: str

    @property
    def until(self) -> str:
        """The address at which a server that the block starts answers; empty for no server."""
        found = UNTIL.fullmatch(self.mark)
        return found[1] if found else ""


def blocks() -> list[Block]:
    """All examples, in their order."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start("code"))
            place = f"{page.relative_to(ROOT).as_posix()}:{line}"
            found.append(Block(place, match["language"], match["code"], match["mark"] or ""))
    return found


BLOCKS = blocks()
RUN = [
    block
    for block in BLOCKS
    if block.language in ("python", "py", "sh") and not NOT_RUN.fullmatch(block.mark)
    # test_tasks.py and test_program_pages.py run those
    if not block.place.startswith(("docs/guides/python-tasks.md", "docs/programs/"))
]
# What a newcomer tries first; the others start a process each and are left to `make integration`.
FIRST = ("README.md:", "docs/start.md:")


def test_what_is_not_run_says_why() -> None:
    """Few examples are left out, each for a reason; and each block says what it holds."""
    reasons = [found[1] for block in BLOCKS if (found := NOT_RUN.fullmatch(block.mark))]
    assert len(reasons) <= MOST_NOT_RUN
    assert [reason for reason in reasons if len(reason) < 15] == []
    assert [block.place for block in BLOCKS if not block.language] == []
    odd = {"bash", "shell", "console", "zsh", "pycon", "python3"}
    assert [block.place for block in BLOCKS if block.language in odd] == []
    marks = re.compile(r"<!-- (?:not run|runs until|ci)\b")
    written = sum(len(marks.findall(page.read_text("utf-8"))) for page in PAGES)
    assert written == len(reasons) + sum(bool(block.until) for block in BLOCKS)


@pytest.fixture
def settings(machine: dict[str, str]) -> dict[str, str]:
    """The environment of an example."""
    return {**machine, "SEARCHLOOP_OFFLINE": "1", "BROWSER": "true"}


def project(tmp_path: Path) -> Path:
    """The project's folder as somebody has it who has just got it; what a block writes is lost."""
    folder = tmp_path / "searchloop"
    folder.mkdir()
    for entry in ROOT.iterdir():
        if entry.name not in (".git", ".env"):
            (folder / entry.name).symlink_to(entry)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    for name, text in (("review.md", "Review the change.\n"), ("key.txt", "a-key-0123456789\n")):
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(
            block,
            id=block.place,
            marks=() if block.place.startswith(FIRST) else pytest.mark.integration,
        )
        for block in RUN
    ],
)
def test_the_example_runs(
    block: Block, settings: dict[str, str], warm: Warm, tmp_path: Path
) -> None:
    """It ends well; or its server answers, where it starts one."""
    if block.language == "sh":
        port = str(free_port())
        command = ["bash", "-euo", "pipefail", "-c", block.code.replace(PORT, port)]
        settings["PORT"] = port  # `make run` takes it from there
        _run(command, project(tmp_path), settings, block.until.replace(PORT, port))
    else:
        env = {**settings, "PYTHONPATH": str(ROOT)}
        ran = warm.run(("-c", block.code), env, tmp_path, b"")
        assert ran.code == 0, ran.out + ran.err


def _run(command: list[str], folder: Path, env: Mapping[str, str], url: str) -> None:
    with subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            if url:
                _answers(process, url)
            else:
                said, _ = process.communicate(timeout=SECONDS)
                assert process.returncode == 0, said
        finally:
            _stop(process)


def _answers(process: subprocess.Popen[str], url: str) -> None:
    """Reads what the server says until it names its address, and asks it there."""
    assert process.stdout
    said = []
    base = url.split("/api/")[0]
    for line in process.stdout:
        said.append(line)
        if base in line:
            direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with direct.open(url, timeout=SECONDS) as answer:
                assert answer.status == 200
            return
    raise AssertionError(f"it ended before it listened: {''.join(said)}")


def _stop(process: subprocess.Popen[str]) -> None:
    """Ends the whole group as Ctrl-C does, and then for good."""
    for sent in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, sent)
            process.wait(timeout=20)
