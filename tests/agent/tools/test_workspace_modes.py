"""Modes and file tools: in `ask` and `plan` nothing that a model calls changes a file."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchloop.agent.guard.approvals import ApprovalAnswer, folder_key
from searchloop.agent.guard.guard import DEFAULT_POLICY, Policy
from searchloop.agent.log.session import Session
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools import ALLOWED
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.tools.workspace import Workspace
from searchloop.agent.types import Mode, ToolCall
from tests.agent.guard.guarding import guard, says
from tests.agent.scripted import Memory

NAMES = ("read_file", "list_directory", "search_files", "create_file", "replace_in_file")
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
        st.one_of(st.sampled_from((*NAMES, "web_search")), WORDS), st.one_of(ARGUMENTS, LIKELY)
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


def in_workspace(folder: Path, mode: Mode) -> Session:
    """A session that works in `folder`/ws."""
    return Session("s", "", "m:x", mode, "off", "off", str(folder / "ws"), 0.0, 0.0, 0, False)


def toolset(folder: Path, mode: Mode, decision: str = "always") -> Toolset:
    """The tools of a session in this workspace, behind a user who always decides the same."""
    (folder / "ws" / "src").mkdir(parents=True)
    (folder / "ws" / "notes.txt").write_text("one\ntwo\n")
    session = in_workspace(folder, mode)
    tools = asyncio.run(Workspace(folder / "home").tools(session))
    checked = guard(user=says(decision), live=lambda: session)
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


def test_the_mode_decides_what_is_offered(tmp_path: Path) -> None:
    """Files are read in every mode; tools that write are offered, and run, in agent mode only."""
    offered = {}
    for mode in ALLOWED:
        tools = toolset(tmp_path / mode, mode)
        offered[mode] = {spec.name for spec in tools.specs}
        call = ToolCall("c", "create_file", {"path": "new.txt", "content": "x"})
        (result,) = asyncio.run(tools.call_all((call,), Memory()))
        assert result.is_error == (mode != "agent")
        assert (tmp_path / mode / "ws" / "new.txt").exists() == (mode == "agent")
    assert offered["ask"] == offered["plan"] == set(NAMES[:3])
    assert offered["agent"] == set(NAMES)


def test_what_files_hold_is_marked_private(tmp_path: Path) -> None:
    """A result that shows a file counts as the user's own data, which outgoing calls must not."""
    tools = toolset(tmp_path, "ask")
    call = ToolCall("c", "read_file", {"path": "notes.txt"})
    (result,) = asyncio.run(tools.call_all((call,), Memory()))
    assert result.details["private"] is True
    assert "one\ntwo" in result.content


def test_a_declined_write_changes_nothing(tmp_path: Path) -> None:
    """The user sees tool, arguments and diff; a no leaves everything as it is."""
    tools, asked = toolset(tmp_path, "agent", "deny"), Memory()
    given = {"path": "notes.txt", "old_text": "two", "new_text": "2"}
    before = state_of(tmp_path / "ws")
    call = ToolCall("c", "replace_in_file", given)
    (result,) = asyncio.run(tools.call_all((call,), asked))
    assert result.is_error
    (request,) = asked.of("approval_requested")
    assert (request["effect"], request["arguments"]) == ("write", given)
    assert "-two\n+2\n" in request["preview"]
    assert state_of(tmp_path / "ws") == before


def asked_for(folder: Path, path: str, allowed: str, policy: Policy = DEFAULT_POLICY) -> bool:
    """Whether a new file there is asked about, when edits in a folder of `folder` were allowed."""
    (folder / "ws").mkdir()
    session, asked = in_workspace(folder, "agent"), list[Any]()

    def user(request: Mapping[str, Any]) -> ApprovalAnswer:
        asked.append(request["folder"])
        return ApprovalAnswer("once", request["arguments"], "user")

    always = [folder_key(str(folder / allowed))]
    checked = guard(user=user, live=lambda: session, always=always, policy=policy)
    made = asyncio.run(Workspace(folder / "home").tools(session))
    tools = Toolset(made, "agent", SourceTable(), guard=checked)
    call = ToolCall("c", "create_file", {"path": path, "content": "x"})
    (result,) = asyncio.run(tools.call_all((call,), Memory()))
    assert not result.is_error
    assert not asked or asked == [str((folder / "ws" / path).parent)]
    return bool(asked)


@pytest.mark.parametrize(
    ("path", "allowed", "asks"),
    [
        ("src/new.txt", "ws/src", False),
        ("src/deep/new.txt", "ws/src", False),
        ("./src//new.txt", "ws/src", False),
        ("new.txt", "ws", False),
        ("new.txt", "ws/src", True),
        ("src2/new.txt", "ws/src", True),
        ("deep/src/new.txt", "ws/src", True),
        ("src/new.txt", "other/src", True),
        ("src/new.txt", "src", True),
    ],
)
def test_an_allowed_folder_is_that_one_alone(
    tmp_path: Path, path: str, allowed: str, asks: bool
) -> None:
    """What is below it is not asked about again; a folder of the same name elsewhere is."""
    assert asked_for(tmp_path.resolve(), path, allowed) is asks


def test_an_allowed_folder_changes_no_rule(tmp_path: Path) -> None:
    """Where a rule of the user says that each change is confirmed, it is."""
    policy = Policy.of({"rules": [{"action": "confirm", "path": "src"}]})
    assert asked_for(tmp_path.resolve(), "src/new.txt", "ws/src", policy)
