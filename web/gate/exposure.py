"""Exposure: what is open to whom, each with the command that closes it.

It looks at settings, files and ports of this machine. It asks no server outside and starts nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from searchloop.agent.errors import AgentError
from searchloop.agent.guard.guard import load_policy
from searchloop.agent.log import EventLog
from searchloop.agent.mcp import McpServers
from searchloop.agent.settings import Settings, is_on
from searchloop.agent.settings.secrets import masked
from searchloop.web.compose import library_of, used_engines
from searchloop.web.gate.access import SHORTEST, TOKEN_FILE, People
from searchloop.web.listen import PORT, reachable

BACKEND_PORT = 3002
_NEW_TOKEN = "export SEARCHLOOP_TOKEN=$(openssl rand -hex 32)"
_MANY = 1000  # sessions that are looked through for workspaces


@dataclass(frozen=True, slots=True)
class Exposure:
    """One thing, who can use it, in words. `wide`: somebody can whom nobody chose to let in."""

    what: str
    said: str
    command: str = ""
    wide: bool = False


def exposures(settings: Settings, cwd: Path) -> list[Exposure]:
    """Returns all of them; a part that cannot be looked at says why."""
    parts: tuple[Callable[[Settings], Iterable[Exposure]], ...] = (
        *(_address, _token, _people, partial(_files, cwd=cwd), _outside, _engines),
        *(_library, _workspaces, _servers, _rules),
    )
    found: list[Exposure] = []
    for part in parts:
        try:
            found += part(settings)
        except (AgentError, OSError) as error:
            found.append(Exposure("Unknown", f"something cannot be looked at: {error}"))
    return found


def _address(settings: Settings) -> Iterator[Exposure]:
    for port, what in ((PORT, "Web UI"), (BACKEND_PORT, "Search backend")):
        here, far = reachable(port)
        close = f"searchloop {'serve' if port == PORT else 'search-backend serve'} --host 127.0.0.1"
        if far:
            said = f"port {port} answers other machines, at {', '.join(far)}, without encryption"
            yield Exposure(what, f"{said}; they need the token", f"stop it, then: {close}")
        elif here:
            who = "programs and users of this machine reach"
            yield Exposure(what, f"{who} port {port}; other machines do not")
        else:
            yield Exposure(what, f"nobody: nothing answers at port {port}")
    public = settings.env.get("SEARCHLOOP_PUBLIC_URL") or ""
    if public:
        plain = not public.lower().startswith("https://")
        said = f"whoever reaches {public}" + (", without encryption" if plain else "")
        close = "export SEARCHLOOP_PUBLIC_URL=https://NAME" if plain else ""
        yield Exposure("Proxy", said, close, wide=plain)


def _token(settings: Settings) -> Iterator[Exposure]:
    path = settings.home / TOKEN_FILE
    if settings.token:
        where = settings.env.origin("SEARCHLOOP_TOKEN")
        if len(settings.token) >= SHORTEST:
            said = f"whoever knows what {where} sets reads every chat and spends with your keys"
            yield Exposure("Token", said, _NEW_TOKEN)
        else:
            said = f"it has {len(settings.token)} characters, which other users can guess"
            yield Exposure("Token", said, _NEW_TOKEN, wide=True)
    elif path.exists():
        said = f"browsers that signed in, and whoever can read {path}"
        yield Exposure("Token", said, "searchloop config --new-token")
    else:
        yield Exposure("Token", "nobody: the first start makes one")


def _people(settings: Settings) -> Iterator[Exposure]:
    people = People.of(settings.env)
    if people is None:
        yield Exposure("People", "whoever has the token is you; nobody else has chats of their own")
        return
    count = sum(1 for _ in settings.home.glob("people/*/name"))
    header, close = people.header.decode(), "export SEARCHLOOP_TRUSTED_PROXIES=ADDRESS_OF_THE_PROXY"
    for network in people.proxies:
        wide = network.num_addresses > 256
        if network.is_loopback:
            said = "every program and user of this machine can name itself anybody"
        else:
            said = f"whoever sends from {network} can name itself anybody"
        yield Exposure("People", f"{said} by the header {header}", close, wide)
    admins = ", ".join(sorted(people.admins)) or "only the holder of the token"
    yield Exposure("People", f"{count} so far, each with their own; use is seen by: {admins}")


def _files(settings: Settings, cwd: Path) -> Iterator[Exposure]:
    """Says who may read the data folder, and a `.env` with keys."""
    home, opened = settings.home, []
    if os.name == "posix" and home.is_dir():
        private = stat.S_IMODE(home.stat().st_mode) & 0o077 == 0
        inside = [] if private else [*home.iterdir()]
        opened = [p.name for p in inside if p.is_file() and p.stat().st_mode & 0o044]
    if opened:
        said = f"other users of this machine can read {', '.join(sorted(opened)[:5])} in {home}"
        yield Exposure("Data folder", said, f"chmod 700 {home}", wide=True)
    else:
        yield Exposure("Data folder", f"only you: {home}")
    env = cwd / ".env"
    if os.name == "posix" and env.is_file() and env.stat().st_mode & 0o044:
        said = f"other users of this machine can read the keys in {env}"
        yield Exposure("Keys", said, f"chmod 600 {env}", wide=True)


def _outside(settings: Settings) -> Iterator[Exposure]:
    env = settings.env
    if settings.offline:
        yield Exposure("Network", "nobody: SEARCHLOOP_OFFLINE lets nothing leave this machine")
    for name, what in (
        ("SEARCHLOOP_OTEL_ENDPOINT", "gets times and counts of each answer, no content"),
        ("SEARCH_BACKEND_URL", "gets every search and every address that is opened"),
        ("SEARCHLOOP_DATABASE_URL", "holds every chat; who can log in there reads it"),
    ):
        if env.get(name):
            place = "the database" if name == "SEARCHLOOP_DATABASE_URL" else masked(env[name])
            yield Exposure("Network", f"{place} {what}", f"unset {name}")
    if ranges := env.get("SEARCH_ALLOW_RANGES"):
        said = f"pages and models may lead searchloop to private addresses in {ranges}"
        yield Exposure("Network", said, "unset SEARCH_ALLOW_RANGES")
    if is_on(env.get("SEARCHLOOP_TRACE")):
        said = "answers of providers are kept with each chat, as they came"
        yield Exposure("Trace", said, "unset SEARCHLOOP_TRACE")


def _engines(settings: Settings) -> Iterator[Exposure]:
    remote = [] if settings.offline else used_engines(settings)
    if remote:
        said = f"with search on, {', '.join(remote)} get the search words, and sites get requests"
        yield Exposure("Search engines", said, "export SEARCHLOOP_OFFLINE=1")
    else:
        yield Exposure("Search engines", "nobody: none outside is asked")


def _library(settings: Settings) -> Iterator[Exposure]:
    for path in library_of(settings):
        said = f"every chat that searches can find what is in {path}, and its model gets it"
        yield Exposure("Library", said, f"searchloop library remove {path}")


def _workspaces(settings: Settings) -> Iterator[Exposure]:
    with closing(EventLog(settings.store)) as log:
        sessions = log.sessions(limit=_MANY)
    counts: dict[str, int] = {}
    for session in sessions:
        if session.workspace:
            counts[session.workspace] = counts.get(session.workspace, 0) + 1
    for folder, count in sorted(counts.items()):
        chats = "1 chat" if count == 1 else f"{count} chats"
        said = f"the models of {chats} read {folder}, and in agent mode change it if you approve"
        yield Exposure("Workspace", said, "delete those chats, or remove the folder in their menu")


def _servers(settings: Settings) -> Iterator[Exposure]:
    for server in McpServers(settings).catalogue.find(None).servers:
        if not server.disabled:
            program = "a program that runs with all your rights" if server.kind == "stdio" else ""
            runs = program or masked(" ".join(server.shown))
            said = f"{runs}; models call its tools, and what they say is not trusted"
            yield Exposure(
                f"MCP server {server.name}", said, f"searchloop mcp disable {server.name}"
            )


def _rules(settings: Settings) -> Iterator[Exposure]:
    policy = load_policy(settings.home)
    allowing = sum(rule.action == "allow" for rule in policy.rules)
    if allowing:
        said = f"{allowing} of your rules let calls run without asking you"
        yield Exposure("Rules", said, f"look at {settings.home / 'policy.json'}")
    if policy.private_and_untrusted == "allow":
        said = "private data may leave in a chat that has read pages of others, without asking you"
        yield Exposure("Rules", said, "remove private_and_untrusted from policy.json")
