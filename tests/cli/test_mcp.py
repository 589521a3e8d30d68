"""`searchloop mcp`: servers added, tried, switched, approved, trusted and removed."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from searchloop.cli import doctor
from tests.agent.mcp.http_server import site
from tests.agent.mcp.served import HOSTILE, hostile, settings_of, write
from tests.cli.conftest import Cli

Mcp = Callable[..., tuple[int, str, str]]
SERVER = (sys.executable, "-I", "-S", HOSTILE)


@pytest.fixture
def mcp(cli: Cli) -> Mcp:
    """Runs `searchloop mcp ARGS`: exit code, output, errors."""

    def run(*args: str) -> tuple[int, str, str]:
        ran = cli("mcp", *args, SEARCHLOOP_OFFLINE="")
        return ran.code, ran.out, ran.err

    return run


def kept(tmp_path: Path) -> dict[str, Any]:
    """The file of servers."""
    text = (tmp_path / "home" / "mcp.json").read_text("utf-8")
    servers: dict[str, Any] = json.loads(text)["mcpServers"]
    return servers


def test_a_server_from_first_to_last(mcp: Mcp, tmp_path: Path) -> None:
    """Added with what it runs, tried, its tools shown, switched off, removed."""
    assert mcp("list") == (0, f"No servers. They are read from {tmp_path}/home/mcp.json.\n", "")
    code, out, _ = mcp("add", "h", "--private", "--env", "A=${HOME}", "--", *SERVER, "ok")
    assert code == 0
    assert f"which runs: {' '.join(SERVER)} ok" in out
    assert kept(tmp_path)["h"] == {
        "command": sys.executable,
        "args": ["-I", "-S", HOSTILE, "ok"],
        "env": {"A": "${HOME}"},
        "private": True,
    }
    assert (tmp_path / "home" / "mcp.json").stat().st_mode & 0o777 == 0o600
    code, out, _ = mcp("test", "h")
    assert (code, out.splitlines()[0]) == (0, "It works: hostile 1, MCP 2025-11-25.")
    mcp("disable", "h", "echo")
    code, out, _ = mcp("test", "h", "-o", "json")
    tools = {tool["name"]: tool["enabled"] for tool in json.loads(out)["tools"]}
    assert (tools["echo"], tools["env"]) == (False, True)
    mcp("enable", "h", "echo")
    assert kept(tmp_path)["h"]["tools"] == {"echo": {"enabled": True}}
    mcp("disable", "h")
    code, out, _ = mcp("list")
    assert out.rstrip().endswith("disabled private")
    assert mcp("test", "h")[::2] == (1, "It is disabled.\n")
    assert mcp("remove", "h", "-o", "json")[:2] == (0, '{"removed": "h"}\n')
    assert kept(tmp_path) == {}
    assert json.loads((tmp_path / "home" / "mcp_pins.json").read_text())["user"] == {}


def test_mistakes_are_told(mcp: Mcp, tmp_path: Path) -> None:
    """With the exit code of bad input; what a server wrote is shown when it does not start."""
    assert mcp("add", "x", "--url", "https://x.test", "--header", "A=${NOT_SET_YET}")[0] == 0
    code, _, err = mcp("add", "x", "--", "y")
    assert (code, "already" in err) == (2, True)
    assert mcp("add", "x", "--replace", "--", *SERVER, "exit")[0] == 0
    code, out, err = mcp("test", "x")
    assert (code, out) == (1, "")
    assert "exit code 4" in err
    assert err.endswith("It wrote:\nno such database\n")
    assert "searchloop mcp test" not in err, "that is this command"
    assert f"Run it by itself to see why: {shlex.quote(sys.executable)}" in err
    mcp("add", "web", "--url", "http://127.0.0.1:9/mcp")
    assert "Check its address: http://127.0.0.1:9/mcp" in mcp("test", "web")[2]
    mcp("remove", "web")
    assert mcp("remove", "nobody")[0] == 2
    assert mcp("login", "x")[0] == 2
    path = tmp_path / "pasted.json"
    path.write_text('{"mcpServers": {"p": {}}}')
    assert "no command" in mcp("add", "--json", str(path))[2]
    path.write_text('{"p": {"command": "z"}}')
    assert mcp("add", "--json", str(path), "-o", "json")[1] == '{"added": ["p"]}\n'
    assert set(kept(tmp_path)) == {"x", "p"}
    (tmp_path / "home" / "mcp.json").write_text("{broken")
    code, _, err = mcp("list")
    assert (code, "line 1, column 2" in err) == (1, True)
    assert mcp("remove", "x")[0] == 2
    assert (tmp_path / "home" / "mcp.json").read_text() == "{broken"


def test_a_link_to_the_file_stays_a_link(mcp: Mcp, tmp_path: Path) -> None:
    """Who keeps settings elsewhere finds them there."""
    elsewhere = tmp_path / "dotfiles.json"
    elsewhere.write_text("{}")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "mcp.json").symlink_to(elsewhere)
    assert mcp("add", "h", "--url", "https://x.test/mcp")[0] == 0
    assert (tmp_path / "home" / "mcp.json").is_symlink()
    assert "https://x.test/mcp" in elsewhere.read_text()


def test_a_changed_tool_is_approved_with_its_difference(mcp: Mcp, tmp_path: Path) -> None:
    """Shown first; nobody is taken to have agreed who could not be asked."""
    write(tmp_path / "home", {"h": hostile()})
    mcp("test", "h")
    assert mcp("approve", "h", "echo")[:2] == (0, "It is as you approved it.\n")
    write(tmp_path / "home", {"h": hostile("rug")})
    assert " suspended " in mcp("test", "h")[1].splitlines()[2]
    code, out, err = mcp("approve", "h", "echo")
    assert (code, "Add --yes" in err) == (1, True)
    assert '+  "description": "Now says something else."' in out
    assert mcp("approve", "h", "echo", "--yes")[1].endswith("Approved.\n")
    assert "suspended" not in mcp("test", "h")[1]
    assert mcp("approve", "h", "nothing")[0] == 2


def test_a_project_is_trusted_with_what_it_runs(mcp: Mcp, tmp_path: Path) -> None:
    """Its commands are shown before anything of it is used."""
    project = tmp_path / "project"
    write(project, {"it": {"command": "rm", "args": ["-rf\x1b[2J"]}}, ".mcp.json")
    code, out, _ = mcp("list", "--workspace", str(project))
    assert code == 0
    assert "is not used until you trust it:\n  it: rm -rf[2J" in out
    assert mcp("trust", str(project))[0] == 1
    assert mcp("trust", str(project), "--yes")[1].endswith("Trusted.\n")
    assert "nothing to trust" in mcp("trust", str(project))[1]
    assert mcp("trust", str(project / "none"))[0] == 2
    assert mcp("list", "--workspace", str(project))[1].startswith("it ")
    assert mcp("list")[1].startswith("No servers")


def test_doctor_tells_of_servers(tmp_path: Path) -> None:
    """Which work, which do not and why; one that is switched off is not started."""
    home = tmp_path / "home"
    seen = tmp_path / "seen"
    servers = {
        "good": hostile(),
        "bad": hostile("exit"),
        "off": hostile("ok", seen, disabled=True),
        "none": {},
    }
    write(home, servers)
    found = {f.what: f for f in doctor.mcp_findings(settings_of(home))}
    assert (found["MCP server good"].state, found["MCP server good"].said) == ("ok", "13 tools")
    assert found["MCP server bad"].state == "hint"
    assert "exit code 4" in found["MCP server bad"].said
    assert "has no command" in found["MCP server none"].said
    assert not seen.exists()


def test_a_browser_in_the_foreground_holds_up_no_login(cli: Cli, tmp_path: Path) -> None:
    """`$BROWSER` may be a program that ends only when its user quits it."""
    program, pid = tmp_path / "browser", tmp_path / "pid"
    visit = f'"{sys.executable}" -c "import sys,urllib.request as u;u.urlopen(sys.argv[1])" "$1"'
    program.write_text(f'#!/bin/sh\necho $$ > "{pid}"\n{visit}\nexec sleep 600\n')
    program.chmod(0o755)
    with site("login") as there:
        write(tmp_path / "home", {"a": {"url": f"{there.url}/mcp"}})
        ran = cli("mcp", "login", "a", SEARCHLOOP_OFFLINE="", BROWSER=str(program))
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert (ran.code, ran.out) == (0, "Logged in.\n")
    assert "Log in here: http://127.0.0.1" in ran.err
