"""Files of servers: what is read, and how a mistake is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import Conflict
from searchloop.agent.mcp.config import Catalogue, add, content_hash, entry, parse
from searchloop.agent.mcp.server import Server, ServerProblem
from tests.tables import cut, each_row

ENV = {"KEY": "sk-1", "EMPTY": ""}
FIELDS = cut("mcpServers command url args env tools type timeout a")


def one(**given: Any) -> Server:
    """The only server of a file."""
    servers, problems = parse(json.dumps({"mcpServers": {"a": given}}), "f.json", ENV)
    assert not problems, problems
    return servers[0]


def wrong(**given: Any) -> ServerProblem:
    """What is wrong with the only server of a file."""
    servers, problems = parse(json.dumps({"mcpServers": {"a": given}}), "f.json", ENV)
    assert not servers
    return problems[0]


def test_the_common_form_is_read() -> None:
    """command, args, env and cwd; type, url and headers; other programs' files can be copied."""
    local = one(command="npx", args=["-y", "pkg"], env={"TOKEN": "${KEY}", "PORT": 80}, cwd="~")
    assert (local.kind, local.command, local.args) == ("stdio", "npx", ("-y", "pkg"))
    assert local.env == {"TOKEN": "sk-1", "PORT": "80"}
    remote = one(type="http", url="https://x.test/mcp", headers={"Authorization": "Bearer ${KEY}"})
    assert (remote.kind, remote.headers["Authorization"]) == ("http", "Bearer sk-1")
    assert one(url="https://x.test/mcp").kind == "http"
    assert one(type="streamable-http", url="https://x.test").kind == "http"
    for text in ('{"servers": {"a": {"command": "x"}}}', '{"a": {"command": "x"}}'):
        assert [s.name for s in parse(text, "f", ENV)[0]] == ["a"]


def test_variables_are_filled_in_and_not_shown() -> None:
    """`${VAR}`, `${env:VAR}` and `${VAR:-default}`; what is shown is what stands in the file."""
    server = one(command="x", args=["${KEY}", "${env:KEY}", "${EMPTY:-d}", "${NONE:-}", "$KEY"])
    assert server.args == ("sk-1", "sk-1", "d", "", "$KEY")
    assert server.shown == ("x", "${KEY}", "${env:KEY}", "${EMPTY:-d}", "${NONE:-}", "$KEY")
    assert "sk-1" not in repr(one(command="x", env={"A": "${KEY}"}))
    problem = wrong(command="x", args=["${NONE}"])
    assert problem.error.code == "missing_variable"
    assert "NONE" in problem.error.message
    assert "${NONE:-default}" in problem.error.remedy


def test_switches_marks_and_times() -> None:
    """What the user says of tools; nothing gives a tool an effect but that."""
    server = one(
        command="x",
        tools={"a": {"enabled": False}, "b": {"effect": "read"}, "c": False},
        disabledTools=["d"],
        private=True,
        timeout=90_000,
        startup_timeout=5,
    )
    assert [server.switch(t).enabled for t in "abcde"] == [False, True, False, False, True]
    assert [server.switch(t).effect for t in "be"] == ["read", "exec"]
    assert (server.private, server.seconds, server.startup_seconds) == (True, 90.0, 5.0)
    only = one(command="x", enabledTools=["a"], effect="network")
    assert [only.switch(t).enabled for t in "ab"] == [True, False]
    assert only.switch("a").effect == "network"
    assert one(command="x", disabled=True).disabled
    assert one(command="x", enabled=False).disabled


@each_row(
    ("given", "code", "says"),
    [
        ({}, "missing_command", "no command"),
        ({"serverUrl": "https://x.test"}, "missing_command", "no command and no url"),
        ({"type": "http"}, "missing_url", "no url"),
        ({"command": "x", "url": "https://x.test"}, "bad_server", "both"),
        ({"type": "sse", "url": "https://x.test"}, "bad_server", "Streamable HTTP"),
        ({"type": "carrier pigeon", "command": "x"}, "bad_server", "type"),
        ({"url": "file:///etc/passwd"}, "bad_server", "url"),
        ({"command": ["x"]}, "bad_server", "command"),
        ({"command": "x", "args": "y"}, "bad_server", "args"),
        ({"command": "x", "args": [1]}, "bad_server", "args"),
        ({"command": "x", "env": {"A": []}}, "bad_server", "env"),
        ({"command": "x", "effect": "none"}, "bad_server", "effect"),
        ({"command": "x", "timeout": -1}, "bad_server", "timeout"),
        ({"command": "x", "timeout": True}, "bad_server", "timeout"),
        ({"command": "x", "disabled": "yes"}, "bad_server", "disabled"),
        ({"command": "x", "tools": {"t": {"effect": 1}}}, "bad_server", "tools.t.effect"),
        ({"command": "x", "tools": {"t": 1}}, "bad_server", "tools.t"),
        ({"command": "x\0"}, "bad_server", "NUL"),
    ],
)
def test_each_mistake_is_named(given: dict[str, Any], code: str, says: str) -> None:
    """The server, the field and what to do."""
    problem = wrong(**given)
    assert (problem.error.code, problem.server, problem.file) == (code, "a", "f.json")
    assert says in problem.error.message
    assert problem.error.remedy


def test_a_mistake_has_a_place_and_leaves_the_others_alone() -> None:
    """Broken JSON by line and column; a broken server by its name."""
    servers, problems = parse('{\n  "mcpServers": {,}\n}', "f.json", ENV)
    assert not servers
    assert "f.json is not valid JSON" in problems[0].error.message
    assert "line 2, column 18" in problems[0].error.message
    text = '{"mcpServers": {\n  "bad": {},\n  "good": {"command": "x"}\n}}'
    assert parse('{"command": "x"}', "f", ENV)[1][0].error.code == "bad_servers"  # a nameless one
    servers, problems = parse(text, "f.json", ENV)
    assert [s.name for s in servers] == ["good"]
    assert [p.server for p in problems] == ["bad"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_any_json_gives_servers_or_problems(value: Any) -> None:
    """No file brings the program down."""
    servers, problems = parse(json.dumps({"mcpServers": {"a": value}}), "f", ENV)
    assert len(servers) + len(problems) == 1
    parse(json.dumps(value), "f", ENV)


def test_a_project_is_trusted_by_path_and_content(tmp_path: Path) -> None:
    """Nothing of a project's file is used before, or after it has changed."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (home / "mcp.json").write_text('{"mcpServers": {"mine": {"command": "x"}}}')
    theirs = project / ".mcp.json"
    theirs.write_text('{"mcpServers": {"it": {"command": "rm"}, "mine": {"command": "y"}}}')
    catalogue = Catalogue(home, {})
    found = catalogue.find(str(project))
    assert [s.name for s in found.servers] == ["mine"]
    assert found.untrusted
    assert found.untrusted.commands[0] == ("it", ("rm",))
    with pytest.raises(Conflict):
        catalogue.trust(str(project), content_hash("something else"))
    catalogue.trust(str(project), found.untrusted.hash)
    found = catalogue.find(str(project))
    assert [(s.name, s.command) for s in found.servers] == [("mine", "x"), ("it", "rm")]
    assert [p.error.code for p in found.problems] == ["duplicate_server"]
    assert [s.name for s in catalogue.find(None).servers] == ["mine"]
    theirs.write_text(theirs.read_text().replace("rm", "dd"))
    assert [s.name for s in catalogue.find(str(project)).servers] == ["mine"]
    other = tmp_path / "other"
    other.mkdir()
    (other / ".mcp.json").write_text(theirs.read_text().replace("dd", "rm"))
    assert catalogue.find(str(other)).untrusted
    assert (home / "mcp_trust.json").stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    """A folder in its place, too many bytes, a broken list of what is trusted."""
    (tmp_path / "mcp.json").mkdir()
    assert Catalogue(tmp_path, {}).find(None).problems[0].error.code == "bad_file"
    project = tmp_path / "p"
    project.mkdir()
    (project / ".mcp.json").write_text(" " * 1_000_001)
    assert Catalogue(tmp_path, {}).find(str(project)).problems[1].error.code == "bad_file"
    (project / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    (tmp_path / "mcp_trust.json").write_text("{broken")
    assert Catalogue(tmp_path, {}).find(str(project)).untrusted


KEY = "sk-abcdefghijklmnop"
EDITED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "env": ({"env": {"TOKEN": KEY, "PLACE": "${HOME}"}}, {"env": {"TOKEN": KEY, "PLACE": "x"}}),
    "taken away": ({"env": {"TOKEN": KEY, "B": "b"}}, {"env": {"B": "b"}}),
    "flag": ({"args": ["--api-key", KEY, "a"]}, {"args": ["--api-key", KEY, "b", "c"]}),
    "headers": ({"headers": {"Authorization": KEY}}, {"headers": {"Authorization": "other"}}),
    "address": ({"url": "https://me:pass@a.example/x"}, {"url": "https://me:pass@a.example/x"}),
}


@pytest.mark.parametrize("case", EDITED)
def test_an_edit_sees_no_keys_and_keeps_them(tmp_path: Path, case: str) -> None:
    """What is masked and left as it was is the key that was there."""
    before, after = ({"private": True, "command": "x", **part} for part in EDITED[case])
    if case in ("headers", "address"):
        before, after = (
            {**each, "url": each.get("url", "https://a.example/")} for each in (before, after)
        )
        del before["command"], after["command"]
    file = tmp_path / "mcp.json"
    add(file, {"one": before})
    shown = entry(file, "one")
    assert KEY not in json.dumps(shown)
    assert "pass" not in json.dumps(shown)
    edited = json.loads(json.dumps(after).replace(KEY, "[secret]"))
    if case == "address":
        edited["url"] = shown["url"]
    add(file, {"one": edited}, replace=True)
    assert json.loads(file.read_text())["mcpServers"]["one"] == after
