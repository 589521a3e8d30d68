"""The file tools: what they read and find, how they change files, and how a turn is undone.

Modes and file tools: in `ask` and `plan` nothing that a model calls changes a file.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchloop.agent.errors import ConfigError, Conflict, ToolError
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import Tool, ToolContext
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.tools.workspace import Workspace, checked_folder
from searchloop.agent.types import Mode, ToolCall, ToolResult
from tests.agent.guard.guarding import guard, says, session
from tests.agent.scripted import Memory

ROOT = Path(__file__).resolve().parents[3]
FILES = ("read_file", "list_directory", "search_files", "create_file", "replace_in_file")


class Desk:
    """A workspace with its tools, as one turn has them; `turn` begins the next."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "ws"
        self.root.mkdir(exist_ok=True)
        self.home = tmp_path / "home"
        self.workspace = Workspace(self.home)
        self.turn()

    def turn(self) -> None:
        """New tools, for the next turn."""
        found = asyncio.run(self.workspace.tools(session(workspace=str(self.root))))
        self.tools: Mapping[str, Tool] = {tool.spec.name: tool for tool in found}

    def run(self, name: str, **arguments: Any) -> ToolResult:
        """The result of a call. Raises ToolError."""
        context = ToolContext("call-1", SourceTable(), Memory())
        value = asyncio.run(_awaited(self.tools[name].run(arguments, context)))
        return value if isinstance(value, ToolResult) else ToolResult("call-1", name, value)

    def text(self, name: str, **arguments: Any) -> str:
        """What the model reads."""
        return self.run(name, **arguments).content

    def preview(self, name: str, **arguments: Any) -> str:
        """The diff that the user is shown. Raises ToolError."""
        shown = self.tools[name].preview
        assert shown
        return str(asyncio.run(_awaited(shown(arguments))))

    def refused(self, name: str, **arguments: Any) -> str:
        """The code of a refusal, which is in words."""
        with pytest.raises(ToolError) as caught:
            self.run(name, **arguments)
        assert caught.value.message
        assert caught.value.remedy
        return caught.value.code

    def put(self, path: str, content: str | bytes) -> Path:
        """A file that is there."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def undo(self) -> list[str]:
        """Takes the last turn back."""
        return self.workspace.undo("s")


async def _awaited(value: Any) -> Any:
    return await value


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty workspace."""
    return Desk(tmp_path)


def test_what_there_is_with_and_without_a_workspace(desk: Desk) -> None:
    """Without a workspace there are no file tools; reads are private."""
    none = asyncio.run(desk.workspace.tools(session()))
    assert list(none) == []
    assert set(desk.tools) == set(FILES)
    effects = {name: desk.tools[name].spec.effect for name in FILES}
    assert effects == dict.fromkeys(FILES[:3], "read") | dict.fromkeys(FILES[3:], "write")
    assert all(desk.tools[name].private for name in FILES[:3])
    assert all(desk.tools[name].preview for name in FILES[3:])
    assert all(tool.origin == "ours" for tool in desk.tools.values())


def test_a_long_file_is_read_part_by_part(desk: Desk) -> None:
    """Each part says where to go on; together they are the file."""
    lines = [f"line {n} " + "x" * (n % 90) for n in range(1, 2001)]
    desk.put("long.txt", "\r\n".join(lines) + "\r\n")
    read: list[str] = []
    at = 1
    while at <= 2000:
        result = desk.run("read_file", path="long.txt", line=at)
        head, _, text = result.content.partition("\n\n")
        part = text.split("\n")
        assert f"lines {at}-{at + len(part) - 1} of 2000" in head
        read += part
        at += len(part)
        assert (f"line={at}" in head) == (at <= 2000)
    assert read == lines
    assert desk.text("read_file", path="long.txt", line=7, lines=1).endswith(f"\n\n{lines[6]}")
    assert desk.refused("read_file", path="long.txt", line=2001) == "no_such_line"


async def test_no_file_is_cut_that_fits_and_no_endless_line_is_lost(desk: Desk) -> None:
    """Parts of a file fit a result; a line that does not is read on as any long result."""
    whole = "".join(f"{n}," for n in range(20_000))
    desk.put("one.json", whole)
    desk.put("full.txt", "x" * 99 + "\n" + ("y" * 79 + "\n") * 499)
    toolset, emit = Toolset(desk.tools.values()), Memory()

    async def read(name: str, **arguments: Any) -> str:
        return (await toolset.call_all((ToolCall("c", name, arguments),), emit))[0].content

    assert "[Characters" not in await read("read_file", path="full.txt")
    text = await read("read_file", path="one.json")
    pieces = list[str]()
    while more := re.search(r"\n\[Characters .*?(?:offset (\d+)\.)?\]$", text):
        pieces.append(text[: more.start()])
        if not more[1]:
            break
        text = await read("read_more", call_id="c", offset=int(more[1]))
    assert "".join(pieces).partition("\n\n")[2] == whole
    assert len(pieces) > 3


def test_files_that_are_no_text_or_too_large(desk: Desk) -> None:
    """Binary and huge files are refused with advice; other encodings are read."""
    desk.put("image.png", b"\x89PNG\r\n\x1a\n\0\0\0")
    assert desk.refused("read_file", path="image.png") == "binary_file"
    with desk.put("huge.log", "").open("wb") as file:
        file.truncate(200_000_000)
    assert desk.refused("read_file", path="huge.log") == "file_too_large"
    desk.put("wide.txt", "Grüße".encode("utf-16"))
    desk.put("old.txt", "Grüße".encode("cp1252"))
    desk.put("mark.txt", b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe")
    found = desk.text("search_files", text="GRÜSSE".replace("SS", "ß"))
    for name in ("wide.txt", "old.txt", "mark.txt"):
        text = desk.text("read_file", path=name)
        assert text.endswith("\n\nGrüße")
        assert ("not UTF-8" in text) == (name == "old.txt")
        assert f"{name}:1: Grüße" in found
    desk.put("empty.txt", "")
    assert desk.text("read_file", path="empty.txt") == "empty.txt is empty."
    assert desk.refused("replace_in_file", path="old.txt", old_text="G", new_text="g") == "not_utf8"


def test_listing_goes_as_deep_as_asked(desk: Desk) -> None:
    """Names, kinds and sizes, without version control; a long list says that it was cut."""
    desk.put("a/b/c.txt", "12345")
    desk.put(".git/config", "[core]")
    desk.put(".env", "TOKEN=canary")
    listed = "The workspace holds 2 things.\n.env (secret, not readable)\na/"
    assert desk.text("list_directory") == listed
    assert desk.text("list_directory", path="a", depth=2).endswith("\nb/\nb/c.txt (5 bytes)")
    for n in range(600):
        desk.put(f"many/{n:03}.txt", "")
    cut = desk.text("list_directory", path="many")
    assert cut.startswith("The first 500 things in many")
    assert cut.count("\n") == 500


def test_searching_text_and_names(desk: Desk) -> None:
    """Lines with path and number; literal, any case unless asked; what was left out is said. A word
    that is everywhere gives a hundred lines."""
    desk.put("src/a.py", "import os\n\nprint(os.name)  # [x] Needle\n" + "y" * 500 + "needle\n")
    desk.put("src/b.md", "needle\n")
    desk.put("node_modules/x/c.py", "needle")
    desk.put("pic.bin", b"\0needle")
    found = desk.text("search_files", text="needle")
    assert found.splitlines()[0] == "3 lines in 2 files. Not looked into: node_modules."
    assert "src/a.py:3: print(os.name)  # [x] Needle" in found
    assert f"src/a.py:4: …{'y' * 100}needle" in found
    assert desk.text("search_files", text="NEEDLE", match_case=True) == (
        "Nothing found. Not looked into: node_modules."
    )
    assert desk.text("search_files", text="[x]").startswith("1 lines")
    assert desk.text("search_files", text="needle", glob="*.md").endswith("\nsrc/b.md:1: needle")
    assert desk.text("search_files", glob="src/**/*.py").endswith("\nsrc/a.py")
    assert "c.py:1" in desk.text("search_files", text="needle", path="node_modules")
    assert desk.refused("search_files") == "nothing_to_find"
    assert desk.refused("search_files", text="a\nb") == "bad_text"
    for glob in ("*.{py,md}", "../*", "a/../b"):  # nothing would be found
        assert desk.refused("search_files", glob=glob) == "bad_glob"
    desk.put("a.txt", "word\n" * 5000)
    cut = desk.text("search_files", text="word")
    assert cut.startswith("100 lines in 1 files. The search was cut short")


def test_a_new_file_never_overwrites(desk: Desk) -> None:
    """Folders are made; a file, folder or link that is there stays."""
    assert desk.text("create_file", path="deep/er/x.txt", content="hi\n").startswith("Created")
    assert (desk.root / "deep/er/x.txt").read_text() == "hi\n"
    assert desk.refused("create_file", path="deep/er/x.txt", content="no") == "file_exists"
    assert desk.refused("create_file", path="deep", content="no") == "file_exists"
    assert desk.refused("create_file", path="deep/er/x.txt/y", content="no") == "wrong_kind"
    assert desk.refused("create_file", path="new/", content="no") == "bad_path"
    assert desk.refused("create_file", path="new/.env", content="no") == "secret_file"
    (desk.root / "dangling").symlink_to("nowhere")
    assert desk.refused("create_file", path="dangling", content="no") == "file_exists"
    assert sorted(p.name for p in (desk.root / "deep/er").iterdir()) == ["x.txt"]


def test_a_change_needs_one_place(desk: Desk) -> None:
    """Not there, there twice, the same: refused; once: done."""
    desk.put("a.txt", "one\n  two\nthree\ntwo!\n")
    assert (
        desk.refused("replace_in_file", path="a.txt", old_text="four", new_text="x") == "no_match"
    )
    assert desk.refused("replace_in_file", path="a.txt", old_text="two", new_text="x") == (
        "many_matches"
    )
    assert desk.refused("replace_in_file", path="a.txt", old_text="", new_text="x") == "no_match"
    assert desk.refused("replace_in_file", path="a.txt", old_text="one", new_text="one") == (
        "no_change"
    )
    result = desk.run("replace_in_file", path="a.txt", old_text="  two\n", new_text="")
    assert (desk.root / "a.txt").read_text() == "one\nthree\ntwo!\n"
    assert "-  two\n" in result.details["diff"]


def test_mode_and_line_ends_are_kept(desk: Desk) -> None:
    """A script stays executable, a file of Windows keeps its line ends."""
    file = desk.put("run.sh", "echo one\r\necho two\r\n")
    file.chmod(0o754)
    desk.run("replace_in_file", path="run.sh", old_text="one\necho", new_text="1\necho\necho")
    assert file.read_bytes() == b"echo 1\r\necho\r\necho two\r\n"
    desk.run("replace_in_file", path="run.sh", old_text="two", new_text="2\necho three")
    assert file.read_bytes() == b"echo 1\r\necho\r\necho 2\r\necho three\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o754
    mixed = desk.put("mixed.txt", "one\r\ntwo\nthree")
    desk.run("replace_in_file", path="mixed.txt", old_text="one\ntwo\nthree", new_text="1\n2")
    assert mixed.read_bytes() == b"1\r\n2"


def test_what_was_shown_is_what_is_done(desk: Desk) -> None:
    """The diff is there before anything is; if the file changes after it, the change is refused."""
    file = desk.put("a.txt", "one\ntwo\n")
    call = {"path": "a.txt", "old_text": "two", "new_text": "2"}
    diff = desk.preview("replace_in_file", **call)
    assert diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert file.read_text() == "one\ntwo\n"
    file.write_text("one\ntwo\nthree\n")
    assert desk.refused("replace_in_file", **call) == "file_changed"
    assert file.read_text() == "one\ntwo\nthree\n"
    assert desk.preview("create_file", path="b.txt", content="x") == (
        "--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n"
    )
    with pytest.raises(ToolError, match="already"):
        desk.preview("create_file", path="a.txt", content="x")
    assert not (desk.root / "b.txt").exists()


def test_many_changes_of_one_file_at_once(desk: Desk) -> None:
    """Calls of one step run together and none undoes another."""
    file = desk.put("a.txt", "".join(f"<{n}>\n" for n in range(20)))

    def change(n: int) -> None:
        desk.run("replace_in_file", path="a.txt", old_text=f"<{n}>", new_text=f"[{n}]")

    threads = [threading.Thread(target=change, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.read_text() == "".join(f"[{n}]\n" for n in range(20))
    desk.undo()
    assert "[" not in file.read_text()


def test_a_turn_is_undone_as_a_whole(desk: Desk) -> None:
    """Changed files are as before, new ones and their folders are gone; then the turn before."""
    file = desk.put("a.txt", "one\n")
    file.chmod(0o640)
    desk.run("replace_in_file", path="a.txt", old_text="one", new_text="two")
    desk.turn()
    desk.run("replace_in_file", path="a.txt", old_text="two", new_text="three")
    desk.run("replace_in_file", path="a.txt", old_text="three", new_text="four")
    desk.run("create_file", path="deep/er/new.txt", content="x")
    desk.run("replace_in_file", path="deep/er/new.txt", old_text="x", new_text="y")
    assert desk.undo() == ["a.txt", "deep/er/new.txt"]
    assert file.read_text() == "two\n"
    assert [p.name for p in desk.root.iterdir()] == ["a.txt"]
    assert desk.undo() == ["a.txt"]
    assert file.read_text() == "one\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    with pytest.raises(Conflict, match="No answer that this chat"):
        desk.undo()


@pytest.mark.parametrize("spoil", ["edit", "remove", "link"])
def test_an_undo_never_destroys_later_work(desk: Desk, spoil: str) -> None:
    """A file that the user touched since stops the whole undo, in words, and nothing is lost."""
    first, second = desk.put("a.txt", "one\n"), desk.put("b.txt", "one\n")
    for path in ("a.txt", "b.txt"):
        desk.run("replace_in_file", path=path, old_text="one", new_text="two")
    if spoil == "edit":
        second.write_text("two\nmine\n")
    else:
        second.unlink()
    if spoil == "link":
        second.symlink_to("a.txt")
    with pytest.raises(Conflict) as caught:
        desk.undo()
    assert caught.value.code == "changed_since"
    assert "b.txt" in caught.value.message
    assert first.read_text() == "two\n"


def test_what_is_kept_is_private_and_goes_with_the_session(desk: Desk) -> None:
    """Previous contents are readable by the user only, for twenty turns, until the session goes."""
    old = os.umask(0)
    try:
        desk.put("a.txt", "0")
        for n in range(23):
            desk.turn()
            desk.run("replace_in_file", path="a.txt", old_text=str(n), new_text=str(n + 1))
    finally:
        os.umask(old)
    kept = list((desk.home / "undo").rglob("*"))
    assert sum(path.name.endswith(".json") for path in kept) == 20
    modes = {stat.S_IMODE(path.stat().st_mode) for path in kept}
    assert modes == {0o600, 0o700}
    desk.workspace.forget("s")
    assert not list((desk.home / "undo").iterdir())


_KILLED = """
import os, signal, sys
from searchloop.agent.tools.workspace.tree import Tree
tree, new, stop = Tree(sys.argv[1]), sys.argv[2] == "new", int(sys.argv[3])
count = 0

def watch(event, arguments):
    global count
    if event in ("open", "os.rename", "os.link", "os.remove") and ".searchloop" in str(arguments):
        count += 1
        if count == stop:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
data = b"new" * 100_000
if new:
    tree.create(("b.txt",), data)
else:
    tree.replace(tree.read(("a.txt",)), data)
"""


@pytest.mark.parametrize(("kind", "stop"), [("new", 2), ("new", 3), ("change", 1), ("change", 2)])
def test_killed_in_between_a_file_is_old_or_new(desk: Desk, kind: str, stop: int) -> None:
    """kill -9 at a step of a write: never a mixed file, and the next call finds its way."""
    desk.put("a.txt", "old")
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(desk.root), kind, str(stop)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    for name, states in (("a.txt", ("old", "new" * 100_000)), ("b.txt", (None, "new" * 100_000))):
        file = desk.root / name
        assert (file.read_text() if file.exists() else None) in states
    if (desk.root / "b.txt").exists():
        assert "new" in desk.text("read_file", path="b.txt")
    assert "searchloop-" not in desk.text("list_directory")


KEYS = (".ssh", ".aws", ".gnupg", ".config/gcloud", ".ssh/keys")


@pytest.mark.parametrize(
    "name", ["", "relative", "/", "~", "/etc", "a\0b", "gone", "home/inner", *KEYS]
)
def test_folders_that_cannot_be_a_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Not a folder, all there is, the system's, searchloop's own, one of keys: refused in words.

    A link that the user names is followed once, when it is named.
    """
    monkeypatch.setenv("HOME", str(tmp_path))
    own = name in ("gone", "home/inner", *KEYS)
    if own and name != "gone":
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / "link").symlink_to(name)
    for given_name in (str(tmp_path / name), str(tmp_path / "link")) if own else (name,):
        with pytest.raises(ConfigError) as caught:
            checked_folder(given_name, tmp_path / "home")
        assert caught.value.code == "bad_workspace"
        assert ("keep keys there" in caught.value.message) is (name in KEYS)
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    assert checked_folder(str(tmp_path / "alias"), tmp_path / "home") == os.path.realpath(
        tmp_path / "real"
    )


def test_a_full_disk_changes_nothing(desk: Desk) -> None:
    """Where the previous content cannot be kept, the file stays as it was."""
    desk.home.write_text("a file where a folder should be")
    file = desk.put("a.txt", "one")
    assert desk.refused("replace_in_file", path="a.txt", old_text="one", new_text="2") == "no_undo"
    assert file.read_text() == "one"


WORDS = st.one_of(
    st.sampled_from(["notes.txt", "src", "", ".", "..", "new/file.txt", "one", "two", "*", "/"]),
    st.text(max_size=12),
)
VALUES = st.one_of(WORDS, st.integers(-1, 9), st.booleans(), st.none(), st.lists(WORDS, max_size=2))
FIELDS = ("path", "content", "old_text", "new_text", "text", "glob", "line", "depth")
ARGUMENTS = st.dictionaries(st.one_of(st.sampled_from(FIELDS), WORDS), VALUES, max_size=4)
LIKELY = st.fixed_dictionaries(
    {"path": WORDS}, optional={"content": WORDS, "old_text": WORDS, "new_text": WORDS}
)
CALLS = st.lists(
    st.tuples(
        st.one_of(st.sampled_from((*FILES, "web_search")), WORDS), st.one_of(ARGUMENTS, LIKELY)
    ),
    min_size=1,
    max_size=8,
)


def state_of(root: Path) -> str:
    """One hash over all names, contents, modes and times below a folder."""
    found = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        found.update(f"{path} {status.st_mode} {status.st_mtime_ns}".encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


def toolset(folder: Path, mode: Mode, decision: str = "always") -> Toolset:
    """The tools of a session in this workspace, behind a user who always decides the same."""
    (folder / "ws" / "src").mkdir(parents=True)
    (folder / "ws" / "notes.txt").write_text("one\ntwo\n")
    now = session(mode, workspace=str(folder / "ws"))
    tools = asyncio.run(Workspace(folder / "home").tools(now))
    checked = guard(user=says(decision), live=lambda: now)
    return Toolset(tools, mode, SourceTable(), guard=checked)


@settings(max_examples=40, deadline=None)
@given(CALLS, st.sampled_from(["ask", "plan"]))
def test_no_call_changes_a_file_where_nothing_may(
    made: list[tuple[str, dict[str, Any]]], mode: Mode
) -> None:
    """Every tool name and any arguments: what is below the workspace is the same afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        tools = toolset(folder, mode)
        before = state_of(folder)
        calls = tuple(ToolCall(f"c{n}", tool, given) for n, (tool, given) in enumerate(made))
        results = asyncio.run(tools.call_all(calls, Memory()))
        assert [result.call_id for result in results] == [call.id for call in calls]
        assert state_of(folder) == before
