"""`searchloop doctor --security`: what is open to whom, and the command that closes it."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.log import EventLog
from searchloop.protocols.programs import Programs
from tests.cli.conftest import Cli
from tests.ports import closed_port

SECRET = "s3cret-in-an-address"


def said(cli: Cli, **env: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """The exit code, and the findings by what they are about."""
    ran = cli("doctor", "--security", "-o", "json", **env)
    found: dict[str, list[dict[str, Any]]] = {}
    for each in ran.json["exposures"]:
        found.setdefault(each["what"], []).append(each)
    return ran.code, found


def home_of(cli: Cli) -> Path:
    """The data folder of the command line under test."""
    return Path(cli("config", "-o", "json").json["settings"][0]["value"])


def test_a_fresh_machine_is_closed(cli: Cli) -> None:
    """Nothing is wide open, and each part is named with who can reach it."""
    home_of(cli).mkdir(exist_ok=True)
    home_of(cli).chmod(0o700)
    code, found = said(cli)
    assert code == 0
    assert {"Web UI", "Search backend", "Token", "People", "Data folder"} <= set(found)
    assert not [each for many in found.values() for each in many if each["wide"]]
    assert "nothing leave" in found["Network"][0]["said"]


def test_everything_that_is_open_is_listed(cli: Cli, tmp_path: Path) -> None:
    """Engines, folders, servers, people, proxies, ranges, rules; no secret is shown; and whatever
    is open by choice has the command or the words that close it."""
    home = home_of(cli)
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("words")
    assert cli("library", "add", str(notes)).code == 0
    servers = {
        "files": {"command": "npx", "args": ["--key", SECRET]},
        "far": {"url": "https://h.example"},
    }
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (home / "policy.json").write_text('{"rules": [{"action": "allow", "tool": "*"}]}')
    with closing(EventLog(home / "sessions.sqlite3")) as log:
        Programs(log, home).add("", "editor", models=("ollama:*",))
    env = {
        "SEARCHLOOP_OFFLINE": "",
        "SEARCH_ENGINES": "ddg,library",
        "SEARCH_ALLOW_RANGES": "10.0.0.0/8",
        "SEARCHLOOP_USER_HEADER": "X-Forwarded-User",
        "SEARCHLOOP_ADMINS": "anna",
        "SEARCHLOOP_OTEL_ENDPOINT": f"http://me:{SECRET}@127.0.0.1:4318",
        "SEARCHLOOP_PUBLIC_URL": "https://chat.example.org",
    }
    _, found = said(cli, **env)
    assert SECRET not in str(found)
    for what, words, close in (
        ("Search engines", "ddg", "SEARCHLOOP_OFFLINE"),
        ("Library", str(notes), f"searchloop library remove {notes}"),
        ("MCP server files", "all your rights", "searchloop mcp disable files"),
        ("MCP server far", "h.example", "searchloop mcp disable far"),
        ("Network", "10.0.0.0/8", "unset SEARCH_ALLOW_RANGES"),
        ("Network", "4318", "unset SEARCHLOOP_OTEL_ENDPOINT"),
        ("People", "can name itself anybody", "SEARCHLOOP_TRUSTED_PROXIES"),
        ("People", "anna", ""),
        ("Proxy", "chat.example.org", ""),
        ("Rules", "1 of your rules", "policy.json"),
        ("Program editor", "asks ollama:*", "Other programs"),
    ):
        fits = [e for e in found[what] if words in e["said"] and close in e["command"]]
        assert fits, (what, words, found[what])
    text = cli("doctor", "--security", **env).out
    assert "closes it: searchloop mcp disable files" in text
    assert cli("mcp", "disable", "files").code == 0
    assert "MCP server files" not in said(cli, **env)[1]
    assert cli("library", "remove", str(notes)).code == 0
    assert "Library" not in said(cli, **env)[1]


def test_a_data_folder_that_others_read_is_wide_open(cli: Cli) -> None:
    """It fails, names the files, and its own command closes it."""
    home = home_of(cli)
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("")
    (home / "config.toml").chmod(0o644)
    home.chmod(0o755)
    code, found = said(cli)
    [folder] = found["Data folder"]
    assert (code, folder["wide"], "config.toml" in folder["said"]) == (1, True, True)
    subprocess.run(shlex.split(folder["command"]), check=True)
    assert said(cli)[0] == 0


@pytest.mark.parametrize(
    ("env", "what"),
    [
        ({"SEARCHLOOP_TOKEN": "abc"}, "Token"),
        ({"SEARCHLOOP_PUBLIC_URL": "http://chat.example.org"}, "Proxy"),
        ({"SEARCHLOOP_USER_HEADER": "X-User", "SEARCHLOOP_TRUSTED_PROXIES": "0.0.0.0/0"}, "People"),
    ],
)
def test_what_nobody_means_to_open(env: dict[str, str], what: str, cli: Cli) -> None:
    """A short token, a proxy without TLS, a header that the whole world may send."""
    home_of(cli).mkdir(exist_ok=True)
    home_of(cli).chmod(0o700)
    code, found = said(cli, **env)
    wide = [each for each in found[what] if each["wide"]]
    assert (code, len(wide)) == (1, 1)
    assert wide[0]["command"]


def test_ports_are_tried_for_real() -> None:
    """A socket on loopback is near, one on all addresses is far where there is another address,
    and a closed one is neither."""
    with (
        socket.create_server(("127.0.0.1", 0)) as near,
        socket.create_server(("0.0.0.0", 0)) as far,
    ):
        ports = near.getsockname()[1], far.getsockname()[1], closed_port()
        # A program of its own tries: this one may connect to loopback alone.
        ask = "import json; from searchloop.web.listen import reachable as tried; "
        ask += f"print(json.dumps([tried(port) for port in {ports}]))"
        told = subprocess.check_output([sys.executable, "-c", ask], text=True)
    first, (here, others), last = json.loads(told)
    assert (first, here, last) == ([True, ""], True, [False, ""])
    assert not others.startswith("127.")
