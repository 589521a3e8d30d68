"""Exposure: what is open to whom, each with the command that closes it.

It looks at settings, files and ports of this machine. It asks no server outside and starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from searchloop.agent.errors import AgentError
from searchloop.agent.guard.guard import load_policy
from searchloop.agent.log import EventLog
from searchloop.agent.mcp import McpServers
from searchloop.agent.settings import Settings
from searchloop.agent.settings.secrets import masked
from searchloop.compose import library_of, used_engines
from searchloop.protocols.programs import Programs
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
    parts = (
        _address,
        _token,
        _programs,
        _people,
        partial(_files, cwd=cwd),
        _outside,
        _inside,
        _rules,
    )
    found: list[Exposure] = []
    for part in parts:
        try:
            found += part(settings)
        except (AgentError, OSError) as error:
            found.append(Exposure("Unknown", f"something cannot be looked at: {error}"))
    return found


def _address(settings: Settings) -> Iterator[Exposure]:
    for port, what, command in (
        (PORT, "Web UI", "serve"),
        (BACKEND_PORT, "Search backend", "search-backend serve"),
    ):
        here, far = reachable(port)
        if far:
            said = f"port {port} answers other machines, at {far}, without encryption"
            close = f"stop it, then: searchloop {command} --host 127.0.0.1"
            yield Exposure(what, f"{said}; they need the token", close)
        else:
            who = "programs and users of this machine" if here else "nobody"
            yield Exposure(what, f"{who}, at port {port}")
    public = settings.env.get("SEARCHLOOP_PUBLIC_URL") or ""
    if public:
        plain = not public.lower().startswith("https://")
        said = f"whoever reaches {public}" + (", without encryption" if plain else "")
        close = "export SEARCHLOOP_PUBLIC_URL=https://NAME" if plain else ""
        yield Exposure("Proxy", said, close, wide=plain)


def _token(settings: Settings) -> Iterator[Exposure]:
    path = settings.home / TOKEN_FILE
    if settings.token:
        short = len(settings.token) < SHORTEST
        where = settings.env.origin("SEARCHLOOP_TOKEN")
        said = f"whoever knows what {where} sets reads every chat and spends with your keys"
        said = "it is so short that others can guess it" if short else said
        yield Exposure("Token", said, _NEW_TOKEN, wide=short)
    else:
        said = f"browsers that signed in, and whoever can read {path}"
        yield Exposure("Token", said, "searchloop config --new-token")


def _programs(settings: Settings) -> Iterator[Exposure]:
    with closing(EventLog(settings.store)) as log:
        programs = Programs(log, settings.home).all()
    for each in programs:
        asks = f"asks {', '.join(each.models)}" if each.models else "asks no model"
        said = f"its key lets it search ({each.search}) and read the library; it {asks}"
        close = "look at Settings, Other programs, on the page"
        yield Exposure(f"Program {each.name}", said, close)


def _people(settings: Settings) -> Iterator[Exposure]:
    people = People.of(settings.env)
    if people is None:
        yield Exposure("People", "whoever has the token is you; nobody else has chats of their own")
        return
    header, close = people.header.decode(), "export SEARCHLOOP_TRUSTED_PROXIES=ADDRESS_OF_THE_PROXY"
    for network in people.proxies:
        said = f"whoever sends from {network} can name itself anybody by the header {header}"
        yield Exposure("People", said, close, wide=network.num_addresses > 256)
    admins = ", ".join(sorted(people.admins)) or "only the holder of the token"
    yield Exposure("People", f"the use of each person is seen by: {admins}")


def _files(settings: Settings, cwd: Path) -> Iterator[Exposure]:
    """Says who may read the data folder, and a `.env` with keys."""
    home, env = settings.home, cwd / ".env"
    inside = [*home.iterdir()] if home.is_dir() and _open(home, 0o077) else []
    opened = sorted(path.name for path in inside if path.is_file() and _open(path, 0o044))
    said = f"other users of this machine can read {', '.join(opened[:5])} in {home}"
    closed = Exposure("Data folder", f"only you: {home}")
    yield Exposure("Data folder", said, f"chmod 700 {home}", wide=True) if opened else closed
    if env.is_file() and _open(env, 0o044):
        said = f"other users of this machine can read the keys in {env}"
        yield Exposure("Keys", said, f"chmod 600 {env}", wide=True)


def _open(path: Path, rights: int) -> bool:
    return os.name == "posix" and bool(path.stat().st_mode & rights)


_SETTINGS = (  # each that lets something out, and what it does
    ("SEARCHLOOP_OTEL_ENDPOINT", "gets times and counts of each answer, no content"),
    ("SEARCH_BACKEND_URL", "gets every search and every address that is opened"),
    ("SEARCHLOOP_DATABASE_URL", "holds every chat; who can log in there reads it"),
    ("SEARCH_ALLOW_RANGES", "are private addresses to which pages and models may lead searchloop"),
)


def _outside(settings: Settings) -> Iterator[Exposure]:
    for name, what in _SETTINGS:
        if value := settings.env.get(name):
            place = "the database" if name == "SEARCHLOOP_DATABASE_URL" else masked(value)
            yield Exposure("Network", f"{place} {what}", f"unset {name}")
    remote = [] if settings.offline else used_engines(settings)
    if settings.offline:
        yield Exposure("Network", "nobody: SEARCHLOOP_OFFLINE lets nothing leave this machine")
    if remote:
        said = f"with search on, {', '.join(remote)} get the search words, and sites get requests"
        yield Exposure("Search engines", said, "export SEARCHLOOP_OFFLINE=1")


def _inside(settings: Settings) -> Iterator[Exposure]:
    """Says what models can use of this machine: folders and MCP servers."""
    for path in library_of(settings):
        said = f"every chat that searches can find what is in {path}, and its model gets it"
        yield Exposure("Library", said, f"searchloop library remove {path}")
    with closing(EventLog(settings.store)) as log:
        folders = {session.workspace for session in log.sessions(limit=_MANY)}
    for folder in sorted(filter(None, folders)):
        said = f"models of chats read {folder}, and in agent mode change it if you approve"
        yield Exposure("Workspace", said, "delete those chats, or remove the folder in their menu")
    for server in McpServers(settings).catalogue.find(None).servers:
        if not server.disabled:
            far = masked(" ".join(server.shown))
            runs = "a program with all your rights" if server.kind == "stdio" else far
            said = f"{runs}; models call its tools, and what they say is not trusted"
            close = f"searchloop mcp disable {server.name}"
            yield Exposure(f"MCP server {server.name}", said, close)


def _rules(settings: Settings) -> Iterator[Exposure]:
    policy = load_policy(settings.home)
    allowing = sum(rule.action == "allow" for rule in policy.rules)
    if allowing:
        said = f"{allowing} of your rules let calls run without asking you"
        yield Exposure("Rules", said, f"look at {settings.home / 'policy.json'}")
    if policy.private_and_untrusted == "allow":
        said = "private data may leave in a chat that has read pages of others, without asking you"
        yield Exposure("Rules", said, "remove private_and_untrusted from policy.json")
