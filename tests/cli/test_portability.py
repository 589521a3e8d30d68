"""The program on a system that is not POSIX, as far as one machine can show it.

No `fcntl`, `fork`, `fchown` or `dir_fd`; pipes that `select` refuses; consoles in cp437 and cp1252;
and no file that is opened in the system's own code page.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CLEAN, ROOT, Ran, Warm
from tests.cli.screen import called, online, said, serving

TEXT = "Grüße „潮“ 🎉 …"


SYSTEM = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture(scope="module")
def there() -> Iterator[Warm]:
    """The program on that system."""
    if not f"{ROOT}{sys.prefix}".isascii():
        pytest.skip("Python itself cannot start there: this clone's path is not ASCII")
    # Files that are opened without an encoding are an error, in modules of ours.
    strict = ("-X", "warn_default_encoding", "-W", "error::EncodingWarning")
    started = Warm(*strict, module="tests.cli.foreign", **SYSTEM)
    yield started
    started.close()


@pytest.fixture(params=["cp437", "cp1252"])
def foreign(request: pytest.FixtureRequest, tmp_path: Path, there: Warm) -> Any:
    """Runs `searchloop ARGS` there; `stdin` is piped in as UTF-8."""

    def run(*args: str, stdin: str = "", **settings: str) -> Ran:
        own = {"HOME": str(tmp_path), "SEARCHLOOP_HOME": str(tmp_path / "home")}
        env = {**CLEAN, **own, **SYSTEM, **settings}
        page: str = request.param
        ran = there.run((page, *args), env, tmp_path, stdin.encode(), page)
        assert "Traceback" not in ran.err, ran.err
        return Ran(ran.code, ran.out.replace("\r\n", "\n"), ran.err)

    return run


def test_questions_are_answered(foreign: Any, tmp_path: Path) -> None:
    """Typed, piped in, as JSON, from files; what the console has not is a plain sign."""
    (tmp_path / "note.txt").write_text(TEXT, "utf-8")
    with serving(*(said(f"{TEXT} {n}") for n in range(4))) as server:
        here = online(server)
        first = foreign("ask", TEXT, **here)
        assert (first.code, first.out.strip()[-1]) == (0, "0")
        piped = foreign("ask", "What?", stdin=TEXT, **here)
        assert piped.code == 0
        assert TEXT in server.requests[-1].json["messages"][-1]["content"]
        made = foreign("ask", "-f", "note.txt", "-s", "@note.txt", "What?", "-o", "json", **here)
        assert made.json["answer"] == f"{TEXT} 2", "JSON loses nothing on any console"
        chat = foreign("chat", stdin=f"{TEXT}\n/export chat.md\n", **here)
        assert (chat.code, "Written to chat.md" in chat.err) == (0, True), chat.err
        assert server.requests[-1].json["messages"][-1]["content"].endswith(TEXT)
    assert TEXT in (tmp_path / "chat.md").read_text("utf-8")


@pytest.mark.parametrize("foreign", ["cp437"], indirect=True)
def test_what_is_kept_is_written_and_read(foreign: Any, tmp_path: Path) -> None:
    """Sessions, agents, settings, keys, the library, a report."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "tide.txt").write_text(f"Ebb is at six. {TEXT}", "utf-8")
    for words in (
        ("agents", "create", "pirate", "--system", TEXT),
        ("agents", "show", "pirate"),
        ("models", "default", "builtin:extractive"),
        ("setup", "--set", "SEARCH_COUNTRY=DE"),
        ("library", "add", "notes"),
        ("library", "list"),
        ("search", "--engine", "library", "ebb"),
        ("ask", "-m", "extractive", "--search", "local", "When is ebb?"),
        ("sessions",),
        ("export", "--file", "chat.html", "--format", "html"),
        ("config",),
        ("models",),
        ("mcp", "list"),
        ("completions", "powershell"),
    ):
        ran = foreign(*words)
        assert ran.code == 0, (words, ran.err)
    key = ("setup", "--engine", "brave", "--key-stdin", "--no-test", "--file")
    assert foreign(*key, stdin="BSA0123456789\n").code == 0
    assert json.loads((tmp_path / "home" / "agents" / "pirate.json").read_text("utf-8"))


@pytest.mark.parametrize("foreign", ["cp437"], indirect=True)
def test_tools_work_on_files(foreign: Any, tmp_path: Path) -> None:
    """A model makes and changes one; the user takes it back."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "b.txt").write_text("one\n", "utf-8")
    replies = (
        called("create_file", path="notes/a.txt", content=TEXT),
        called("edit_file", path="b.txt", old="one", new="two"),
        said("Done."),
    )
    act = ("ask", "--mode", "agent", "--workspace", "ws", "--approve", "auto", "Write it")
    with serving(*replies) as server:
        ran = foreign(*act, **online(server))
    assert ran.code == 0
    assert (tmp_path / "ws" / "notes" / "a.txt").read_text("utf-8") == TEXT
    (session,) = foreign("sessions", "-o", "json").json["sessions"]
    assert foreign("sessions", "undo", session["id"]).code == 0
    assert (tmp_path / "ws" / "b.txt").read_text("utf-8") == "one\n"
