"""Servers over Streamable HTTP: reached, bounded, kept to their address, logged in to."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from searchloop.agent.errors import AgentError, ToolError
from searchloop.agent.mcp import McpServers
from searchloop.agent.mcp.config import Catalogue
from searchloop.agent.mcp.login import Tokens, _Callback, log_in
from searchloop.agent.mcp.server import McpServer
from tests.agent.mcp.http_server import Site, site
from tests.agent.mcp.served import Chat, Patient, by_name, run, serving, settings_of, write
from tests.tables import each_row


async def error_of(home: Path, url: str = "", seconds: float = 10.0, **env: str) -> dict[str, str]:
    """What is said of a server that cannot be used; without an address, of the one that is kept."""
    servers = {"a": {"url": url, "startup_timeout": seconds}} if url else None
    async with serving(home, servers, **env) as source:
        assert await source.tools(Chat()) == []
        error: dict[str, str] = source.overview()["servers"][0]["error"]
        return error


@asynccontextmanager
async def reached(
    home: Path, mode: str = "ok", **more: Any
) -> AsyncIterator[tuple[Site, McpServers]]:
    """The server, and our client of it."""
    with site(mode) as there:
        servers = {"a": {"type": "http", "url": f"{there.url}/mcp", **more}}
        async with serving(home, servers, KEY="k1") as source:
            yield there, source


async def test_a_server_is_reached_with_its_headers(tmp_path: Path) -> None:
    """What the user gave it is sent to it, with each request."""
    async with reached(tmp_path, headers={"X-Key": "${KEY}"}) as (there, source):
        tools = by_name(await source.tools(Chat()))
        assert (await run(tools["mcp_a_say"])).content == "said"
        assert source.overview()["servers"][0]["state"] == "ready"
        assert {head.get("X-Key") or head.get("x-key") for _, _, head in there.seen} == {"k1"}


@pytest.mark.parametrize(
    ("mode", "code", "says"),
    [
        ("login", "mcp_login", "searchloop mcp login a"),
        ("points", "mcp_login", "searchloop mcp login a"),
        ("redirect", "mcp_unreachable", "status 307"),
        ("hang", "mcp_timeout", "0.5 seconds"),
        ("garbage", "mcp_unreachable", "cannot be reached"),
        ("nobody", "mcp_unreachable", "cannot be reached"),
    ],
)
async def test_servers_that_cannot_be_used(tmp_path: Path, mode: str, code: str, says: str) -> None:
    """Named, with what to do; no other address is ever asked for."""
    with site(mode) as there:
        url = "http://127.0.0.1:1/mcp" if mode == "nobody" else f"{there.url}/mcp"
        error = await error_of(tmp_path, url, 0.5 if mode == "hang" else 10.0)
        assert error["code"] == code
        assert says in error["message"] + error["remedy"]
        assert set(there.paths()) <= {"/mcp"}
        # Half a second may be over before anything is sent.
        assert there.paths() or mode in ("hang", "nobody")


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("SEARCHLOOP_OFFLINE", "1", "offline"),
        ("SSL_CERT_FILE", "/nowhere/ca.pem", "bad_certificates"),
        ("https_proxy", "http://secret:abc", "bad_proxy"),
        ("https_proxy", "http://[secret", "bad_proxy"),
    ],
)
async def test_an_environment_that_lets_nobody_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, code: str
) -> None:
    """One sentence names the setting, and nothing of a proxy's password."""
    monkeypatch.setenv(name, value)
    error = await error_of(tmp_path, "https://mcp.example/mcp", **{name: value})
    assert error["code"] == code
    assert name.upper() in error["message"] + error["remedy"]
    assert "secret" not in str(error)


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:1", "http://secret:abc", "socks5://[x"])
async def test_this_machine_needs_no_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """A server here, and its key, are taken to no proxy, which may be one that cannot be used."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with reached(tmp_path) as (_, source):
        assert by_name(await source.tools(Chat()))


@pytest.mark.parametrize(
    ("given", "mode", "remedy"),
    [
        ({"args": ["-c", "exit(3)"]}, "", " -c 'exit(3)'"),
        ({"startup_timeout": 0.01}, "", "Run it by itself to see why: "),
        ({"url": "http://127.0.0.1:1/mcp"}, "", "Check its address: http://127.0.0.1:1/mcp"),
        ({"url": "SITE"}, "login", "searchloop mcp add a --url SITE, then searchloop mcp login a"),
    ],
)
async def test_a_server_of_a_program_has_its_own_remedy(
    tmp_path: Path, given: dict[str, Any], mode: str, remedy: str
) -> None:
    """The commands know those of files only; such a server stays when settings change."""
    with site(mode or "ok") as there:
        at = f"{there.url}/mcp"
        given = {key: at if value == "SITE" else value for key, value in given.items()}
        given |= {} if "url" in given else {"command": sys.executable}
        source = Patient(settings_of(tmp_path), given={"a": McpServer(**given)})  # type: ignore[typeddict-item]
        source.use(settings_of(tmp_path))
        try:
            assert await source.tools(Chat()) == []
            [notice] = source.notices(Chat())
            assert remedy.replace("SITE", at) in notice["remedy"]
            assert "mcp test" not in notice["remedy"]
        finally:
            await source.aclose()


async def test_an_answer_has_an_end(tmp_path: Path) -> None:
    """A body of nine megabytes is not read, and the next call works."""
    async with reached(tmp_path, "huge") as (there, source):
        tools = by_name(await source.tools(Chat()))
        with pytest.raises(ToolError, match="8 MB"):
            await run(tools["mcp_a_say"])
        there.mode = "ok"
        assert (await run(tools["mcp_a_say"])).content == "said"


async def test_what_runs_as_a_task_only_is_not_offered(tmp_path: Path) -> None:
    """A tool that could never work is left out, with a word on why; others stay."""
    async with reached(tmp_path) as (_, source):
        tools = by_name(await source.tools(Chat()))
        assert set(tools) == {"mcp_a_say", "mcp_a_task_optional", "mcp_a_task_forbidden"}
        (report,) = source.overview()["servers"]
        assert list(report["oddities"]) == ["'task_required' runs as a task only; it is left out."]


def visit(address: str) -> int:
    """A browser that comes back."""
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def logged_in(home: Path, there: Site, **oauth: object) -> str:
    """Logs in as a user would; the address that was shown."""
    write(home, {"a": {"url": f"{there.url}/mcp", "oauth": oauth}})
    server = Catalogue(home, {}).find(None).servers[0]
    shown: list[str] = []
    loop = asyncio.new_event_loop()

    def show(address: str) -> None:
        shown.append(address)
        query = parse_qs(urlsplit(address).query)
        back = query["redirect_uri"][0]
        assert urlsplit(back).hostname == "127.0.0.1"

        def browse() -> None:
            assert visit(f"{back}?code=evil&state=guessed") == 404
            assert visit(f"{back}?code=c1&state={query['state'][0]}") == 200

        loop.run_in_executor(None, browse)

    try:
        loop.run_until_complete(log_in(server, home, show))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    return shown[0]


def token_in(kept: Path) -> str:
    """The token of the only server."""
    [known] = json.loads(kept.read_text()).values()
    return str(known["tokens"]["access_token"])


def test_a_login_is_kept_and_used(tmp_path: Path) -> None:
    """By the address of the server, readable by the user alone; a refresh needs no person."""
    with site("login") as there:
        shown = logged_in(tmp_path, there)
        assert shown.startswith(f"{there.url}/oauth/authorize?")
        assert parse_qs(urlsplit(shown).query)["code_challenge_method"] == ["S256"]
        kept = tmp_path / "mcp_tokens.json"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert token_in(kept) == "token-1"

        async def scenario() -> None:
            async with serving(tmp_path) as source:
                tools = by_name(await source.tools(Chat()))
                assert (await run(tools["mcp_a_say"])).content == "said"
                assert "token-" not in json.dumps(source.overview()["servers"])
                assert there.token in source.secrets(None).values()

        asyncio.run(scenario())
        value = json.loads(kept.read_text())
        value[f"{there.url}/mcp"]["expires"] = 1.0
        kept.write_text(json.dumps(value))
        asyncio.run(scenario())
        assert (there.refreshed, there.token) == (1, "token-2")
        assert token_in(kept) == "token-2"
        there.token = "revoked"
        assert asyncio.run(error_of(tmp_path))["code"] == "mcp_login"


def test_a_login_that_is_not_one(tmp_path: Path) -> None:
    """A server that asks for none, one on this machine, and nothing may leave."""
    with site() as there, pytest.raises(AgentError, match="asks for no login"):
        logged_in(tmp_path, there)
    write(tmp_path, {"a": {"command": "x"}, "b": {"url": "https://mcp.example/"}})
    local, remote = Catalogue(tmp_path, {}).find(None).servers
    with pytest.raises(AgentError, match="has no login"):
        asyncio.run(log_in(local, tmp_path, print))
    with pytest.raises(AgentError, match="nothing may leave"):
        asyncio.run(log_in(remote, tmp_path, print, offline=True))


@each_row(
    ("server", "asked", "may"),
    [
        ("https://mcp.example/", "https://login.example/token", True),
        ("https://mcp.example/", "https://10.0.0.5/token", False),
        ("https://mcp.example/", "https://2130706433/", False),
        ("https://mcp.example/", "https://127.1/", False),
        ("https://mcp.example/", "https://0x7f.0x1/", False),
        ("https://mcp.example/", "https://[fd00::1]/", False),
        ("https://mcp.example/", "https://vault/v1", False),
        ("https://mcp.example/", "https://metadata.google.internal./", False),
        ("https://mcp.example/", "http://127.0.0.1:80/token", False),
        ("https://mcp.example/", "https://localhost./", False),
        ("https://mcp.example/", "https://[::ffff:127.0.0.1]/", False),
        ("https://mcp.example/", "https://router.lan/", False),
        ("https://mcp.example/", "http://login.example/authorize", False),
        ("https://mcp.example/", "file:///etc/passwd", False),
        ("https://mcp.corp/", "https://login.corp/token", True),
        ("http://127.0.0.1:9/", "http://localhost:80/token", True),
    ],
)
def test_a_login_asks_nobody_inside(server: str, asked: str, may: bool, tmp_path: Path) -> None:
    """A server of the internet names no address of this network, for us or for the browser, and
    none without https; one of this network may.
    """
    write(tmp_path, {"a": {"url": server}})
    [found] = Catalogue(tmp_path, {}).find(None).servers
    shown = list[str]()
    login = _Callback(shown.append)
    login.redirect = "http://127.0.0.1:9/callback"
    tokens = Tokens(tmp_path, found, login)
    assert tokens.allows(asked) is may
    provider: Any = tokens.auth()
    told = nullcontext() if may else pytest.raises(AgentError, match="not on a public https://")
    with told:
        asyncio.run(provider.context.redirect_handler(asked))
    assert shown == [asked] * may


def test_a_client_registered_by_hand_is_used(tmp_path: Path) -> None:
    """`oauth.clientId` of the server's settings; nothing is registered then."""
    with site("login") as there:
        shown = logged_in(tmp_path, there, clientId="mine", scope="read")
        query = parse_qs(urlsplit(shown).query)
        assert query["client_id"] == ["mine"]
        assert there.registered == {}
